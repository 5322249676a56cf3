"""The mean of the last steps, or of the same place in the last seasons.

It acts on transformed values. Nothing is fitted.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from tsformer.data.windows import Batch
from tsformer.errors import UsageError
from tsformer.nn.lookback import repeated, target_values
from tsformer.plugin import Config, Field, ModelPlugin, Problem, changed


class WindowAverageConfig(Config):
    """Options of the window average."""

    window: int | None = Field(
        None, ge=1, le=1_000_000, description="steps of the mean (default: one season, or the lookback without one)"
    )
    seasonal: bool = Field(False, description="the mean of the same place in the last seasons, step by step")
    seasons: int | None = Field(
        None, ge=1, le=1_000_000, description="seasons of a seasonal mean (default: all that the lookback holds)"
    )

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        for option in changed(self, "window") if self.seasonal else changed(self, "seasons"):
            yield f"{option} is not read with seasonal {str(self.seasonal).lower()}"


class WindowAverage(nn.Module):
    """Means of real values; of a target, or a place in the season, without any it is the mean of all, 0 without any.

    Covariates are ignored.

    Raises:
        UsageError: when the lookback is shorter than what is averaged.
    """

    def __init__(self, config: WindowAverageConfig, problem: Problem) -> None:
        super().__init__()
        self.problem, self.seasonal = problem, config.seasonal
        most = problem.lookback // problem.season
        seasons = (config.seasons or max(1, most)) * problem.season
        self.steps = seasons if config.seasonal else config.window or _season(problem)
        if self.steps > problem.lookback:
            raise UsageError(
                f"model 'window_average' takes the mean of {self.steps} steps, but the lookback has "
                f"{problem.lookback}: use --lookback {self.steps} or more"
            )

    def forward(self, batch: Batch, truth: float = 0.0) -> Tensor:
        """`[batch, horizon, targets, 1]`; `truth` is ignored."""
        values, mask = target_values(batch, self.problem.targets)
        mean = _mean(values, mask, torch.zeros_like(values[:, 0]))
        last, real = values[:, -self.steps :], mask[:, -self.steps :]
        if not self.seasonal:
            return repeated(_mean(last, real, mean), self.problem.horizon)
        size, _, targets = values.shape
        shape = (size, self.steps // self.problem.season, self.problem.season, targets)
        by_place = _mean(last.reshape(shape), real.reshape(shape), mean[:, None])
        steps = torch.arange(self.problem.horizon, device=values.device) % self.problem.season
        return by_place[:, steps, :, None]


def _season(problem: Problem) -> int:
    return min(problem.season, problem.lookback) if problem.season > 1 else problem.lookback


def _mean(values: Tensor, mask: Tensor, otherwise: Tensor) -> Tensor:
    """Over the second axis, of what is real."""
    total, count = torch.where(mask, values, 0.0).sum(1), mask.sum(1)
    return torch.where(count > 0, total / count.clamp_min(1), otherwise)


plugin = ModelPlugin(
    config=WindowAverageConfig, build=WindowAverage, example=WindowAverageConfig(window=3), outputs={"point"}
)
