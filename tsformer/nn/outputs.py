"""What is predicted of each target, and the loss that fits it.

Decoders and models know only `Output`: how many numbers describe one value, what to feed back, and how they follow an
affine change of the target. Any real numbers are a valid prediction, so that a head may be a plain linear map; the
first of them says where the value is, and the others how it scatters. A new kind of output is a class, a line in
`OUTPUTS`, and its name among the choices of `TrainConfig.output`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from tsformer.data.windows import Batch
from tsformer.errors import PluginError, UsageError
from tsformer.nn.objective import Verdict, mean_verdict
from tsformer.plugin import Problem

SMALLEST_SCALE = 1e-6
"""Of a normal distribution, so that a value which is predicted exactly still has a finite likelihood."""


class Output(Protocol):
    """What a prediction `[batch, horizon, targets, outputs]` means.

    Attributes:
        name: as in `Problem.output`.
        outputs: numbers that describe one predicted value.
        probabilistic: True when it says how values scatter, so that they can be drawn.
    """

    truth: float

    @property
    def name(self) -> str: ...

    @property
    def outputs(self) -> int: ...

    @property
    def probabilistic(self) -> bool: ...

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


class _Judged:
    """Numbers are judged by their mean loss, of forecasts that run freely."""

    truth = 0.0

    def loss(self, prediction: Tensor, batch: Batch) -> Tensor:
        raise NotImplementedError

    def tally(self, prediction: Tensor, batch: Batch) -> Tensor:
        """The loss times the real values, and their count: `[2]`."""
        loss = self.loss(prediction, batch).float()
        whole = torch.tensor(prediction[..., 0].numel(), device=loss.device)
        count = whole if batch.future_mask is None else batch.future_mask.sum()
        return torch.stack([loss * count, count.to(loss.dtype)])

    def verdict(self, tally: Sequence[float]) -> Verdict:
        """The mean loss."""
        return mean_verdict(tally)


class Point(_Judged):
    """One number for each value.

    Args:
        loss: "mse", "mae", "huber" or "log_cosh".
        delta: of huber, the error above which the loss is no longer squared but absolute.

    Raises:
        UsageError: when there is no such loss.
    """

    name = "point"
    outputs = 1
    probabilistic = False

    def __init__(self, loss: str = "mse", delta: float = 1.0) -> None:
        losses: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
            "mse": lambda point, future: F.mse_loss(point, future, reduction="none"),
            "mae": lambda point, future: F.l1_loss(point, future, reduction="none"),
            "huber": lambda point, future: F.huber_loss(point, future, reduction="none", delta=delta),
            "log_cosh": lambda point, future: log_cosh(point - future),
        }
        if loss not in losses:
            raise UsageError(f"unknown loss '{loss}' for a point forecast; known: {', '.join(sorted(losses))}")
        self._loss = losses[loss]

    def loss(self, prediction: Tensor, batch: Batch) -> Tensor:
        """`[batch, horizon, targets, 1]` to a scalar."""
        prediction, future, mask = _real(prediction, batch, self.outputs)
        return _mean(self._loss(self.point(prediction), future), mask)

    def point(self, prediction: Tensor) -> Tensor:
        """`[batch, horizon, targets, 1]` to `[batch, horizon, targets]`."""
        return prediction.squeeze(-1)

    def quantiles(self, prediction: Tensor, probabilities: Sequence[float]) -> Tensor:
        """Raises UsageError."""
        raise UsageError("a point forecast has no quantiles of its own; fit with --train.output quantiles or normal")

    def sample(self, prediction: Tensor) -> Tensor:
        """Raises UsageError."""
        raise UsageError("a point forecast has no distribution to draw from; output normal has one")

    def rescale(self, prediction: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        """`[batch, horizon, targets, 1]` to the same."""
        return prediction * scale[..., None] + shift[..., None]


class Normal(_Judged):
    """A normal distribution for each value: its mean, and the number whose softplus is its standard deviation.

    Fitted by the negative log-likelihood of the values.
    """

    name = "normal"
    outputs = 2
    probabilistic = True

    def loss(self, prediction: Tensor, batch: Batch) -> Tensor:
        """`[batch, horizon, targets, 2]` to a scalar, which may be negative."""
        prediction, future, mask = _real(prediction, batch, self.outputs)
        mean, scale = self.parameters(prediction)
        errors = 0.5 * ((future - mean) / scale).square() + scale.log() + 0.5 * math.log(2.0 * math.pi)
        return _mean(errors, mask)

    def parameters(self, prediction: Tensor) -> tuple[Tensor, Tensor]:
        """`[..., 2]` to mean and standard deviation, `[...]` each."""
        mean, raw = prediction.unbind(-1)
        return mean, F.softplus(raw) + SMALLEST_SCALE

    def point(self, prediction: Tensor) -> Tensor:
        """The mean: `[batch, horizon, targets, 2]` to `[batch, horizon, targets]`."""
        return prediction[..., 0]

    def quantiles(self, prediction: Tensor, probabilities: Sequence[float]) -> Tensor:
        """`[batch, horizon, targets, 2]` to `[batch, horizon, targets, probabilities]`."""
        mean, scale = self.parameters(prediction)
        return mean[..., None] + scale[..., None] * torch.special.ndtri(mean.new_tensor(probabilities))

    def sample(self, prediction: Tensor) -> Tensor:
        """`[batch, horizon, targets, 2]` to `[batch, horizon, targets]`."""
        mean, scale = self.parameters(prediction.detach())
        return mean + scale * torch.randn_like(mean)

    def rescale(self, prediction: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        """`[batch, horizon, targets, 2]` to the same."""
        mean, raw = prediction.unbind(-1)
        # SMALLEST_SCALE is left out: it is added at the end, in the units of the target. A floor here would be flat,
        # and a spread that has come below it could never widen again.
        spread = F.softplus(raw)
        raw = _inverse_softplus(spread * scale, _log_softplus(raw) + scale.log())
        return torch.stack([mean * scale + shift, raw], dim=-1)


OUTPUTS: dict[str, Callable[[str, float, tuple[float, ...]], Output]] = {
    "point": lambda loss, delta, quantiles: Point(loss, delta),
    "normal": lambda loss, delta, quantiles: Normal(),
}
"""By name, what builds an output: from loss and delta of a point forecast, and the probabilities of quantiles."""

_LINEAR_BELOW = -8.0  # of the logarithm of a softplus: there it is its argument, up to terms below float32


def build_output(name: str, loss: str = "mse", delta: float = 1.0, quantiles: tuple[float, ...] = ()) -> Output:
    """The output of a name.

    Args:
        name: as in `Problem.output`.
        loss, delta: of a point forecast; see `Point`. Other outputs have a loss of their own.
        quantiles: probabilities of the quantiles that are predicted, for output quantiles.

    Raises:
        PluginError: when there is no such output.
        UsageError: when there is no such loss.
    """
    if name not in OUTPUTS:
        raise PluginError(f"unknown output '{name}'; known: {', '.join(sorted(OUTPUTS))}")
    return OUTPUTS[name](loss, delta, quantiles)


def output_of(problem: Problem, loss: str = "mse", delta: float = 1.0) -> Output:
    """The output that a problem asks for; otherwise like `build_output`."""
    return build_output(problem.output, loss, delta, problem.quantiles)


def log_cosh(x: Tensor) -> Tensor:
    """log(cosh(x)), elementwise: x^2 / 2 near 0, |x| - log 2 far away, where cosh itself would overflow."""
    # The terms cancel near 0. In float32 the value is off by up to 1e-7, which hides x^2 / 2 for |x| below 5e-4; so is
    # the gradient, tanh(x), but of that 1e-7 is next to nothing.
    x = x.abs()
    return x + F.softplus(-2.0 * x) - math.log(2.0)


def _log_softplus(x: Tensor) -> Tensor:
    """log(softplus(x)), also where softplus itself is no longer above 0 in its precision."""
    small = x - 0.5 * x.clamp_max(_LINEAR_BELOW).exp()
    return torch.where(x < _LINEAR_BELOW, small, F.softplus(x.clamp_min(_LINEAR_BELOW)).log())


def _inverse_softplus(y: Tensor, log_y: Tensor) -> Tensor:
    """log(exp(y) - 1), of y and its logarithm; the latter alone is needed, and may be far below 0, where y is small."""
    small = log_y + 0.5 * log_y.clamp_max(_LINEAR_BELOW).exp()
    y = y.clamp_min(math.exp(_LINEAR_BELOW))
    return torch.where(log_y < _LINEAR_BELOW, small, y + torch.log(-torch.expm1(-y)))


def _real(prediction: Tensor, batch: Batch, outputs: int) -> tuple[Tensor, Tensor, Tensor | None]:
    """Prediction and future with zeros where nothing real stands: a NaN there must not reach any product."""
    if batch.future is None:
        raise ValueError("a loss needs batch.future")
    if prediction.shape != (*batch.future.shape, outputs):  # which torch would stretch silently
        raise ValueError(f"a prediction {tuple(prediction.shape)} does not fit a future {tuple(batch.future.shape)}")
    mask = batch.future_mask
    if mask is None:
        return prediction, batch.future, None
    return torch.where(mask[..., None], prediction, 0.0), torch.where(mask, batch.future, 0.0), mask


def _mean(errors: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return errors.mean()
    return torch.where(mask, errors, 0.0).sum() / mask.sum().clamp_min(1)
