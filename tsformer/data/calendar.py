"""Features of the time itself, which a model knows ahead: the place in the day, week, month and year, and holidays.

What comes round is given as sine and cosine, so that 23:00 lies next to 00:00; as in the `time_features` of GluonTS and
Autoformer, but without their jump at the end of each period.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from tsformer.data.holidays import closed_days
from tsformer.data.panel import Schema
from tsformer.errors import UsageError, did_you_mean

_CYCLES: dict[str, tuple[Callable[[pd.DatetimeIndex], pd.Index | pd.Series], int]] = {
    "minute": (lambda times: times.minute, 60),
    "hour": (lambda times: times.hour + times.minute / 60, 24),
    "dayofweek": (lambda times: times.day_of_week, 7),
    "dayofmonth": (lambda times: times.day - 1, 31),
    "dayofyear": (lambda times: times.day_of_year - 1, 366),
    "week": (lambda times: times.isocalendar().week.astype(int) - 1, 53),
    "month": (lambda times: times.month - 1, 12),
    "quarter": (lambda times: times.quarter - 1, 4),
}
"""Where a time stands in what comes round, counted from 0, and the length of that."""

CALENDAR = (*_CYCLES, "weekend", "holiday")
"""All features that there are."""


def calendar_width(schema: Schema) -> int:
    """Channels that the features of a schema take: two for what comes round, one for a yes or no.

    Raises:
        UsageError: a feature that there is not, or holidays of nowhere.
    """
    for name in schema.calendar:
        if name not in CALENDAR:
            hint = did_you_mean(name, CALENDAR)
            raise UsageError(f"--calendar: there is no feature '{name}'{hint}; there are {', '.join(CALENDAR)}")
    if "holiday" in schema.calendar and schema.holidays is None:
        raise UsageError("--calendar holiday: whose holidays? Name a country or an exchange, --holidays DE or NYSE")
    return sum(2 if name in _CYCLES else 1 for name in schema.calendar)


def calendar_features(times: pd.Index, schema: Schema) -> np.ndarray:
    """Features of the times `[rows]` as the clock on the wall shows them, float32 `[rows, width]`, in [-1, 1].

    Raises:
        UsageError: as `calendar_width`, and times that are no dates.
    """
    width = calendar_width(schema)
    if not width:
        return np.zeros((len(times), 0), dtype=np.float32)
    if not isinstance(times, pd.DatetimeIndex):
        raise UsageError(f"--calendar {','.join(schema.calendar)}: the times are numbers; features need dates")
    return np.column_stack([_feature(name, times, schema) for name in schema.calendar]).astype(np.float32)


def constant_features(times: pd.Index, schema: Schema) -> tuple[str, ...]:
    """Those of the schema's features that are the same at all times `[rows]`, as the hour is in daily data."""
    calendar_width(schema)
    if not isinstance(times, pd.DatetimeIndex):
        return ()
    found = ((name, _feature(name, times, schema)) for name in schema.calendar)
    return tuple(name for name, feature in found if np.ptp(feature, axis=0).max() < 1e-6)


def _feature(name: str, times: pd.DatetimeIndex, schema: Schema) -> np.ndarray:
    """float64 `[rows, 2]` or `[rows, 1]`."""
    if name in _CYCLES:
        place, length = _CYCLES[name]
        angle = 2 * np.pi / length * np.asarray(place(times), dtype=np.float64)
        return np.column_stack([np.sin(angle), np.cos(angle)])
    if name == "weekend":
        return np.asarray(times.day_of_week >= 5, dtype=np.float64)[:, None]
    assert schema.holidays is not None
    days = times.tz_localize(None).to_numpy().astype("datetime64[D]")
    return np.isin(days, closed_days(schema.holidays, set(times.year))).astype(np.float64)[:, None]
