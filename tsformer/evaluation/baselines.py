"""The naive forecasts that every model is read against."""

from __future__ import annotations

import numpy as np

from tsformer.data.panel import Panel


def last_value(panel: Panel, series: np.ndarray, origin: np.ndarray, horizon: int, season: int) -> np.ndarray:
    """Repeat the last observed value.

    Args:
        panel: the data.
        series: int64 `[windows]`.
        origin: int64 `[windows]`, row in `panel.values` of the first predicted step.
        horizon: steps to predict.
        season: not used; the naive forecasts share one signature.

    Returns:
        float64 `[windows, horizon, targets]`.
    """
    return seasonal_naive(panel, series, origin, horizon, 1)


def seasonal_naive(panel: Panel, series: np.ndarray, origin: np.ndarray, horizon: int, season: int) -> np.ndarray:
    """Repeat the last observed season; NaN in windows with less than one season before them.

    Arguments and result as in `last_value`.
    """
    rows = origin[:, None] - season + np.arange(horizon) % season
    known = rows[:, 0] >= panel.offsets[series]
    values = panel.values[np.maximum(rows, 0), : len(panel.schema.targets)]
    return np.where(known[:, None, None], values, np.nan)


BASELINES = {"last_value": last_value, "seasonal_naive": seasonal_naive}
