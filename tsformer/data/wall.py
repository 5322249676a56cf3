"""The clock on the wall and the time that really passes: times as whole microseconds, with and without their zone."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import timedelta, timezone, tzinfo

import numpy as np
import pandas as pd

from tsformer.data.step import DAY, MICROSECONDS, commonest
from tsformer.errors import DataError

_SECOND = MICROSECONDS["s"]
_FARTHEST = 16 * 3600
"""Seconds that no zone is away from UTC."""


@dataclass(frozen=True)
class Wall:
    """What a calendar and a clock on the wall say of times.

    Attributes:
        days: from 1970-01-01, `[rows]`.
        clock: the usual time of day, in microseconds.
        keeps_clock: which rows `[rows]` are at that time of day, or where summer time moves it.
    """

    days: np.ndarray
    clock: int
    keeps_clock: np.ndarray


def as_numbers(times: pd.Index) -> np.ndarray:
    """Times `[rows]` as numbers that sort and compare like them; dates in UTC and in their own unit.

    Not `to_numpy`: it makes a Python object of each time with a zone.
    """
    return np.asarray(times.asi8) if isinstance(times, pd.DatetimeIndex) else times.to_numpy()


def passed(times: pd.DatetimeIndex) -> np.ndarray:
    """Microseconds since 1970 in UTC, int64 `[rows]`; for times without a zone what the wall shows."""
    return np.asarray(times.as_unit("us").asi8)


def shown(times: pd.DatetimeIndex) -> np.ndarray:
    """What the clock on the wall shows, in microseconds from 1970-01-01 00:00, int64 `[rows]`."""
    return passed(times.tz_localize(None))


def calendar(times: pd.DatetimeIndex) -> Wall:
    """Days and time of day of the times `[rows]`.

    Where summer time skips the usual time of day, 02:30, the row may stand at the end of the gap (03:00, as pandas
    shifts forward) or as much later as the gap is long (03:30, RFC 5545 and `zoneinfo`).
    """
    wall = shown(times)
    days = wall // DAY
    clock = commonest(wall - days * DAY)
    expected = days * DAY + clock
    keeps = wall == expected
    if times.tz is not None and not keeps.all():
        off = np.flatnonzero(~keeps)
        off = off[shown(from_wall(expected[off], times.tz)) != expected[off]]
        now, end = passed(times[off]), _gap_ends(expected[off], times.tz)
        before = shown(from_passed(end - 1, times.tz)) - (end - 1)
        keeps[off] = (now == end) | (now == expected[off] - before)
    return Wall(days, clock, keeps)


def usual_clocks(times: pd.DatetimeIndex, offsets: np.ndarray) -> list[int]:
    """For each series of a panel the time of day that `calendar` finds, in microseconds."""
    clock = shown(times) % DAY
    return [commonest(clock[start:stop]) for start, stop in itertools.pairwise(offsets)]


def from_passed(microseconds: np.ndarray, zone: tzinfo | None) -> pd.DatetimeIndex:
    """The inverse of `passed`."""
    times = pd.DatetimeIndex(microseconds.view("datetime64[us]"))
    return times if zone is None else times.tz_localize("UTC").tz_convert(zone)


def from_wall(microseconds: np.ndarray, zone: tzinfo | None) -> pd.DatetimeIndex:
    """The inverse of `shown`; a time that is skipped moves to the end of the gap, of one that comes twice the first
    is taken."""
    times = pd.DatetimeIndex(microseconds.view("datetime64[us]"))
    if zone is None:
        return times
    times = times.tz_localize(zone, nonexistent="NaT", ambiguous=np.ones(len(times), dtype=bool))
    skipped = times.isna()
    if not skipped.any():
        return times
    moments = passed(times).copy()
    moments[skipped] = _gap_ends(microseconds[skipped], zone)
    return from_passed(moments, zone)


def exists(days: np.ndarray, zone: tzinfo | None) -> np.ndarray:
    """Which of the days from 1970-01-01 `[rows]` a zone has: Samoa had no 2011-12-30."""
    if zone is None:
        return np.ones(len(days), dtype=bool)
    noon = days * DAY + DAY // 2
    return np.asarray(shown(from_wall(noon, zone)) // DAY == days)


def zone_name(zone: tzinfo) -> str:
    """The name from which pandas makes the zone again on any machine: "Europe/Berlin", "UTC+05:45", "UTC".

    Raises:
        DataError: for a zone that has none, such as the machine's own.
    """
    # zoneinfo and dateutil have a key, pytz a zone.
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)
    if name:
        return str(name)
    file = str(getattr(zone, "_filename", ""))
    if "/zoneinfo/" in file:
        return file.rpartition("/zoneinfo/")[2]
    offset = zone.utcoffset(None)
    if offset is None or offset % timedelta(minutes=1):
        raise DataError(f"time zone {zone} has no name that other machines know: tz_convert('UTC') or a named zone")
    return str(timezone(offset))


def _gap_ends(wall: np.ndarray, zone: tzinfo) -> np.ndarray:
    """When the wall shows more than times that a zone skips, `[rows]`, in microseconds as `passed`.

    pandas shifts to the next full hour, but Lord Howe's summer begins at half past, and Newfoundland's began at 00:01.
    """
    low, high = wall // _SECOND - _FARTHEST, wall // _SECOND + _FARTHEST
    while (high - low > 1).any():
        middle = (low + high) // 2
        passes = shown(from_passed(middle * _SECOND, zone)) > wall
        low, high = np.where(passes, low, middle), np.where(passes, middle, high)
    return np.asarray(high * _SECOND)
