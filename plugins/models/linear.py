"""Linear maps from the lookback to the horizon, trained by gradient: DLinear, NLinear and RLinear.

    dlinear  a moving average and what remains of it, each with a map of its own (Zeng et al. 2023, "Are Transformers
             Effective for Time Series Forecasting?", section 4)
    nlinear  the last value is subtracted before and added after (there)
    rlinear  each window is normalised by its mean and standard deviation (Li et al. 2023, "Revisiting Long-term Time
             Series Forecasting: An Investigation on Linear Mapping")

All targets share the weights of lookbacks unless `individual` is set. Past covariates stand beside each target's own
lookback, which is not in the papers, where everything is a target; so do covariates that are known ahead, at every step
of lookback and horizon, and static ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import field_validator
from torch import Tensor, nn

from tsformer.data.windows import Batch
from tsformer.nn.lookback import Level, known_rows, known_width, numbers_only, rows, width
from tsformer.nn.outputs import output_of
from tsformer.plugin import Config, Field, ModelPlugin, Problem, changed

LEVELS: dict[str, Level] = {"dlinear": "none", "nlinear": "last", "rlinear": "standard"}


class LinearConfig(Config):
    """Options of the linear models."""

    variant: Literal["dlinear", "nlinear", "rlinear"] = Field(
        "rlinear",
        search=True,
        description="dlinear: trend and remainder by maps of their own; nlinear: relative to the last value; rlinear: "
        "relative to the window's mean and standard deviation",
    )
    kernel: int = Field(
        25, gt=0, le=100_001, search=[5, 13, 25, 49], description="steps of dlinear's moving average; odd"
    )
    individual: bool = Field(False, description="weights for each target instead of the same for all")

    @field_validator("kernel")
    @classmethod
    def _odd(cls, kernel: int) -> int:
        if kernel % 2 == 0:
            raise ValueError(f"{kernel} is even; a moving average needs as many steps before as after: an odd number")
        return kernel

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        if self.variant != "dlinear":
            for option in changed(self, "kernel"):
                yield f"{option} needs variant dlinear: {self.variant} has no moving average"


class Linear(nn.Module):
    """One of the three."""

    def __init__(self, config: LinearConfig, problem: Problem) -> None:
        super().__init__()
        numbers_only(problem, "linear")
        self.config, self.problem = config, problem
        self.targets, self.lookback = problem.targets, problem.lookback
        self.output = output_of(problem)
        self.shape = (problem.horizon, self.output.outputs)
        parts = 2 if config.variant == "dlinear" else 1
        groups, inputs = problem.targets if config.individual else 1, parts * width(problem)
        # The first forecast is the mean of the target's own window, as in published code of dlinear. Random weights
        # would be noise in directions in which windows hardly vary, and slow to unlearn (rlinear, ETTh1, 500 steps: MSE
        # .384, not .375).
        weight = torch.zeros(groups, parts, 1 + problem.past_covariates, problem.lookback, *self.shape)
        weight[:, :, 0, :, :, 0] = 1 / problem.lookback
        self.weight = nn.Parameter(weight.view(groups, inputs, -1))
        self.bias = nn.Parameter(torch.zeros(groups, 1, math.prod(self.shape)))
        known = known_width(problem)
        # Of each target for itself even where weights are shared: what lifts one may lower the other.
        shape = problem.targets, known, math.prod(self.shape)
        self.known_weight = nn.Parameter(torch.zeros(shape)) if known else None

    def forward(self, batch: Batch, truth: float = 0.0) -> Tensor:
        """`[batch, horizon, targets, outputs]`; `truth` is ignored."""
        x, scale, shift = rows(batch, self.targets, LEVELS[self.config.variant])
        if self.config.variant == "dlinear":
            trend = moving_average(x.view(*x.shape[:2], -1, self.lookback), self.config.kernel).flatten(2)
            x = torch.cat([trend, x - trend], dim=-1)
        y = x.transpose(0, 1) @ self.weight + self.bias
        if self.known_weight is not None:
            y = y + known_rows(batch, self.problem, scale).transpose(0, 1) @ self.known_weight
        prediction = y.view(*y.shape[:2], *self.shape).permute(1, 2, 0, 3)
        return self.output.rescale(prediction, scale, shift)


def moving_average(x: Tensor, kernel: int) -> Tensor:
    """The mean of the `kernel` steps around each step of `[..., time]`; beyond the ends the end value is repeated."""
    side = kernel // 2
    flat = x.flatten(0, -2).unsqueeze(1)
    return F.avg_pool1d(F.pad(flat, (side, side), mode="replicate"), kernel, stride=1).view_as(x)


plugin = ModelPlugin(config=LinearConfig, build=Linear, example=LinearConfig(), covariates={"future", "static"})
