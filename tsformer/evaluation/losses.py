"""What each forecast costs, kept by series and origin: what skill, its spread, and tests of differences are made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

LOSSES = ("mase", "mae", "mse", "smape", "rmsse", "wql")


class Losses:
    """Sums of losses over steps and targets, by series and origin; O(series x origins) in memory.

    Missing values, and forecasts that are NaN, count nowhere. Scaled losses leave out where the scale is NaN.

    Args:
        scale: float64 `[series, targets]`, from `seasonal_scale`.
        squared: the same for squared errors: the mean squared one-season difference.
        origins: how many there are.
        probabilities: of the quantiles that come with forecasts, ascending.
    """

    def __init__(
        self, scale: np.ndarray, origins: int, probabilities: Sequence[float] = (), squared: np.ndarray | None = None
    ) -> None:
        self._scale, self._squared = scale, scale**2 if squared is None else squared
        self._shape = (len(scale), origins)
        self._probabilities = np.asarray(probabilities)
        names = LOSSES if len(self._probabilities) else LOSSES[:-1]
        self._sums = {name: np.zeros(self._shape) for name in names}
        self._counts = {name: np.zeros(self._shape, dtype=np.int64) for name in names}

    def add(
        self,
        forecast: np.ndarray,
        truth: np.ndarray,
        series: np.ndarray,
        number: np.ndarray,
        quantiles: np.ndarray | None = None,
    ) -> None:
        """Count forecasts `[windows, horizon, targets]` against the truth, NaN for none.

        Args:
            series, number: int64 `[windows]`, the series and the origin of each window.
            quantiles: float64 `[windows, horizon, targets, probabilities]`.
        """
        error = np.where(np.isnan(truth), np.nan, forecast) - truth
        size = np.abs(error)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            found = {
                "mase": size / self._scale[series][:, None],
                "mae": size,
                "mse": error**2,
                "smape": np.where(size == 0, 0.0, 200 * size / (np.abs(truth) + np.abs(forecast))),
                "rmsse": error**2 / self._squared[series][:, None],
            }
        if "wql" in self._sums and quantiles is not None:
            under = truth[..., None] - quantiles
            found["wql"] = 2 * np.maximum(self._probabilities * under, (self._probabilities - 1) * under).mean(axis=-1)
        place = series * self._shape[1] + number
        for name, values in found.items():
            values = values.reshape(len(series), -1)
            real = np.isfinite(values)
            total = np.bincount(place, np.where(real, values, 0.0).sum(axis=1), minlength=int(np.prod(self._shape)))
            count = np.bincount(place, real.sum(axis=1), minlength=int(np.prod(self._shape)))
            self._sums[name] += total.reshape(self._shape)
            self._counts[name] += count.reshape(self._shape).astype(np.int64)

    def mean(self, name: str) -> np.ndarray:
        """Mean loss of each series at each origin, float64 `[series, origins]`; NaN where there is none."""
        if name not in self._sums:
            return np.full(self._shape, np.nan)
        with np.errstate(invalid="ignore"):
            return np.asarray(self._sums[name] / self._counts[name])
