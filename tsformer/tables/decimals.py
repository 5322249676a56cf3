"""Whether a comma is a decimal mark or separates thousands: what the cells of a column, or of a table, allow."""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Iterable

import pandas as pd

from tsformer.data.table_options import TableOptions

_GROUP = "[ '\u2019\u00a0\u202f]"
# Grouped by commas or points: one to three digits that do not begin with 0, then groups of three.
_ONLY_POINT = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+\.\d*|[1-9]\d{0,2}(?:,\d{3}){2,}")
_ONLY_COMMA = re.compile(
    r"[1-9]\d{0,2}(?:\.\d{3})+,\d*|[1-9]\d{0,2}(?:\.\d{3}){2,}|\d*,(?:\d{1,2}|\d{4,})|0+,\d+|\d{4,},\d+|,\d+"
    rf"|\d{{1,3}}(?:{_GROUP}\d{{3}})+,\d+"
)
_EITHER = re.compile(r"[1-9]\d{0,2},\d{3}")
_GROUPED = re.compile(r"[1-9]\d{0,2}\.\d{3}")
_POINT = re.compile(r"\d*\.(?:\d{1,2}|\d{4,})|0+\.\d+|\d{4,}\.\d+")
_SURROUNDINGS = "(+-\u2212$€£¥₩₹₽ \t%łč)" + string.ascii_letters  # of currencies and sizes: R$, EUR, zł, k
_LAKHS = re.compile(r"[1-9]\d?(?:,\d{2})+,\d{3}(?:\.\d*)?")  # as in India: 12,34,567
_DIGITS = re.compile(r"[\d.,'\u2019 \u00a0\u202f]+")
_HEAD = 200  # rows that tell whether a column holds numbers
_ENOUGH = 10_000  # distinct cells that are looked at


def comma_or_point(cells: Iterable[str]) -> str:
    """The decimal mark that cells of one column speak for; "" when they do not, or contradict each other."""
    comma = point = either = small = 0
    for number, cell in enumerate(cells):
        if number == _ENOUGH:
            break
        digits = cell.strip(_SURROUNDINGS)
        if any(pattern.fullmatch(digits) for pattern in (_ONLY_POINT, _POINT, _LAKHS)):
            point += 1
        elif _ONLY_COMMA.fullmatch(digits):
            comma += 1
        elif _EITHER.fullmatch(digits):
            either += 1
        elif digits.isascii() and digits.isdigit():
            small += len(digits) <= 3 and digits != "0"
    if point and comma:
        return ""
    if point or comma:
        return "." if point else ","
    # 950 beside 1,234: with decimals there would be 950,000, or at times fewer than three of them.
    return "." if either and small >= 3 and either >= 3 else ""


def decimal_of(frame: pd.DataFrame, options: TableOptions) -> str:
    """The decimal mark that the columns of a table speak for together: "." or ","; "" when they do not tell."""
    if options.decimal is not None:
        return options.decimal
    marks = set()
    for name in frame.columns:
        column = frame[name]
        if column.dtype.kind == "f" and (column.dropna() % 1 != 0).any():
            marks.add(".")
        elif column.dtype.kind == "O" and _looks_numeric(column.head(_HEAD)):
            marks.add(comma_or_point(cell for cell in column.dropna().unique() if isinstance(cell, str)))
    marks.discard("")
    return marks.pop() if len(marks) == 1 else ""


def may_be_grouped(cells: Iterable[str]) -> bool:
    """Whether points may separate thousands in all cells of a column, as in 1.234 beside 950, and do in some if so."""
    found = [cell.strip(_SURROUNDINGS) for cell in itertools.islice(cells, _ENOUGH)]
    grouped = sum(_GROUPED.fullmatch(cell) is not None for cell in found)
    return grouped > 0 and all(_GROUPED.fullmatch(cell) or (cell.isdigit() and len(cell) <= 3) for cell in found)


def without_groups(digits: str, mark: str) -> str | None:
    """Digits with a point as decimal mark and nothing between thousands; None when they are grouped otherwise.

    Args:
        digits: as they are written, without signs: "1.234,5", "1 234".
        mark: "." or ","; "" when that is open, which leaves cells with a comma undone.
    """
    digits = digits.strip()
    if mark == "" and "," in digits:
        return None
    own, other = (",", ".") if mark == "," else (".", ",")
    whole, _, fraction = digits.partition(own)
    if fraction and not fraction.isdigit():
        return None
    grouped = re.split(rf"{_GROUP}|{re.escape(other)}", whole)
    if len(grouped) > 1:
        indian = own == "." and _LAKHS.fullmatch(digits)
        if not indian and (not 0 < len(grouped[0]) <= 3 or any(len(group) != 3 for group in grouped[1:])):
            return None
        if len(set(re.sub(r"\d", "", whole))) != 1 or (grouped[0].startswith("0")):
            return None
    joined = "".join(grouped)
    if not (joined + fraction).isdigit() or not (joined + fraction).isascii():
        return None
    return f"{joined or '0'}.{fraction}" if own in digits else joined


def _looks_numeric(column: pd.Series) -> bool:
    """Whether most cells that are not missing are digits with something between them."""
    cells = [cell.strip(_SURROUNDINGS) for cell in column if isinstance(cell, str) and cell.strip()]
    return sum(_DIGITS.fullmatch(cell) is not None for cell in cells) > len(cells) / 2
