"""New rows of a table that is known: its columns by name, at the schema's frequency; and rows of the future."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import IO, Any

import numpy as np
import pandas as pd

from tsformer.data.cells import listed, place, require
from tsformer.data.clock import is_own_format, names_offset
from tsformer.data.columns import index_name
from tsformer.data.files import source_name
from tsformer.data.panel import Panel, Schema
from tsformer.data.rows import finish
from tsformer.data.table_options import TableOptions
from tsformer.data.wall import as_numbers, zone_name
from tsformer.errors import DataError
from tsformer.findings import Finding
from tsformer.tables.border import to_pandas
from tsformer.tables.decimals import decimal_of
from tsformer.tables.files import read_file
from tsformer.tables.ids import series_codes, with_id
from tsformer.tables.layout import arrange
from tsformer.tables.roles import Columns
from tsformer.tables.times import TimeColumn, read_time


def read_panel(source: str | os.PathLike[str] | IO[Any], schema: Schema, options: TableOptions | None = None) -> Panel:
    """New rows of a known table from a file: `read_file`, then `panel_with_schema`; times, ids, texts as written."""
    options = options or TableOptions()
    table = read_file(source, options, text=_written(schema), decimal=schema.decimal)
    panel = panel_with_schema(table.frame, schema, options, source=source_name(source))
    return replace(panel, notes=(*table.notes, *panel.notes))


def read_future(source: str | os.PathLike[str] | IO[Any], schema: Schema, options: TableOptions | None = None) -> Panel:
    """What is known ahead from a file: `read_file`, then `future_panel`."""
    options = options or TableOptions()
    table = read_file(source, options, text=_written(schema), decimal=schema.decimal)
    panel = future_panel(table.frame, schema, options, source=source_name(source))
    return replace(panel, notes=(*table.notes, *panel.notes))


def panel_with_schema(
    frame: Any, schema: Schema, options: TableOptions | None = None, *, source: str = "table"
) -> Panel:
    """New rows of a table that is known: its columns by name, in the schema's order and at the schema's frequency.

    Few rows will do, as long as their steps fit. Further columns are ignored with a note.

    Args:
        frame: a table of pandas, polars or pyarrow, or from `read_file`.
        schema: the known table's.
        options: those of the known table; what is done about missing values, duplicates and gaps is taken from them.

    Raises:
        DataError: when a column is missing, or the rows do not go with the schema.
    """
    options = _known_options(schema, options)
    frame, arranged = _arranged(to_pandas(frame, source), schema, options, source)
    time, converted = _known_time(frame, schema, options, source)
    frame = _with_known_id(frame, schema, source)
    if schema.text is not None:
        _require(frame, schema.text, source, "the model reads a text in each row: add it, its cells may be empty")
    require(frame, schema.columns, source)
    require(frame, schema.static_covariates, source)
    columns = _columns(frame, time, schema, options, source)
    targets = [columns.named(name) for name in schema.targets]
    values = [*targets, *columns.covariates((*schema.past_covariates, *schema.future_covariates)).values()]
    notes = [*arranged, *time.notes, *converted, *_ignored(frame, schema, time)]
    return finish(columns, values, schema, notes, infer=False)


def future_panel(frame: Any, schema: Schema, options: TableOptions | None = None, *, source: str = "table") -> Panel:
    """What is known ahead: times, ids and future covariates of a table; all else is not looked at.

    Rows may be of the past too, few, in any order, and of other series.

    Returns:
        a masked panel of the schema's columns in which targets and past covariates are missing, rows in order of time.

    Raises:
        DataError: when a column is missing, or rows of one time differ.
    """
    options = _known_options(schema, options)
    frame = to_pandas(frame, source)
    time, converted = _known_time(frame, schema, options, source)
    frame = _with_known_id(frame, schema, source)
    require(frame, schema.future_covariates, source)
    columns = _columns(frame, time, schema, options, source)
    known = list(columns.covariates(schema.future_covariates).values())
    values = np.full((len(frame), len(schema.columns)), np.nan)
    if known:
        values[:, -len(known) :] = np.column_stack(known)
    codes = columns.codes
    if (codes < 0).any():
        where = place(frame, int((codes < 0).argmax()))
        raise DataError(f"{source}: column {schema.id!r} names no series in {int((codes < 0).sum())} row(s), {where}")
    keys = as_numbers(time.times)
    order = np.lexsort((keys, codes))
    again = (np.diff(codes[order]) == 0) & (np.diff(keys[order]) == 0)
    times = np.cumsum(np.concatenate(([True], ~again))) - 1
    values = values[order]
    merged = pd.DataFrame(values).groupby(times).first().to_numpy()  # the first real value of each column
    differ = ~np.isnan(values) & (values != merged[times])
    if differ.any():
        at, column = (int(i) for i in np.argwhere(differ)[0])
        same = np.flatnonzero((times == times[at]) & ~np.isnan(values[:, column]))
        first, second = place(frame, int(order[same[0]])), place(frame, int(order[at]))
        raise DataError(
            f"{source}: future covariates differ in {int(differ.any(axis=1).sum())} row(s) of one time, the first in "
            f"{first} and {second}: keep one row for each time"
        )
    order = order[np.concatenate(([True], ~again))]
    offsets = np.concatenate(([0], np.cumsum(np.bincount(codes[order])))).astype(np.int64)
    names = (PurePath(source).name.split(".")[0] or source,)
    if schema.id is not None:
        names = tuple(frame[schema.id].map(str).drop_duplicates())
    return Panel(
        np.ascontiguousarray(merged),
        offsets,
        time.times[order],
        names,
        replace(schema, text=None, static_covariates=()),
        notes=(*time.notes, *converted, *columns.told()),
        masked=True,
    )


def _written(schema: Schema) -> list[str]:
    """Columns to be kept as they are written."""
    ids = schema.id_columns or ((schema.id,) if schema.id else ())
    times = schema.time_columns or ((schema.time,) if schema.time else ())
    return [*times, *ids, *([schema.text] if schema.text else ())]


def _known_options(schema: Schema, options: TableOptions | None) -> TableOptions:
    """Options whose columns are the schema's, and whose times are written as the schema says."""
    ids = schema.id_columns or ((schema.id,) if schema.id else ())
    own = schema.time_format is None or is_own_format(schema.time_format)
    options = options or TableOptions()
    local = schema.time_format is not None and not names_offset(schema.time_format)
    return options.model_copy(
        update={
            "id": ids,
            "time": (),
            "target": (),
            "time_format": None if own else schema.time_format,
            "tz": options.tz or (schema.zone if local else None),
        }
    )


def _arranged(
    frame: pd.DataFrame, schema: Schema, options: TableOptions, source: str
) -> tuple[pd.DataFrame, tuple[Finding, ...]]:
    if any(name in frame.columns for name in schema.columns):
        return frame, ()
    return arrange(frame, options, source)


def _require(frame: pd.DataFrame, name: str, source: str, remedy: str) -> None:
    try:
        require(frame, [name], source)
    except DataError as error:
        raise DataError(f"{error}; {remedy}", finding=error.finding) from None


def _with_known_id(frame: pd.DataFrame, schema: Schema, source: str) -> pd.DataFrame:
    """The table with the column of ids that the schema names."""
    if schema.id is None or schema.id in frame.columns:
        return frame
    for name in schema.id_columns or (schema.id,):
        remedy = f"the model tells its series apart by {schema.id!r}: add it, a new name for a new series"
        _require(frame, name, source, remedy)
    return with_id(frame, schema.id_columns)[0]


def _columns(frame: pd.DataFrame, time: TimeColumn, schema: Schema, options: TableOptions, source: str) -> Columns:
    wanted = [name for name in (*schema.columns, *schema.static_covariates) if name in frame.columns]
    decimal = decimal_of(frame[wanted], options) or schema.decimal  # few rows may leave it open
    return Columns(frame, time.times, series_codes(frame, schema.id), options, decimal, source)


def _ignored(frame: pd.DataFrame, schema: Schema, time: TimeColumn) -> list[Finding]:
    known = {*_written(schema), schema.id, *schema.columns, *schema.static_covariates, *time.columns}
    extra = [name for name in frame.columns if name not in known and not name.startswith("Unnamed: ")]
    if not extra:
        return []
    return [Finding("ignored", f"ignored columns that the model does not know: {listed(extra)}", count=len(extra))]


def _known_time(
    frame: pd.DataFrame, schema: Schema, options: TableOptions, source: str
) -> tuple[TimeColumn, Sequence[Finding]]:
    if schema.time is None:
        return TimeColumn(None, pd.RangeIndex(len(frame)), None, (), ()), ()
    joined = schema.time_columns if all(name in frame.columns for name in schema.time_columns) else ()
    if not joined and schema.time not in frame.columns and isinstance(frame.index, pd.DatetimeIndex | pd.PeriodIndex):
        name = index_name(frame, source)
        column = read_time(frame.index.to_frame(name=name).set_axis(range(len(frame))), (name,), options, source)
    else:
        require(frame, joined or [schema.time], source)
        if schema.time_columns:
            options = options.model_copy(update={"time_format": schema.read_format if joined else None})
        # A whole number is a year only where the schema says so.
        if schema.time_format == "%Y":
            options = options.model_copy(update={"time_format": "%Y"})
        plain = not isinstance(schema.frequency, str)
        column = read_time(frame, joined or (schema.time,), options, source, plain=plain)
    times = column.times
    if isinstance(times, pd.DatetimeIndex) != isinstance(schema.frequency, str):
        raise DataError(
            f"{source}: column {schema.time!r} does not hold the kind of times that the model knows, "
            f"with frequency {schema.frequency!r}"
        )
    zone = zone_name(times.tz) if isinstance(times, pd.DatetimeIndex) and times.tz is not None else None
    if (zone is None) != (schema.zone is None):
        known = f"times in zone {schema.zone}" if schema.zone else "local times without a zone"
        raise DataError(f"{source}: column {schema.time!r} is in zone {zone}, the model was fitted on {known}")
    if zone != schema.zone and isinstance(times, pd.DatetimeIndex):
        note = Finding("zone", f"times were converted from zone {zone} to {schema.zone}")
        return replace(column, times=times.tz_convert(schema.zone)), [note]
    return column, ()
