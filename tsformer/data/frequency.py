"""The frequency of a series: inferred from its times, checked against them, continued into the future.

Times are a `pd.DatetimeIndex` or numbers. Daily and longer steps keep the clock on the wall over a change to summer
time; hours and shorter are absolute. Open days without a row are holidays ("B", "C"), not gaps, as long as most of
them are there and no closure is longer than two weeks; a day that a zone never had is no gap either.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from tsformer.data.cells import LARGEST
from tsformer.data.clock import show
from tsformer.data.counter import next_numbers, numeric_step
from tsformer.data.grid import Frequency, grid_of, stand
from tsformer.data.holidays import closed_days
from tsformer.data.irregular import refuse_gaps, refuse_steps
from tsformer.data.months import DAY_RULES, HALF_RULES
from tsformer.data.pattern import propose
from tsformer.data.step import DAY, Step
from tsformer.data.wall import as_numbers, calendar, exists, from_passed, from_wall
from tsformer.errors import DataError

_LAST_DAY = 2_932_896
"""9999-12-31, counted from 1970-01-01: no later date can be written."""

MOST_WEEKDAYS = 0.8
"""Share of the weekdays that must have a row."""

_SEASONS = {"s": 3600, "min": 24 * 60, "h": 24, "D": 7, "W": 52}
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
    per_season = len(step.open_weekdays) or _SEASONS.get(unit, 1)
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
    frequency = likely_frequency(times)
    check_steps(times, frequency)
    if closes_too_often(times, frequency):
        found = grid_of(times, np.array([0, len(times)]), frequency, closures=False)
        refuse_gaps(times, found.missing, frequency)
    return frequency


def likely_frequency(times: pd.Index) -> Frequency:
    """The step that most of the times `[rows]` of one series take; whether all do is not said.

    Raises:
        DataError: on fewer than three rows, repeated or unsorted times, or times that are neither dates nor numbers.
    """
    check_order(times)
    if len(times) < 3:
        raise DataError(f"{len(times)} row(s) are too few to tell the frequency: at least 3 are needed")
    return str(propose(times)) if isinstance(times, pd.DatetimeIndex) else numeric_step(_numbers(times))


def closes_too_often(times: pd.Index, frequency: Frequency) -> bool:
    """Whether so many open days have no row in the times `[rows]` of a series that they cannot all be holidays."""
    if not isinstance(times, pd.DatetimeIndex) or not isinstance(frequency, str) or not Step.parse(frequency).closes:
        return False
    ordinals, _ = Step.parse(frequency).ordinals(calendar(times).days)
    return len(times) < MOST_WEEKDAYS * (ordinals[-1] - ordinals[0] + 1)


def check_order(times: pd.Index) -> None:
    """Raise DataError unless times `[rows]` are there, ascend, and are not finer than a microsecond."""
    check_times(times)
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


def check_times(times: pd.Index) -> None:
    """Raise DataError unless times `[rows]` are all there, not finer than a microsecond and not beyond all bounds."""
    if times.hasnans:
        empty = np.asarray(times.isna())
        raise DataError(f"{int(empty.sum())} time(s) are missing, the first in row {int(empty.argmax())}")
    if isinstance(times, pd.DatetimeIndex) and times.unit == "ns" and (times.asi8 % 1000).any():
        fine = times[int((times.asi8 % 1000 != 0).argmax())]
        raise DataError(f"times are finer than a microsecond, the first {fine}: round them")
    if times.dtype.kind == "f" and (np.abs(times.to_numpy()) > LARGEST).any():
        raise DataError(f"times are numbers beyond {LARGEST:g}, too large to count with: give them in another unit")


def check_steps(times: pd.Index, frequency: Frequency | None) -> None:
    """Raise DataError unless the times `[rows]` are consecutive steps of the frequency. One row is enough to ask."""
    check_order(times)
    if not isinstance(times, pd.DatetimeIndex) or not isinstance(frequency, str):
        if isinstance(times, pd.DatetimeIndex) or isinstance(frequency, str):
            raise DataError(f"times are {_kind(times)}, which do not go with frequency {frequency!r}")
        if frequency is None:
            return
        _numbers(times)
    found = grid_of(times, np.array([0, len(times)]), frequency)
    if found.off.any():
        refuse_steps(times, frequency, found.fits)
    if found.missing.any():
        refuse_gaps(times, found.missing, frequency)


def next_times(
    last: pd.Timestamp | float | pd.Index, frequency: Frequency | None, periods: int, holidays: str | None = None
) -> pd.Index:
    """The times after `last`, `[periods]`: a DatetimeIndex in microseconds and last's zone, or numbers.

    A wall-clock time that summer time skips moves forward; one that occurs twice is taken the first time; a day that
    the zone does not have is left out, and so are holidays where the step is from one open day to the next.

    Args:
        last: the last time of a series, or all of them `[rows]`: these tell the usual time of day, should the last
            row itself have been moved by summer time.
        frequency: of the series.
        periods: how many.
        holidays: the country or exchange that they are of, see `data.holidays`; None knows none.

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
    ordinals, fits, clocks = stand(times, np.array([0, len(times)]), step)
    if not fits[-1]:
        raise DataError(f"{show(newest)} does not lie on frequency {frequency}")
    start = int(ordinals[-1])
    end = _LAST_DAY * DAY if step.absolute else int(step.ordinals(np.array([_LAST_DAY]))[0][0])
    if start + step.span * periods > end:
        raise _too_far(newest, frequency, periods)
    if clocks is None:
        return from_passed(start + step.span * np.arange(1, periods + 1), times.tz)
    # More than asked for: a zone lacks a day at most once or twice in its history, and no year is all holidays.
    ahead = start + step.span * np.arange(1, periods + periods // 2 + 30)
    days = step.days(ahead[ahead <= end])
    days = days[exists(days, times.tz)]
    if holidays is not None and step.closes:
        days = days[~np.isin(days, closed_days(holidays, _years(days)).astype(np.int64))]
    if len(days) < periods:
        raise _too_far(newest, frequency, periods)
    return from_wall(days[:periods] * DAY + clocks[-1], times.tz)


def _too_far(last: pd.Timestamp, frequency: str, periods: int) -> DataError:
    return DataError(
        f"{periods} step(s) of {frequency} after {show(last)} go beyond the year 9999: forecast fewer steps"
    )


def _years(days: np.ndarray) -> range:
    """The years that days from 1970-01-01, ascending, are in."""
    first, last = days[[0, -1]].astype("datetime64[D]").astype("datetime64[Y]").astype(int) + 1970
    return range(int(first), int(last) + 1)


def _micros(time: pd.Timestamp) -> np.ndarray:
    return np.array([time.as_unit("us").asm8.view(np.int64)])


def _numbers(times: pd.Index) -> np.ndarray:
    values = times.to_numpy()
    if values.dtype.kind not in "iuf":
        raise DataError(f"times are {_kind(times)}: dates or numbers are needed")
    return values if values.dtype.kind == "f" else values.astype(np.int64)


def _kind(times: pd.Index) -> str:
    return "dates" if isinstance(times, pd.DatetimeIndex) else f"of type {times.dtype}"
