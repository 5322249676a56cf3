"""Errors of forecasts in the user's own units. What is undefined is None, never inf, NaN or 0, and counted.

Values that are missing count nowhere; all others count alike. With e = forecast - truth over n values:

    mae    mean |e|                          rmse   root of mean e^2             bias  mean e
    mape   mean 100 |e| / |truth|            smape  mean 200 |e| / (|truth| + |forecast|)
    mase   mean |e| over the seasonal naive forecast's before the test part, series by series, then their mean
    rmsse  root of mean e^2 over its mean square, in the same way
    pinball  mean over the quantiles q of probability p of max(p (truth - q), (p - 1)(truth - q))
    crps   twice that: the continuous ranked probability score, by the quantiles that there are
    wql    twice the sum of pinball losses over the sum of |truth|
    coverage_80, width_80   share of true values in the interval of 80 %, and how wide it is on average
    msis_80  mean interval score (width, and 2 / 0.2 for each unit that a value lies outside) over the scale of mase

The relative ones leave out what has a truth of 0, or a scale of 0. Those of single steps of the horizon have scaled
errors averaged over all values, not series by series.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tsformer.levels import level_name

Metrics = dict[str, float | int | None]
"""Numbers by name."""


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
        zeros: how many of those with a forecast are 0, and have no MAPE.
    """

    overall: Metrics
    by_target: dict[str, Metrics]
    without_mase: tuple[str, ...] = ()
    series: int = 1
    series_without_mase: int = 0
    values: int = 0
    left_out: int = 0
    zeros: int = 0


def levels_of(probabilities: Sequence[float]) -> tuple[float, ...]:
    """The levels, in percent and ascending, of intervals whose ends have these probabilities; see `Ask`."""
    lower = probabilities[: len(probabilities) // 2]
    return tuple(round(100 * (1 - 2 * p), 9) for p in reversed(lower))


class Errors:
    """Errors added up over batches of windows, so that they need not be in memory all at once.

    Memory is that of some numbers for each series, step and target.

    Args:
        scale: float64 `[series, targets]`, from `seasonal_scale`.
        names: the targets.
        probabilities: of the ends of the intervals that come with forecasts, ascending; see `Ask.probabilities`.
        squared: the scale of squared errors, from `seasonal_scale(..., squared=True)`; without it there is no RMSSE.
    """

    def __init__(
        self,
        scale: np.ndarray,
        names: Sequence[str],
        probabilities: Sequence[float] = (),
        squared: np.ndarray | None = None,
    ) -> None:
        self._scale, self._names = scale, tuple(names)
        self._squared = np.full_like(scale, np.nan) if squared is None else squared
        self._probabilities = np.asarray(probabilities, dtype=np.float64)
        self._levels = levels_of(probabilities)
        self._sums: dict[str, _Sums] = {}
        self._windows = np.zeros(len(scale), dtype=np.int64)
        self._values = self._left_out = self._zeros = 0

    def add(
        self, forecast: np.ndarray, truth: np.ndarray, series: np.ndarray, quantiles: np.ndarray | None = None
    ) -> None:
        """Count the errors of `forecast` against `truth`, both float64 `[windows, horizon, targets]`, NaN for none.

        Args:
            series: int64 `[windows]`, the series of each window.
            quantiles: float64 `[windows, horizon, targets, probabilities]`; None where there are none.
        """
        there, real = ~np.isnan(truth), ~np.isnan(truth) & ~np.isnan(forecast)
        self._windows += np.bincount(series, there.any(axis=(1, 2)), minlength=len(self._windows)).astype(np.int64)
        self._values += int(there.sum())
        self._left_out += int((there & ~real).sum())
        self._zeros += int((real & (truth == 0)).sum())
        error = np.where(real, forecast - truth, np.nan)
        size, scale = np.abs(error), self._scale[series][:, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            relative = 200.0 * size / (np.abs(truth) + np.abs(forecast))
            found = {
                "absolute": size,
                "squared": error**2,
                "error": error,
                "mape": np.where(truth == 0, np.nan, 100.0 * size / np.abs(truth)),
                "smape": np.where(size == 0, 0.0, relative),  # a zero that was forecast is no error
                "scaled": size / scale,
                "scaled_squared": error**2 / self._squared[series][:, None],
            }
        if quantiles is not None and len(self._probabilities):
            found |= self._of_quantiles(quantiles, truth, scale)
        for name, values in found.items():
            if name not in self._sums:
                self._sums[name] = _Sums(len(self._scale), *values.shape[1:])
            self._sums[name].add(values, series)

    def _of_quantiles(self, quantiles: np.ndarray, truth: np.ndarray, scale: np.ndarray) -> dict[str, np.ndarray]:
        under = truth[..., None] - quantiles
        pinball = np.maximum(self._probabilities * under, (self._probabilities - 1) * under).mean(axis=-1)
        real = ~np.isnan(pinball)
        found = {"pinball": pinball, "truth": np.where(real, np.abs(truth), np.nan)}
        for place, level in enumerate(reversed(self._levels)):
            low, high, name = quantiles[..., place], quantiles[..., -1 - place], level_name(level)
            outside = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
            there = ~np.isnan(outside)  # of one level there may be an interval, and of another one none
            found[f"coverage_{name}"] = np.where(there, outside == 0, np.nan)
            found[f"width_{name}"] = np.where(there, high - low, np.nan)
            with np.errstate(invalid="ignore", divide="ignore"):
                found[f"msis_{name}"] = (high - low + 200.0 / (100.0 - level) * outside) / scale
        return found

    def score(self) -> Score:
        """The means over all values so far."""
        everything = range(len(self._names))
        counts = self._sums["absolute"].by_series[1] if self._sums else np.zeros(self._scale.shape)
        undefined = np.isnan(self._scale) & (counts > 0)
        return Score(
            overall=self._summary(everything),
            by_target={name: self._summary([channel]) for channel, name in enumerate(self._names)},
            without_mase=tuple(name for name, column in zip(self._names, undefined.T, strict=True) if column.any()),
            series=int((self._windows > 0).sum()),
            series_without_mase=int(undefined.any(axis=1).sum()),
            values=self._values,
            left_out=self._left_out,
            zeros=self._zeros,
        )

    def by_series(self) -> dict[int, Metrics]:
        """Of each series that has windows, by its number."""
        return {number: self._of_series(number) for number in np.flatnonzero(self._windows).tolist()}

    def by_horizon(self) -> list[Metrics]:
        """Of each step, from the first."""
        steps = self._sums["absolute"].by_step[0].shape[0] if self._sums else 0
        return [self._of_step(step) for step in range(steps)]

    def _summary(self, channels: Sequence[int]) -> Metrics:
        chosen = list(channels)
        parts = {name: [array[:, chosen] for array in sums.by_series] for name, sums in self._sums.items()}
        return self._metrics(parts, int(self._windows.sum()))

    def _of_series(self, number: int) -> Metrics:
        parts = {name: [array[number : number + 1] for array in s.by_series] for name, s in self._sums.items()}
        return self._metrics(parts, int(self._windows[number]))

    def _of_step(self, step: int) -> Metrics:
        # all series in one: scaled errors are averaged over values
        parts = {name: [array[step].sum(keepdims=True)[None] for array in s.by_step] for name, s in self._sums.items()}
        return self._metrics(parts, int(self._windows.sum()))

    def _metrics(self, parts: dict[str, list[np.ndarray]], windows: int) -> Metrics:
        """Means of sums and counts `[series, targets]`; scaled ones of each series and target, then of these."""

        def total(name: str) -> tuple[float, float]:
            sums, counts = parts.get(name, (np.zeros(1), np.zeros(1)))
            return float(sums.sum()), float(counts.sum())

        def mean(name: str) -> float | None:
            return _ratio(*total(name))

        def over_series(name: str, *, root: bool = False) -> float | None:
            if name not in parts:
                return None
            sums, counts = parts[name]
            each = sums[counts > 0] / counts[counts > 0]
            return _ratio(float((np.sqrt(each) if root else each).sum()), float(len(each)))

        squared, pinball = mean("squared"), mean("pinball")
        found: Metrics = {
            "mae": mean("absolute"),
            "rmse": None if squared is None else float(np.sqrt(squared)),
            "mase": over_series("scaled"),
            "smape": mean("smape"),
            "mape": mean("mape"),
            "rmsse": over_series("scaled_squared", root=True),
            "bias": mean("error"),
        }
        if len(self._probabilities):
            loss, size = total("pinball")[0], total("truth")[0]
            found |= {
                "pinball": pinball,
                "crps": None if pinball is None else 2 * pinball,
                "wql": _ratio(2 * loss, size),
            }
            for level in map(level_name, self._levels):
                found[f"coverage_{level}"] = mean(f"coverage_{level}")
                found[f"width_{level}"] = mean(f"width_{level}")
                found[f"msis_{level}"] = over_series(f"msis_{level}")
        return {**found, "windows": windows}


class _Sums:
    """Sums and counts of the real values of `[windows, horizon, targets]`, by series and by step."""

    def __init__(self, series: int, horizon: int, targets: int) -> None:
        self.by_series = [np.zeros((series, targets)), np.zeros((series, targets), dtype=np.int64)]
        self.by_step = [np.zeros((horizon, targets)), np.zeros((horizon, targets), dtype=np.int64)]

    def add(self, values: np.ndarray, series: np.ndarray) -> None:
        real = np.isfinite(values)
        shape = self.by_series[0].shape
        place = (series[:, None] * shape[1] + np.arange(shape[1])).ravel()
        for number, part in enumerate((np.where(real, values, 0.0), real)):
            each = np.bincount(place, part.sum(axis=1).ravel(), minlength=shape[0] * shape[1]).reshape(shape)
            self.by_series[number] += each.astype(self.by_series[number].dtype)
            self.by_step[number] += part.sum(axis=0)


def score(
    forecast: np.ndarray,
    truth: np.ndarray,
    series: np.ndarray,
    scale: np.ndarray,
    names: Sequence[str],
    probabilities: Sequence[float] = (),
    quantiles: np.ndarray | None = None,
    squared: np.ndarray | None = None,
) -> Score:
    """Errors of `forecast` against `truth`, both float64 `[windows, horizon, targets]`; arguments as of `Errors`."""
    errors = Errors(scale, names, probabilities, squared)
    errors.add(forecast, truth, series, quantiles)
    return errors.score()


def overall_weighted_average(own: Metrics, naive2: Metrics) -> float | None:
    """OWA (Makridakis, Spiliotis & Assimakopoulos 2020): sMAPE and MASE relative to those of Naive 2, averaged."""
    ratios = []
    for name in ("smape", "mase"):
        mine, other = own.get(name), naive2.get(name)
        if mine is None or not other:
            return None
        ratios.append(mine / other)
    return sum(ratios) / 2


def _ratio(total: float, count: float) -> float | None:
    value = total / count if count else np.nan
    return value if np.isfinite(value) else None
