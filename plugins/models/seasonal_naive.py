"""Repeat the last season (Hyndman & Athanasopoulos, "Forecasting: Principles and Practice", 3rd ed., section 5.2).

It acts on transformed values. A scaler changes nothing; with `log_return` or `difference` it repeats changes.

Nothing is fitted, so that training options such as the loss change nothing.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tsformer.data.windows import Batch
from tsformer.errors import UsageError
from tsformer.nn.lookback import target_values
from tsformer.nn.network import last_real
from tsformer.plugin import Config, ModelPlugin, Problem


class SeasonalNaiveConfig(Config):
    """There are no options; the season is that of the window (`season`)."""


class SeasonalNaive(nn.Module):
    """The last real value at the same place in the season.

    Where the last season is masked it comes from the season before, and so on; where a place in the season has no real
    value at all it is the last real value of the target, and 0 where there is none either. Covariates are ignored.

    Raises:
        UsageError: when the lookback is shorter than a season.
    """

    def __init__(self, config: SeasonalNaiveConfig, problem: Problem) -> None:
        super().__init__()
        if problem.lookback < problem.season:
            raise UsageError(
                f"model 'seasonal_naive' needs to see a whole season of {problem.season} steps, but the lookback has "
                f"{problem.lookback}: use --lookback {problem.season} or more, or another --season"
            )
        self.problem = problem

    def forward(self, batch: Batch, truth: float = 0.0) -> Tensor:
        """`[batch, horizon, targets, 1]`; `truth` is ignored."""
        season = self.problem.season
        values, mask = target_values(batch, self.problem.targets)
        last = last_real(values, mask)
        values, mask = _by_place(values, season), _by_place(mask, season)
        size, targets = last.shape
        found = last_real(values, mask).view(size, season, targets)
        found = torch.where(mask.any(1).view(size, season, targets), found, last[:, None])
        steps = torch.arange(self.problem.horizon, device=found.device) % season
        return found[:, steps, :, None]


def _by_place(x: Tensor, season: int) -> Tensor:
    """`[batch, time, targets]` to `[batch * season, seasons, targets]`: time runs from season to season."""
    size, time, targets = x.shape
    x = F.pad(x, (0, 0, -time % season, 0))  # a part of a season at the start is filled up, and masked
    return x.view(size, -1, season, targets).transpose(1, 2).reshape(size * season, -1, targets)


plugin = ModelPlugin(
    config=SeasonalNaiveConfig,
    build=SeasonalNaive,
    example=SeasonalNaiveConfig(),
    outputs={"point"},
    lookback=lambda config, season: season,
)
