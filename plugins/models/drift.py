"""Go on along the line through the first and the last value of the lookback.

The drift method of Hyndman & Athanasopoulos ("Forecasting: Principles and Practice", 3rd ed., section 5.2), with the
lookback for the whole history: the slope is the mean change from step to step within the window. It acts on transformed
values. A scaler changes nothing; after `log` it is a line of logarithms, that is, constant growth.

Nothing is fitted, so that training options such as the loss change nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tsformer.data.windows import Batch
from tsformer.nn.lookback import target_values
from tsformer.nn.network import last_real
from tsformer.plugin import Config, ModelPlugin, Problem


class DriftConfig(Config):
    """There are no options; the slope is that of the lookback (`lookback`)."""


class Drift(nn.Module):
    """A line through the first and the last real value of each target.

    With one real value it is level, with none it is 0. Covariates are ignored.
    """

    def __init__(self, config: DriftConfig, problem: Problem) -> None:
        super().__init__()
        self.problem = problem

    def forward(self, batch: Batch, truth: float = 0.0) -> Tensor:
        """`[batch, horizon, targets, 1]`; `truth` is ignored."""
        values, mask = target_values(batch, self.problem.targets)
        first, last = last_real(values.flip(1), mask.flip(1)), last_real(values, mask)
        time = torch.arange(values.shape[1], device=values.device)[:, None].expand_as(values)
        begin, end = last_real(time.flip(1), mask.flip(1)), last_real(time, mask)
        slope = (last - first) / (end - begin).clamp_min(1)
        ahead = values.shape[1] + torch.arange(self.problem.horizon, device=values.device)
        line = last[:, None] + slope[:, None] * (ahead[None, :, None] - end[:, None])
        return line[..., None]


plugin = ModelPlugin(config=DriftConfig, build=Drift, example=DriftConfig(), outputs={"point"})
