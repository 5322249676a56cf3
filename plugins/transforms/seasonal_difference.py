"""Differences from one season to the next, which have no seasonal pattern. Paths start at the last known season."""

from __future__ import annotations

import numpy as np

from tsformer.errors import UsageError
from tsformer.plugin import Config, Field, State, TransformPlugin


class SeasonalDifferenceConfig(Config):
    """How far apart the values are."""

    period: int | None = Field(None, ge=1, le=1_000_000, description="steps in one season (default: --season)")


class SeasonalDifference:
    """`x[t] - x[t-period]`; the inverse adds season by season, however long the path."""

    pointwise = False
    takes_missing = True

    def __init__(self, config: SeasonalDifferenceConfig) -> None:
        if config.period is None:
            raise UsageError(
                "--transform seasonal_difference: these data have no season that is known; give its length with "
                "--transform.seasonal-difference.period or --season, or take --transform difference"
            )
        self.lost_rows = self.anchor_step = config.period

    def fit(self, rows: np.ndarray) -> State:
        return {}

    def forward(self, values: np.ndarray, state: State) -> np.ndarray:
        return values[self.lost_rows :] - values[: -self.lost_rows]

    def inverse(self, path: np.ndarray, state: State, anchor: np.ndarray) -> np.ndarray:
        *windows, horizon, channels = path.shape
        seasons = -(-horizon // self.lost_rows)
        changes = np.zeros((*windows, seasons * self.lost_rows, channels))
        changes[..., :horizon, :] = path
        changes = changes.reshape(*windows, seasons, self.lost_rows, channels)
        levels = anchor[..., None, :, :] + np.cumsum(changes, axis=-3)
        return levels.reshape(*windows, -1, channels)[..., :horizon, :]


def with_season(config: SeasonalDifferenceConfig, season: int) -> SeasonalDifferenceConfig:
    """The season of the window, where the user gave no period and there is a season."""
    return config if config.period or season == 1 else SeasonalDifferenceConfig(period=season)


plugin = TransformPlugin(
    config=SeasonalDifferenceConfig,
    build=SeasonalDifference,
    example=SeasonalDifferenceConfig(period=4),
    with_season=with_season,
)
