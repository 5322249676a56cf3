"""Tables without a row for each time, turned into such: times across the top, numbered values, years by months.

Nothing is turned without evidence that leaves no choice; what was done is said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from tsformer.data.cells import LINE, listed, parsed
from tsformer.data.columns import is_time_name, part_of_time
from tsformer.data.table_options import TableOptions
from tsformer.errors import DataError
from tsformer.findings import Finding
from tsformer.tables.decimals import decimal_of
from tsformer.tables.ids import smallest_key
from tsformer.tables.numbers import as_numbers, merged
from tsformer.tables.time_formats import is_time_of_day, looks_like_date
from tsformer.tables.times import read_time

VALUE = "value"
ROW = "row"
_LEAST_NUMBERED = 8
# The World Bank's "1960 [YR1960]", R's "X1960" and "X2020.01.31", and "year_1960".
_AROUND = re.compile(r"\s*\[[^\]]*\]$|^([Xx]|[Yy]|[Yy]r|[Yy]ear)[ _.]?(?=(1[5-9]|20|21)\d\d)")
_SHORT_DATE = re.compile(
    r"\d{1,2}([-/.])\d{1,2}\1\d{2,4}|[1-9]\d{3}[-/.]\d{1,2}|\d{1,2}[-/.][1-9]\d{3}|[1-9]\d{3}\s?-?[QqMmWw]\d{1,2}"
    r"|(?i:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)[^\W\d_]{0,6}[-. ]\d{2}(\d{2})?"
)
_NUMBERED_IN_YEAR = re.compile(r"(?<!\d)(?:\d{1,2}\D+(?:19|20)\d\d|(?:19|20)\d\d\D+\d{1,2})(?!\d)")
_DIGITS = re.compile(r"(1[6-9]|20)\d{2}(0[1-9]|1[0-2])((0[1-9]|[12]\d|3[01])\d{0,4})?")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def arrange(frame: pd.DataFrame, options: TableOptions, source: str) -> tuple[pd.DataFrame, tuple[Finding, ...]]:
    """A table with a row for each time (and series), and what was done to it.

    Turned are tables with times for column names, those whose rows are series of numbered values (V1, V2, ...), and
    those with a row for each year and a column for each month. All others come back as they are. Of a series in a row,
    missing values before its first and after its last number are left out.

    Raises:
        DataError: when the names of the columns are times that cannot be read, or a cell among them is no number.
    """
    named = (*options.time, *options.target, *options.future_covariates, *options.past_covariates)
    if any(name in frame.columns for name in named) or not {*options.id} <= {*frame.columns, ROW}:
        return frame, ()
    for turn in (_years_by_months, _times_across, _numbered_across):
        turned = turn(_months_across(frame), options, source)
        if turned is not None:
            return turned
    return frame, ()


def _times_across(
    frame: pd.DataFrame, options: TableOptions, source: str
) -> tuple[pd.DataFrame, tuple[Finding, ...]] | None:
    """Columns called like times, each row a series."""
    stamps = {name: _AROUND.sub("", name).strip() for name in frame.columns}
    dated = [name for name, stamp in stamps.items() if _is_date(stamp)] or _years(frame, stamps)
    rest = [name for name in frame.columns if name not in dated]
    if len(dated) < 3 or isinstance(frame.index, pd.DatetimeIndex) or any(_holds_dates(frame[name]) for name in rest):
        return None
    if len({stamps[name] for name in dated}) < len(dated):
        return None
    if not options.id and rest and _names_times(frame, rest[0]):
        text = (
            f"{source} has times for column names ({listed(dated)}) and a row for each {rest[0]!r} of them, words that "
            f"cannot be joined to times: write a row for each time; if rows are series all the same, --id {rest[0]}"
        )
        raise DataError(text, finding=Finding("layout", text, "fault", rest[0], remedy="write a row for each time"))
    name = _free("year" if all(re.fullmatch(r"\d{4}", stamps[column]) for column in dated) else "date", rest)
    times = pd.DataFrame({name: [stamps[column] for column in dated]})
    try:
        read_time(times, (name,), options, f"{source}: the names of its columns")
    except DataError as error:
        raise DataError(
            f"{source} has times for column names ({listed(dated)}), which cannot be read: {error}",
            finding=error.finding,
        ) from None
    return _long(frame, dated, times[name], options, source, "times")


def _numbered_across(
    frame: pd.DataFrame, options: TableOptions, source: str
) -> tuple[pd.DataFrame, tuple[Finding, ...]] | None:
    """Columns that tell rows apart by words, then numbered columns to the end."""
    found = [re.fullmatch(r"(.*?)(\d+)", name) for name in frame.columns]
    prefix = found[-1][1] if found[-1] else None
    start = len(found)
    while start and (match := found[start - 1]) is not None and match[1] == prefix:
        if start < len(found) and int(match[2]) + 1 != int(frame.columns[start][len(prefix) :]):
            break
        start -= 1
    rest, numbered = list(frame.columns[:start]), list(frame.columns[start:])
    if rest == [] and numbered and _is_words(frame[numbered[0]]):  # V1 holds the names, V2 ... the values
        rest, numbered = numbered[:1], numbered[1:]
        least = 3
    else:
        least = max(_LEAST_NUMBERED, len(rest))
    words = [name for name in rest if _is_words(frame[name])]
    if len(numbered) < least or rest[:1] != words[:1] or any(_holds_dates(frame[name]) for name in rest):
        return None
    if not options.id and rest and _names_times(frame, rest[0]):
        return None
    if not smallest_key(frame, [name for name in options.id if name in frame.columns] or words):
        return None
    steps = pd.Series(range(1, len(numbered) + 1), name=_free("step", rest))
    long, notes = _long(frame, numbered, steps, options, source, "numbers")
    if options.id or len(frame) <= len(numbered):
        return long, notes
    text = (
        f"each row was taken as a series of {len(numbered)} steps; if each is a time, and {numbered[0]}, {numbered[1]} "
        f"... are series, name them with --target"
    )
    return long, (*notes, Finding("layout", text, "doubt", count=len(frame), remedy="--target takes rows as times"))


def _years_by_months(
    frame: pd.DataFrame, options: TableOptions, source: str
) -> tuple[pd.DataFrame, tuple[Finding, ...]] | None:
    """A column of years, and twelve of months."""
    year = next((name for name in frame.columns if name.strip().lower() in ("year", "yr", "jahr", "any", "año")), None)
    months = _months(list(frame.columns))
    if year is None or months is None or year in months:
        return None
    years = pd.to_numeric(frame[year], errors="coerce")
    if not (years.between(1000, 3000) & (years % 1 == 0)).all():
        return None
    ids = [name for name in frame.columns if name not in (year, *months) and _is_words(frame[name])]
    ids = [name for name in ids if frame[name].nunique(dropna=False) > 1]
    if frame.duplicated([*ids, year]).any():
        return None
    values, notes = _numbers(frame, months, options, source)
    row, month = (part.ravel() for part in np.indices(values.shape))
    name = _free("month", ids)
    long = pd.DataFrame(
        {
            **{column: frame[column].to_numpy()[row] for column in ids},
            name: [f"{y}-{m + 1:02}" for y, m in zip(years.astype(int).to_numpy()[row], month, strict=True)],
            VALUE: values.ravel(),
        },
        index=_labels(frame, row, np.array(months, dtype=object)[month]),
    )
    long = long.iloc[np.lexsort((month, years.to_numpy()[row]))] if not ids else long
    dropped = [column for column in frame.columns if column not in (year, *months, *ids)]
    # What a series lacks before its first and after its last month was never measured.
    key = long[ids].astype(str).agg("/".join, axis=1) if ids else pd.Series("", index=long.index)
    long = long[_between(long[VALUE].notna(), key)]
    text = f"the table has a row for each year and a column for each month: read as {len(long)} months in order"
    return long, (_turned(text + _and_dropped(dropped), long, ids, name), *notes)


def _months_across(frame: pd.DataFrame) -> pd.DataFrame:
    """A table of twelve months by years with a row for each year; any other as it is."""
    first, *rest = frame.columns
    if len(frame) != 12 or not rest or not all(re.fullmatch(r"[1-9]\d{3}", name) for name in rest):
        return frame
    months = _months([str(cell) for cell in frame[first]])
    if months is None or [str(cell) for cell in frame[first]] != months:
        return frame
    return frame.set_index(first).T.rename_axis(index=LINE, columns=None).rename_axis(None).reset_index(names="year")


def _long(
    frame: pd.DataFrame, columns: list[str], times: pd.Series, options: TableOptions, source: str, what: str
) -> tuple[pd.DataFrame, tuple[Finding, ...]]:
    """A row for each value of those columns, at the times `[columns]`."""
    rest = [name for name in frame.columns if name not in columns]
    ids = _ids(frame, rest, options)
    if ids == (ROW,) and ROW not in frame:
        frame = frame.assign(**{ROW: range(1, len(frame) + 1)})
    values, notes = _numbers(frame, columns, options, source)
    real = ~np.isnan(values)
    empty = ~real.any(axis=1)
    started = np.logical_or.accumulate(real, axis=1)
    lasting = np.logical_or.accumulate(real[:, ::-1], axis=1)[:, ::-1]
    row, column = np.nonzero(started & lasting)
    kept = [*ids, *(name for name in options.static_covariates if name in rest and name not in ids)]
    long = pd.DataFrame(
        {
            **{name: frame[name].to_numpy()[row] for name in kept},
            str(times.name): times.to_numpy()[column],
            VALUE: values[row, column],
        },
        index=_labels(frame, row, np.array(columns, dtype=object)[column]),
    )
    text = (
        f"each row is a series, its {what} are the columns {columns[0]} to {columns[-1]}: read as {len(frame)} series"
        f"{f' told apart by {listed(ids)}' if ids else ''}"
    )
    cut = values.size - len(row)
    if cut:
        text += f", {cut} empty cell(s) before their first and after their last value left out"
    if empty.any():
        text += f", {int(empty.sum())} of them empty and left out"
    text += _and_dropped([name for name in rest if name not in kept])
    return long, (_turned(text, long, ids, str(times.name)), *notes)


def _turned(text: str, long: pd.DataFrame, ids: Sequence[str], time: str) -> Finding:
    columns = ", ".join([*ids, time, VALUE])
    return Finding("layout", f"{text}; forecasts have the columns {columns}", count=len(long))


def _and_dropped(names: Sequence[str]) -> str:
    return f"; ignored columns: {listed(names)}" if names else ""


def _ids(frame: pd.DataFrame, rest: Sequence[str], options: TableOptions) -> tuple[str, ...]:
    """The columns that tell the rows apart: the user's, else the first smallest set of words, else the row's number."""
    if options.id:
        return options.id
    words = [name for name in rest if _is_words(frame[name])]
    key = smallest_key(frame, [name for name in words if frame[name].nunique(dropna=False) > 1])
    if key or len(frame) == 1:
        return key
    return smallest_key(frame, [name for name in rest if frame[name].dtype.kind in "iu"], most=1) or (ROW,)


def _numbers(
    frame: pd.DataFrame, columns: Sequence[str], options: TableOptions, source: str
) -> tuple[np.ndarray, tuple[Finding, ...]]:
    """Float64 `[rows, columns]`, NaN where a value is missing, and what was done to the cells."""
    plain = all(frame[name].dtype.kind in "iuf" for name in columns)
    if plain and not options.sentinel and not options.na:
        return frame[list(columns)].to_numpy(dtype=np.float64), ()
    decimal = decimal_of(frame[list(columns)], options)
    found = [as_numbers(frame[name], name, options, source, named=True, decimal=decimal) for name in columns]
    notes = merged(note for column in found for note in column.notes)
    return np.column_stack([column.values for column in found if column.values is not None]), notes


def _labels(frame: pd.DataFrame, row: np.ndarray, names: np.ndarray) -> pd.Index:
    """What messages call each value: its line and its column."""
    lines = frame.index.astype(str).to_numpy(dtype=object)[row]
    return pd.Index(lines + ", column " + names, name=LINE if frame.index.name == LINE else None)


def _between(real: pd.Series, key: pd.Series) -> np.ndarray:
    """Which rows lie between the first and the last real one of their key."""
    counted = real.groupby(key.to_numpy(), sort=False).cumsum().to_numpy()
    last = real.groupby(key.to_numpy(), sort=False).transform("sum").to_numpy()
    return (counted > 0) & ((counted < last) | real.to_numpy())


def _is_date(name: str) -> bool:
    return bool(_SHORT_DATE.fullmatch(name) or _DIGITS.fullmatch(name) or looks_like_date(name)) and len(name) < 40


def _years(frame: pd.DataFrame, stamps: dict[str, str]) -> list[str]:
    """Columns called 1960, 1961, ...: three at least, in one step, and beside them columns of words."""
    found = [name for name, stamp in stamps.items() if re.fullmatch(r"(1[5-9]|20|21)\d\d", stamp)]
    steps = np.diff([int(stamps[name]) for name in found])
    rest = [name for name in stamps if name not in found]
    if len(found) < 3 or not rest or steps[0] == 0 or (steps != steps[0]).any():
        return []
    return found if _is_words(frame[rest[0]]) else []


def _months(names: Sequence[str]) -> list[str] | None:
    """The columns of the twelve months in order: by words, or 1 to 12."""
    words = {name.strip().lower()[:3]: name for name in reversed(list(names)) if name.strip().isalpha()}
    if all(month in words for month in _MONTHS):
        return [words[month] for month in _MONTHS]
    numbers = {re.sub(r"^[mM]?0?", "", name.strip()): name for name in names}
    wanted = [str(month) for month in range(1, 13)]
    return [numbers[month] for month in wanted] if all(month in numbers for month in wanted) else None


def _holds_dates(column: pd.Series) -> bool:
    if column.dtype.kind == "M" or isinstance(column.dtype, pd.DatetimeTZDtype | pd.PeriodDtype):
        return True
    cells = column.dropna().head(20)
    return bool(len(cells)) and all(isinstance(cell, str) and looks_like_date(cell) for cell in cells)


def _names_times(frame: pd.DataFrame, name: str) -> bool:
    """Whether a column of words, though not of times of day, is called like a time, or each has a year and a number."""
    cells = frame[name].dropna().astype(str)
    if not _is_words(frame[name]) or cells.map(is_time_of_day).all():
        return False
    return is_time_name(name) or part_of_time(name) is not None or bool(cells.str.contains(_NUMBERED_IN_YEAR).all())


def _is_words(column: pd.Series) -> bool:
    """Whether it holds text that is not all numbers."""
    if column.dtype.kind in "iufbcmM" or isinstance(column.dtype, pd.DatetimeTZDtype):
        return False
    return bool(np.isnan(parsed(column.dropna().head(1000)).astype(np.float64)).any())


def _free(name: str, taken: Sequence[str]) -> str:
    """The name, or one like it that no column has."""
    return name if name not in taken else next(f"{name}_{i}" for i in range(2, 99) if f"{name}_{i}" not in taken)
