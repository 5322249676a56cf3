"""One step of a calendar: how frequencies are spelt, and where a day stands in a count of steps.

The own spelling is the one that pandas 2.2 and 3 share ("h", "15min", "D", "B", "W-MON", "MS", "QE", "YS-APR"); an
anchor that is the default (January for starts, December for ends) is left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from tsformer.errors import UsageError

MICROSECONDS = {"us": 1, "ms": 10**3, "s": 10**6, "min": 60 * 10**6, "h": 3600 * 10**6}
DAY = 24 * MICROSECONDS["h"]

_OLD = {"H": "h", "T": "min", "S": "s", "L": "ms", "U": "us", "M": "ME", "Q": "QE", "A": "YE", "Y": "YE", "AS": "YS"}
_WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_SPELLING = re.compile(r"([1-9]\d{0,8})?([A-Za-z]+)(?:-([A-Za-z]{3}))?")


@dataclass(frozen=True)
class Step:
    """A step in time.

    Attributes:
        count: units in one step.
        unit: "us", "ms", "s", "min", "h" (absolute time), "D", "B" (weekdays), "W", "MS", "ME" (the calendar);
            quarters and years are 3 and 12 months.
        phase: weekday of a week (0 is Monday); month of a quarter (0 to 2) or of a year (0 to 11), None if any.
    """

    count: int
    unit: str
    phase: int | None = None

    @classmethod
    def parse(cls, frequency: str) -> Step:
        """Read a spelling, old ones ("H", "M", "Q-MAR", "A") included; raises UsageError when it is none."""
        match = _SPELLING.fullmatch(frequency)
        if not match:
            raise _unknown(frequency)
        count, unit, anchor = int(match[1] or 1), _OLD.get(match[2], match[2]), (match[3] or "").upper()
        if unit in MICROSECONDS and not anchor:
            return cls.lasting(count * MICROSECONDS[unit])
        if unit in ("D", "B", "MS", "ME") and not anchor:
            return cls(count, unit)
        if unit == "W" and (anchor or "SUN") in _WEEKDAYS:
            return cls(count, unit, _WEEKDAYS.index(anchor or "SUN"))
        if unit in ("QS", "QE", "YS", "YE"):
            anchor = anchor or ("JAN" if unit.endswith("S") else "DEC")
            if anchor not in _MONTHS:
                raise _unknown(frequency)
            month = _MONTHS.index(anchor)
            if unit.startswith("Y"):
                return cls(12 * count, "M" + unit[1], month)
            # Two quarters or more start at any quarter, so an anchor says nothing.
            return cls(3 * count, "M" + unit[1], month % 3 if count == 1 else None)
        raise _unknown(frequency)

    @classmethod
    def lasting(cls, microseconds: int) -> Step:
        """The absolute step of that length, in the largest unit that goes into it."""
        unit = next(unit for unit in reversed(MICROSECONDS) if microseconds % MICROSECONDS[unit] == 0)
        return cls(microseconds // MICROSECONDS[unit], unit)

    def __str__(self) -> str:
        count, unit, anchor = self.count, self.unit, ""
        if unit == "W":
            anchor = _WEEKDAYS[self.phase or 0]
        elif unit in ("MS", "ME") and self.phase is not None:
            cycle, letter = (12, "Y") if count % 12 == 0 else (3, "Q")
            default = 0 if unit == "MS" else cycle - 1
            count, unit = count // cycle, letter + unit[1]
            anchor = "" if self.phase == default else _MONTHS[self.phase]
        return (str(count) if count > 1 else "") + unit + (f"-{anchor}" if anchor else "")

    @property
    def absolute(self) -> bool:
        """Whether the step has a fixed length in seconds, whatever the clock on the wall does."""
        return self.unit in MICROSECONDS

    @property
    def span(self) -> int:
        """Length of one step in what `ordinals` counts; microseconds when the step is absolute."""
        return self.count * MICROSECONDS.get(self.unit, 7 if self.unit == "W" else 1)

    def ordinals(self, days: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where days `[rows]`, counted from 1970-01-01, stand in days, weekdays or months, and which fit at all."""
        weekday = (days + 3) % 7
        if self.unit == "D":
            return days, np.ones(len(days), dtype=bool)
        if self.unit == "W":
            return days, weekday == self.phase
        if self.unit == "B":
            return (days + 3) // 7 * 5 + np.minimum(weekday, 4), weekday < 5
        months: np.ndarray = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
        fits = days == _month_days(months, self.unit)
        if self.phase is not None:
            fits &= months % (12 if self.count % 12 == 0 else 3) == self.phase
        return months, fits

    def days(self, ordinals: np.ndarray) -> np.ndarray:
        """The inverse of `ordinals`: days from 1970-01-01."""
        if self.unit in ("D", "W"):
            return ordinals
        if self.unit == "B":
            return np.asarray(ordinals // 5 * 7 - 3 + ordinals % 5)
        return _month_days(ordinals, self.unit)


def _month_days(months: np.ndarray, unit: str) -> np.ndarray:
    """First ("MS") or last ("ME") day of months counted from 1970-01, in days from 1970-01-01."""
    shift = int(unit == "ME")
    days = (months + shift).astype("datetime64[M]").astype("datetime64[D]")
    return np.asarray(days.astype(np.int64) - shift)


def _unknown(frequency: str) -> UsageError:
    return UsageError(
        f"frequency {frequency!r} is not known: use s, min, h, D, B (weekdays), W-MON, MS, ME, QS, QE, YS or YE, "
        "with a number before it if need be (15min)"
    )
