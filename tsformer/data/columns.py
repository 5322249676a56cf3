"""Which column of a table is what: the time, the numbers, and all that is neither."""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Collection

import numpy as np
import pandas as pd

from tsformer.data.cells import LINE, listed, parsed, place, plain_numbers
from tsformer.data.clock import (
    UnreadableTimeError,
    are_whole,
    are_years,
    check_format,
    epoch_unit,
    is_counter,
    is_monotonic,
    looks_like_date,
    read_times,
    reads_as_date,
    suggest_formats,
)
from tsformer.errors import DataError

_DATES = {"ds", "date", "datetime", "timestamp"}
_STAMPS = {*_DATES, "time", "ts", "year", "unix", "epoch", "unixtime", "epochtime", "unixtimestamp"}
_COUNTERS = {"t", "step", "index", "timestep"}
_PARTS = {"day": 366, "week": 53, "month": 12, "quarter": 4}
_RANKS = {**dict.fromkeys(_STAMPS, 0), **dict.fromkeys(_COUNTERS, 1), **dict.fromkeys(_PARTS, 2)}
_WORDS = {*_DATES, "time", "ts", "year", "unix", "epoch", *_PARTS}

TimeColumn = tuple[str | None, pd.Index, str | None]
"""Name, times `[rows]`, and the `strftime` format if the table writes them as text."""


def is_time_name(name: str) -> bool:
    """Whether a column is called like a time: ds, Date, date_time, week_start ..."""
    return _plain(name) in _RANKS or not _WORDS.isdisjoint(_words(name))


def tells_time_again(name: str, values: np.ndarray) -> bool:
    """Whether numbers `[rows]` beside the column of times are times too: years, months, counters, seconds."""
    kind = _kind(name, values)
    if kind == "years":
        return "year" in _words(name) or is_counter(values, several=True)
    part = _PARTS.get(_plain(name))
    return kind in ("epoch", "counter") or (
        part is not None and are_whole(values) and bool(values.min() >= 0 and values.max() <= part)
    )


def read_time(
    frame: pd.DataFrame, name: str, time_format: str | None, source: str, *, plain: bool = False
) -> TimeColumn:
    """The times in a column: dates, dates in text, years, or plain numbers; with `plain` numbers are never dates.

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
        if time_format is None and not plain and _kind(name, values) == "years":
            cells, values = whole, None
    if values is not None and time_format is None:
        if not plain and reads_as_date(values):
            raise DataError(
                f"{source}: column {name!r} holds whole numbers like {cells.iloc[0]}, which may be dates: "
                f"{_time_remedy(cells)} (if they are plain numbers, count from 0)"
            )
        return name, pd.Index(values), None
    try:
        times, found = _read_each_once(cells, time_format)
    except UnreadableTimeError as fault:
        if values is None and time_format is None:
            _check_numbers(frame, cells, f"{source}: column {name!r}")
        count = f" ({fault.count} such rows)" if fault.count > 1 else ""
        remedy = "" if "convert" in fault.why else ": " + (_time_remedy(cells) if not time_format else "correct it")
        where = f"{source}: column {name!r}, {place(frame, fault.row)}"
        raise DataError(f"{where}: {cells.iloc[fault.row]!r} {fault.why}{count}{remedy}") from None
    return name, times, found


def _read_each_once(cells: pd.Series, time_format: str | None) -> tuple[pd.DatetimeIndex, str]:
    """`read_times` for a long table, in which each time comes again with each series."""
    codes, distinct = pd.factorize(cells)
    try:
        times, found = read_times(pd.Series(distinct), time_format)
    except UnreadableTimeError:
        return read_times(cells, time_format)  # fails again, but with the row and the number of such rows
    return times.take(codes), found


def _check_numbers(frame: pd.DataFrame, cells: pd.Series, where: str) -> None:
    """Raise DataError where most cells `[rows]` of a time are plain numbers and some are not."""
    bad = np.isnan(parsed(cells).astype(np.float64))
    if bad.sum() < len(bad) / 2 and not cells.str.fullmatch(r"[12]\d{3}").any():
        row = int(bad.argmax())
        raise DataError(
            f"{where} has {int(bad.sum())} cell(s) that are not numbers, the first {cells.iloc[row]!r} in "
            f"{place(frame, row)}: complete them, or choose another column with --time"
        ) from None


def find_time(
    frame: pd.DataFrame, taken: Collection[str], time_format: str | None, source: str, *, chosen: bool = False
) -> TimeColumn:
    """The time where the user names no column: an index of dates, a column that holds dates throughout, years in a
    column called like a time, or a regular counter in one (t, time, step, ds). Without any, rows are in order.

    Raises:
        DataError: when several columns have equal claims, the only one that looks like dates cannot be read, or,
            unless the user has `chosen` targets, a column is called like a time and holds irregular numbers.
    """
    if isinstance(frame.index, pd.DatetimeIndex | pd.PeriodIndex):
        name = index_name(frame, source)
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
    return _find_numbers(frame, taken, source, chosen)


def index_name(frame: pd.DataFrame, source: str) -> str:
    """What an index of dates is called; where it has no name, one that no column has.

    Raises:
        DataError: when another column has its name.
    """
    if frame.index.name is None:
        free = itertools.chain(("time", "date", "ds"), (f"time_{i}" for i in itertools.count()))
        return next(name for name in free if name not in frame)
    name = str(frame.index.name)
    if name in frame and not pd.Index(frame[name]).equals(frame.index):
        raise DataError(
            f"{source}: the index and a column are both called {name!r}: rename_axis('time') renames the index"
        )
    return name


def _find_numbers(frame: pd.DataFrame, taken: Collection[str], source: str, chosen: bool) -> TimeColumn:
    """Years or a counter, in the column that is most of all called like a time."""
    free = [name for name in frame.columns if name not in taken]
    lower = {name.lower() for name in free}
    if "year" in lower and not lower.isdisjoint(("month", "mon", "mo")):
        parts = [name for name in frame.columns if name.lower() in ("year", "month", "mon", "mo", "day", "hour")]
        raise DataError(
            f"{source} has its dates spread over the columns {listed(parts)}: join them into one, 2024-01-31, "
            "or name a column of times with --time"
        )
    first = str(frame.columns[0])
    held: dict[str, np.ndarray] = {}
    kinds: dict[str, str] = {}
    for name in free:
        values = plain_numbers(frame[name])
        if values is not None and (is_time_name(name) or name == first) and not reads_as_date(values):
            held[name], kinds[name] = values, _kind(name, values)
            if kinds[name] == "epoch" and chosen and is_counter(values, several=True):
                kinds[name] = "counter"
    years = [name for name, kind in kinds.items() if kind == "years"]
    if len(years) > 1:
        raise DataError(f"{source} has {len(years)} columns of years ({listed(years)}): choose one, --time {years[0]}")
    if years:
        return read_time(frame, years[0], None, source)
    names = sorted(kinds, key=_rank)
    counter = next((name for name in names if kinds[name] == "counter"), None)
    doubtful = next((name for name in names if kinds[name] in ("epoch", "irregular")), None)
    if doubtful is not None and not chosen and (counter is None or _rank(doubtful)[0] < _rank(counter)[0]):
        values = held[doubtful]
        if kinds[doubtful] == "epoch":
            raise DataError(
                f"{source}: column {doubtful!r} seems to hold {epoch_unit(values)} since 1970 ({values[0]}): convert "
                f"them to dates, take them as numbers with --time {doubtful}, or name the targets with --target"
            )
        found, where, counts = np.unique(np.diff(values), return_inverse=True, return_counts=True)
        # One row has no step at all, two have no other to go with.
        at = int((where != counts.argmax()).argmax()) if len(found) > 1 else 0
        after = min(at + 1, len(values) - 1)
        raise DataError(
            f"{source}: column {doubtful!r} is called like a time, but holds numbers without a regular step ("
            f"{values[at]}, then {values[after]} in {place(frame, after)}): "
            "name the time with --time, or the targets with --target"
        )
    if counter is not None:
        return counter, pd.Index(held[counter]), None
    label = frame.index.name
    if isinstance(label, str) and label != LINE and is_time_name(label):
        raise DataError(f"{source}: the index {label!r} is no DatetimeIndex: reset_index() makes a column of it")
    return None, pd.RangeIndex(len(frame)), None


def _kind(name: str, values: np.ndarray) -> str:
    """What numbers `[rows]` in a column of that name are to the time: "years", "epoch" (seconds since 1970), "counter",
    "irregular" (a time by its name, which cannot be taken), or "" (a measurement)."""
    rank, words, monotonic = _RANKS.get(_plain(name)), _words(name), is_monotonic(values)
    ordered = monotonic or is_counter(values, several=True)
    if are_years(values) and (rank == 0 or "year" in words) and (ordered or _plain(name) == "year"):
        return "years"
    if not is_time_name(name):
        return "counter" if name.startswith("Unnamed: ") and is_counter(values, several=True) else ""
    if epoch_unit(values) and (rank == 0 or monotonic):
        return "epoch"
    # A name that only contains a word of time (travel_time) needs one step from the first row to the last.
    if is_counter(values, several=rank in (0, 1)):
        return "counter"
    return "irregular" if rank is not None and (are_whole(values) or (rank == 0 and monotonic)) else ""


def _rank(name: str) -> tuple[int, bool]:
    nameless = name.startswith("Unnamed: ")
    return 1 if nameless else _RANKS.get(_plain(name), 3), nameless


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.lower())


def _words(name: str) -> list[str]:
    return re.findall("[a-z]+", name.lower())


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
    return "doubtful" if "".join(_words(name)) in _DATES else ""


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
