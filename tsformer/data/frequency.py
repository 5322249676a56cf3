"""The frequency of a series: inferred from its times, checked against them, continued into the future.

Times are a `pd.DatetimeIndex` or numbers. Daily and longer steps keep the clock on the wall over a change to summer
time; hours and shorter are absolute. Weekdays without a row are holidays ("B"), not gaps, as long as most weekdays
are there and no closure is longer than two weeks; a day that a zone never had is no gap either.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from tsformer.data.clock import show
from tsformer.data.counter import check_numbers, next_numbers, numeric_step
from tsformer.data.irregular import refuse_gaps, refuse_steps
from tsformer.data.months import DAY_RULES, HALF_RULES
from tsformer.data.pattern import propose
from tsformer.data.step import DAY, LONGEST_CLOSURE, Step
from tsformer.data.wall import Wall, as_numbers, calendar, exists, from_passed, from_wall, passed, shown
from tsformer.errors import DataError

Frequency = str | float

_LAST_DAY = 2_932_896
"""9999-12-31, counted from 1970-01-01: no later date can be written."""

MOST_WEEKDAYS = 0.8
"""Share of the weekdays that must have a row."""

_SEASONS = {"s": 3600, "min": 24 * 60, "h": 24, "D": 7, "B": 5, "W": 52}
_SEASONS |= dict.fromkeys(DAY_RULES, 12) | dict.fromkeys(HALF_RULES, 24)


def normalise(frequency: Frequency | None) -> Frequency | None:
    """The own spelling of a frequency ("H" is "h", "M" is "ME", "QS-OCT" is "QS"); numbers and None stay.

    Raises:
        UsageError: when the text is not a frequency.
    """
    return str(Step.parse(frequency)) if isinstance(frequency, str) else frequency


def season_of(frequency: Frequency | None) -> int:
    """Steps in the season that a frequency suggests, 1 where there is none.

    Hours and minutes have the day, seconds the hour, days and weekdays the week, everything longer the year.
    """
    if not isinstance(frequency, str):
        return 1
    step = Step.parse(frequency)
    count, unit = step.count, step.unit
    if step.absolute and step.span % DAY == 0:
        count, unit = step.span // DAY, "D"
    if unit == "D" and count % 7 == 0:
        count, unit = count // 7, "W"
    per_season = _SEASONS.get(unit, 1)
    return per_season // count if per_season % count == 0 else 1


def hours_in_week(frequency: Frequency | None) -> int:
    """Steps in a week for a frequency of whole hours, which has a second season there; 0 for any other."""
    if not isinstance(frequency, str):
        return 0
    step = Step.parse(frequency)
    return 7 * 24 // step.count if step.unit == "h" and 24 % step.count == 0 else 0


def infer_frequency(times: pd.Index) -> Frequency:
    """The step of one series with ascending times `[rows]`: an offset alias, or a number for numeric times.

    Where several fit, the choice is that of `pattern`.

    Raises:
        DataError: on fewer than three rows, repeated or unsorted times, gaps, or irregular steps.
    """
    check_order(times)
    if len(times) < 3:
        raise DataError(f"{len(times)} row(s) are too few to tell the frequency: at least 3 are needed")
    if not isinstance(times, pd.DatetimeIndex):
        return numeric_step(_numbers(times))
    step = propose(times)
    frequency = str(step)
    check_steps(times, frequency)
    if frequency == "B":
        ordinals, _ = step.ordinals(calendar(times).days)
        if len(times) < MOST_WEEKDAYS * (ordinals[-1] - ordinals[0] + 1):
            refuse_gaps(times, np.diff(ordinals) - 1, "B")
    return frequency


def check_order(times: pd.Index) -> None:
    """Raise DataError unless times `[rows]` are there, ascend, and are not finer than a microsecond."""
    if times.hasnans:
        empty = np.asarray(times.isna())
        raise DataError(f"{int(empty.sum())} time(s) are missing, the first in row {int(empty.argmax())}")
    if isinstance(times, pd.DatetimeIndex) and times.unit == "ns" and (times.asi8 % 1000).any():
        fine = times[int((times.asi8 % 1000 != 0).argmax())]
        raise DataError(f"times are finer than a microsecond, the first {fine}: round them")
    if times.is_monotonic_increasing and times.is_unique:
        return
    repeated = times.duplicated()
    if repeated.any():
        raise DataError(
            f"{int(repeated.sum())} time(s) are repeated, the first {show(times[int(repeated.argmax())])}: "
            "keep one row for each time"
        )
    values = as_numbers(times)
    back = values[1:] < values[:-1]
    at = int(back.argmax())
    raise DataError(
        f"times go backwards {int(back.sum())} time(s), first from {show(times[at])} to {show(times[at + 1])}: "
        "sort the rows by time"
    )


def check_steps(times: pd.Index, frequency: Frequency | None) -> None:
    """Raise DataError unless the times `[rows]` are consecutive steps of the frequency. One row is enough to ask."""
    check_order(times)
    if not isinstance(times, pd.DatetimeIndex) or not isinstance(frequency, str):
        if isinstance(times, pd.DatetimeIndex) or isinstance(frequency, str):
            raise DataError(f"times are {_kind(times)}, which do not go with frequency {frequency!r}")
        if frequency is not None and len(times) > 1:
            check_numbers(_numbers(times), frequency)
        return
    step = Step.parse(frequency)
    ordinals, fits, _ = _ordinals(times, step)
    jumps, rest = np.divmod(np.diff(ordinals), step.span)
    if not fits.all() or rest.any() or (jumps < 1).any():
        refuse_steps(times, frequency, fits)
    missing = jumps - 1
    if step == Step(1, "B"):
        missing[missing <= LONGEST_CLOSURE] = 0
    single = np.flatnonzero(missing == 1)
    if len(single) and not step.absolute:
        missing[single] = exists(step.days(ordinals[single] + step.span), times.tz)
    if missing.any():
        refuse_gaps(times, missing, frequency)


def next_times(last: pd.Timestamp | float | pd.Index, frequency: Frequency | None, periods: int) -> pd.Index:
    """The times after `last`, `[periods]`: a DatetimeIndex in microseconds and last's zone, or numbers.

    Weekdays ("B") know no holidays. A wall-clock time that summer time skips moves forward; one that occurs twice
    is taken the first time; a day that the zone does not have is left out.

    Args:
        last: the last time of a series, or all of them `[rows]`: these tell the usual time of day, should the last
            row itself have been moved by summer time.
        frequency: of the series.
        periods: how many.

    Raises:
        DataError: when `last` does not lie on the frequency's grid, or the times go beyond the year 9999.
    """
    newest = last[-1] if isinstance(last, pd.Index) else last
    if not isinstance(newest, pd.Timestamp):
        if isinstance(frequency, str):
            raise DataError(f"time {newest} is a number, which does not go with frequency {frequency!r}")
        return pd.Index(next_numbers(newest, 1 if frequency is None else frequency, periods))
    if not isinstance(frequency, str):
        raise DataError(f"time {show(newest)} is a date, which does not go with frequency {frequency!r}")
    if newest.nanosecond:
        raise DataError(f"time {newest} is finer than a microsecond: round it")
    times = last if isinstance(last, pd.DatetimeIndex) else from_passed(_micros(newest), newest.tz)
    step = Step.parse(frequency)
    ordinals, fits, wall = _ordinals(times, step)
    if not fits[-1]:
        raise DataError(f"{show(newest)} does not lie on frequency {frequency}")
    start = int(ordinals[-1])
    end = _LAST_DAY * DAY if step.absolute else int(step.ordinals(np.array([_LAST_DAY]))[0][0])
    if start + step.span * periods > end:
        raise DataError(
            f"{periods} step(s) of {frequency} after {show(newest)} go beyond the year 9999: forecast fewer steps"
        )
    # Two more than asked for: a zone lacks a day at most once or twice in its history.
    ahead = start + step.span * np.arange(1, periods + 3)
    if wall is None:
        return from_passed(ahead[:periods], times.tz)
    days = step.days(ahead[ahead <= end])
    days = days[exists(days, times.tz)][:periods]
    return from_wall(days * DAY + wall.clock, times.tz)


def holidays(times: pd.DatetimeIndex) -> int:
    """How many weekdays between the first and the last of the times `[rows]` have no row."""
    ordinals, _ = Step(1, "B").ordinals(shown(times) // DAY)
    return int((np.diff(ordinals) - 1).sum())


def _ordinals(times: pd.DatetimeIndex, step: Step) -> tuple[np.ndarray, np.ndarray, Wall | None]:
    """Where times `[rows]` stand in a count of steps, which fit, and what the wall shows if the step keeps it."""
    if step.absolute:
        return passed(times), np.ones(len(times), dtype=bool), None
    wall = calendar(times)
    ordinals, fits = step.ordinals(wall.days)
    return ordinals, fits & wall.keeps_clock, wall


def _micros(time: pd.Timestamp) -> np.ndarray:
    return np.array([time.as_unit("us").asm8.view(np.int64)])


def _numbers(times: pd.Index) -> np.ndarray:
    values = times.to_numpy()
    if values.dtype.kind not in "iuf":
        raise DataError(f"times are {_kind(times)}: dates or numbers are needed")
    return values if values.dtype.kind == "f" else values.astype(np.int64)


def _kind(times: pd.Index) -> str:
    return "dates" if isinstance(times, pd.DatetimeIndex) else f"of type {times.dtype}"
