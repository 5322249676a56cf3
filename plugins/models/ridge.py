"""Ridge regression from the lookback to the horizon, in closed form (Hoerl & Kennard 1970).

One linear map for all series and targets, on lookbacks brought to a common level. Nothing is trained step by step:
normal equations are summed over the windows in float64, one eigendecomposition gives the solution for every penalty,
and the penalty is the one with the least squared error on the validation part. Training options such as the loss change
nothing. Most networks lose to it on long lookbacks, so it is the model to beat.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tsformer.data.windows import Batch, Windows
from tsformer.nn.lookback import Level, numbers_only, points_only, rows, width
from tsformer.plugin import Config, Field, ModelPlugin, Problem

PENALTIES = tuple(10.0 ** (exponent / 2) for exponent in range(-18, 5))
NUMBERS_AT_ONCE = 2**22  # float64 of a chunk: 32 MiB


class RidgeConfig(Config):
    """Options of ridge regression."""

    normalise: Level = Field(
        "last",
        description="what each window is brought to: its last value, its mean and standard deviation, or nothing",
    )
    penalty: float | None = Field(
        None,
        ge=0,
        description="penalty on squared weights, as a multiple of the mean variance of the inputs (default: of 23 from "
        "1e-9 to 100 the best on the validation part)",
    )


class Ridge(nn.Module):
    """A linear map that is the same for every target, `[lookback * (1 + past covariates)]` to `[horizon]`."""

    def __init__(self, config: RidgeConfig, problem: Problem) -> None:
        super().__init__()
        points_only(problem, "ridge")
        numbers_only(problem, "ridge")
        self.config = config
        self.targets = problem.targets
        self.weight = nn.Parameter(torch.zeros(problem.horizon, width(problem)), requires_grad=False)
        self.bias = nn.Parameter(torch.zeros(problem.horizon), requires_grad=False)
        self.penalty: Tensor
        self.register_buffer("penalty", torch.zeros(()))

    def forward(self, batch: Batch, truth: float = 0.0) -> Tensor:
        """`[batch, horizon, targets, 1]`; `truth` is ignored."""
        x, scale, shift = rows(batch, self.targets, self.config.normalise)
        y = F.linear(x, self.weight, self.bias).transpose(1, 2)
        return (y * scale + shift)[..., None]


@dataclass
class Moments:
    """What least squares needs to know of the windows: weighted sums over them, float64.

    Attributes:
        count: sum of the weights.
        x, y: sums of inputs `[width]` and of outputs `[horizon]`.
        xx, xy: sums of their products, `[width, width]` and `[width, horizon]`.
        yy: sum of the squares of all outputs.
    """

    count: Tensor
    x: Tensor
    y: Tensor
    xx: Tensor
    xy: Tensor
    yy: Tensor

    def squared_error(self, weight: Tensor, bias: Tensor) -> float:
        """The sum of |y - weight x - bias|^2, without looking at the windows again."""
        linear = (weight.T * self.xy).sum() + bias @ self.y
        squares = ((weight @ self.xx) * weight).sum() + 2 * bias @ (weight @ self.x) + self.count * (bias @ bias)
        return float(self.yy - 2 * linear + squares)


def moments(module: Ridge, windows: Windows) -> Moments:
    """Sum over all windows and targets, in chunks: memory grows with the square of the lookback, not with the windows.

    Weights are the squared scales of the windows, so that what counts is the squared error of the forecast itself. A
    window whose future is not all there is left out.
    """
    horizon, inputs = module.weight.shape
    shapes: tuple[tuple[int, ...], ...] = ((), (inputs,), (horizon,), (inputs, inputs), (inputs, horizon), ())
    total = Moments(*(torch.zeros(shape, dtype=torch.float64) for shape in shapes))
    for batch in windows.batches(max(1, NUMBERS_AT_ONCE // ((inputs + horizon) * module.targets))):
        if batch.future is None or batch.future_mask is None:
            raise ValueError("ridge is fitted on windows with a future")
        x, scale, shift = (part.double() for part in rows(batch, module.targets, module.config.normalise))
        real = batch.future_mask.all(1)
        y = ((batch.future.double() - shift) / scale).transpose(1, 2)[real]
        x, weight = x[real], scale[:, 0][real].square()
        weighted = x * weight[:, None]
        total.count += weight.sum()
        total.x += weighted.sum(0)
        total.y += weight @ y
        total.xx += weighted.T @ x
        total.xy += weighted.T @ y
        total.yy += weight @ y.square().sum(1)
    return total


def solutions(seen: Moments, penalties: Sequence[float]) -> Iterator[tuple[Tensor, Tensor]]:
    """Weight `[horizon, width]` and bias `[horizon]` for each penalty; the bias is not penalised.

    Directions in which the inputs do not vary, as when there are fewer windows than inputs, get no weight. Inputs are
    known in single precision: a standard deviation below that, beside the largest, is rounding.
    """
    mean_x, mean_y = seen.x / seen.count, seen.y / seen.count
    variances, directions = torch.linalg.eigh(seen.xx / seen.count - torch.outer(mean_x, mean_x))
    projected = directions.T @ (seen.xy / seen.count - torch.outer(mean_x, mean_y))
    varies = variances > variances[-1].clamp_min(0) * len(variances) * torch.finfo(torch.float32).eps ** 2
    mean_variance = variances.clamp_min(0).mean()
    for penalty in penalties:
        shrunk = torch.where(varies, 1 / (variances + penalty * mean_variance), 0.0)
        weight = (directions @ (projected * shrunk[:, None])).T
        yield weight, mean_y - weight @ mean_x


def fit(module: Ridge, train: Windows, validation: Windows) -> None:
    """Set weight, bias and penalty."""
    penalties = PENALTIES if module.config.penalty is None else (module.config.penalty,)
    found = list(solutions(moments(module, train), penalties))
    best = 0
    if len(found) > 1:
        held_out = moments(module, validation)
        errors = [held_out.squared_error(weight, bias) for weight, bias in found]
        best = errors.index(min(errors))
    with torch.no_grad():
        module.weight.copy_(found[best][0])
        module.bias.copy_(found[best][1])
        module.penalty.fill_(penalties[best])


plugin = ModelPlugin(config=RidgeConfig, build=Ridge, example=RidgeConfig(), fit=fit)
