"""Errors of point forecasts in the user's own units. What is undefined is None, never inf, NaN or 0.

Values that are missing count nowhere; all others count alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tsformer.data.panel import Panel

Metrics = dict[str, float | int | None]
"""{"mae", "rmse", "mase", "smape", "windows"}"""


@dataclass(frozen=True)
class Score:
    """Errors over a set of windows.

    Attributes:
        overall: all targets together; mase is the mean over the series and targets for which it is defined.
        by_target: the same for each target.
        without_mase: the targets that have no MASE in some series, because they repeat themselves each season.
        series: how many series have windows.
        series_without_mase: how many of them have no MASE for some target.
        values: how many true values there are.
        left_out: how many of them have no forecast, and count nowhere.
    """

    overall: Metrics
    by_target: dict[str, Metrics]
    without_mase: tuple[str, ...] = ()
    series: int = 1
    series_without_mase: int = 0
    values: int = 0
    left_out: int = 0


def seasonal_scale(panel: Panel, before: np.ndarray, season: int) -> np.ndarray:
    """The denominator of MASE (Hyndman & Koehler 2006): the mean absolute seasonal-naive error before the test part.

    Args:
        panel: the data.
        before: int64 `[series]`, rows of each series before its test part, validation included.
        season: steps in one season.

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
    size = np.where(seen[:, None] & ~np.isnan(values), np.abs(values), 0.0)
    largest = np.maximum.reduceat(size, panel.offsets[:-1], axis=0)
    scale = np.empty((series, values.shape[1]))
    for target in range(values.shape[1]):
        real = ~np.isnan(error[:, target])
        of = whose[season:][real]
        with np.errstate(invalid="ignore"):
            mean = np.bincount(of, error[real, target], minlength=series) / np.bincount(of, minlength=series)
        # what rounding leaves of an exact repetition is no scale
        scale[:, target] = np.where(mean > 1e-12 * largest[:, target], mean, np.nan)
    return scale


class Errors:
    """Errors added up over batches of windows, so that they need not be in memory all at once.

    Args:
        scale: float64 `[series, targets]`, from `seasonal_scale`.
        names: the targets.
    """

    def __init__(self, scale: np.ndarray, names: Sequence[str]) -> None:
        self._scale, self._names = scale, tuple(names)
        self._absolute, self._count = np.zeros(scale.shape), np.zeros(scale.shape, dtype=np.int64)
        self._squared, self._relative = np.zeros(len(self._names)), np.zeros(len(self._names))
        self._windows = np.zeros(len(scale), dtype=np.int64)
        self._values = 0

    def add(self, forecast: np.ndarray, truth: np.ndarray, series: np.ndarray) -> None:
        """Count the errors of `forecast` against `truth`, both float64 `[windows, horizon, targets]`, NaN for none.

        Args:
            series: int64 `[windows]`, the series of each window.
        """
        there = ~np.isnan(truth)
        real = there & ~np.isnan(forecast)
        error, count = np.abs(np.where(real, forecast - truth, 0.0)), len(self._windows)
        self._windows += np.bincount(series, there.any(axis=(1, 2)), minlength=count).astype(np.int64)
        self._values += int(there.sum())
        for channel in range(len(self._names)):
            self._absolute[:, channel] += np.bincount(series, error[..., channel].sum(axis=1), minlength=count)
            found = np.bincount(series, real[..., channel].sum(axis=1), minlength=count)
            self._count[:, channel] += found.astype(np.int64)
        self._squared += (error**2).sum(axis=(0, 1))
        with np.errstate(invalid="ignore", divide="ignore"):
            total = np.abs(truth) + np.abs(forecast)
            relative = np.where(error == 0, 0.0, 200.0 * error / total)  # a zero that was forecast is no error
        self._relative += relative.sum(axis=(0, 1))

    def score(self) -> Score:
        """The means over all values so far."""
        count = self._count
        with np.errstate(invalid="ignore", divide="ignore"):
            mase = self._absolute / count / self._scale
        undefined = np.isnan(mase) & (count > 0)

        def summary(channels: slice) -> Metrics:
            defined = mase[:, channels][np.isfinite(mase[:, channels])]
            values = int(count[:, channels].sum())
            return {
                "mae": _mean(self._absolute[:, channels].sum(), values),
                "rmse": _mean(self._squared[channels].sum(), values, np.sqrt),
                "mase": _mean(defined.sum(), len(defined)),
                "smape": _mean(self._relative[channels].sum(), values),
                "windows": int(self._windows.sum()),
            }

        return Score(
            overall=summary(slice(None)),
            by_target={name: summary(slice(i, i + 1)) for i, name in enumerate(self._names)},
            without_mase=tuple(name for name, column in zip(self._names, undefined.T, strict=True) if column.any()),
            series=int((self._windows > 0).sum()),
            series_without_mase=int(undefined.any(axis=1).sum()),
            values=self._values,
            left_out=self._values - int(count.sum()),
        )


def score(
    forecast: np.ndarray, truth: np.ndarray, series: np.ndarray, scale: np.ndarray, names: Sequence[str]
) -> Score:
    """Errors of `forecast` against `truth`, both float64 `[windows, horizon, targets]`.

    Args:
        series: int64 `[windows]`, the series of each window.
        scale: float64 `[series, targets]`, from `seasonal_scale`.
        names: the targets.
    """
    errors = Errors(scale, names)
    errors.add(forecast, truth, series)
    return errors.score()


def _mean(total: np.floating, count: int, root: Callable[[float], np.floating | float] = float) -> float | None:
    value = float(root(float(total) / count)) if count else np.nan
    return value if np.isfinite(value) else None
