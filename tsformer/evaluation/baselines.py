"""The naive forecasts that every model is read against."""

from __future__ import annotations

import numpy as np

from tsformer.data.carry import carried, last_real
from tsformer.data.panel import Panel
from tsformer.evaluation.seasonality import FEWEST_SEASONS, Seasonality


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


def naive2(panel: Panel, series: np.ndarray, origin: np.ndarray, horizon: int, season: int) -> np.ndarray:
    """The last value, with the season taken out before and put back after, where there is one (Makridakis et al. 2020,
    "Naive 2" of the M4 competition, the reference of OWA).

    There is one where the autocorrelation at a season stands out at 90 %, over three seasons at least. It is taken out
    by ratios to a centred moving average, by differences where values are not all positive. Values that are missing
    are the last ones before. Arguments and result as in `last_value`.
    """
    path = last_value(panel, series, origin, horizon, season)
    if season == 1 or not len(origin):
        return path
    begins = np.union1d(panel.offsets[:-1], panel.breaks)
    starts = begins[np.searchsorted(begins, origin - 1, side="right") - 1]
    order = np.argsort(starts, kind="stable")
    for windows in np.split(order, np.flatnonzero(np.diff(starts[order])) + 1):
        start, stop = int(starts[windows[0]]), int(origin[windows].max())
        history = carried(panel.values[start:stop, : path.shape[2]], np.zeros(stop - start, dtype=np.int64))
        for target, values in enumerate(history.T):
            known = values[~np.isnan(values)]  # but for some at the start
            counts = origin[windows] - start - (len(values) - len(known))
            if counts.max() < FEWEST_SEASONS * season:
                continue
            seasonality = Seasonality(known, season)
            there = seasonality.stands_out(counts)
            path[windows[there], :, target] = seasonality.continued(counts[there], horizon)
    return path


BASELINES = {"last_value": last_value, "seasonal_naive": seasonal_naive}
"""The naive forecasts beside every fit."""
YARDSTICKS = {**BASELINES, "naive2": naive2}
"""Those beside a backtest."""
