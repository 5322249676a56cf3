"""Cells of a table as numbers: what is one, what was meant to be one, and what stands for a value that is missing."""

from __future__ import annotations

import difflib
import re
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
_NUMBER_LIKE = re.compile(r"[-+(]?[$€£]?\s?\d+(?:[.,' ]\d{3})*(?:[.,]\d+)?\s?[%KMBkmb]?\)?")


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


def numbers(frame: pd.DataFrame, name: str, source: str, *, named: bool) -> np.ndarray | None:
    """A column as float64 `[rows]`, NaN where a value is missing; None when it holds no numbers but text.

    Raises:
        DataError: when most cells are numbers, or are meant to be ("1,234", "5%"), and some cannot be read as such;
            with `named`, which says that the user chose the column, when any cell cannot.
    """
    column = frame[name]
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind in ("integer", "floating", "mixed-integer-float", "decimal", "empty"):
        return parsed(column).astype(np.float64)
    if kind not in ("string", "mixed", "mixed-integer"):
        if named:
            raise DataError(f"{source}: column {name!r} holds {kind} values, not numbers: choose another --target")
        return None
    cells = column.astype(object).reset_index(drop=True)
    text = cells.map(lambda cell: "" if cell is None or cell is pd.NA or cell is pd.NaT else str(cell).strip())
    values = parsed(text).astype(np.float64)
    filled = ~text.isin(MISSING).to_numpy()
    bad = np.isnan(values) & filled
    if not bad.any():
        return values
    if not named:
        meant = filled & ~bad
        meant[bad] = text[bad].map(lambda cell: bool(_NUMBER_LIKE.fullmatch(cell))).to_numpy(dtype=bool)
        if meant.sum() <= filled.sum() / 2:
            return None
    row = int(bad.argmax())
    raise DataError(
        f"{source}: column {name!r} has {int(bad.sum())} cell(s) that are not numbers, the first {text[row]!r} in "
        f"{place(frame, row)}: {_number_remedy(text[row])}"
    )


def is_tiny(values: np.ndarray) -> bool:
    """Whether numbers `[rows]` are not all zero, and all too small to compute with."""
    return 0.0 < float(np.abs(values).max(initial=0.0)) < SMALLEST


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


def _number_remedy(cell: str) -> str:
    if re.fullmatch(r"[-+]?\d+,\d+", cell) and not re.fullmatch(r"[-+]?\d{1,3},\d{3}", cell):
        return "a comma as decimal mark needs --data.decimal ',' and --data.sep"
    if _NUMBER_LIKE.fullmatch(cell):
        return "take thousands separators, units and signs out (or --data.decimal ',' if the comma is a decimal mark)"
    return "complete or empty the cells, or choose other columns with --target"
