"""Which column of a table is what: the time, the numbers, and all that is neither."""

from __future__ import annotations

import datetime
import difflib
import re
from collections.abc import Collection, Iterable

import numpy as np
import pandas as pd

from tsformer.data.cells import parsed, place, plain_numbers
from tsformer.data.clock import UnreadableTimeError, check_format, looks_like_date, read_times, suggest_formats
from tsformer.errors import DataError

_CALENDAR = {"ds", "date", "datetime", "time", "timestamp", "ts", "day", "week", "month", "quarter", "year"}
_DATES = {"ds", "date", "datetime", "timestamp"}
_COUNTERS = {"t", "time", "step", "index", "timestep"}

TimeColumn = tuple[str | None, pd.Index, str | None]
"""Name, times `[rows]`, and the `strftime` format if the table writes them as text."""


def is_time_name(name: str) -> bool:
    """Whether a column is called like a time: ds, Date, date_time, week_start ..."""
    words = re.findall("[a-z]+", name.lower())
    return "".join(words) in _CALENDAR | _COUNTERS or not _CALENDAR.isdisjoint(words)


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
    """Names in one line, the first eight of them."""
    shown = ", ".join(list(names)[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"


def reads_as_date(values: np.ndarray) -> bool:
    """Whether numbers `[rows]` are, every one of them, dates without separators (201701, 20201020)."""
    if len(values) == 0 or not np.isfinite(values).all() or values.min() < 180000 or values.max() > 2.2e13:
        return False
    return bool((values == np.rint(values)).all() and suggest_formats(pd.Series(values.astype(np.int64))))


def read_time(frame: pd.DataFrame, name: str, time_format: str | None, source: str) -> TimeColumn:
    """The times in a column: dates, dates in text, years, or plain numbers.

    Raises:
        DataError: at the first cell that is no time, or when the order of day and month would be a guess.
    """
    column = frame[name]
    if column.isna().any():
        row = int(column.isna().to_numpy().argmax())
        raise DataError(
            f"{source}: column {name!r} has no time in {int(column.isna().sum())} row(s), the first in "
            f"{place(frame, row)}: complete or remove them"
        )
    dates = _dates(column, f"{source}: column {name!r}")
    if dates is not None:
        return name, dates, None
    cells = column.astype(object).map(lambda cell: str(cell).strip())
    values = plain_numbers(column, cells)
    if values is not None and (values.dtype.kind == "i" or (values == np.rint(values)).all()):
        whole = pd.Series(values.astype(np.int64).astype(str), index=cells.index)
        if not pd.api.types.is_string_dtype(column) and column.dtype != object:
            cells = whole
        if time_format is None and _is_year(name, values):
            cells, values = whole, None
    if values is not None and time_format is None:
        if reads_as_date(values):
            raise DataError(
                f"{source}: column {name!r} holds whole numbers like {cells.iloc[0]}, which may be dates: "
                f"{_time_remedy(cells)} (if they are plain numbers, count from 0)"
            )
        return name, pd.Index(values), None
    if values is None and time_format is None:
        bad = np.isnan(parsed(cells).astype(np.float64))
        if bad.sum() < len(bad) / 2 and not cells.str.fullmatch(r"[12]\d{3}").any():
            row = int(bad.argmax())
            raise DataError(
                f"{source}: column {name!r} has {int(bad.sum())} cell(s) that are not numbers, the first "
                f"{cells.iloc[row]!r} in {place(frame, row)}: complete them, or choose another column with --time"
            )
    try:
        times, found = read_times(cells, time_format)
    except UnreadableTimeError as fault:
        count = f" ({fault.count} such rows)" if fault.count > 1 else ""
        remedy = "" if "convert" in fault.why else ": " + (_time_remedy(cells) if not time_format else "correct it")
        where = f"{source}: column {name!r}, {place(frame, fault.row)}"
        raise DataError(f"{where}: {cells.iloc[fault.row]!r} {fault.why}{count}{remedy}") from None
    return name, times, found


def find_time(frame: pd.DataFrame, taken: Collection[str], time_format: str | None, source: str) -> TimeColumn:
    """The time where the user names no column: an index of dates, a column that holds dates throughout, years in a
    column called so, or a regular counter (t, time, step, index). Without any, rows are in order.

    Raises:
        DataError: when several columns have equal claims, or the only one that looks like dates cannot be read.
    """
    if isinstance(frame.index, pd.DatetimeIndex | pd.PeriodIndex):
        name = str(frame.index.name or "time")
        return read_time(frame.index.to_frame(name=name).set_axis(range(len(frame))), name, None, source)
    if time_format is not None:
        check_format(time_format)
    found: dict[str, TimeColumn] = {}
    doubtful: list[str] = []
    for name in (column for column in frame.columns if column not in taken):
        claim = _claim(frame[name], name, time_format)
        if claim == "doubtful":
            doubtful.append(name)
        elif claim:
            try:
                found[name] = read_time(frame, name, time_format, source)
            except DataError:
                doubtful.append(name)
    best = [name for name in found if is_time_name(name)] or list(found)
    if len(best) > 1:
        raise DataError(f"{source} has {len(best)} columns of times ({listed(best)}): choose one, --time {best[0]}")
    if best:
        return found[best[0]]
    if time_format is not None and not doubtful:
        raise DataError(f"{source} has no column of times written as {time_format!r}: name the column with --time")
    doubtful.sort(key=lambda name: not is_time_name(name))
    for name in doubtful:
        read_time(frame, name, time_format, source)
    return _find_counter(frame, taken, source)


def _find_counter(frame: pd.DataFrame, taken: Collection[str], source: str) -> TimeColumn:
    names = {name.lower(): name for name in frame.columns if name not in taken}
    if "year" in names and not names.keys().isdisjoint(("month", "mon", "mo")):
        parts = [name for name in frame.columns if name.lower() in ("year", "month", "mon", "mo", "day", "hour")]
        raise DataError(
            f"{source} has its dates spread over the columns {listed(parts)}: join them into one, 2024-01-31, "
            "or name a column of times with --time"
        )
    years = [name for name in names.values() if _is_year(name, plain_numbers(frame[name]))]
    if years:
        return read_time(frame, years[0], None, source)
    first = str(frame.columns[0])
    for lower, name in names.items():
        if lower in _COUNTERS or (name == first and name.startswith("Unnamed: ")):
            values = plain_numbers(frame[name])
            if values is not None and not reads_as_date(values) and _is_regular(values):
                return name, pd.Index(values), None
    return None, pd.RangeIndex(len(frame)), None


def _claim(column: pd.Series, name: str, time_format: str | None) -> str:
    """Whether a column may hold times by its type and first cell: "", "doubtful" or "good"."""
    if isinstance(column.dtype, pd.DatetimeTZDtype | pd.PeriodDtype) or column.dtype.kind == "M":
        return "good"
    if pd.api.types.is_bool_dtype(column):
        return ""
    if column.dtype.kind in "iuf":
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        if time_format is not None:
            return "good" if is_time_name(name) or reads_as_date(values) else ""
        return "doubtful" if reads_as_date(values) else ""
    filled = [cell for cell in column.head(1000) if not pd.api.types.is_scalar(cell) or not pd.isna(cell)]
    first = next((cell for cell in filled if str(cell).strip()), "")
    if isinstance(first, datetime.date):
        return "good"
    if not isinstance(first, str):
        return ""
    values_or_none = plain_numbers(column)
    if values_or_none is not None:
        if time_format is not None:
            return "good"
        return "doubtful" if reads_as_date(values_or_none) else ""
    if looks_like_date(first) or time_format is not None:
        return "good"
    return "doubtful" if "".join(re.findall("[a-z]+", name.lower())) in _DATES else ""


def _dates(column: pd.Series, where: str) -> pd.DatetimeIndex | None:
    """Times `[rows]` of a column that holds dates by type, in microseconds; None for other columns."""
    if isinstance(column.dtype, pd.PeriodDtype):
        column = column.dt.to_timestamp()
    elif column.dtype == object and isinstance(column.iloc[0], datetime.date):
        try:
            column = pd.Series(pd.to_datetime(column))
        except (ValueError, TypeError) as error:
            raise DataError(f"{where} holds dates that do not go together: {error}") from None
    if not isinstance(column.dtype, pd.DatetimeTZDtype) and column.dtype.kind != "M":
        return None
    times = pd.DatetimeIndex(column)
    rounded = times.as_unit("us")
    if not (rounded == times).all():
        raise DataError(f"{where} has times finer than a microsecond: round them")
    return rounded.rename(None)


def _is_year(name: str, values: np.ndarray | None) -> bool:
    if name.lower() != "year" or values is None:
        return False
    return bool((values == np.rint(values)).all() and values.min() >= 1000 and values.max() <= 3000)


def _is_regular(values: np.ndarray) -> bool:
    """Whether a counter `[rows]` has one step all along, or up to where it starts again (a long table)."""
    steps = np.diff(values)
    steps = -steps if (steps < 0).all() else steps
    ahead = steps[steps > 0]
    return len(steps) > 1 and len(ahead) > len(steps) / 2 and bool(np.ptp(ahead) <= 1e-3 * ahead.min())


def _time_remedy(cells: pd.Series) -> str:
    formats = suggest_formats(cells)
    if re.fullmatch(r"\d{4}\s?-?[Qq]\d", cells.iloc[0]):
        return "write quarters as their first day, 2024-04-01"
    if re.fullmatch(r"\d{4}\s?-?[Ww]\d{1,2}", cells.iloc[0]):
        return "write weeks as one of their days, 2024-01-29"
    if not formats:
        return (
            "write times as 2024-01-31 or 2024-01-31 16:00, or say how they are written: --data.time-format '%m/%d/%Y'"
        )
    return f"--data.time-format {' or '.join(map(repr, formats))}{', whichever it is' if len(formats) > 1 else ''}"
