"""Quantiles of each predicted value, fitted by the pinball loss (Koenker & Bassett 1978, "Regression Quantiles").

They cannot cross: what is predicted beside the median is how far each quantile lies from its neighbour.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from statistics import NormalDist

import torch
import torch.nn.functional as F
from torch import Tensor

from tsformer.errors import PluginError, UsageError
from tsformer.nn import softplus
from tsformer.nn.judged import Judged


class Quantiles(Judged):
    """Quantiles at fixed probabilities.

    Number 0 is the median. The others, in the order of their probabilities, are made positive by softplus, and are the
    distance of each quantile from the one next to it on the side of the median, in units of that distance in a standard
    normal distribution: equal numbers describe a normal distribution.

    Args:
        levels: probabilities, ascending, each in (0, 1), 0.5 among them.

    Raises:
        PluginError: for other levels.
    """

    name = "quantiles"

    def __init__(self, levels: Sequence[float]) -> None:
        if 0.5 not in levels or list(levels) != sorted(set(levels)) or not 0 < levels[0] <= levels[-1] < 1:
            raise PluginError(f"quantiles need ascending probabilities in (0, 1), 0.5 among them, not {tuple(levels)}")
        self.levels = tuple(levels)
        self.outputs = len(self.levels)
        self.below = self.levels.index(0.5)  # so many lie below the median
        normal = [NormalDist().inv_cdf(level) for level in self.levels]
        self.gaps = [b - a for a, b in itertools.pairwise(normal)]

    def values(self, prediction: Tensor) -> Tensor:
        """The quantiles, ascending: `[..., outputs]` to `[..., levels]`."""
        median = prediction[..., :1]
        steps = F.softplus(prediction[..., 1:]) * prediction.new_tensor(self.gaps)
        low, high = steps[..., : self.below], steps[..., self.below :]
        down = low.flip(-1).cumsum(-1).flip(-1)
        return torch.cat([median - down, median, median + high.cumsum(-1)], dim=-1)

    def costs(self, prediction: Tensor, future: Tensor) -> Tensor:
        """The mean pinball loss over all levels."""
        errors = future[..., None] - self.values(prediction)
        levels = errors.new_tensor(self.levels)
        return torch.maximum(levels * errors, (levels - 1.0) * errors).mean(-1)

    def point(self, prediction: Tensor) -> Tensor:
        """The median: `[batch, horizon, targets, outputs]` to `[batch, horizon, targets]`."""
        return prediction[..., 0]

    def quantiles(self, prediction: Tensor, probabilities: Sequence[float]) -> Tensor:
        """`[batch, horizon, targets, probabilities]`; between two that were trained they lie on a straight line.

        Raises:
            UsageError: for one beyond the outermost that was trained.
        """
        beyond = [p for p in probabilities if not self.levels[0] - 1e-9 <= p <= self.levels[-1] + 1e-9]
        if beyond:
            raise UsageError(
                f"quantiles were trained from {self.levels[0]:g} to {self.levels[-1]:g}, and "
                f"{', '.join(f'{p:.10g}' for p in beyond)} lies beyond: ask for narrower intervals, or fit with "
                f"{' '.join(f'--train.quantiles {p:.10g}' for p in sorted({*self.levels, *beyond} - {0.5}))}"
            )
        wanted = prediction.new_tensor(probabilities).clamp(self.levels[0], self.levels[-1])
        return self._at(self.values(prediction), wanted.expand(*prediction.shape[:-1], len(probabilities)))

    def sample(self, prediction: Tensor) -> Tensor:
        """`[batch, horizon, targets, outputs]` to `[batch, horizon, targets]`, by the inverse of the distribution.

        Beyond the outermost quantiles the tails are exponential, and their density goes on where that between the two
        outermost ends.

        Raises:
            UsageError: when there are no quantiles on one side of the median.
        """
        if self.below in (0, self.outputs - 1):
            raise UsageError(
                "paths are drawn from quantiles on both sides of 0.5: fit with more of them, as with "
                "--train.quantiles 0.1 --train.quantiles 0.9"
            )
        values = self.values(prediction.detach())
        draws = torch.rand_like(values[..., :1])
        tiny = torch.finfo(draws.dtype).tiny
        first, last = self.levels[0], self.levels[-1]
        drawn = self._at(values, draws.clamp(first, last))
        left = (values[..., 1:2] - values[..., :1]) * (first / (self.levels[1] - first))
        right = (values[..., -1:] - values[..., -2:-1]) * ((1 - last) / (last - self.levels[-2]))
        drawn = drawn + left * (draws / first).clamp(tiny, 1.0).log()
        drawn = drawn - right * ((1.0 - draws) / (1.0 - last)).clamp(tiny, 1.0).log()
        return drawn[..., 0]

    def _at(self, values: Tensor, probabilities: Tensor) -> Tensor:
        """Between the quantiles, `[..., levels]`, at probabilities `[..., any]` within the outermost levels."""
        if self.outputs == 1:
            return values.expand_as(probabilities)
        levels = values.new_tensor(self.levels)
        right = torch.searchsorted(levels, probabilities.contiguous()).clamp(1, self.outputs - 1)
        share = (probabilities - levels[right - 1]) / (levels[right] - levels[right - 1])
        return torch.lerp(values.gather(-1, right - 1), values.gather(-1, right), share)

    def rescale(self, prediction: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        """`[batch, horizon, targets, outputs]` to the same."""
        scale = scale[..., None]
        median = prediction[..., :1] * scale + shift[..., None]
        return torch.cat([median, softplus.rescaled(prediction[..., 1:], scale)], dim=-1)
