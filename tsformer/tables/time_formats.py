"""The formats in which a cell may be a time: what a small grammar of dates, clocks and offsets finds in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from tsformer.data.clock import OFFSET, in_any_zone
from tsformer.data.stamps import UnreadableTimeError, read_written

_CLOCK = re.compile(
    r"(?P<between>[ T_:]|, )(?P<H>\d{1,2})(?P<mark>[:.h])(?P<M>\d{2})(?:(?P=mark)(?P<S>\d{2})(?P<f>[.,]\d{1,9})?)?"
    rf"(?:(?P<blank> ?)(?P<p>[AaPp]\.? ?[Mm]\.?))?(?P<offset>{OFFSET})?$"
)
_BASIC_CLOCK = re.compile(rf"(?P<between>T)(?P<digits>\d{{4}}|\d{{6}})(?P<offset>{OFFSET})?$")
_DIGIT_CLOCK = re.compile(r"(?P<between> )(?P<digits>\d{4}|\d{6})$")
_NONE = re.compile("$")
_HOUR = re.compile(r"(?P<between>[ T])(?P<H>\d{1,2})$")
_TIME_OF_DAY = re.compile(
    r"\d{1,2}([:.h])\d{2}(?:\1\d{2}(?:[.,]\d+)?)?(?: ?[AaPp]\.? ?[Mm]\.?)?|\d{1,2}:\d{2}-\d{1,2}:\d{2}"
)
_INTERVAL = re.compile(r"^(.*\d.*?) (?:-|\u2013|\u2014|to|bis) (.*\d.*)$")
_PIECE = re.compile(r"\d+|[^\W\d_]+|[\W_]+")
_MONTH = re.compile(r"(?i)(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}")
_WEEKDAY = re.compile(r"(?i)(mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}")
_DIGITS = {4: "%Y", 6: "%Y%m", 8: "%Y%m%d", 10: "%Y%m%d%H", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
_UTC = re.compile(r"(Z|UTC|GMT|[+-]00(:?00)?)$")
_YEARS = 1000, 2200
_FEW = 1000

Order = Sequence[str]
"""A directive for each number in a cell."""


def looks_like_date(cell: str) -> bool:
    """Whether a person would take the cell for a date; a plain number is none."""
    cell = start_of(cell)
    return not re.fullmatch(r"[-+]?\d*[.,]?\d*", cell) and next(formats_of(cell), None) is not None


def is_time_of_day(cell: str) -> bool:
    """Whether a cell is a time of day, or an interval that starts at one."""
    return bool(_TIME_OF_DAY.fullmatch(start_of(cell)))


def is_interval(cell: str) -> bool:
    """Whether a cell has a start and an end, "A - B"."""
    return bool(_INTERVAL.match(cell))


def start_of(cell: str) -> str:
    """A cell in single blanks, and the start A of an interval "A - B"."""
    cell = " ".join(cell.split())
    found = _INTERVAL.match(cell)
    return found[1] if found else cell


def formats_of(cell: str) -> Iterator[str]:
    """The formats of `data.clock` that may be those of a cell, the likelier first; none if it looks like no time."""
    found = False
    for shape in (_CLOCK, _BASIC_CLOCK, _NONE, _HOUR, _DIGIT_CLOCK):
        end = shape.search(cell)
        if end is not None and not found:
            for date in _dates(cell[: end.start()]):
                if shape is _NONE or re.search("%[dju]", date):
                    found = True
                    yield date + _clock(end)


def readings(cells: pd.Series, *, weeks: bool = False) -> list[tuple[str, pd.DatetimeIndex]]:
    """Each format that reads all cells `[rows]`, which are distinct, with the times in it.

    Args:
        weeks: a year and a number are a week of the ISO calendar, and no month.

    Raises:
        DataError: `UnreadableTimeError` of the format that goes farthest, where none reads all.
    """
    first = str(cells.iloc[0])
    found: list[tuple[str, pd.DatetimeIndex]] = []
    faults: list[UnreadableTimeError] = []
    few = cells.iloc[np.linspace(0, len(cells) - 1, _FEW).astype(np.int64)] if len(cells) > 2 * _FEW else cells
    formats = [as_week(time_format) if weeks else time_format for time_format in formats_of(first)]
    for time_format in formats:
        try:
            read_written(few, time_format)
            times = read_written(cells, time_format)
        except UnreadableTimeError as fault:
            faults.append(fault)
            if "%S" in time_format and "%f" not in time_format:
                # Some writers leave out a fraction of a second that is zero.
                formats.append(time_format.replace("%S", "%S.%f"))
            continue
        if times.year.min() >= _YEARS[0] and times.year.max() <= _YEARS[1]:
            moved = str(times.tz) == "UTC" and not _UTC.search(time_format)
            found.append((in_any_zone(time_format) if moved else time_format, times))
    if found:
        return found
    if not faults:
        raise UnreadableTimeError(0, "is no date that can be read" if first else "is empty")
    worst = max(faults, key=lambda fault: (fault.row, -fault.count))
    if "calendar" in worst.why or not str(cells.iloc[worst.row]):
        raise worst
    raise UnreadableTimeError(worst.row, f"is not written like the first, {first!r}", worst.count)


def as_week(time_format: str) -> str:
    """The format of a year and a month as that of a year and a week; all others as they are."""
    if {"%Y", "%m"} != set(re.findall("%[A-Za-z]", time_format)):
        return time_format
    return time_format.replace("%Y", "%G").replace("%m", "%V")


def _clock(end: re.Match[str]) -> str:
    """The format of what stands behind a date."""
    parts = end.groupdict()
    offset = parts.get("offset") or ""
    if "digits" in parts:
        return parts["between"] + "%H%M" + "%S" * (len(parts["digits"]) == 6) + offset
    if "H" not in parts:
        return ""
    text = parts["between"] + ("%I" if parts.get("p") else "%H")
    if "mark" not in parts:
        return text
    text += parts["mark"] + "%M" + (parts["mark"] + "%S" if parts["S"] else "")
    text += parts["f"][0] + "%f" if parts["f"] else ""
    return text + (parts["blank"] + "%p" if parts["p"] else "") + offset


def _dates(text: str) -> list[str]:
    """The formats of a date without a clock, the likelier first."""
    pieces = _PIECE.findall(text)
    if "%" in text or any(len(piece) > 2 for piece in pieces if not piece.isalnum()):
        return []
    words = [i for i, piece in enumerate(pieces) if piece[0].isalpha() and piece not in ("年", "月", "日")]
    if len(words) == 2 and words[0] == 0 and _WEEKDAY.fullmatch(pieces[0]):
        pieces[0] = "%A" if len(pieces[0]) > 5 else "%a"
        words = words[1:]
    numbers = [i for i, piece in enumerate(pieces) if piece.isdecimal()]
    if len(words) > 1 or not 1 <= len(numbers) <= 3:
        return []
    lengths = [len(pieces[i]) for i in numbers]
    if not words:
        orders = _of_numbers(lengths, pieces[numbers[0]])
    elif _MONTH.fullmatch(pieces[words[0]]):
        month = {"may": ("%b", "%B")}.get(pieces[words[0]].lower(), ("%b" if len(pieces[words[0]]) == 3 else "%B",))
        numbers.append(words[0])
        orders = [(*order, name) for order in _beside_month(lengths, first=words[0] < numbers[0]) for name in month]
    else:
        orders = _beside_letter(pieces[words[0]].upper(), lengths)
    return ["".join(dict(zip(numbers, order, strict=True)).get(i, p) for i, p in enumerate(pieces)) for order in orders]


def _of_numbers(lengths: list[int], first: str) -> list[Order]:
    """Which number is what, where there is nothing else; one number may be a date in digits."""
    match lengths:
        case [4, 1 | 2, 1 | 2]:
            return [("%Y", "%m", "%d")]
        case [1 | 2, 1 | 2, 4]:
            return [("%m", "%d", "%Y"), ("%d", "%m", "%Y")]
        case [1 | 2, 1 | 2, 2]:
            return [("%m", "%d", "%y"), ("%d", "%m", "%y"), *([("%y", "%m", "%d")] if lengths[0] == 2 else [])]
        case [4, 1 | 2]:
            return [("%Y", "%m")]
        case [1 | 2, 4]:
            return [("%m", "%Y")]
        case [8] if not first.startswith(("1", "2")) or first[4:6] > "12":
            return [("%m%d%Y",), ("%d%m%Y",)]
        case [4 | 6 | 8 | 10 | 12 | 14]:
            return [(_DIGITS[lengths[0]],)]
    return []


def _beside_month(lengths: list[int], *, first: bool) -> list[Order]:
    """Which number is what beside the name of a month, which may stand first."""
    match lengths:
        case [4]:
            return [("%Y",)]
        case [2] if first:
            return [("%y",)]
        case [4, 1 | 2]:
            return [("%Y", "%d")]
        case [1 | 2, 4]:
            return [("%d", "%Y")]
        case [1 | 2, 2]:
            return [("%d", "%y"), *([("%y", "%d")] if lengths[0] == 2 and not first else [])]
    return []


def _beside_letter(letter: str, lengths: list[int]) -> list[Order]:
    """Which number is what beside the letter of a quarter, a week, or a month ("2020M01")."""
    match letter, lengths:
        case "Q", [4, 1]:
            return [("%Y", "%q")]
        case "Q", [1, 4]:
            return [("%q", "%Y")]
        case "Q", [1, 2]:
            return [("%q", "%y")]
        case "Q", [2, 1]:
            return [("%y", "%q")]
        case "W", [4, 1 | 2]:
            return [("%G", "%V")]
        case "W", [1 | 2, 4]:
            return [("%V", "%G")]
        case "W", [4, 2, 1]:
            return [("%G", "%V", "%u")]
        case "M", [4, 1 | 2]:
            return [("%Y", "%m")]
    return []
