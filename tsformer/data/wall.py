"""The clock on the wall and the time that really passes: times as whole microseconds, with and without their zone."""

from __future__ import annotations

from datetime import tzinfo

import numpy as np
import pandas as pd

from tsformer.data.step import DAY


def passed(times: pd.DatetimeIndex) -> np.ndarray:
    """Microseconds since 1970 in UTC, int64 `[rows]`; for times without a zone what the wall shows."""
    return np.asarray(times.as_unit("us").asi8)


def shown(times: pd.DatetimeIndex) -> np.ndarray:
    """What the clock on the wall shows, in microseconds from 1970-01-01 00:00, int64 `[rows]`."""
    return passed(times.tz_localize(None))


def calendar(times: pd.DatetimeIndex) -> tuple[np.ndarray, np.ndarray]:
    """Days from 1970-01-01 on the wall `[rows]`, and which rows keep the usual time of day."""
    wall = shown(times)
    days = wall // DAY
    expected = days * DAY + commonest(wall - days * DAY)
    keeps = wall == expected
    if times.tz is not None and not keeps.all():
        # 02:30 does not exist on the day that summer time begins: the row then stands at 03:00, where it belongs.
        keeps |= passed(times) == passed(from_wall(expected, times.tz))
    return days, keeps


def from_passed(microseconds: np.ndarray, zone: tzinfo | None) -> pd.DatetimeIndex:
    """The inverse of `passed`."""
    times = pd.DatetimeIndex(microseconds.view("datetime64[us]"))
    return times if zone is None else times.tz_localize("UTC").tz_convert(zone)


def from_wall(microseconds: np.ndarray, zone: tzinfo | None) -> pd.DatetimeIndex:
    """The inverse of `shown`; a time that is skipped moves forward, of one that comes twice the first is taken."""
    times = pd.DatetimeIndex(microseconds.view("datetime64[us]"))
    if zone is None:
        return times
    first = np.ones(len(times), dtype=bool)
    return times.tz_localize(zone, nonexistent="shift_forward", ambiguous=first)


def by_month(days: np.ndarray) -> bool:
    """Whether days from 1970-01-01 `[rows]` are one a month, quarter or year, on whichever day of it."""
    months = days.astype("datetime64[D]").astype("datetime64[M]")
    steps = np.diff(months.astype(np.int64))
    if len(days) < 3 or (steps < 1).any():
        return False
    return bool((steps == steps[0]).all() or np.ptp(days - months.astype("datetime64[D]").astype(np.int64)) == 0)


def commonest(values: np.ndarray) -> int:
    """The most frequent of whole numbers, the smallest if several are."""
    found, counts = np.unique(values, return_counts=True)
    return int(found[counts.argmax()])
