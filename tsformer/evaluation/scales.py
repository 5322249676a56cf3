"""What errors are divided by, so that series of different size can be averaged: errors of the seasonal naive kind."""

from __future__ import annotations

import numpy as np

from tsformer.data.panel import Panel


def seasonal_scale(panel: Panel, before: np.ndarray, season: int, *, squared: bool = False) -> np.ndarray:
    """The denominator of MASE (Hyndman & Koehler 2006): the mean absolute seasonal-naive error before the test part.

    Args:
        panel: the data.
        before: int64 `[series]`, rows of each series before its test part, validation included.
        season: steps in one season.
        squared: the mean squared error, the denominator of RMSSE (Makridakis et al. 2022, the M5 competition).

    Returns:
        float64 `[series, targets]`; NaN where it is undefined: too few rows, or a series that repeats itself exactly.
        Steps across a gap and from or to a missing value are none.
    """
    rows, series = np.arange(len(panel.values)), len(panel.ids)
    values = panel.values[:, : len(panel.schema.targets)]
    if season >= len(rows):
        return np.full((series, values.shape[1]), np.nan)
    whose = np.repeat(np.arange(series), panel.lengths)
    seen = rows - panel.offsets[whose] < before[whose]
    stretch = whose + np.searchsorted(panel.breaks, rows, side="right")
    error = np.abs(values[season:] - values[:-season])
    error[(stretch[season:] != stretch[:-season]) | ~seen[season:]] = np.nan
    largest = np.where(seen[:, None] & ~np.isnan(values), np.abs(values), 0.0)
    largest = np.maximum.reduceat(largest, panel.offsets[:-1], axis=0)
    scale = np.empty((series, values.shape[1]))
    for target in range(values.shape[1]):
        real = ~np.isnan(error[:, target])
        of = whose[season:][real]
        size = error[real, target]
        with np.errstate(invalid="ignore"):
            count = np.bincount(of, minlength=series)
            mean = np.bincount(of, size, minlength=series) / count
            result = np.bincount(of, size**2, minlength=series) / count if squared else mean
        # what rounding leaves of an exact repetition is no scale
        scale[:, target] = np.where(mean > 1e-12 * largest[:, target], result, np.nan)
    return scale
