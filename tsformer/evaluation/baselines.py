"""The naive forecasts that every model is read against."""

from __future__ import annotations

import numpy as np

from tsformer.data.carry import last_real
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
        float64 `[windows, horizon, targets]`; NaN where no value was observed since the last gap in time.
    """
    return seasonal_naive(panel, series, origin, horizon, 1)


def seasonal_naive(panel: Panel, series: np.ndarray, origin: np.ndarray, horizon: int, season: int) -> np.ndarray:
    """Repeat the last observed season; NaN in windows with less than one season before them, since the last gap.

    Where a value of that season is missing it is the last one at its place in a season, or the last one of all.
    Arguments and result as in `last_value`.
    """
    targets = len(panel.schema.targets)
    begins = np.union1d(panel.offsets[:-1], panel.breaks)
    begin = begins[np.searchsorted(begins, origin - 1, side="right") - 1]  # of the stretch that ends at the origin
    rows = origin[:, None] - season + np.arange(horizon) % season
    known = rows[:, 0] >= np.maximum(begin, panel.offsets[series])
    rows = np.maximum(rows, 0)
    if not panel.masked or not len(rows):
        return np.where(known[:, None, None], panel.values[rows, :targets], np.nan)

    low, high = int(panel.offsets[series.min()]), int(panel.offsets[series.max() + 1])
    values = panel.values[low:high, :targets]
    stretch = np.searchsorted(begins, np.arange(low, high), side="right")
    place = (np.arange(low, high) - begins[stretch - 1]) % season
    latest = last_real(~np.isnan(values), stretch)
    in_season = last_real(~np.isnan(values), stretch * season + place)
    found = in_season[np.maximum(rows - low, 0)]
    found = np.where(found >= 0, found, latest[origin - 1 - low][:, None])
    path = np.take_along_axis(values, np.maximum(found, 0).reshape(-1, targets), axis=0).reshape(found.shape)
    return np.where(known[:, None, None] & (found >= 0), path, np.nan)


BASELINES = {"last_value": last_value, "seasonal_naive": seasonal_naive}
