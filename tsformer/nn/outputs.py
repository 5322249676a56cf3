"""What is predicted of each target, and the loss that fits it.

Decoders and models know only `Output`: how many numbers describe one value, what to feed back, and how they follow an
affine change of the target. Any real numbers are a valid prediction, so that a head may be a plain linear map; the
first of them says where the value is, and the others how it scatters. A new kind of output is a class, a line in
`OUTPUTS`, and its name among the choices of `TrainConfig.output`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from torch import Tensor

from tsformer.data.windows import Batch
from tsformer.errors import PluginError
from tsformer.nn.counts import NegativeBinomial
from tsformer.nn.distributions import Normal, StudentT
from tsformer.nn.objective import Verdict
from tsformer.nn.points import Point
from tsformer.nn.quantiles import Quantiles
from tsformer.plugin import Problem


class Output(Protocol):
    """What a prediction `[batch, horizon, targets, outputs]` means.

    Attributes:
        name: as in `Problem.output`.
        outputs: numbers that describe one predicted value.
        probabilistic: True when it says how values scatter, so that they can be drawn.
        counts: True when values are whole numbers from 0 on, which no affine change leaves so: point and sample are
            then those of the rescaled prediction alone.
    """

    truth: float

    @property
    def name(self) -> str: ...

    @property
    def outputs(self) -> int: ...

    @property
    def probabilistic(self) -> bool: ...

    @property
    def counts(self) -> bool: ...

    def loss(self, prediction: Tensor, batch: Batch) -> Tensor:
        """Mean loss over the real values of `batch.future`, a scalar; 0 when none is real.

        Raises:
            ValueError: when the batch has no future, or one of another shape.
        """
        ...

    def tally(self, prediction: Tensor, batch: Batch) -> Tensor:
        """The loss times the real values, and their count: `[2]`."""
        ...

    def verdict(self, tally: Sequence[float]) -> Verdict:
        """The mean loss."""
        ...

    def point(self, prediction: Tensor) -> Tensor:
        """The point forecast `[batch, horizon, targets]`."""
        ...

    def located(self, point: Tensor) -> Tensor:
        """The location, number 0 of a prediction, of which `point` gives that point forecast; the same shape."""
        ...

    def quantiles(self, prediction: Tensor, probabilities: Sequence[float]) -> Tensor:
        """Quantiles of each value by itself, `[batch, horizon, targets, probabilities]`: they never cross.

        Args:
            probabilities: ascending, each in (0, 1).

        Raises:
            UsageError: when the output is not probabilistic, or does not reach that far into the tails.
        """
        ...

    def sample(self, prediction: Tensor) -> Tensor:
        """One value for each, `[batch, horizon, targets]`, drawn with torch's global generator and without gradient.

        Raises:
            UsageError: when the output is not probabilistic.
        """
        ...

    def rescale(self, prediction: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        """The prediction of `scale * target + shift`, given that of the target.

        `scale` and `shift` broadcast to `[batch, horizon, targets]`, and scale is positive.
        """
        ...


OUTPUTS: dict[str, Callable[[str, float, tuple[float, ...]], Output]] = {
    "point": lambda loss, delta, quantiles: Point(loss, delta),
    "quantiles": lambda loss, delta, quantiles: Quantiles(quantiles),
    "normal": lambda loss, delta, quantiles: Normal(),
    "student_t": lambda loss, delta, quantiles: StudentT(),
    "negative_binomial": lambda loss, delta, quantiles: NegativeBinomial(),
}
"""By name, what builds an output: from loss and delta of a point forecast, and the probabilities of quantiles."""


def build_output(name: str, loss: str = "mse", delta: float = 1.0, quantiles: tuple[float, ...] = ()) -> Output:
    """The output of a name.

    Args:
        name: as in `Problem.output`.
        loss, delta: of a point forecast; see `Point`. Other outputs have a loss of their own.
        quantiles: probabilities of the quantiles that are predicted, for output quantiles.

    Raises:
        PluginError: when there is no such output, or no such quantiles.
        UsageError: when there is no such loss.
    """
    if name not in OUTPUTS:
        raise PluginError(f"unknown output '{name}'; known: {', '.join(sorted(OUTPUTS))}")
    return OUTPUTS[name](loss, delta, quantiles)


def output_of(problem: Problem, loss: str = "mse", delta: float = 1.0) -> Output:
    """The output that a problem asks for; otherwise like `build_output`."""
    return build_output(problem.output, loss, delta, problem.quantiles)
