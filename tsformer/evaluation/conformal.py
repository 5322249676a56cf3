"""Conformal intervals: from the errors of earlier forecasts, whatever the model says of how values scatter.

Split conformal prediction (Vovk et al. 2005; Lei et al. 2018), for each step of the horizon and each target by itself
(Stankeviciute et al. 2021): of n errors that no gradient saw, the interval of 1 - alpha reaches as far as the
ceil((n + 1)(1 - alpha))-th smallest one. If errors to come are like these, it covers at least 1 - alpha of them.

The adaptive kind follows the errors in time, so that coverage is held while they drift; see `adaptive`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from tsformer.data.panel import Panel
from tsformer.errors import UsageError
from tsformer.evaluation.adaptive import MOST_COMPARED_ONCE, Standing, rank
from tsformer.evaluation.scales import seasonal_scale


@dataclass(frozen=True, eq=False)
class Calibration:
    """Errors of forecasts from rolling origins, in order of time.

    Attributes:
        errors: float64 `[windows, horizon, targets]`: truth minus forecast over the scale of the series, or where
            relative log(truth / forecast); NaN where there is no truth.
        begins: float64 `[windows]`, ascending, the time of the first predicted step; see `clock`.
        known: float64 `[windows, horizon]`, the time of each step: from then on its error is known.
        scales: by series, float64 `[targets]`, finite and positive, what its errors were divided by.
        relative: intervals are ratios: `[forecast / x, forecast * x]`.
    """

    errors: np.ndarray
    begins: np.ndarray
    known: np.ndarray
    scales: dict[str, np.ndarray]
    relative: bool = False

    @property
    def horizon(self) -> int:
        return int(self.errors.shape[1])

    def scale_of(self, panel: Panel, season: int) -> np.ndarray:
        """What errors of each series are multiplied by, float64 `[series, targets]`: of one that was not there in the
        fit, by its own rows."""
        if self.relative:
            return np.ones((len(panel.ids), self.errors.shape[2]))
        names = panel.ids if panel.schema.id else ("",) * len(panel.ids)
        if all(name in self.scales for name in names):
            return np.stack([self.scales[name] for name in names])
        own = series_scale(panel, panel.lengths, season)
        return np.stack([self.scales.get(name, scale) for name, scale in zip(names, own, strict=True)])

    def intervals(
        self,
        point: np.ndarray,
        levels: Sequence[float],
        scale: np.ndarray,
        *,
        adaptive: bool = False,
        at: float | None = None,
    ) -> np.ndarray:
        """The ends of the intervals around forecasts, in the order of `Ask.probabilities`.

        Args:
            point: float64 `[windows, horizon, targets]`; the horizon may be shorter than that of the errors.
            levels: in percent, ascending.
            scale: float64 `[windows, targets]`, from `scale_of`.
            adaptive: follow the errors in time.
            at: where the clock stands: what is known later is not looked at. None: all is known.

        Returns:
            float64 `[windows, horizon, targets, 2 * levels]`.

        Raises:
            UsageError: too few errors for a level, or a longer horizon than they have.
        """
        steps = point.shape[1]
        if steps > self.horizon:
            raise UsageError(
                f"conformal intervals reach {self.horizon} steps ahead, as far as the errors that they are made of, "
                f"and {steps} are forecast: take a shorter --horizon, or fit with --horizon {steps}"
            )
        calibration = self if at is None else self._until(at)
        aims = [self._aims_at(level, at) if adaptive and at is not None else None for level in levels]
        radii = [calibration.radius(level, adaptive=adaptive, aim=aim) for level, aim in zip(levels, aims, strict=True)]
        half = np.stack(radii)[:, :steps]
        lower, upper = [], []
        for radius in half[::-1]:
            if self.relative:
                lower.append(point * np.exp(-radius))
                upper.append(point * np.exp(radius))
            else:
                lower.append(point - radius * scale[:, None])
                upper.append(point + radius * scale[:, None])
        return np.stack([*lower, *reversed(upper)], axis=-1)

    def enough(self, level: float) -> bool:
        """Whether there are as many errors as an interval of a level, in percent, needs at every step."""
        return int(self._sizes[1].min()) >= fewest_windows(level)

    def radius(self, level: float, *, adaptive: bool = False, aim: np.ndarray | None = None) -> np.ndarray:
        """How far an interval reaches to either side, float64 `[horizon, targets]`, in units of the scale.

        Args:
            aim: the share of misses that the adaptive kind aims at, where it is found already.

        Raises:
            UsageError: too few errors.
        """
        size, count = self._sizes
        least = fewest_windows(level)
        if not self.enough(level):
            raise UsageError(
                f"an interval of {level:.10g} % needs the errors of {least} forecasts that the model was not fitted "
                f"on, and there are {int(count.min())}: give more rows, a shorter --horizon, or a lower --levels"
            )
        alpha = 1 - level / 100
        missed = np.full(count.shape, alpha) if aim is None else aim
        if adaptive and aim is None:
            missed = self._standing.aimed_at(alpha, least)
        return np.asarray(np.take_along_axis(size, rank(count, missed)[None] - 1, axis=0)[0])

    @cached_property
    def _sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Absolute errors in ascending order along the windows, what is missing last, and how many there are."""
        return np.sort(np.abs(self.errors), axis=0), np.isfinite(self.errors).sum(axis=0)

    def _until(self, at: float) -> Calibration:
        """What is known at a time, of the forecasts that had been made."""
        errors = np.where((self.known < at)[..., None], self.errors, np.nan)
        some = self.begins < at
        return replace(self, errors=errors[some], begins=self.begins[some], known=self.known[some])

    @cached_property
    def _standing(self) -> Standing:
        return Standing.of(np.abs(self.errors), self.begins, self.known)

    def _aims_at(self, level: float, at: float) -> np.ndarray | None:
        """The share of misses to aim at when the forecast is made that begins at a time, out of one pass over all of
        them; None where there is no such forecast, or there are too many."""
        place = int(np.searchsorted(self.begins, at))
        if place == len(self.begins) or self.begins[place] != at:
            return None
        if len(self.begins) * self.errors.size > MOST_COMPARED_ONCE:
            return None
        if level not in self._aims:
            self._aims[level] = self._whole.aims(1 - level / 100, fewest_windows(level))
        return np.asarray(self._aims[level][place])

    @cached_property
    def _aims(self) -> dict[float, np.ndarray]:
        return {}

    @cached_property
    def _whole(self) -> Standing:
        return Standing.of(np.abs(self.errors), self.begins, self.known, every=True)

    def extended(self, errors: np.ndarray, begins: np.ndarray, known: np.ndarray) -> Calibration:
        """With the errors of further forecasts, which need not be in order; arrays as those of the class."""
        order = np.argsort(np.concatenate([self.begins, begins]), kind="stable")
        parts = ((self.errors, errors), (self.begins, begins), (self.known, known))
        joined = [np.concatenate(pair)[order] for pair in parts]
        return replace(self, errors=joined[0], begins=joined[1], known=joined[2])

    def errors_of(self, point: np.ndarray, truth: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Errors as they are kept, float64 `[windows, horizon, targets]`; see `errors_of`."""
        return errors_of(point, truth, scale, relative=self.relative)

    def to_bytes(self) -> bytes:
        """As a run keeps them."""
        names = list(self.scales)
        shape = (len(names), self.errors.shape[2])
        arrays = {
            "errors": self.errors,
            "begins": self.begins,
            "known": self.known,
            "scales": np.stack([self.scales[name] for name in names]) if names else np.zeros(shape),
        }
        about = {"about": json.dumps({"series": names, "relative": self.relative})}  # several keys come in any order
        return safetensors.numpy.save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, about)

    @classmethod
    def from_bytes(cls, content: bytes, horizon: int, targets: int) -> Calibration:
        """Raises ValueError when they are none, or those of another problem."""
        try:
            arrays = safetensors.numpy.load(content)
            size = int.from_bytes(content[:8], "little")
            about: dict[str, Any] = json.loads(content[8 : 8 + size]).get("__metadata__", {})
            told = json.loads(about["about"])
            names, relative = told["series"], told["relative"]
            errors, begins, known, scales = (arrays[name] for name in ("errors", "begins", "known", "scales"))
            real = {array.dtype for array in (errors, begins, known, scales)} == {np.dtype(np.float64)}
            named = all(isinstance(name, str) for name in names) and isinstance(relative, bool)
            shape = (*begins.shape, horizon, targets)
            fits = (errors.shape, known.shape, scales.shape) == (shape, shape[:-1], (len(names), targets))
        except (SafetensorError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no errors of forecasts ({error})") from None
        if not (real and named and fits and begins.ndim == 1):
            raise ValueError("the errors of forecasts are those of another problem")
        if (np.diff(begins) < 0).any() or not (np.isfinite(scales) & (scales > 0)).all() or np.isinf(errors).any():
            raise ValueError("the errors of forecasts are out of order or on no scale")
        return cls(errors, begins, known, dict(zip(names, scales, strict=True)), relative)


def errors_of(point: np.ndarray, truth: np.ndarray, scale: np.ndarray, *, relative: bool) -> np.ndarray:
    """Truth minus forecast over the scale `[windows, targets]`, or log(truth / forecast); NaN without a truth."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.log(truth / point) if relative else (truth - point) / scale[:, None]
    return np.where(np.isfinite(found), found, np.nan)


def fewest_windows(level: float) -> int:
    """The fewest errors of which an interval of that level, in percent, is an order statistic: 9 for 90, 19 for 95."""
    return math.ceil(round(level / (100 - level), 9))


def series_scale(panel: Panel, before: np.ndarray, season: int) -> np.ndarray:
    """What brings errors of different series together, float64 `[series, targets]`, finite and positive always.

    The seasonal naive forecast's mean absolute error, as of MASE; where that is undefined the last value's, then the
    mean size of the values, then 1.

    Args:
        before: int64 `[series]`, rows of each series that are looked at.
        season: steps in one season.
    """
    scale = seasonal_scale(panel, before, season)
    if season > 1 and np.isnan(scale).any():
        scale = np.where(np.isnan(scale), seasonal_scale(panel, before, 1), scale)
    if np.isnan(scale).any():
        whose = np.repeat(np.arange(len(panel.ids)), panel.lengths)
        seen = np.arange(len(panel.values)) - panel.offsets[whose] < before[whose]
        values = np.where(seen[:, None], np.abs(panel.values[:, : scale.shape[1]]), np.nan)
        total = np.add.reduceat(np.nan_to_num(values), panel.offsets[:-1], axis=0)
        count = np.add.reduceat(np.isfinite(values), panel.offsets[:-1], axis=0)
        size = total / np.maximum(count, 1)
        scale = np.where(np.isnan(scale), np.where(size > 0, size, 1.0), scale)
    return scale
