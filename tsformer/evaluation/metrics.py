"""Errors of point forecasts in the user's own units. What is undefined is None, never inf, NaN or 0."""

from __future__ import annotations

from collections.abc import Sequence
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
    """

    overall: Metrics
    by_target: dict[str, Metrics]
    without_mase: tuple[str, ...] = ()
    series: int = 1
    series_without_mase: int = 0


def seasonal_scale(panel: Panel, before: np.ndarray, season: int) -> np.ndarray:
    """The denominator of MASE (Hyndman & Koehler 2006): the mean absolute seasonal-naive error before the test part.

    Args:
        panel: the data.
        before: int64 `[series]`, rows of each series before its test part, validation included.
        season: steps in one season.

    Returns:
        float64 `[series, targets]`; NaN where it is undefined: too few rows, or a series that repeats itself exactly.
    """
    targets = len(panel.schema.targets)
    scale = np.full((len(panel.ids), targets), np.nan)
    for series in range(len(panel.ids)):
        rows = panel.values[panel.rows(series)][: before[series], :targets]
        if len(rows) > season:
            error = np.abs(rows[season:] - rows[:-season]).mean(axis=0)
            # what rounding leaves of an exact repetition is no scale
            scale[series] = np.where(error > 1e-12 * np.abs(rows).max(axis=0), error, np.nan)
    return scale


class Errors:
    """Errors added up over batches of windows, so that they need not be in memory all at once.

    Args:
        scale: float64 `[series, targets]`, from `seasonal_scale`.
        names: the targets.
    """

    def __init__(self, scale: np.ndarray, names: Sequence[str]) -> None:
        self._scale, self._names = scale, tuple(names)
        self._absolute = np.zeros(scale.shape)  # mean over the horizon, summed over windows
        self._squared, self._relative = np.zeros(len(self._names)), np.zeros(len(self._names))
        self._windows = np.zeros(len(scale), dtype=np.int64)

    def add(self, forecast: np.ndarray, truth: np.ndarray, series: np.ndarray) -> None:
        """Count the errors of `forecast` against `truth`, both float64 `[windows, horizon, targets]`.

        Args:
            series: int64 `[windows]`, the series of each window.
        """
        error = np.abs(forecast - truth)
        by_window, count = error.mean(axis=1), len(self._windows)
        self._windows += np.bincount(series, minlength=count)
        for channel in range(len(self._names)):
            self._absolute[:, channel] += np.bincount(series, by_window[:, channel], minlength=count)
        self._squared += (error**2).mean(axis=1).sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            total = np.abs(truth) + np.abs(forecast)
            relative = np.where(total == 0, 0.0, 200.0 * error / total)  # a zero that was forecast is no error
        self._relative += relative.mean(axis=1).sum(axis=0)

    def score(self) -> Score:
        """The means over all windows so far."""
        scored, windows = self._windows > 0, int(self._windows.sum())
        mase = self._absolute[scored] / self._windows[scored, None] / self._scale[scored]
        undefined = np.isnan(mase)

        def summary(channels: slice) -> Metrics:
            defined = mase[:, channels][np.isfinite(mase[:, channels])]
            return {
                "mae": _number(self._absolute[:, channels].sum(axis=0).mean() / windows),
                "rmse": _number(np.sqrt(self._squared[channels].mean() / windows)),
                "mase": _number(defined.mean()) if len(defined) else None,
                "smape": _number(self._relative[channels].mean() / windows),
                "windows": windows,
            }

        return Score(
            overall=summary(slice(None)),
            by_target={name: summary(slice(i, i + 1)) for i, name in enumerate(self._names)},
            without_mase=tuple(name for name, column in zip(self._names, undefined.T, strict=True) if column.any()),
            series=int(scored.sum()),
            series_without_mase=int(undefined.any(axis=1).sum()),
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


def _number(value: np.floating) -> float | None:
    return float(value) if np.isfinite(value) else None
