"""The step that dates seem to take: the rule that all of them keep, and of several such rules the likeliest.

Rules are tried from the most particular to the most general, for what fits by chance is hardly ever the particular one:

1. the first or last day of months, quarters or years; then their first or last weekday; then any other day of the
   month, the same each time; then two days of each month;
2. weeks; then the same weekday of the same week of each month (the last week before the fourth), and the first or
   last weekday of months that holidays leave;
3. weekdays, where a weekend is left out, and other sets of weekdays on which nearly every day has a row;
4. days.

So 1 July, 1 August and 1 September are months, though 31 days apart; five rows from Monday to Friday are days; month
starts of which none fell on a weekend are "MS", not "BMS".
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from tsformer.data.months import first_of, last_of, month_of, weekday_of, weekdays_before
from tsformer.data.step import LONGEST_CLOSURE, Step, commonest
from tsformer.data.wall import calendar, passed

FEWEST_DAYS = 20
"""Rows from which a weekday that never occurs is a closed one."""

MOST_OPEN_DAYS = 0.9
"""Share of the open days that must have a row; the others are holidays."""


def propose(times: pd.DatetimeIndex) -> Step:
    """The step that most of the times `[rows]`, three at least, take; whether all do is not said."""
    wall = calendar(times)
    if not wall.keeps_clock.all() or (np.diff(wall.days) < 1).any():
        return Step.lasting(commonest(np.diff(passed(times))))
    return propose_days(wall.days)


def propose_days(days: np.ndarray) -> Step:
    """The step that most of the days from 1970-01-01 `[rows]` take, ascending."""
    weekday, steps = weekday_of(days), np.diff(days)
    found = _in_months(days) or _in_halves(days)
    if found:
        return found
    count, one_weekday = commonest(steps), bool((weekday == weekday[0]).all())
    if np.ptp(steps):
        found = (_in_weeks_of_months(days) if one_weekday else None) or _nearly_in_months(days)
        if found:
            return found
        found = _on_open_weekdays(days)
        if found:
            return found
    if count % 7 == 0:
        return Step(count // 7, "W", commonest(weekday))
    # Five rows from Monday to Friday are daily; only a weekend that was left out tells weekdays from days.
    if np.ptp(steps) and (weekday < 5).all():
        jumps = np.diff(weekdays_before(days))
        if (count == 1 and (weekday[1:] < weekday[:-1]).any()) or (jumps == jumps[0]).all():
            return Step(commonest(jumps), "B")
    return (_mostly_in_months(days) if count > 26 and np.ptp(steps) else None) or Step(count, "D")


def is_regular(days: np.ndarray) -> bool:
    """Whether days from 1970-01-01 `[rows]`, three at least, take one step throughout."""
    step = propose_days(days)
    ordinals, fits = step.ordinals(days)
    jumps = np.diff(ordinals)
    longest = LONGEST_CLOSURE + 1 if step.closes else step.span
    return bool(fits.all() and (jumps % step.span == 0).all() and (jumps >= 1).all() and (jumps <= longest).all())


def by_month(days: np.ndarray) -> bool:
    """Whether days from 1970-01-01 `[rows]` are one a month, quarter or year, on whichever day of it."""
    steps = np.diff(month_of(days))
    return len(days) > 2 and bool((steps == steps[0]).all()) and steps[0] > 0


def _in_months(days: np.ndarray) -> Step | None:
    """One day in each month, and the same one."""
    steps = np.diff(month_of(days))
    if (steps < 1).any():
        return None
    day = int((days - first_of(month_of(days))).max()) + 1
    for unit, at in (("MS", None), ("ME", None), ("BMS", None), ("BME", None), ("MS", day)):
        step = _monthly(days, unit, at)
        if (step.days(month_of(days)) == days).all():
            return step
    return None


def _in_halves(days: np.ndarray) -> Step | None:
    """Two days in each month, the first or the last and another one."""
    in_month = days - first_of(month_of(days)) + 1
    for unit, edge in (("SMS", in_month == 1), ("SME", days == last_of(month_of(days)))):
        other = in_month[~edge]
        if not edge.any() or not len(other) or other[0] > 27 or np.ptp(other):
            continue
        step = Step(1, unit, day=int(other[0]))
        jumps = np.diff(step.ordinals(days)[0])
        # Less than six rows say so only if they are half a month apart: else they are days with a gap, or weeks.
        if len(days) < 6 and (np.ptp(jumps) or np.ptp(np.diff(days)) > 4):
            continue
        # An even number of halves are months, some of whose rows are off.
        if commonest(jumps) % 2:
            return replace(step, count=commonest(jumps))
    return None


def _in_weeks_of_months(days: np.ndarray) -> Step | None:
    """One weekday `[rows]` in each month, always in the same week of it."""
    months = month_of(days)
    if (np.diff(months) < 1).any():
        return None
    count, weekday = commonest(np.diff(months)), int(weekday_of(days[:1])[0])
    nth = 7 * int((days[0] - first_of(months[:1])[0]) // 7) + weekday
    for step in (Step(count, "LWOM", day=weekday), Step(count, "WOM", day=nth)):
        if (nth < 28 or step.unit == "LWOM") and (step.days(months) == days).all():
            return step
    return None


def _on_open_weekdays(days: np.ndarray) -> Step | None:
    """Days on which a shop is open: some weekdays never, and hardly any other day is left out."""
    weekdays = np.unique(weekday_of(days)).tolist()
    if len(days) < FEWEST_DAYS or not 1 < len(weekdays) < 7:
        return None
    step = Step.on(weekdays)
    ordinals, _ = step.ordinals(days)
    return step if len(days) >= MOST_OPEN_DAYS * (ordinals[-1] - ordinals[0] + 1) else None


def _nearly_in_months(days: np.ndarray) -> Step | None:
    """One day in each month that most rows keep; the others are off, or put off by holidays."""
    if not by_month(days):
        return None
    day = commonest(days - first_of(month_of(days))) + 1
    steps = [_monthly(days, "MS", day if 1 < day < 31 else None)]
    steps += [_monthly(days, unit) for unit in ("ME", "BMS", "BME")]
    kept = [int((step.days(month_of(days)) == days).sum()) for step in steps]
    for step, rows in zip(steps[2:], kept[2:], strict=True):
        if 2 * rows > len(days) and step.ordinals(days)[1].all():
            return step
    return steps[int(np.argmax(kept))] if 2 * max(kept) > len(days) else None


def _mostly_in_months(days: np.ndarray) -> Step | None:
    """One day of the month that two rows of three keep; the others are in the month before or after, perhaps."""
    months = month_of(days)
    day = commonest(days - first_of(months)) + 1
    rules: list[tuple[str, int | None]] = [("MS", None), ("ME", None), ("BMS", None), ("BME", None)]
    rules += [("MS", day)] if 1 < day < 31 else []
    kept = [days == Step(1, unit, day=at).days(months) for unit, at in rules]
    best = int(np.argmax([rows.sum() for rows in kept]))
    if kept[best].sum() < max(3, 2 * len(days) / 3):
        return None
    return _monthly(days[kept[best]], *rules[best])


def _monthly(days: np.ndarray, unit: str, day: int | None = None) -> Step:
    """A step of the months that most rows are apart, with the anchor of the first row."""
    months = month_of(days)
    count = commonest(np.diff(months))
    cycle = 12 if count % 12 == 0 else 3 if count == 3 else 0
    return Step(count, unit, int(months[0]) % cycle if cycle else None, day)
