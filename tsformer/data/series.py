"""Rows of a table put together as series: grouped, in order of time, at one frequency."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import PurePath

import numpy as np
import pandas as pd

from tsformer.data.cells import as_text, place
from tsformer.data.clock import show
from tsformer.data.frequency import Frequency, check_steps, holidays, infer_frequency
from tsformer.data.panel import Panel, Schema
from tsformer.data.wall import as_numbers
from tsformer.errors import DataError

_CLOCKS = {"time", "hour", "hr", "clock"}
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")  # of a surrogate pair


def assemble(
    frame: pd.DataFrame,
    values: list[np.ndarray],
    times: pd.Index,
    schema: Schema,
    notes: list[str],
    source: str,
    *,
    infer: bool,
) -> Panel:
    """Rows grouped by series and put in order of time.

    Args:
        frame: the table, for the columns of ids and of texts, and for messages.
        values: one float64 `[rows]` for each of the schema's columns.
        times: of each row, `[rows]`.
        schema: what is known; with `infer` its frequency is found, otherwise the rows are checked against it.
        notes: what the user should hear of.
        source: what messages call the table.

    Raises:
        DataError: on times that repeat within a series, gaps, irregular steps, several frequencies, or texts that no
            file can hold.
    """
    codes, ids = _series(frame, schema.id, source)
    keys = as_numbers(times)
    grouped = np.argsort(codes, kind="stable")
    inside = np.diff(codes[grouped]) == 0
    back = inside & (np.diff(keys[grouped]) < 0)
    order = np.lexsort((keys, codes))
    if back.any():
        how = "newest first" if back.sum() == inside.sum() else f"not ascending in {int(back.sum())} place(s)"
        notes = [*notes, f"rows were {how}: sorted by {schema.time!r}"]
    repeated = inside & (np.diff(keys[order]) == 0)
    if repeated.any():
        raise DataError(_repeated(frame, times, order, repeated, schema, source, fitted=not infer))
    times, offsets = times[order], np.concatenate(([0], np.cumsum(np.bincount(codes)))).astype(np.int64)
    if schema.time is None:
        times = pd.Index(np.arange(len(frame), dtype=np.int64) - np.repeat(offsets[:-1], np.diff(offsets)))
    else:
        where = f"{source}: column {schema.time!r}"
        if infer:
            schema = replace(schema, frequency=_common_frequency(times, offsets, ids, schema, where))
        else:
            _check_frequency(times, offsets, ids, schema, where)
        if schema.frequency == "B" and isinstance(times, pd.DatetimeIndex):
            away = sum(holidays(times[a:b]) for a, b in itertools.pairwise(offsets))
            if away:
                notes = [*notes, f"{away} weekday(s) without a row are taken as holidays"]
    table = np.ascontiguousarray(np.column_stack(values)[order], dtype=np.float64)
    texts = None if schema.text is None else _texts(frame, schema.text, order, source)
    return Panel(table, offsets, times, ids, schema, notes=tuple(notes), texts=texts)


def _series(frame: pd.DataFrame, id: str | None, source: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """A number for each row's series, in order of appearance, and the names."""
    if id is None:
        return np.zeros(len(frame), dtype=np.int64), (PurePath(source).name.split(".")[0] or source,)
    column = frame[id]
    if column.dtype == object:  # of several types, perhaps: 1 and "1" are written alike
        column = column.map(str, na_action="ignore")
    codes, found = pd.factorize(column)
    names = tuple(as_text(name, "series", source) for name in found)
    blank = [code for code, name in enumerate(names) if not name.strip()]
    empty = (codes < 0) | np.isin(codes, blank)
    if empty.any():
        raise DataError(
            f"{source}: column {id!r} names no series in {int(empty.sum())} row(s), the first in "
            f"{place(frame, int(empty.argmax()))}: complete or remove them"
        )
    return codes.astype(np.int64), names


def _texts(frame: pd.DataFrame, name: str, order: np.ndarray, source: str) -> tuple[str, ...]:
    """The texts of a column, in that order of the rows; "" where a cell is missing."""
    column = frame[name]
    texts = ["" if missing else str(cell) for cell, missing in zip(column, column.isna(), strict=True)]
    broken = next((row for row, text in enumerate(texts) if _HALF_CHARACTER.search(text)), None)
    if broken is not None:
        raise DataError(
            f"{source}: column {name!r} holds half of a character in {place(frame, broken)}, which no file can hold: "
            "correct it"
        )
    return tuple(texts[row] for row in order)


def _common_frequency(
    times: pd.Index, offsets: np.ndarray, ids: tuple[str, ...], schema: Schema, where: str
) -> Frequency:
    """The frequency of the longest series, which all others must have."""
    longest = int(np.diff(offsets).argmax())
    try:
        frequency = infer_frequency(times[offsets[longest] : offsets[longest + 1]])
    except DataError as error:
        raise DataError(f"{where}{_of(ids[longest], schema)}: {error}") from None
    _check_frequency(times, offsets, ids, replace(schema, frequency=frequency), where, ids[longest])
    return frequency


def _check_frequency(
    times: pd.Index, offsets: np.ndarray, ids: tuple[str, ...], schema: Schema, where: str, like: str | None = None
) -> None:
    seen: set[bytes] = set()
    keys = as_numbers(times)
    for name, (start, stop) in zip(ids, itertools.pairwise(offsets), strict=True):
        part, key = times[start:stop], keys[start:stop].tobytes()
        # Many series share one calendar: it is looked at once.
        if key in seen:
            continue
        seen.add(key)
        try:
            check_steps(part, schema.frequency)
        except DataError as error:
            message = str(error)
            try:
                other = infer_frequency(part)
            except DataError as own:
                message = message if len(part) < 3 else str(own)
            else:
                known = "the model was fitted on" if like is None else f"series {like!r} has"
                message = f"frequency is {other}, {known} {schema.frequency}: one frequency is needed"
            raise DataError(f"{where}{_of(name, schema)}: {message}") from None


def _of(name: str, schema: Schema) -> str:
    return "" if schema.id is None else f", series {name!r}"


def _repeated(
    frame: pd.DataFrame,
    times: pd.Index,
    order: np.ndarray,
    repeated: np.ndarray,
    schema: Schema,
    source: str,
    *,
    fitted: bool,
) -> str:
    """What to say of times that occur twice in a series, and what would tell the rows apart.

    Args:
        order: the rows by series and time.
        repeated: which of them, but for the last, have the time of the next one.
        fitted: the schema is that of a model, and cannot be changed by another --id.
    """
    at = int(repeated.argmax())
    first, second = int(order[at]), int(order[at + 1])
    series = "" if schema.id is None else f" in series {str(frame[schema.id].iloc[first])!r}"
    message = (
        f"{source}: column {schema.time!r} repeats {int(repeated.sum())} time(s){series}, the first "
        f"{show(times[first])} in {place(frame, first)} and {place(frame, second)}"
    )
    rest = [c for c in frame.columns if c not in (schema.time, schema.id, schema.text)]

    def unique_with(*names: str) -> bool:
        return not pd.concat([pd.Series(times, index=frame.index), frame[list(names)]], axis=1).duplicated().any()

    known = [schema.id] if schema.id is not None else []
    clock = next((c for c in rest if c.lower() in _CLOCKS or str(frame[c].iloc[0]).count(":")), None)
    if clock is not None and unique_with(*known, clock):
        return f"{message}: join the columns {schema.time!r} and {clock!r} into one column of times"
    if schema.time is not None and schema.time.lower() == "year" and any(c.lower() == "month" for c in rest):
        return f"{message}: join year, month and day into one column of dates, 2024-01-31"
    # In a long table most times repeat, and what tells its series apart comes again and again.
    rest = [c for c in rest if frame[c].dtype.kind != "f" and frame[c].nunique() <= len(frame) / 3]
    rest = sorted(rest, key=lambda c: frame[c].dtype.kind in "iu")[:6]
    for size in (1, 2) if repeated.sum() > 0.3 * len(frame) else ():
        for names in itertools.combinations([*known, *rest], size):
            if unique_with(*names):
                if size == 1 and fitted:
                    return (
                        f"{message}: the model was fitted on a single series, and {names[0]!r} seems to tell several "
                        f"apart: keep the rows of one, or fit again with --id {names[0]}"
                    )
                if size == 1:
                    return f"{message}: does {names[0]!r} tell the series apart? --id {names[0]}"
                return (
                    f"{message}: join {names[0]!r} and {names[1]!r} into one column that tells series apart, for --id"
                )
    if isinstance(times, pd.DatetimeIndex) and times.tz is None:
        twice = times[order[1:][repeated]]
        if (twice.hour <= 3).all() and twice.month.isin([3, 4, 9, 10, 11]).all() and (times.hour > 3).any():
            return f"{message}: this may be the hour that comes twice when summer time ends; write the times in UTC"
    if schema.id is None and not fitted:
        return f"{message}: keep one row for each time, or name the column that tells series apart with --id"
    return f"{message}: keep one row for each time"
