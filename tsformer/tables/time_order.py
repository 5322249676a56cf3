"""One of several readings of a column of times, on the evidence of all its rows: 01/02/2024 is February or January."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from tsformer.data.months import weekday_of, weekdays_before

Reading = tuple[str, pd.DatetimeIndex]
_LEAST = 8
"""Times that tell an order, at least."""
_FEWER = 3
"""A reading is better if it has so many times fewer irregular steps."""


@dataclass(frozen=True)
class _Evidence:
    """How well a reading goes with the rows.

    Attributes:
        in_order: whether the rows only rise, or only fall.
        irregular: steps that differ from the usual one.
        monthly: whether all are on the same day of their months.
        without_weekends: whether steps are that regular only where weekends are left out.
    """

    in_order: bool
    irregular: int
    monthly: bool
    without_weekends: bool

    def beats(self, other: _Evidence) -> bool:
        # First days of some months, read the other way round, are some weekdays of one January.
        if self.in_order < other.in_order or (self.without_weekends and other.monthly):
            return False
        better = self.irregular < other.irregular and (
            self.irregular == 0 or _FEWER * self.irregular <= other.irregular
        )
        return better or (self.in_order > other.in_order and self.irregular <= other.irregular)


def is_day_first(time_format: str) -> bool | None:
    """Whether the day stands before the month in a format of numbers with the year behind; None for all others."""
    plain = time_format.replace("-", "")
    day, month = plain.find("%d"), plain.find("%m")
    year = max(plain.find("%Y"), plain.find("%y"))
    return day < month if min(day, month) >= 0 and year > max(day, month) else None


def decided(found: list[Reading]) -> Reading | None:
    """The reading that the rows bear out, of several that read every cell; None where it would be a guess.

    Args:
        found: formats with the times of the distinct cells, in order of appearance. Years of two digits in front and
            months before a dot are rare: they count only where the rows leave nothing else.
    """
    found = sorted(found, key=_is_rare)
    readings = [reading for i, reading in enumerate(found) if not any(reading[1].equals(o[1]) for o in found[:i])]
    if len(readings) == 1:
        return readings[0]
    evidence = {time_format: _evidence(times) for time_format, times in readings}
    rare = [reading for reading in readings if _is_rare(reading)]
    usual = [reading for reading in readings if reading not in rare]
    enough = len(readings[0][1]) >= _LEAST
    for candidate in [*rare, *(usual if len(usual) > 1 else [])] if enough else []:
        if all(evidence[candidate[0]].beats(evidence[other[0]]) for other in usual if other is not candidate):
            return candidate
    return usual[0] if len(usual) == 1 else None


def _is_rare(reading: Reading) -> bool:
    return reading[0].startswith(("%y", "%m."))


def _evidence(times: pd.DatetimeIndex) -> _Evidence:
    moments = times.asi8
    steps = np.diff(moments)
    ordered = np.unique(moments)
    sorted_times = pd.DatetimeIndex(ordered.view(f"datetime64[{times.unit}]"))
    irregular = _irregular(np.diff(ordered))
    monthly = bool((sorted_times.day == sorted_times.day[0]).all()) and sorted_times.hour.nunique() == 1
    if monthly:
        irregular = min(irregular, _irregular(np.diff(np.asarray(12 * sorted_times.year + sorted_times.month))))
    days = sorted_times.as_unit("s").asi8 // (24 * 3600)
    on_weekdays = _irregular(np.diff(weekdays_before(days))) if (weekday_of(days) < 5).all() else irregular
    in_order = bool((steps > 0).all() or (steps < 0).all())
    return _Evidence(in_order, min(irregular, on_weekdays), monthly, on_weekdays < irregular)


def _irregular(steps: np.ndarray) -> int:
    """How many steps are not the commonest."""
    return len(steps) - int(np.unique(steps, return_counts=True)[1].max(initial=0))
