"""The outline of a text table, before any cell is read: its names, and on which line each row stands.

pandas fills short rows, takes long ones for an index and renames repeated columns without a word; here they are found.
"""

from __future__ import annotations

import csv
import re
from array import array
from typing import TextIO

import numpy as np

from tsformer.errors import DataError

_SEPARATORS = (";", "\t", "|", ",")
_VALUE = re.compile(r"[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?|\d{4}[-/]\d{1,2}([-/]\d{1,2}.*)?")


def outline(source: TextIO, sep: str, name: str) -> tuple[list[str], int, np.ndarray]:
    """The columns' names, where the rows begin (for `source.seek`), and each row's line `[rows]`, up to the last with
    a value.

    Args:
        source: opened with `newline=""`, at its start.
        sep: what separates cells.
        name: what messages call it.

    Raises:
        DataError: when rows have more or fewer cells than there are names, names repeat, lines are blank, ...
    """
    lines_of_text = iter(source.readline, "")  # unlike `source` itself, it leaves tell() in working order
    reader = csv.reader(lines_of_text, delimiter=sep, skipinitialspace=True, strict=True)
    header: list[str] = []
    lines = array("q")
    full = blank = 0
    try:
        for header in reader:
            if any(cell.strip() for cell in header):
                break
        else:
            raise DataError(f"{name} is empty: a line with the columns' names and rows are needed")
        names = _names(header, sep, name, reader.line_num)
        start, before = source.tell(), reader.line_num
        for row in reader:
            if any(row):
                if blank:
                    raise DataError(f"{name} line {blank} is blank, but rows follow it: remove the line")
                if len(row) != len(names):
                    raise DataError(_uneven(name, before + 1, row, names))
                lines.append(before + 1)
                full = len(lines)
            elif len(row) == len(names) > 1:
                # Cells without a value at the end are a spreadsheet's leftovers, in the middle they are missing values.
                lines.append(before + 1)
            else:
                blank = blank or before + 1
            before = reader.line_num
    except csv.Error as error:
        raise DataError(
            f"{name} line {reader.line_num} cannot be split into cells: {error}; check its quotes"
        ) from None
    if not full:
        raise DataError(f"{name} has no rows, only the columns' names: {', '.join(names)[:200]}")
    return names, start, np.array(lines[:full], dtype=np.int64)


def _names(header: list[str], sep: str, name: str, line: int) -> list[str]:
    cells = [one_line(cell) for cell in header]
    others = [s for s in _SEPARATORS if s != sep and header[0].count(s)]
    if len(cells) == 1 and others:
        best = max(others, key=header[0].count)
        shown = "'\\t'" if best == "\t" else repr(best)
        raise DataError(
            f"{name} has one column, {cells[0][:60]!r}, when split at {sep!r}: it seems to want --data.sep {shown}"
        )
    if all(_VALUE.fullmatch(cell) for cell in cells) and cells != [str(i) for i in range(len(cells))]:
        raise DataError(f"{name} line {line} holds values, not names ({cells[0]!r}, ...): put a line of names above it")
    names = [cell or f"Unnamed: {i}" for i, cell in enumerate(cells)]
    repeated = next((cell for i, cell in enumerate(names) if cell in names[:i]), None)
    if repeated is not None:
        places = [str(i + 1) for i, cell in enumerate(names) if cell == repeated]
        raise DataError(
            f"{name} line {line} names {len(places)} columns {repeated!r} (columns {', '.join(places)}): "
            "give each its own name"
        )
    return names


def _uneven(name: str, line: int, row: list[str], names: list[str]) -> str:
    if names[0].startswith("#"):
        hint = "remove the comments (#) above the line of names"
    elif len(row) > len(names):
        spare = "" if any(row[len(names) :]) else "the last are empty; "
        hint = f"{spare}is the decimal mark or the text in it a comma, or do titles stand above the columns' names?"
    else:
        hint = "complete the line, or remove it if it is a remark"
    return f"{name} line {line} has {len(row)} cell(s), the columns' names are {len(names)}: {hint}"


def one_line(text: object) -> str:
    """Text without line breaks, for messages of one line."""
    return " ".join(str(text).split())
