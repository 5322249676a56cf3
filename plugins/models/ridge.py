"""Ridge regression from the lookback to the horizon, in closed form (Hoerl & Kennard 1970).

One linear map for all series and targets, on lookbacks brought to a common level; covariates that are known ahead, at
every step of lookback and horizon, and static ones are further inputs. Nothing is trained step by step: normal
equations are summed over the windows in float64, one eigendecomposition gives the solution for every penalty, and the
penalty is the one with the least squared error on the validation part. Training options such as the loss change
nothing. Most networks lose to it on long lookbacks, so it is the model to beat.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tsformer.data.windows import Batch, Windows
from tsformer.nn.lookback import Level, known_rows, known_width, numbers_only, rows, width
from tsformer.plugin import Config, Field, ModelPlugin, Problem

PENALTIES = tuple(10.0 ** (exponent / 2) for exponent in range(-18, 5))
NUMBERS_AT_ONCE = 2**22  # float64 of a chunk: 32 MiB


class RidgeConfig(Config):
    """Options of ridge regression."""

    normalise: Level = Field(
        "last",
        search=True,
        description="what each window is brought to: its last value, its mean and standard deviation, or nothing",
    )
    penalty: float | None = Field(
        None,
        ge=0,
        description="penalty on squared weights, as a multiple of the mean variance of the inputs (default: of 23 from "
        "1e-9 to 100 the best on the validation part)",
    )


class Ridge(nn.Module):
    """A linear map from a target's lookback and all covariates to `[horizon]`, the same for every target.

    So a covariate is worth the same to all of them: where it lifts one and lowers another, fit a model to each.
    """

    def __init__(self, config: RidgeConfig, problem: Problem) -> None:
        super().__init__()
        numbers_only(problem, "ridge")
        self.config, self.problem = config, problem
        inputs = width(problem) + known_width(problem)
        self.weight = nn.Parameter(torch.zeros(problem.horizon, inputs), requires_grad=False)
        self.bias = nn.Parameter(torch.zeros(problem.horizon), requires_grad=False)
        self.penalty: Tensor
        self.register_buffer("penalty", torch.zeros(()))

    def forward(self, batch: Batch, truth: float = 0.0) -> Tensor:
        """`[batch, horizon, targets, 1]`; `truth` is ignored."""
        x, scale, shift = self.inputs(batch)
        y = F.linear(x, self.weight, self.bias).transpose(1, 2)
        return (y * scale + shift)[..., None]

    def inputs(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """What the map is applied to, `[batch, targets, inputs]`, and scale and shift `[batch, 1, targets]`."""
        x, scale, shift = rows(batch, self.problem.targets, self.config.normalise)
        return torch.cat([x, known_rows(batch, self.problem, scale)], dim=-1), scale, shift


@dataclass
class Moments:
    """What least squares needs to know of the windows: weighted sums over them, float64.

    Sums of inputs run over all windows, those with an output over the windows in which that step is real.

    Attributes:
        count: sum of the weights.
        x: sum of the inputs, `[inputs]`.
        xx: sum of their products, `[inputs, inputs]`.
        real: sum of the weights for each step, `[horizon]`.
        x_real: sum of the inputs for each step, `[inputs, horizon]`.
        y: sum of the outputs, `[horizon]`.
        xy: sum of their products with inputs, `[inputs, horizon]`.
        yy: sum of the squares of all outputs.
    """

    count: Tensor
    x: Tensor
    xx: Tensor
    real: Tensor
    x_real: Tensor
    y: Tensor
    xy: Tensor
    yy: Tensor

    def squared_error(self, weight: Tensor, bias: Tensor) -> float:
        """The sum of |y - weight x - bias|^2 over real outputs, without looking at the windows again.

        Where outputs are missing, the inputs of all windows stand for those of the windows with that output.
        """
        linear = (weight.T * self.xy).sum() + bias @ self.y
        share = self.real / self.count
        squares = share @ ((weight @ self.xx) * weight).sum(1)
        squares = squares + 2 * bias @ (weight.T * self.x_real).sum(0) + self.real @ bias.square()
        return float(self.yy - 2 * linear + squares)


def moments(module: Ridge, windows: Windows) -> Moments:
    """Sum over all windows and targets, in chunks: memory grows with the square of the inputs, not with the windows.

    Weights are the squared scales of the windows, so that what counts is the squared error of the forecast itself. A
    window of whose future nothing is real is left out.
    """
    horizon, inputs = module.weight.shape
    square, steps = (inputs, inputs), (inputs, horizon)
    shapes: tuple[tuple[int, ...], ...] = ((), (inputs,), square, (horizon,), steps, (horizon,), steps, ())
    total = Moments(*(torch.zeros(shape, dtype=torch.float64) for shape in shapes))
    for batch in windows.batches(max(1, NUMBERS_AT_ONCE // ((inputs + horizon) * module.problem.targets))):
        if batch.future is None or batch.future_mask is None:
            raise ValueError("ridge is fitted on windows with a future")
        x, scale, shift = (part.double() for part in module.inputs(batch))
        there = batch.future_mask.any(1)
        real = batch.future_mask.transpose(1, 2)[there]
        y = ((batch.future.double() - shift) / scale).transpose(1, 2)[there]
        x, weight = x[there], scale[:, 0][there].square()[:, None]
        y, weighted, weights = torch.where(real, y, 0.0), x * weight, weight * real
        total.count += weight.sum()
        total.x += weighted.sum(0)
        total.xx += weighted.T @ x
        total.real += weights.sum(0)
        total.x_real += x.T @ weights
        total.y += (weight * y).sum(0)
        total.xy += weighted.T @ y
        total.yy += (weight * y.square()).sum()
    return total


def solutions(seen: Moments, penalties: Sequence[float]) -> Iterator[tuple[Tensor, Tensor]]:
    """Weight `[horizon, inputs]` and bias `[horizon]` for each penalty; the bias is not penalised.

    Covariances of inputs with an output are those of the windows in which it is real (available cases: Little & Rubin,
    "Statistical Analysis with Missing Data", section 3.4); a step that never is gets no weight. Directions in which the
    inputs do not vary, as when there are fewer windows than inputs, get none either. Inputs are known in single
    precision: a standard deviation below that, beside the largest, is rounding.
    """
    mean_x, real = seen.x / seen.count, seen.real.clamp_min(torch.finfo(torch.float64).tiny)
    means, mean_y = seen.x_real / real, seen.y / real
    variances, directions = torch.linalg.eigh(seen.xx / seen.count - torch.outer(mean_x, mean_x))
    projected = directions.T @ (seen.xy / real - means * mean_y)
    varies = variances > variances[-1].clamp_min(0) * len(variances) * torch.finfo(torch.float32).eps ** 2
    mean_variance = variances.clamp_min(0).mean()
    for penalty in penalties:
        shrunk = torch.where(varies, 1 / (variances + penalty * mean_variance), 0.0)
        weight = (directions @ (projected * shrunk[:, None])).T
        yield weight, mean_y - (weight.T * means).sum(0)


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


plugin = ModelPlugin(
    config=RidgeConfig, build=Ridge, example=RidgeConfig(), fit=fit, covariates={"future", "static"}, outputs={"point"}
)
