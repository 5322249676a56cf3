"""Local times and the zone that they are in: localised over changes of the clock, and zones recognised by these."""

from __future__ import annotations

import itertools
import zoneinfo
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tsformer.data.step import MICROSECONDS, commonest
from tsformer.errors import UsageError, did_you_mean

_USUAL = (
    *("America/New_York", "Europe/Berlin", "Europe/London", "Europe/Athens", "Australia/Sydney", "America/Sao_Paulo"),
    *("America/Santiago", "Pacific/Auckland", "Asia/Tehran", "Asia/Jerusalem", "Africa/Cairo", "America/Havana"),
)
"""One zone of each of the usual ways to change the clock."""
_HOUR = MICROSECONDS["h"]
_LEAST_GAPS = 2
"""Hours that must be missing before they speak for a zone without one that comes twice."""


@dataclass(frozen=True)
class Localised:
    """Local times in their zone.

    Attributes:
        times: aware `[rows]`, NaT where the clock skips the time.
        once: how many of the times come twice by the clock and once in the table: the first is taken.
    """

    times: pd.DatetimeIndex
    once: int


def check_zone(zone: str) -> None:
    """Raise UsageError unless the name of a zone, or an offset such as UTC+01:00, is known."""
    try:
        pd.Timestamp(0, tz=zone)
    except (LookupError, ValueError, OSError):
        hint = did_you_mean(zone, zoneinfo.available_timezones())
        raise UsageError(f"--tz {zone!r} is no time zone{hint}: for example Europe/Berlin or UTC") from None


def localised(times: pd.DatetimeIndex, zone: str, series: np.ndarray) -> Localised:
    """Times on the wall `[rows]` in the zone.

    Of times that come twice when the clock goes back, the first row of a series is before that and the second after
    it, in the direction in which the rows of the series run.

    Args:
        series: a number for each row's series, `[rows]`.
    """
    before, after = _both(times, zone)
    twice = np.flatnonzero(_apart(before, after))
    if not len(twice):
        return Localised(before, 0)
    wall = times.as_unit("us").asi8
    rows = pd.DataFrame({"series": series[twice], "wall": wall[twice]})
    nth, count = rows.groupby(["series", "wall"]).cumcount(), rows.groupby(["series", "wall"])["wall"].transform("size")
    back = np.isin(series[twice], _descending(wall, series))
    second = np.where(back, count - 1 - nth, nth) > 0
    moments = before.asi8.copy()
    moments[twice[second]] = after.asi8[twice[second]]
    chosen = pd.DatetimeIndex(moments.view(f"datetime64[{before.unit}]")).tz_localize("UTC").tz_convert(zone)
    return Localised(chosen, int((count == 1).sum()))


def come_twice(times: pd.DatetimeIndex, zone: str) -> np.ndarray:
    """Which of the times on the wall `[rows]` the clocks of the zone show twice."""
    return _apart(*_both(times, zone))


def clock_changes(times: pd.DatetimeIndex) -> str | None:
    """The zone whose changes of the clock explain which hours of one series come twice or not at all.

    Args:
        times: without a zone, `[rows]`, in any order.

    Returns:
        the first of all zones that change their clocks alike there: it explains all times that come twice and most
        gaps of one hour, and no time of the series is skipped by it. None if no zone does.
    """
    moments, counts = np.unique(times.as_unit("us").asi8, return_counts=True)
    steps = np.diff(moments)
    if times.tz is not None or len(steps) < 2 or commonest(steps) > _HOUR:
        return None
    step = commonest(steps)
    twice = moments[counts > 1]
    gaps = moments[:-1][(steps == step + _HOUR)] + step
    if (counts > 2).any() or not (len(twice) or len(gaps) >= _LEAST_GAPS):
        return None
    zones = itertools.chain(_USUAL, sorted(zoneinfo.available_timezones() - set(_USUAL)))
    return next((zone for zone in zones if _explains(zone, twice, gaps, moments)), None)


def zone_of_days(times: pd.DatetimeIndex) -> str | None:
    """The zone in which aware times `[rows]` are all midnights, the first of those that are; None if there is none."""
    few = times[np.linspace(0, len(times) - 1, min(len(times), 400)).astype(np.int64)]
    zones = itertools.chain(_USUAL, sorted(zoneinfo.available_timezones() - set(_USUAL)))
    return next((zone for zone in zones if _midnights(few, zone) and _midnights(times, zone)), None)


def _midnights(times: pd.DatetimeIndex, zone: str) -> bool:
    local = times.tz_convert(zone).tz_localize(None)
    return bool((local == local.normalize()).all())


def _both(times: pd.DatetimeIndex, zone: str) -> tuple[pd.DatetimeIndex, pd.DatetimeIndex]:
    """Times on the wall `[rows]` in the zone, before and after its clocks go back; NaT where they skip the time."""
    before, after = (
        times.tz_localize(zone, ambiguous=np.full(len(times), summer), nonexistent="NaT") for summer in (True, False)
    )
    return before, after


def _apart(before: pd.DatetimeIndex, after: pd.DatetimeIndex) -> np.ndarray:
    return np.asarray(before != after) & np.asarray(before.notna())


def _explains(zone: str, twice: np.ndarray, gaps: np.ndarray, moments: np.ndarray) -> bool:
    once = _wall(twice).tz_localize(zone, ambiguous="NaT", nonexistent="NaT").notna()
    if np.asarray(once).any() or (len(gaps) and _skipped(gaps, zone).mean() <= 0.5):
        return False
    return not _skipped(moments, zone).any()


def _skipped(moments: np.ndarray, zone: str) -> np.ndarray:
    """Which times on the wall `[rows]`, in microseconds, the clocks of a zone skip."""
    before = np.ones(len(moments), dtype=bool)
    return np.asarray(_wall(moments).tz_localize(zone, ambiguous=before, nonexistent="NaT").isna())


def _wall(moments: np.ndarray) -> pd.DatetimeIndex:
    return pd.DatetimeIndex(moments.view("datetime64[us]"))


def _descending(wall: np.ndarray, series: np.ndarray) -> np.ndarray:
    """The series whose rows run back in time."""
    order = np.argsort(series, kind="stable")
    inside = np.diff(series[order]) == 0
    steps, of = np.diff(wall[order])[inside], series[order][1:][inside]
    found, where = np.unique(of, return_inverse=True)
    back, ahead = (np.bincount(where[steps * sign > 0], minlength=len(found)) for sign in (-1, 1))
    return np.asarray(found[back > ahead])
