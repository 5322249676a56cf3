"""Tables in and out: a DataFrame becomes a panel, forecasts become a DataFrame that looks like the user's.

Nothing is filled, dropped or guessed: a table that cannot be taken as it stands is refused with the place and the
remedy, and whatever was left out or put in order is in the panel's notes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, Any

import numpy as np
import pandas as pd

from tsformer.data.cells import LARGEST, SMALLEST, as_text, is_tiny, listed, numbers, place, require
from tsformer.data.clock import are_whole, is_own_format, looks_like_date, reads_as_date, write_times
from tsformer.data.columns import TimeColumn, find_time, index_name, is_time_name, read_time, tells_time_again
from tsformer.data.files import find_table, read_table, source_name, write_table
from tsformer.data.panel import Panel, Schema
from tsformer.data.series import assemble
from tsformer.data.wall import zone_name
from tsformer.errors import DataError, UsageError

__all__ = [
    "find_table",
    "forecast_frame",
    "panel_from_frame",
    "panel_with_schema",
    "read_panel",
    "read_table",
    "source_name",
    "write_table",
]


def panel_from_frame(
    frame: pd.DataFrame,
    *,
    time: str | None = None,
    id: str | None = None,
    targets: Sequence[str] | None = None,
    text: str | None = None,
    time_format: str | None = None,
    source: str = "table",
) -> Panel:
    """A table as a panel of target columns, with a text in each row if there is a column of them.

    Args:
        frame: from `read_table` or made by the user: one row for each time (and series), any order of rows.
        time: the column of times; None finds it (see `columns.find_time`), or takes an index of dates.
        id: the column that tells series apart, in a long table.
        targets: the columns to forecast; None or none takes all numbers that are neither time, id nor text.
        text: the column of texts, whatever its cells hold; a missing one is an empty text.
        time_format: `strftime` format of times that do not begin with the year.
        source: what messages call the table.

    Returns:
        a panel with series in order of appearance, rows in order of time, and one frequency.

    Raises:
        DataError: one line that says what is wrong, where, and what to do. UsageError: when columns are named twice.
    """
    frame = _tidy(frame, source)
    in_index = isinstance(frame.index, pd.DatetimeIndex | pd.PeriodIndex) and time == frame.index.name
    named = [name for name in (None if in_index else time, id, text, *(targets or ())) if name is not None]
    require(frame, named, source)
    repeated = next((name for i, name in enumerate(named) if name in named[:i]), None)
    if repeated is not None:
        raise UsageError(f"column {repeated!r} is named twice: time, id, text and targets are different columns")
    if id is not None and len(frame) > 2 and frame[id].nunique() == len(frame):
        raise DataError(
            f"{source}: column {id!r} names {len(frame)} series of one row each, but a row for each time of a series "
            f"is needed: DataFrame.melt({id!r}).dropna() in pandas turns a table that has a series in each row"
        )
    if time is None or in_index:
        taken = [name for name in (*(targets or ()), id, text) if name is not None]
        column = find_time(frame, taken, time_format, source, chosen=bool(targets))
    else:
        column = read_time(frame, time, time_format, source)
    notes = [] if column[0] is not None else ["no column of times found: rows are taken in the order of the table"]
    others = [name for name in (column[0], id, text) if name is not None]
    names, values, ignored = _choose_targets(frame, others, targets, source)
    schema = Schema(tuple(names), column[0], id, zone=_zone(column[1]), time_format=column[2], text=text)
    return assemble(frame, values, column[1], schema, notes + ignored, source, infer=True)


def panel_with_schema(frame: pd.DataFrame, schema: Schema, *, source: str = "table") -> Panel:
    """New rows of a table that is known: its columns by name, in the schema's order and at the schema's frequency.

    Few rows will do, as long as their steps fit. Further columns are ignored with a note.

    Raises:
        DataError: when a column is missing, or the rows do not go with the schema.
    """
    frame = _tidy(frame, source)
    column, note = _known_time(frame, schema, source)
    if schema.id is not None:
        try:
            require(frame, [schema.id], source)
        except DataError as error:
            remedy = f"the model tells its series apart by {schema.id!r}: add it, a new name for a new series"
            raise DataError(f"{error}; {remedy}") from None
    if schema.text is not None:
        try:
            require(frame, [schema.text], source)
        except DataError as error:
            raise DataError(f"{error}; the model reads a text in each row: add it, its cells may be empty") from None
    require(frame, schema.columns, source)
    known = {schema.time, schema.id, schema.text, *schema.columns}
    extra = [name for name in frame.columns if name not in known and not name.startswith("Unnamed: ")]
    notes = [*note, f"ignored columns that the model does not know: {listed(extra)}"] if extra else note
    values = [_complete(frame, name, source) for name in schema.columns]
    return assemble(frame, values, column[1], schema, notes, source, infer=False)


def read_panel(
    path_or_buffer: str | os.PathLike[str] | IO[Any],
    schema: Schema,
    *,
    sep: str = ",",
    decimal: str = ".",
    encoding: str = "utf-8-sig",
) -> Panel:
    """New rows of a known table from a file: `read_table`, then `panel_with_schema`; times, ids, texts as written."""
    written = [name for name in (schema.time, schema.id, schema.text) if name is not None]
    frame = read_table(path_or_buffer, sep=sep, decimal=decimal, encoding=encoding, text=written)
    return panel_with_schema(frame, schema, source=source_name(path_or_buffer))


def forecast_frame(
    schema: Schema, ids: Sequence[str], times: Sequence[pd.Index], forecasts: np.ndarray
) -> pd.DataFrame:
    """Forecasts as a table like the user's: id (if any), time (if any) in the user's own writing, then the targets.

    Args:
        schema: of the panel that the forecasts come from.
        ids: names of the series, `[series]`.
        times: the times of each series' forecast, `[series]` indices of `[horizon]`.
        forecasts: float64 `[series, horizon, targets]` in the user's units.
    """
    horizon = forecasts.shape[1]
    columns: dict[str, object] = {}
    if schema.id is not None:
        columns[schema.id] = np.repeat(np.asarray(ids, dtype=object), horizon)
    if schema.time is not None:
        stamps = times[0].append(list(times[1:])) if len(times) else pd.Index([])
        if schema.time_format is not None and isinstance(stamps, pd.DatetimeIndex):
            columns[schema.time] = write_times(stamps, schema.time_format)
        else:
            columns[schema.time] = stamps
    for channel, name in enumerate(schema.targets):
        columns[name] = forecasts[:, :, channel].reshape(-1)
    return pd.DataFrame(columns)


def _tidy(frame: pd.DataFrame, source: str) -> pd.DataFrame:
    if frame.columns.nlevels > 1 or frame.index.nlevels > 1:
        raise DataError(f"{source} has a MultiIndex: reset_index() makes plain columns of it")
    if not len(frame):
        raise DataError(f"{source} has no rows")
    if not len(frame.columns):
        raise DataError(f"{source} has {len(frame)} row(s) but no column: a column of numbers is needed")
    frame = frame.set_axis([as_text(name, "column", source) for name in frame.columns], axis=1)
    if not frame.columns.is_unique:
        repeated = sorted(set(frame.columns[frame.columns.duplicated()]))
        raise DataError(f"{source} has several columns called {listed(repeated)}: give each its own name")
    dates = [name for name in frame.columns if looks_like_date(name)]
    if len(dates) > 2:
        raise DataError(f"{source} has times for column names ({listed(dates)}): turn it so that each row is a time")
    return frame


def _zone(times: pd.Index) -> str | None:
    return zone_name(times.tz) if isinstance(times, pd.DatetimeIndex) and times.tz is not None else None


def _choose_targets(
    frame: pd.DataFrame, taken: Sequence[str], targets: Sequence[str] | None, source: str
) -> tuple[list[str], list[np.ndarray], list[str]]:
    """Names and values of the targets, and notes on what is not one."""
    if targets:
        return list(targets), [_complete(frame, name, source) for name in targets], []
    chosen: dict[str, np.ndarray] = {}
    ignored: dict[str, list[str]] = {"text": [], "empty": [], "unnamed": [], "date": [], "time": []}
    for name in (column for column in frame.columns if column not in taken):
        column = numbers(frame, name, source, named=False)
        if column is None:
            ignored["text"].append(name)
        elif np.isnan(column).all():
            ignored["empty"].append(name)
        elif name.startswith("Unnamed: "):
            ignored["unnamed"].append(name)
        elif reads_as_date(column):
            ignored["date"].append(name)
        elif is_time_name(name) and tells_time_again(name, column):
            ignored["time"].append(name)
        else:
            chosen[name] = column
    if not chosen:
        hint = ": name one with --target" if ignored["time"] else ""
        raise DataError(f"{source} has no column of numbers to forecast, it has {listed(list(frame.columns))}{hint}")
    whole = [name for name, column in chosen.items() if (np.abs(column) <= LARGEST).all() and not is_tiny(column)]
    for name in chosen:
        if name not in whole:
            others = f"; or choose columns without: --target {','.join(whole[:3])}" if whole else ""
            _complete(frame, name, source, others)
    kinds = {
        "text": "that are not numbers",
        "empty": "without a value",
        "unnamed": "without a name",
        "date": "of dates",
        "time": "that tell the time again (--target takes them)",
    }
    notes = [f"ignored columns {kinds[kind]}: {listed(names)}" for kind, names in ignored.items() if names]
    timely = [name for name, column in chosen.items() if is_time_name(name) and are_whole(column)]
    if timely:
        notes.append(f"forecast like any other, though called like times: {listed(timely)} (--target chooses)")
    return list(chosen), list(chosen.values()), notes


def _complete(frame: pd.DataFrame, name: str, source: str, hint: str = "") -> np.ndarray:
    """A column of finite float64 `[rows]`."""
    column = numbers(frame, name, source, named=True)
    values = np.full(len(frame), np.nan) if column is None else column
    large = np.isfinite(values) & (np.abs(values) > LARGEST)
    fill = "fill them, or keep the rows without"
    for bad, what, remedy in (
        (np.isnan(values), "missing value(s)", fill),
        (np.isinf(values), "infinite value(s)", fill),
        (large, f"value(s) beyond {LARGEST:g}, too large to compute with", "bring the column to a sensible unit"),
    ):
        if bad.any():
            raise DataError(
                f"{source}: column {name!r} has {int(bad.sum())} {what}, the first in "
                f"{place(frame, int(bad.argmax()))}: {remedy}{hint}"
            )
    if is_tiny(values):
        raise DataError(
            f"{source}: column {name!r} has no value beyond {np.abs(values).max():g}; below {SMALLEST:g} they are too "
            f"small to compute with: bring the column to a sensible unit{hint}"
        )
    return values


def _known_time(frame: pd.DataFrame, schema: Schema, source: str) -> tuple[TimeColumn, list[str]]:
    if schema.time is None:
        return (None, pd.RangeIndex(len(frame)), None), []
    own = schema.time_format is not None and is_own_format(schema.time_format)
    time_format = None if own else schema.time_format
    if schema.time not in frame.columns and isinstance(frame.index, pd.DatetimeIndex | pd.PeriodIndex):
        name = index_name(frame, source)
        column = read_time(frame.index.to_frame(name=name).set_axis(range(len(frame))), name, None, source)
    else:
        require(frame, [schema.time], source)
        # A whole number is a year only where the schema says so.
        known_format = "%Y" if schema.time_format == "%Y" else time_format
        column = read_time(frame, schema.time, known_format, source, plain=not isinstance(schema.frequency, str))
    times = column[1]
    if isinstance(times, pd.DatetimeIndex) != isinstance(schema.frequency, str):
        raise DataError(
            f"{source}: column {schema.time!r} does not hold the kind of times that the model knows, "
            f"with frequency {schema.frequency!r}"
        )
    zone = _zone(times)
    if (zone is None) != (schema.zone is None):
        known = f"times in zone {schema.zone}" if schema.zone else "local times without a zone"
        raise DataError(f"{source}: column {schema.time!r} is in zone {zone}, the model was fitted on {known}")
    if zone != schema.zone and isinstance(times, pd.DatetimeIndex):
        note = f"times were converted from zone {zone} to {schema.zone}"
        return (column[0], times.tz_convert(schema.zone), column[2]), [note]
    return column, []
