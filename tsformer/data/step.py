"""One step of a calendar: how frequencies are spelt, and where a day stands in a count of steps.

The own spelling is the one that pandas 2.2 and 3 share ("h", "15min", "D", "B", "W-MON", "MS", "BQE", "YS-APR"); an
anchor that is the default (January for starts, December for ends, the 15th for half months) is left out. What pandas
has no name for: "MS-20", "QS-FEB-20" and "YS-MAR-20", the 20th of each month, quarter and year; "C-TUE-WED-SAT", the
days on which a shop is open.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from tsformer.data.months import (
    DAY_RULES,
    HALF_RULES,
    MONDAY_TO_FRIDAY,
    day_in,
    day_in_half,
    halves_of,
    month_of,
    open_day,
    open_days_before,
    weekday_of,
    weekdays_before,
)
from tsformer.errors import UsageError

MICROSECONDS = {"us": 1, "ms": 10**3, "s": 10**6, "min": 60 * 10**6, "h": 3600 * 10**6}
DAY = 24 * MICROSECONDS["h"]

LONGEST_CLOSURE = 10
"""Weekdays in a row that may be holidays: an exchange's longest usual closure has eight."""

_OLD = {"H": "h", "T": "min", "MIN": "min", "S": "s", "L": "ms", "U": "us", "N": "ns"}
_OLD |= {"M": "ME", "Q": "QE", "A": "YE", "Y": "YE", "AS": "YS", "SM": "SME"}
_OLD |= {"BM": "BME", "BQ": "BQE", "BA": "BYE", "BY": "BYE", "BAS": "BYS"}
_LENGTHS = {"ns": Decimal("0.001"), **{unit: Decimal(size) for unit, size in MICROSECONDS.items()}}
_WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_PERIODS = {"Q": 3, "HY": 6, "Y": 12}
_DAYS = {"1": None, **{str(day): day for day in range(2, 31)}}
"""Days of a month as anchors; the first one goes without saying."""
_LENGTH = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)?([A-Za-z]+)")
_LONGEST = 10_000 * 366 * DAY
"""Microseconds in the longest length of time that is a step: more than the calendar has years."""
_SPELLING = re.compile(r"([1-9]\d{0,8})?([A-Za-z]+)((?:-\w+)*)")
_CALENDAR = re.compile(r"(B?)(Q|HY|Y)([SE])")


def commonest(values: np.ndarray) -> int:
    """The most frequent of whole numbers, one at least, and the smallest if several are."""
    found, counts = np.unique(values, return_counts=True)
    return int(found[counts.argmax()])


@dataclass(frozen=True)
class Step:
    """A step in time.

    Attributes:
        count: units in one step.
        unit: "us", "ms", "s", "min", "h" (absolute time), "D", "B" (Monday to Friday), "C" (other weekdays), "W", one
            of `months.DAY_RULES` (a month; quarters and years are 3 and 12 months) or one of `months.HALF_RULES` (half
            a month).
        phase: weekday of a week (0 is Monday); month of a quarter (0 to 2) or of a year (0 to 11), None if any.
        day: what `months.day_in` and `months.day_in_half` call the day; None where the unit says it all.
        weekdays: of "C", those that are open, ascending.
    """

    count: int
    unit: str
    phase: int | None = None
    day: int | None = None
    weekdays: tuple[int, ...] = ()

    @classmethod
    def parse(cls, frequency: str) -> Step:
        """Read a spelling of pandas 2 or 3 ("H", "M", "Q-MAR", "BA", "1h30min"); UsageError when it is none."""
        length = _length(frequency)
        if length is not None:
            return cls.lasting(length)
        spelt = _SPELLING.fullmatch(frequency)
        if not spelt:
            raise _unknown(frequency)
        count, unit = int(spelt[1] or 1), _current(spelt[2])
        match [unit, *spelt[3].upper().split("-")[1:]]:
            case ["D" | "B" | "MS" | "ME" | "BMS" | "BME"]:
                return cls(count, unit)
            case ["MS", day] if day in _DAYS:
                return cls(count, unit, day=_DAYS[day])
            case ["C", *weekdays] if weekdays and set(weekdays) <= set(_WEEKDAYS):
                return cls.on({_WEEKDAYS.index(weekday) for weekday in weekdays}, count)
            case ["W"]:
                return cls(count, unit, _WEEKDAYS.index("SUN"))
            case ["W", weekday] if weekday in _WEEKDAYS:
                return cls(count, unit, _WEEKDAYS.index(weekday))
            case ["LWOM", weekday] if weekday in _WEEKDAYS:
                return cls(count, unit, day=_WEEKDAYS.index(weekday))
            case ["WOM", nth] if nth[:1] in "1234" and nth[1:] in _WEEKDAYS:
                return cls(count, unit, day=7 * (int(nth[0]) - 1) + _WEEKDAYS.index(nth[1:]))
            case ["SMS" | "SME"]:
                return cls(count, unit, day=15)
            case ["SMS" | "SME", day] if day in _DAYS and (unit == "SMS") < int(day) < 28:
                return cls(count, unit, day=int(day))
            case [_, *anchors] if _CALENDAR.fullmatch(unit):
                return cls._of_year(count, unit, anchors, frequency)
        raise _unknown(frequency)

    @classmethod
    def _of_year(cls, count: int, unit: str, anchors: list[str], frequency: str) -> Step:
        """Quarters, half years and years, from their name and what stands behind it: a month, a day, or both."""
        business, period, end = _CALENDAR.findall(unit)[0]
        anchors = anchors if anchors and anchors[0] in _MONTHS else ["JAN" if end == "S" else "DEC", *anchors]
        months, month, days = count * _PERIODS[period], _MONTHS.index(anchors[0]), anchors[1:]
        if len(days) > 1 or (days and (business or end == "E" or days[0] not in _DAYS)):
            raise _unknown(frequency)
        # Two quarters or more start at any quarter, so an anchor says nothing.
        cycle = 12 if period == "Y" else 3 if months == 3 else 0
        return cls(months, f"{business}M{end}", month % cycle if cycle else None, _DAYS[days[0]] if days else None)

    @classmethod
    def on(cls, weekdays: Iterable[int], count: int = 1) -> Step:
        """From one of these weekdays to the next, under the plainest name: "D", "B" and "W" where they are meant."""
        days = tuple(sorted(weekdays))
        if len(days) == 1:
            return cls(count, "W", days[0])
        if len(days) == 7:
            return cls(count, "D")
        return cls(count, "B") if days == MONDAY_TO_FRIDAY else cls(count, "C", weekdays=days)

    @classmethod
    def lasting(cls, microseconds: int) -> Step:
        """The absolute step of that length, in the largest unit that goes into it."""
        unit = next(unit for unit in reversed(MICROSECONDS) if microseconds % MICROSECONDS[unit] == 0)
        return cls(microseconds // MICROSECONDS[unit], unit)

    def __str__(self) -> str:
        count, unit, anchors = self.count, self.unit, []
        if unit == "W":
            anchors = [_WEEKDAYS[self.phase or 0]]
        elif unit == "C":
            anchors = [_WEEKDAYS[day] for day in self.weekdays]
        elif unit == "WOM":
            week, weekday = divmod(self.day or 0, 7)
            anchors = [f"{week + 1}{_WEEKDAYS[weekday]}"]
        elif unit == "LWOM":
            anchors = [_WEEKDAYS[self.day or 0]]
        elif unit in HALF_RULES:
            anchors = [str(self.day)] if self.day != 15 else []
        elif unit in DAY_RULES:
            if self.phase is not None:
                cycle, letter = (12, "Y") if count % 12 == 0 else (3, "Q")
                default = 0 if unit.endswith("S") else cycle - 1
                count, unit = count // cycle, unit[:-2] + letter + unit[-1]
                anchors = [] if self.phase == default else [_MONTHS[self.phase]]
            anchors += [str(self.day)] if self.day else []
        return "-".join([(str(count) if count > 1 else "") + unit, *anchors])

    @property
    def absolute(self) -> bool:
        """Whether the step has a fixed length in seconds, whatever the clock on the wall does."""
        return self.unit in MICROSECONDS

    @property
    def closes(self) -> bool:
        """Whether the step is from one open day to the next, so that a day without a row may be a holiday."""
        return self.count == 1 and self.unit in ("B", "C")

    @property
    def open_weekdays(self) -> tuple[int, ...]:
        """The weekdays that have rows, where the unit leaves some out; empty otherwise."""
        return MONDAY_TO_FRIDAY if self.unit == "B" else self.weekdays

    @property
    def span(self) -> int:
        """Length of one step in what `ordinals` counts; microseconds when the step is absolute."""
        return self.count * MICROSECONDS.get(self.unit, 7 if self.unit == "W" else 1)

    def ordinals(self, days: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where days `[rows]`, counted from 1970-01-01, stand in days, weekdays, half months or months, and which fit.

        A first or last weekday of a month fits too when it is the nearest that holidays leave.
        """
        if self.unit == "D":
            return days, np.ones(len(days), dtype=bool)
        if self.unit == "W":
            return days, weekday_of(days) == self.phase
        if self.open_weekdays:
            return open_days_before(days, self.open_weekdays), np.isin(weekday_of(days), self.open_weekdays)
        if self.unit in HALF_RULES:
            halves = halves_of(days, self.unit, self.day or 15)
            return halves, days == self.days(halves)
        months = month_of(days)
        fits = days == self.days(months)
        if self.unit in ("BMS", "BME"):
            closed = weekdays_before(days) - weekdays_before(self.days(months))
            closed = closed if self.unit == "BMS" else -closed
            fits = (weekday_of(days) < 5) & (closed >= 0) & (closed <= LONGEST_CLOSURE)
        if self.phase is not None:
            fits &= months % (12 if self.count % 12 == 0 else 3) == self.phase
        return months, fits

    def days(self, ordinals: np.ndarray) -> np.ndarray:
        """The inverse of `ordinals`: days from 1970-01-01."""
        if self.unit in ("D", "W"):
            return ordinals
        if self.open_weekdays:
            return open_day(ordinals, self.open_weekdays)
        if self.unit in HALF_RULES:
            return day_in_half(ordinals, self.unit, self.day or 15)
        return day_in(ordinals, self.unit, self.day)


def _current(name: str) -> str:
    """The name that pandas 3 has for a unit; a lower-case "m" stays unknown, for it may be a minute or a month."""
    if name in _LENGTHS or name == "m":
        return name
    return _OLD.get(name.upper(), name.upper())


def _length(frequency: str) -> int | None:
    """Microseconds in a length of absolute time such as 90min, 1.5h or 1h30min; None for what is none."""
    if not re.fullmatch(f"(?:{_LENGTH.pattern})+", frequency):
        return None
    parts = [(number, _current(name)) for number, name in _LENGTH.findall(frequency)]
    if any(unit not in _LENGTHS for _, unit in parts):
        return None
    length = sum(Decimal(number or 1) * _LENGTHS[unit] for number, unit in parts)
    if not 0 < length <= _LONGEST:
        raise _unknown(frequency)
    if length % 1:
        raise UsageError(f"frequency {frequency!r} is finer than a microsecond: round the times")
    return int(length)


def _unknown(frequency: str) -> UsageError:
    return UsageError(
        f"frequency {frequency!r} is not known: use s, min, h, D, B (weekdays), C-MON-SAT (open days), W-MON, MS, ME, "
        "QS, QE, YS or YE, with a number before it if need be (15min)"
    )
