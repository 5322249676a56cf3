"""Cells by what they look like: numbers and times as people write them, and what stands for a value that is missing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tsformer.data.cells import MISSING

_MARKERS = frozenset(
    {".", "..", "...", "-", "--", "---", "\u2013", "\u2014", "?", "*", "**", "/", ":", "\\n"}
    | {"na", "n/a", "n.a.", "nd", "n.d.", "nm", "nil", "null", "(null)", "<null>", "none", "nan.", "undefined"}
    | {"void", "empty", "missing", "unknown", "no data", "not available"}
    | {"#value!", "#ref!", "#div/0!", "#num!", "#name?", "#null!"}
)
_NUMBER = re.compile(
    r"[(+-]?\s?(?:[$€£¥₩₹₽]|R\$|USD|EUR)?\s?[+-]?(?:\d[\d.,'\u2019 \u00a0\u202f]*|[.,]\d+)(?:[eE][+-]?\d+)?"
    r"\s?(?:%|[KkMBT]|[MmBb]n|[$€£¥₩₹₽])?\)?"
)
_CODE = re.compile(r"0\d+")
_MONTH = r"(?:jan|feb|mar|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)[a-zä]*"
_TIME = re.compile(
    r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}\b.*|\d{4}[-/]\d{1,2}|\d{1,2}[-/]\d{4}|\d{1,2}:\d{2}\b.*|\d{1,2}\.\d{2}\.\d{2}"
    rf"|\d{{4}}\s?-?[QqWw]\d{{1,2}}|(?:\w+,? )?(?:\d{{1,2}}[ .-]+)?{_MONTH}[ .,/-]+\d.*|\d{{4}}[ -]{_MONTH}.*",
    re.IGNORECASE,
)


VALUES = frozenset({"time", "number", "code"})
"""Kinds of cells that stand in rows, not in names."""


def is_marker(cell: str) -> bool:
    """Whether a word stands for a missing value among numbers, besides those that pandas knows; "NM", "--", "nil"."""
    return cell.lower() in _MARKERS


def kind_of(cell: str) -> str:
    """ "empty" (nothing, or a word for it), "time", "number", "code" (007) or "word"."""
    cell = cell.strip()
    if cell in MISSING or is_marker(cell):
        return "empty"
    if not any(character.isdigit() for character in cell):
        return "word"
    if _TIME.fullmatch(cell):
        return "time"
    if _CODE.fullmatch(cell):
        return "code"
    return "number" if _NUMBER.fullmatch(cell) else "word"


def has_values(row: Sequence[str]) -> bool:
    """Whether any cell is a number or a time."""
    return any(kind_of(cell) in VALUES for cell in row)
