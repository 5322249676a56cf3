"""Times that stand in several columns: year, month and day, or a date beside a time of day."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd

from tsformer.data.cells import plain_numbers
from tsformer.data.columns import is_clock_name, part_of_time
from tsformer.tables.time_formats import is_time_of_day
from tsformer.tables.time_numbers import are_whole

_RANGES = {"Y": (1000, 3000), "m": (1, 12), "q": (1, 4), "V": (1, 53), "d": (1, 31), "j": (1, 366), "H": (0, 24)}
_RANGES |= dict.fromkeys("MS", (0, 59))
_BESIDE_YEAR: tuple[tuple[str, ...], ...] = (
    *(("m", "d", "H", "M", "S"), ("m", "d", "H", "M"), ("m", "d", "H"), ("m", "d"), ("j", "H"), ("j",)),
    *(("m",), ("q",), ("V",)),
)
_NAMELESS = re.compile(r"c\d+|Unnamed: \d+")
_LETTERS = {"m": "M", "q": "Q", "V": "W"}
"""What may stand before the number: M01, Q1, W05."""
_CLOCK_DIGITS = r"([01]\d|2[0-4])[0-5]\d([0-5]\d)?"


def find_parts(frame: pd.DataFrame, taken: Collection[str]) -> tuple[str, ...]:
    """The columns that make a time together: a year and what stands below it; none where there are no such.

    In a table without names, whole years in the first column and 1 to 12 in the second are such.
    """
    held: dict[str, str] = {}
    for name in (column for column in frame.columns if column not in taken):
        part = part_of_time(name)
        if part is not None and part not in held and _fits(frame[name], part):
            held[part] = name
    if "Y" in held:
        below = next((parts for parts in _BESIDE_YEAR if all(part in held for part in parts)), ())
        return tuple(held[part] for part in ("Y", *below)) if below else ()
    first = [name for name in frame.columns[:2] if name not in taken and _NAMELESS.fullmatch(name)]
    if len(first) == 2 and _fits(frame[first[0]], "Y") and _fits(frame[first[1]], "m"):
        months = plain_numbers(frame[first[1]])
        years = plain_numbers(frame[first[0]])
        if months is not None and years is not None and (np.abs(np.diff(12 * years + months)) <= 1).all():
            return tuple(first)
    return ()


def find_clock(frame: pd.DataFrame, taken: Collection[str]) -> str | None:
    """The column with a time of day, or whole hours, that stands beside a column of dates."""
    for name in (column for column in frame.columns if column not in taken):
        column = frame[name]
        called = is_clock_name(name) and (is_clock(column) or _fits(column, "H"))
        if (called or (_NAMELESS.fullmatch(name) and is_clock(column))) and column.nunique() > 1:
            return name
    return None


def parts_format(frame: pd.DataFrame, names: Sequence[str]) -> str | None:
    """The format of the cells of columns joined by blanks, where their names say what they are; else None."""
    parts = [part_of_time(name) for name in names]
    nameless = len(names) == 2 and all(_NAMELESS.fullmatch(name) for name in names)
    if nameless and _fits(frame[names[0]], "Y"):
        parts = ["Y", "m"]
    if "Y" not in parts or None in parts:
        return None
    text = " ".join(f"%{part}" for part in parts)
    if "V" in parts:
        text = text.replace("%Y", "%G")
    for part, letter in _LETTERS.items():
        cell = str(frame[names[parts.index(part)]].iloc[0]).strip() if part in parts else ""
        if cell.startswith(letter):
            text = text.replace(f"%{part}", f"{letter}0%q" if cell.startswith("Q0") else f"{letter}%{part}")
            return text
    if "m" in parts:
        word = str(frame[names[parts.index("m")]].iloc[0]).strip()
        if word.isalpha():
            text = text.replace("%m", "%b" if len(word) == 3 else "%B")
    return text


def written_together(read_format: str) -> str:
    """The ISO format that writes as much of a time as a format reads."""
    plain = read_format.replace("-", "")
    if "%S" in plain:
        return "%Y-%m-%d %H:%M:%S"
    if "%H" in plain or "%I" in plain:
        return "%Y-%m-%d %H:%M"
    return "%Y-%m-%d" if re.search("%[djVu]", plain) else "%Y-%m"


def _fits(column: pd.Series, part: str) -> bool:
    """Whether all cells of a column may be that part of a time."""
    low, high = _RANGES[part]
    values = plain_numbers(column)
    if values is not None:
        return are_whole(values) and bool(values.min() >= low and values.max() <= high)
    if column.isna().any():
        return False
    if part in _LETTERS:
        found = column.drop_duplicates().astype(str).str.strip().str.extract(rf"^{_LETTERS[part]}0?(\d{{1,2}})$")[0]
        if found.notna().all():
            return bool(found.astype(int).between(low, high).all())
    if part != "m":
        return False
    words = {str(word).strip()[:3].lower() for word in column.unique()}
    return words <= {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}


def is_clock(column: pd.Series) -> bool:
    """Whether the cells of a column are times of day, every one."""
    distinct = [str(cell).strip() for cell in column.dropna().unique()]
    if not distinct or pd.api.types.is_numeric_dtype(column):
        return False
    digits = len({len(cell) for cell in distinct}) == 1 and all(re.fullmatch(_CLOCK_DIGITS, cell) for cell in distinct)
    return digits or all(is_time_of_day(cell) for cell in distinct)
