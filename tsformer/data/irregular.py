"""What is wrong with times that take no regular step: one line that says what, where, and what to do."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
import pandas as pd

from tsformer.data.clock import show
from tsformer.data.months import DAY_RULES, weekday_of
from tsformer.data.pattern import by_month, is_regular
from tsformer.data.step import DAY, MICROSECONDS, Step, commonest
from tsformer.data.wall import calendar, passed, shown
from tsformer.errors import DataError

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def refuse_gaps(times: pd.Index, missing: np.ndarray, frequency: str | float) -> NoReturn:
    """Raise DataError for `missing` steps `[rows - 1]` after the times `[rows]`."""
    first, longest = int((missing > 0).argmax()), int(missing.argmax())
    count, gaps = int(missing.sum()), int((missing > 0).sum())
    step = "weekday(s)" if frequency == "B" else f"step(s) of {frequency}"
    message = (
        f"{count} {step} missing in {gaps} gap(s): the first, {int(missing[first])} missing, between "
        f"{show(times[first])} and {show(times[first + 1])}; the longest, {int(missing[longest])} missing, after "
        f"{show(times[longest])}"
    )
    if isinstance(times, pd.DatetimeIndex) and isinstance(frequency, str):
        if frequency == "D":
            message += _weekdays_left_out(times)
        if _skipped_by_summer_time(times, missing * Step.parse(frequency).span, frequency):
            raise DataError(f"{message}: summer time may have skipped what is missing; write the times in UTC")
    raise DataError(message + ": add the missing rows, or keep a stretch without gaps")


def refuse_steps(times: pd.Index, frequency: str | float, fits: np.ndarray) -> NoReturn:
    """Raise DataError for times `[rows]` without a regular step, or that do not fit `[rows]` the frequency."""
    values = passed(times) if isinstance(times, pd.DatetimeIndex) else times.to_numpy()
    found, counts = np.unique(np.diff(values), return_counts=True)
    most = np.argsort(-counts, kind="stable")[:4]
    dates, remedy = isinstance(times, pd.DatetimeIndex), "bring the rows to one step, for example by resampling"
    spans = [_span(found[i]) if dates else f"{found[i]:.6g}" for i in most]
    listed = ", ".join(f"{span} ({int(counts[i])}x)" for span, i in zip(spans, most, strict=True))
    if isinstance(times, pd.DatetimeIndex):
        wall = calendar(times)
        if not wall.keeps_clock.all() and _are_dates(wall.days, values):
            first = show(times[int((~wall.keeps_clock).argmax())])
            where = f"{int((~wall.keeps_clock).sum())} row(s) at another time of day, the first {first}"
            raise DataError(f"steps are irregular: {listed}; {where}: {_date_remedy(times)}")
        unit = Step.parse(frequency).unit if isinstance(frequency, str) else ""
        if by_month(wall.days) or (unit in DAY_RULES and not fits.all()):
            remedy = "data by the month, quarter or year need the same day of it: the first, the last, the 15th"
    where = "" if fits.all() else f"{show(times[int((~fits).argmax())])} does not lie on {frequency}"
    if not where and len(found) > 1:
        at = int((np.diff(values) != found[most[0]]).argmax())
        where = f"the first that differs from {show(times[at])} to {show(times[at + 1])}"
    steps = f"steps are irregular: {listed}{' and others' if len(found) > 4 else ''}" if listed else ""
    raise DataError(f"{'; '.join(part for part in (steps, where) if part)}: {remedy}")


def _weekdays_left_out(times: pd.DatetimeIndex) -> str:
    """What the weekdays of nearly daily times `[rows]` tell of their gaps."""
    found = np.bincount(weekday_of(shown(times) // DAY), minlength=7)
    weekend = np.asarray(times.day_of_week >= 5)
    if 0 < weekend.sum() < 0.05 * len(times):
        at = show(times[int(weekend.argmax())])
        return f"; most rows are weekdays, but {int(weekend.sum())} fall on a weekend, the first {at}"
    left_out = np.flatnonzero(found == 0)
    if len(times) < 20 or not 0 < len(left_out) < 3:
        return ""
    return f"; no row is a {' or a '.join(_WEEKDAYS[day] for day in left_out)}"


def _skipped_by_summer_time(times: pd.DatetimeIndex, missing: np.ndarray, frequency: str) -> bool:
    """Whether all that lacks after local times `[rows]`, in microseconds `[rows - 1]`, is an hour of a spring night."""
    before = times[:-1][missing > 0]
    an_hour = (missing[missing > 0] == MICROSECONDS["h"]).all()
    night = (before.hour <= 3).all() and before.month.isin([3, 4, 9, 10, 11]).all()
    return bool(Step.parse(frequency).absolute and times.tz is None and an_hour and night)


def _date_remedy(times: pd.DatetimeIndex) -> str:
    """What to do with dates whose time of day is not always the same."""
    hours = np.unique(shown(times) % DAY)
    if times.tz is not None and len(hours) == 2 and (hours[1] - hours[0]) in (DAY // 24, DAY - DAY // 24):
        return "write the dates without the time of day, or convert the times to the zone whose days they are"
    return "write the dates without the time of day"


def _are_dates(days: np.ndarray, values: np.ndarray) -> bool:
    """Whether days from 1970-01-01 `[rows]`, at times that are irregular, would do without the time of day."""
    if len(days) < 3 or (np.diff(days) < 1).any():
        return False
    # Gaps and the like are for the next message, once the steps are days.
    return is_regular(days) or commonest(np.diff(values)) % DAY == 0


def _span(microseconds: int) -> str:
    """A length of time in words: 31 days, 1 h 30 min."""
    rest, words = int(microseconds), []
    for unit, size in (("d", DAY), *reversed(MICROSECONDS.items())):
        count, rest = divmod(rest, size)
        if count:
            words.append(f"{count} {unit}")
    return " ".join(words) or "0"
