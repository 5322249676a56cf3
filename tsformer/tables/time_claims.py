"""What a column may be to the time, by its type, its name and what it holds."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection
from typing import Literal

import numpy as np
import pandas as pd

from tsformer.data.cells import LINE, listed, place, plain_numbers
from tsformer.data.columns import is_date_name, is_time_name, is_week_name, kind_of, rank
from tsformer.data.table_options import TableOptions
from tsformer.errors import DataError
from tsformer.findings import Finding
from tsformer.tables.time_cells import check_filled
from tsformer.tables.time_formats import looks_like_date
from tsformer.tables.time_numbers import digit_format, epoch_format, epoch_unit, is_monotonic, may_be_sheet_days

_DIGITS = re.compile(r"\d{6,14}")

Claim = Literal["", "weak", "good"]


def claim_of(column: pd.Series, name: str, options: TableOptions) -> Claim:
    """Whether a column may hold times by its type and first cell: "", "weak" (say no more if not), or "good"."""
    if isinstance(column.dtype, pd.DatetimeTZDtype | pd.PeriodDtype) or column.dtype.kind == "M":
        return "good"
    if pd.api.types.is_bool_dtype(column):
        return ""
    filled = [cell for cell in column.head(1000) if not pd.api.types.is_scalar(cell) or not pd.isna(cell)]
    first = next((cell for cell in filled if str(cell).strip()), "")
    if isinstance(first, datetime.date):
        return "good"
    text = str(first).strip()
    if isinstance(first, str) and looks_like_date(text):
        return "good" if column.notna().mean() > 0.5 or is_time_name(name) else ""
    named = is_time_name(name)
    if options.time_format is not None:
        return "good" if isinstance(first, str) or named else ""
    if isinstance(first, str) and not named and not _DIGITS.fullmatch(text):
        return ""
    values = plain_numbers(column)
    if values is None or keeps_zeros(column):
        return "weak" if isinstance(first, str) and is_date_name(name) else ""
    if named:
        return "weak" if number_format(name, values, values, years=False) is not None else ""
    if kind_of(name, values) == "epoch":
        return "weak"
    return "weak" if digit_format(values) is not None and is_monotonic(pd.unique(values)) else ""


def keeps_zeros(cells: pd.Series) -> bool:
    """Whether some of the cells `[rows]` are six digits or more behind a zero: 01012024 is a date and no number."""
    return cells.dtype == object and bool(cells.astype(str).str.fullmatch(r"0\d{5,}").any())


def number_format(name: str, values: np.ndarray, distinct: np.ndarray, *, years: bool = True) -> str | None:
    """The format of numbers `[rows]` that are dates; None for plain numbers."""
    kind = kind_of(name, values)
    if kind == "years":
        return "%Y" if years else None
    digits = digit_format(distinct, weeks=is_week_name(name))
    if digits is not None:
        return digits
    if kind == "epoch":
        return epoch_format(distinct)
    return "%E" if is_date_name(name) and may_be_sheet_days(distinct) else None


def about_numbers(name: str, cell: str, times: pd.DatetimeIndex, time_format: str) -> list[Finding]:
    if time_format == "%Y":
        return []
    if time_format == "%E":
        text = f"column {name!r} counts days as spreadsheets do: {cell} is {times[0]:%Y-%m-%d}"
    elif time_format.startswith("%s"):
        unit = epoch_unit(time_format)
        text = f"column {name!r} counts {unit} since 1970 in UTC: {cell} is {times[0]:%Y-%m-%d %H:%M:%S}"
    else:
        text = f"column {name!r} writes dates in digits: {cell} is {times[0]:%Y-%m-%d %H:%M}".removesuffix(" 00:00")
    return [Finding("number", text, column=name, example=cell)]


def dates_in(frame: pd.DataFrame, name: str, source: str) -> pd.DatetimeIndex | None:
    """Times `[rows]` of a column that holds dates by type, in microseconds; None for other columns."""
    column, where = frame[name], f"{source}: column {name!r}"
    if isinstance(column.dtype, pd.PeriodDtype):
        column = column.dt.to_timestamp()
    elif column.dtype == object and len(column) and isinstance(column.iloc[0], datetime.date):
        try:
            column = pd.Series(pd.to_datetime(column))
        except (ValueError, TypeError) as error:
            raise DataError(f"{where} holds dates that do not go together: {error}") from None
    if not isinstance(column.dtype, pd.DatetimeTZDtype) and column.dtype.kind != "M":
        return None
    check_filled(frame, name, source)
    times = pd.DatetimeIndex(column)
    rounded = times.as_unit("us")
    if not (rounded == times).all():
        raise DataError(f"{where} has times finer than a microsecond: round them")
    return rounded.rename(None)


def numbered(
    frame: pd.DataFrame, taken: Collection[str], source: str, *, chosen: bool
) -> tuple[str | None, Literal["years", "counter", ""]]:
    """The column that is most of all called like a time and holds years or a counter, and which; None without.

    Raises:
        DataError: when several hold years; or, unless the user has `chosen` targets, one is called like a time and
            holds irregular numbers.
    """
    first = str(frame.columns[0])
    held: dict[str, np.ndarray] = {}
    for name in (column for column in frame.columns if column not in taken):
        values = plain_numbers(frame[name])
        if values is not None and (is_time_name(name) or name == first):
            held[name] = values
    kinds = {name: kind_of(name, values) for name, values in held.items()}
    years = [name for name, kind in kinds.items() if kind == "years"]
    if len(years) > 1:
        text = f"{source} has {len(years)} columns of years ({listed(years)}): choose one, --time {years[0]}"
        finding = Finding("time_columns", text, "fault", count=len(years), options={"data.time": [years[0]]})
        raise DataError(text, finding=finding)
    if years:
        return years[0], "years"
    names = sorted(kinds, key=rank)
    counter = next((name for name in names if kinds[name] == "counter"), None)
    irregular = next((name for name in names if kinds[name] == "irregular"), None)
    if irregular is not None and not chosen and (counter is None or rank(irregular)[0] < rank(counter)[0]):
        raise _without_step(frame, irregular, held[irregular], source)
    if counter is not None:
        return counter, "counter"
    label = frame.index.name
    if isinstance(label, str) and label != LINE and is_time_name(label):
        raise DataError(f"{source}: the index {label!r} is no DatetimeIndex: reset_index() makes a column of it")
    return None, ""


def refuse_unread(frame: pd.DataFrame, taken: Collection[str], source: str) -> None:
    """Raise DataError for a column that is called like a time, holds another text with digits in most rows, and could
    not be read: the order of the rows need not be that of time."""
    for name in (column for column in frame.columns if column not in taken and is_time_name(column)):
        cells = frame[name].dropna()
        texts = [cell for cell in cells.head(1000) if isinstance(cell, str) and any(map(str.isdigit, cell))]
        if len(texts) < min(len(cells), 1000) or 2 * cells.nunique() < len(frame) or plain_numbers(cells) is not None:
            continue
        row = place(frame, int(frame[name].notna().to_numpy().argmax()))
        remedy = "--time-format says how it is written"
        text = (
            f"{source}: column {name!r} is called like a time, and {texts[0]!r} in {row} cannot be read as one: "
            f"{remedy}; or name the targets with --target, and the rows are taken in their order"
        )
        finding = Finding("unreadable_time", text, "fault", name, row, len(cells), texts[0], remedy)
        raise DataError(text, finding=finding)


def _without_step(frame: pd.DataFrame, name: str, values: np.ndarray, source: str) -> DataError:
    found, where, counts = np.unique(np.diff(values), return_inverse=True, return_counts=True)
    # One row has no step at all, two have no other to go with.
    at = int((where != counts.argmax()).argmax()) if len(found) > 1 else 0
    after = min(at + 1, len(values) - 1)
    remedy = "name the time with --time, or the targets with --target"
    text = (
        f"{source}: column {name!r} is called like a time, but holds numbers without a regular step ("
        f"{values[at]}, then {values[after]} in {place(frame, after)}): {remedy}"
    )
    return DataError(text, finding=Finding("irregular_time", text, "fault", name, place(frame, after), remedy=remedy))
