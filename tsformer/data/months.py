"""Days of a month, in whole numbers: months are counted from 1970-01, days from 1970-01-01, weekdays from Monday."""

from __future__ import annotations

import numpy as np

DAY_RULES = ("MS", "ME", "BMS", "BME", "WOM", "LWOM")
"""Ways to choose one day of a month: the first or last day, the first or last weekday from Monday to Friday ("B"),
a certain weekday of a certain week ("WOM"), the last of a certain weekday ("LWOM")."""

MONDAY_TO_FRIDAY = (0, 1, 2, 3, 4)

HALF_RULES = ("SMS", "SME")
"""Ways to choose two days of a month: the first or the last, and one other."""


def month_of(days: np.ndarray) -> np.ndarray:
    """The month that each of the days `[rows]` is in."""
    months: np.ndarray = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return months


def first_of(months: np.ndarray) -> np.ndarray:
    """The first day of each of the months `[rows]`."""
    return np.asarray(months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64))


def last_of(months: np.ndarray) -> np.ndarray:
    """The last day of each of the months `[rows]`."""
    return first_of(months + 1) - 1


def weekday_of(days: np.ndarray) -> np.ndarray:
    """0 for Monday to 6 for Sunday, of each of the days `[rows]`."""
    return np.asarray((days + 3) % 7)


def open_days_before(days: np.ndarray, weekdays: tuple[int, ...]) -> np.ndarray:
    """A count of the days on certain weekdays, ascending: any other day has the number of the last one, `[rows]`."""
    weeks, weekday = np.divmod(days + 3, 7)
    nth = np.cumsum(np.isin(np.arange(7), weekdays)) - 1
    return np.asarray(weeks * len(weekdays) + nth[weekday])


def open_day(ordinals: np.ndarray, weekdays: tuple[int, ...]) -> np.ndarray:
    """The inverse of `open_days_before` for days that are open, `[rows]`."""
    weeks, nth = np.divmod(ordinals, len(weekdays))
    return np.asarray(weeks * 7 - 3 + np.asarray(weekdays)[nth])


def weekdays_before(days: np.ndarray) -> np.ndarray:
    """A count of the days from Monday to Friday: a Saturday and a Sunday have the number of their Friday, `[rows]`."""
    return open_days_before(days, MONDAY_TO_FRIDAY)


def day_in(months: np.ndarray, rule: str, day: int | None) -> np.ndarray:
    """The day of each of the months `[rows]` that a rule of `DAY_RULES` chooses.

    Args:
        months: `[rows]`.
        rule: "MS" with a `day` is that day of the month (from 2), or the last of a month that has no such day.
        day: 7 times the week plus the weekday for "WOM" (both from 0), the weekday for "LWOM"; None for the others.
    """
    first, last, at = first_of(months), last_of(months), day or 0
    if rule == "MS":
        return np.minimum(first + max(at - 1, 0), last)
    if rule == "ME":
        return last
    if rule == "BMS":
        return first + (7 - weekday_of(first)) * (weekday_of(first) > 4)
    if rule == "BME":
        return last - np.maximum(weekday_of(last) - 4, 0)
    if rule == "WOM":
        return first + (at % 7 - weekday_of(first)) % 7 + at // 7 * 7
    return last - (weekday_of(last) - at) % 7


def halves_of(days: np.ndarray, rule: str, day: int) -> np.ndarray:
    """The half of a month that each of the days `[rows]` is in, counted from the first half of 1970-01."""
    months = month_of(days)
    in_month = days - first_of(months) + 1
    return np.asarray(2 * months + (in_month >= day if rule == "SMS" else in_month > day))


def day_in_half(halves: np.ndarray, rule: str, day: int) -> np.ndarray:
    """The day on which each of the halves `[rows]` begins ("SMS") or ends ("SME")."""
    months, late = np.divmod(halves, 2)
    chosen = first_of(months) + day - 1
    if rule == "SMS":
        return np.where(late == 1, chosen, first_of(months))
    return np.where(late == 1, last_of(months), chosen)
