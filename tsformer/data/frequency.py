"""The frequency of a series: inferred from its times, checked against them, continued into the future.

Times are a `pd.DatetimeIndex` or numbers. Daily and longer steps keep the clock on the wall over a change to summer
time; hours and shorter are absolute. Weekdays without a row are holidays ("B"), not gaps, as long as most weekdays
are there and no closure is longer than two weeks.
"""

from __future__ import annotations

from decimal import Decimal
from typing import NoReturn

import numpy as np
import pandas as pd

from tsformer.data.step import DAY, MICROSECONDS, Step
from tsformer.data.wall import by_month, calendar, commonest, from_passed, from_wall, passed, shown
from tsformer.errors import DataError

Frequency = str | float

LONGEST_CLOSURE = 10
"""Weekdays in a row that may be holidays: an exchange's longest usual closure has eight."""

_LAST_DAY = 2_932_896
"""9999-12-31, counted from 1970-01-01: no later date can be written."""

MOST_WEEKDAYS = 0.8
"""Share of the weekdays that must have a row."""


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
    per_season = {"s": 3600, "min": 24 * 60, "h": 24, "D": 7, "B": 5, "W": 52, "MS": 12, "ME": 12}.get(step.unit, 1)
    return per_season // step.count if per_season % step.count == 0 else 1


def infer_frequency(times: pd.Index) -> Frequency:
    """The step of one series with ascending times `[rows]`: an offset alias, or a number for numeric times.

    Raises:
        DataError: on fewer than three rows, repeated or unsorted times, gaps, or irregular steps.
    """
    _check_order(times)
    if len(times) < 3:
        raise DataError(f"{len(times)} row(s) are too few to tell the frequency: at least 3 are needed")
    if not isinstance(times, pd.DatetimeIndex):
        return _numeric_step(_numbers(times))
    step = _propose(times)
    frequency = str(step)
    check_steps(times, frequency)
    if frequency == "B":
        ordinals, _ = step.ordinals(calendar(times)[0])
        if len(times) < MOST_WEEKDAYS * (ordinals[-1] - ordinals[0] + 1):
            _refuse_gaps(times, np.diff(ordinals) - 1, "B")
    return frequency


def check_steps(times: pd.Index, frequency: Frequency | None) -> None:
    """Raise DataError unless the times `[rows]` are consecutive steps of the frequency. One row is enough to ask."""
    _check_order(times)
    if not isinstance(times, pd.DatetimeIndex) or not isinstance(frequency, str):
        if isinstance(times, pd.DatetimeIndex) or isinstance(frequency, str):
            raise DataError(f"times are {_kind(times)}, which do not go with frequency {frequency!r}")
        if frequency is not None and len(times) > 1:
            _check_numbers(_numbers(times), frequency)
        return
    step = Step.parse(frequency)
    ordinals, fits = _ordinals(times, step)
    jumps, rest = np.divmod(np.diff(ordinals), step.span)
    if not fits.all() or rest.any() or (jumps < 1).any():
        _refuse_steps(times, frequency, fits)
    missing = jumps - 1
    if step.unit == "B":
        missing[missing <= LONGEST_CLOSURE] = 0
    if missing.any():
        _refuse_gaps(times, missing, frequency)


def next_times(last: pd.Timestamp | float, frequency: Frequency | None, periods: int) -> pd.Index:
    """The times after `last`, `[periods]`: a DatetimeIndex in microseconds and last's zone, or numbers.

    Weekdays ("B") know no holidays. A wall-clock time that summer time skips moves forward; one that occurs twice
    is taken the first time.

    Raises:
        DataError: when `last` does not lie on the frequency's grid, or the times go beyond the year 9999.
    """
    ahead = np.arange(1, periods + 1)
    if not isinstance(last, pd.Timestamp):
        if isinstance(frequency, str):
            raise DataError(f"time {last} is a number, which does not go with frequency {frequency!r}")
        later: pd.Index = pd.Index(_further(last, 1 if frequency is None else frequency, ahead))
        return later
    if not isinstance(frequency, str):
        raise DataError(f"time {show(last)} is a date, which does not go with frequency {frequency!r}")
    step, start = Step.parse(frequency), from_passed(np.array([last.as_unit("us").asm8.view(np.int64)]), last.tz)
    ordinals, fits = _ordinals(start, step)
    if not fits.all():
        raise DataError(f"{show(last)} does not lie on frequency {frequency}")
    end = _LAST_DAY * DAY if step.absolute else int(step.ordinals(np.array([_LAST_DAY]))[0][0])
    if int(ordinals[0]) + step.span * periods > end:
        raise DataError(
            f"{periods} step(s) of {frequency} after {show(last)} go beyond the year 9999: forecast fewer steps"
        )
    ordinals = ordinals[0] + step.span * ahead
    if step.absolute:
        return from_passed(ordinals, last.tz)
    return from_wall(step.days(ordinals) * DAY + shown(start) % DAY, last.tz)


def holidays(times: pd.DatetimeIndex) -> int:
    """How many weekdays between the first and the last of the times `[rows]` have no row."""
    ordinals, _ = Step(1, "B").ordinals(shown(times) // DAY)
    return int((np.diff(ordinals) - 1).sum())


def show(time: object) -> str:
    """A time as short as it can be written: no midnight, no empty seconds."""
    if not isinstance(time, pd.Timestamp):
        return str(time)
    clock = "" if time == time.normalize() else " %H:%M" if time.second == time.microsecond == 0 else " %H:%M:%S"
    return time.strftime(f"%Y-%m-%d{clock}") + (time.strftime("%z") if clock and time.tz else "")


def _propose(times: pd.DatetimeIndex) -> Step:
    """The step that most rows take; whether all do is for `check_steps` to say."""
    days, keeps_clock = calendar(times)
    if not keeps_clock.all() or (np.diff(days) < 1).any():
        return Step.lasting(commonest(np.diff(passed(times))))
    for unit in ("MS", "ME"):
        months, fits = Step(1, unit).ordinals(days)
        if fits.all():
            count = commonest(np.diff(months))
            cycle = 12 if count % 12 == 0 else 3
            return Step(count, unit, int(months[0]) % cycle if count == 3 or cycle == 12 else None)
    count, weekday = commonest(np.diff(days)), (days + 3) % 7
    if count % 7 == 0:
        return Step(count // 7, "W", commonest(weekday))
    # Five rows from Monday to Friday are daily; only a weekend that was left out tells weekdays from days.
    if count == 1 and (weekday < 5).all() and (weekday[1:] < weekday[:-1]).any():
        return Step(1, "B")
    return Step(count, "D")


def _ordinals(times: pd.DatetimeIndex, step: Step) -> tuple[np.ndarray, np.ndarray]:
    if step.absolute:
        return passed(times), np.ones(len(times), dtype=bool)
    days, keeps_clock = calendar(times)
    ordinals, fits = step.ordinals(days)
    return ordinals, fits & keeps_clock


def _numbers(times: pd.Index) -> np.ndarray:
    values = times.to_numpy()
    if values.dtype.kind not in "iuf":
        raise DataError(f"times are {_kind(times)}: dates or numbers are needed")
    return values if values.dtype.kind == "f" else values.astype(np.int64)


def _numeric_step(values: np.ndarray) -> float:
    steps = np.diff(values)
    if values.dtype.kind == "i":
        step: float = commonest(steps)
        _check_numbers(values, step)
        return step
    _check_numbers(values, float(np.median(steps)))
    step = float(values[-1] - values[0]) / (len(values) - 1)
    short = float(f"{step:.10g}")
    # 0.09999999999999999 is 0.1; 1/60 stays what it is.
    return short if abs(short - step) * len(values) <= 1e-9 * step else step


def _check_numbers(values: np.ndarray, step: float) -> None:
    steps = np.diff(values)
    jumps = np.rint(steps / step)
    # A thousandth of a step covers what a table's rounding does to numbers, and nothing that a user would notice.
    slack = 1e-3 * step + 4 * np.finfo(np.float64).eps * float(np.abs(values).max())
    if (jumps < 1).any() or (np.abs(steps - jumps * step) > slack).any():
        _refuse_steps(pd.Index(values), step, np.ones(len(values), dtype=bool))
    if (jumps > 1).any():
        _refuse_gaps(pd.Index(values), jumps.astype(np.int64) - 1, step)


def _further(last: float, step: float, ahead: np.ndarray) -> np.ndarray:
    later = last + step * ahead
    places = max(-int(Decimal(repr(float(number))).as_tuple().exponent) for number in (last, step))
    # 0.2 + 0.1 is 0.3 in the user's table, not 0.30000000000000004; a sixtieth keeps all its digits.
    return np.round(later, places) if later.dtype.kind == "f" and places <= 12 else np.asarray(later)


def _check_order(times: pd.Index) -> None:
    if times.hasnans:
        empty = np.asarray(times.isna())
        raise DataError(f"{int(empty.sum())} time(s) are missing, the first in row {int(empty.argmax())}")
    if times.is_monotonic_increasing and times.is_unique:
        return
    repeated = times.duplicated()
    if repeated.any():
        raise DataError(
            f"{int(repeated.sum())} time(s) are repeated, the first {show(times[int(repeated.argmax())])}: "
            "keep one row for each time"
        )
    values = times.to_numpy()
    back = values[1:] < values[:-1]
    at = int(back.argmax())
    raise DataError(
        f"times go backwards {int(back.sum())} time(s), first from {show(times[at])} to {show(times[at + 1])}: "
        "sort the rows by time"
    )


def _refuse_gaps(times: pd.Index, missing: np.ndarray, frequency: Frequency) -> NoReturn:
    first, longest = int((missing > 0).argmax()), int(missing.argmax())
    count, gaps = int(missing.sum()), int((missing > 0).sum())
    step = "weekday(s)" if frequency == "B" else f"step(s) of {frequency}"
    message = (
        f"{count} {step} missing in {gaps} gap(s): the first, {int(missing[first])} missing, between "
        f"{show(times[first])} and {show(times[first + 1])}; the longest, {int(missing[longest])} missing, after "
        f"{show(times[longest])}"
    )
    if frequency == "D" and isinstance(times, pd.DatetimeIndex):
        weekend = np.asarray(times.day_of_week >= 5)
        if 0 < weekend.sum() < 0.05 * len(times):
            message += (
                f"; most rows are weekdays, but {int(weekend.sum())} fall on a weekend, the first "
                f"{show(times[int(weekend.argmax())])}"
            )
    raise DataError(message + ": add the missing rows, or keep a stretch without gaps")


def _refuse_steps(times: pd.Index, frequency: Frequency, fits: np.ndarray) -> NoReturn:
    values = passed(times) if isinstance(times, pd.DatetimeIndex) else times.to_numpy()
    found, counts = np.unique(np.diff(values), return_counts=True)
    most = np.argsort(-counts, kind="stable")[:4]
    dates, remedy = isinstance(times, pd.DatetimeIndex), "bring the rows to one step, for example by resampling"
    spans = [_span(found[i]) if dates else f"{found[i]:.6g}" for i in most]
    listed = ", ".join(f"{span} ({int(counts[i])}x)" for span, i in zip(spans, most, strict=True))
    if isinstance(times, pd.DatetimeIndex):
        days, clock = calendar(times)
        if not clock.all() and _are_dates(days, values):
            where = (
                f"{int((~clock).sum())} row(s) at another time of day, the first {show(times[int((~clock).argmax())])}"
            )
            raise DataError(f"steps are irregular: {listed}; {where}: write the dates without the time of day")
        unit = Step.parse(frequency).unit if isinstance(frequency, str) else ""
        if by_month(days) or (unit in ("MS", "ME") and not fits.all()):
            day = {"MS": "first", "ME": "last"}.get(unit, "first or last")
            remedy = f"data by the month, quarter or year must be dated on the {day} day of a month"
    where = "" if fits.all() else f"{show(times[int((~fits).argmax())])} does not lie on {frequency}"
    if not where and len(found) > 1:
        at = int((np.diff(values) != found[most[0]]).argmax())
        where = f"the first that differs from {show(times[at])} to {show(times[at + 1])}"
    steps = f"steps are irregular: {listed}{' and others' if len(found) > 4 else ''}" if listed else ""
    raise DataError(f"{'; '.join(part for part in (steps, where) if part)}: {remedy}")


def _are_dates(days: np.ndarray, values: np.ndarray) -> bool:
    """Whether days from 1970-01-01 `[rows]`, at times that are irregular, would do without the time of day."""
    steps = np.diff(days)
    if len(days) < 3 or (steps < 1).any():
        return False
    try:
        infer_frequency(from_wall(days * DAY, None))
    except DataError:
        # Gaps and the like are for the next message, once the steps are days.
        return commonest(np.diff(values)) % DAY == 0
    return True


def _span(microseconds: int) -> str:
    """A length of time in words: 31 days, 1 h 30 min."""
    rest, words = int(microseconds), []
    for unit, size in (("d", DAY), *reversed(MICROSECONDS.items())):
        count, rest = divmod(rest, size)
        if count:
            words.append(f"{count} {unit}")
    return " ".join(words) or "0"


def _kind(times: pd.Index) -> str:
    return "dates" if isinstance(times, pd.DatetimeIndex) else f"of type {times.dtype}"
