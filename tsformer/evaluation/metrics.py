"""Errors of point forecasts in the user's own units. What is undefined is None, never inf, NaN or 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tsformer.data.panel import Panel, by_series

Metrics = dict[str, float | int | None]
"""{"mae", "rmse", "mase", "smape", "windows"}"""


@dataclass(frozen=True)
class Score:
    """Errors over a set of windows.

    Attributes:
        overall: all targets together; mase is the mean over the series and targets for which it is defined.
        by_target: the same for each target.
        without_mase: the targets that have no MASE in some series, because they repeat themselves each season.
    """

    overall: Metrics
    by_target: dict[str, Metrics]
    without_mase: tuple[str, ...] = ()


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


def score(
    forecast: np.ndarray, truth: np.ndarray, series: np.ndarray, scale: np.ndarray, names: Sequence[str]
) -> Score:
    """Errors of `forecast` against `truth`, both float64 `[windows, horizon, targets]`.

    Args:
        series: int64 `[windows]`, the series of each window.
        scale: float64 `[series, targets]`, from `seasonal_scale`.
        names: the targets.
    """
    error = forecast - truth
    with np.errstate(invalid="ignore", divide="ignore"):
        total = np.abs(truth) + np.abs(forecast)
        relative = np.where(total == 0, 0.0, 200.0 * np.abs(error) / total)  # a zero that was forecast is no error
    groups = by_series(series)
    mase = np.full((len(groups), len(names)), np.nan)
    for row, (index, mine) in enumerate(groups):
        mase[row] = np.abs(error[mine]).mean(axis=(0, 1)) / scale[index]

    def summary(channels: slice) -> Metrics:
        defined = mase[:, channels][np.isfinite(mase[:, channels])]
        return {
            "mae": _number(np.abs(error[:, :, channels]).mean()),
            "rmse": _number(np.sqrt((error[:, :, channels] ** 2).mean())),
            "mase": _number(defined.mean()) if len(defined) else None,
            "smape": _number(relative[:, :, channels].mean()),
            "windows": len(forecast),
        }

    by_target = {name: summary(slice(i, i + 1)) for i, name in enumerate(names)}
    without = tuple(name for name, column in zip(names, mase.T, strict=True) if np.isnan(column).any())
    return Score(summary(slice(None)), by_target, without)


def _number(value: np.floating) -> float | None:
    return float(value) if np.isfinite(value) else None
