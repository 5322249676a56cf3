"""Cells and names of tables: numbers read to the last bit, words for what is missing, and what messages call a row."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

import numpy as np
import pandas as pd

from tsformer.errors import DataError

LINE = "line"
"""Name of an index that holds line numbers of a file."""

MISSING = frozenset(
    {"", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "NAN", "-nan", "null", "NULL", "Null", "None", "NaT"}
)
"""Cells that stand for a value that is not there."""

LARGEST = 1e100
"""Beyond it squares and sums overflow; no unit that makes sense has such numbers."""

SMALLEST = 1e-100
"""A column with nothing larger has squares that become zero."""

_LARGEST_FLOAT = int(np.finfo(np.float64).max)


def place(frame: pd.DataFrame, row: int) -> str:
    """What messages call a row: its line in the file, or its label; its position where labels repeat."""
    label = frame.index[row] if frame.index.is_unique else row
    return f"{'line' if frame.index.name == LINE else 'row'} {label}"


def require(frame: pd.DataFrame, names: Iterable[str], source: str) -> None:
    """Raise DataError unless the columns are there, with a guess at what was meant."""
    columns = list(frame.columns)
    for name in names:
        if name not in columns:
            lower = {column.lower(): column for column in columns}
            close = difflib.get_close_matches(name.lower(), lower, n=1)
            hint = f"did you mean {lower[close[0]]!r}? " if close else ""
            raise DataError(f"{source} has no column {name!r}: {hint}it has {listed(columns)}")


def listed(names: Collection[str]) -> str:
    """Names in one line, the first eight of them; one with line breaks and the like is written as Python does."""
    shown = ", ".join(name if name.isprintable() else repr(name) for name in list(names)[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"


def one_line(text: object) -> str:
    """Text without line breaks, for messages of one line."""
    return " ".join(str(text).split())


def as_text(name: object, what: str, source: str) -> str:
    """The name of a column or a series, which has to come back from a file.

    Raises:
        DataError: no file can hold it: half of a surrogate pair.
    """
    text = str(name)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError(f"{source} has the {what} {text!r}, which is no text that a file can hold: rename it") from None
    return text


def plain_numbers(column: pd.Series, cells: pd.Series | None = None) -> np.ndarray | None:
    """A column as int64 or float64 `[rows]` when every cell is a finite number, however it is stored."""
    if pd.api.types.is_bool_dtype(column) or column.dtype.kind not in "iufOTUS" or not len(column):
        return None
    source = (column if cells is None or column.dtype.kind in "iuf" else cells).reset_index(drop=True)
    if not np.isfinite(parsed(source.head(1)).astype(np.float64)).all():
        return None  # a long column of words is not looked through
    values = parsed(source)
    if values.dtype.kind not in "iuf" or not np.isfinite(values.astype(np.float64)).all():
        return None
    whole = values.dtype.kind == "i" or (values.dtype.kind == "u" and values.max() <= np.iinfo(np.int64).max)
    return values.astype(np.int64 if whole else np.float64)


def parsed(cells: pd.Series) -> np.ndarray:
    """Cells `[rows]` as numbers, NaN where they are none; whole numbers that no float can hold are infinite."""
    if cells.dtype == object:
        huge = cells.map(lambda cell: isinstance(cell, int) and abs(cell) > _LARGEST_FLOAT)
        cells = cells.mask(huge.astype(bool), np.inf) if huge.any() else cells
    found = pd.to_numeric(cells, errors="coerce")
    whole = found.dtype.kind in "iu" and not found.hasnans
    values = found.to_numpy() if whole else found.to_numpy(dtype=np.float64, na_value=np.nan)
    if values.dtype.kind == "f" and cells.dtype.kind not in "iuf":
        # to_numeric may be wrong in the last bit, float() never is; but only to_numeric refuses "1_000".
        numeric = ~np.isnan(values)
        values = values.copy()
        values[numeric] = [float(cell) for cell in cells[numeric]]
    return np.asarray(values)
