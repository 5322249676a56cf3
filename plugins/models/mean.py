"""The mean of the lookback at every step (Hyndman & Athanasopoulos, "Forecasting: Principles and Practice", 3rd ed.,
section 5.2), with the lookback for the whole history.

It acts on transformed values: after `log` it is a geometric mean. Nothing is fitted.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tsformer.data.windows import Batch
from tsformer.nn.lookback import repeated, target_values
from tsformer.plugin import Config, ModelPlugin, Problem


class MeanConfig(Config):
    """There are no options; the mean is that of the lookback (`lookback`)."""


class Mean(nn.Module):
    """The mean of the real values of each target, 0 where there is none. Covariates are ignored."""

    def __init__(self, config: MeanConfig, problem: Problem) -> None:
        super().__init__()
        self.problem = problem

    def forward(self, batch: Batch, truth: float = 0.0) -> Tensor:
        """`[batch, horizon, targets, 1]`; `truth` is ignored."""
        values, mask = target_values(batch, self.problem.targets)
        return repeated(torch.where(mask, values, 0.0).sum(1) / mask.sum(1).clamp_min(1), self.problem.horizon)


plugin = ModelPlugin(config=MeanConfig, build=Mean, example=MeanConfig(), outputs={"point"})
