"""Tables in: a DataFrame or a file becomes a panel, by the same stages and with the same checks.

What is unambiguous is done and said in the panel's notes; what is not is refused with the place and the remedy.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import IO, Any

import pandas as pd

from tsformer.data.cells import as_text, listed, require
from tsformer.data.files import find_table, source_name, write_table
from tsformer.data.forecast_table import forecast_frame
from tsformer.data.new_rows import future_panel, panel_with_schema, read_panel
from tsformer.data.panel import Panel, Schema
from tsformer.data.rows import finish
from tsformer.data.table_options import TableOptions
from tsformer.data.wall import zone_name
from tsformer.errors import DataError, UsageError
from tsformer.findings import Finding
from tsformer.tables.border import to_pandas
from tsformer.tables.decimals import decimal_of
from tsformer.tables.files import read_file, read_table
from tsformer.tables.ids import find_ids, series_codes, with_id
from tsformer.tables.layout import arrange
from tsformer.tables.roles import Columns
from tsformer.tables.times import find_time, read_time

__all__ = [
    "find_table",
    "forecast_frame",
    "future_panel",
    "load_panel",
    "panel_from_frame",
    "panel_with_schema",
    "read_panel",
    "read_table",
    "source_name",
    "write_table",
]


def load_panel(source: str | os.PathLike[str] | IO[Any], options: TableOptions | None = None) -> Panel:
    """A file as a panel: `read_file`, then `panel_from_frame`. Only the columns that matter are read, if all are named.

    Raises:
        DataError, UsageError, ResourceError: what is wrong, in one line.
    """
    options = options or TableOptions()
    text = [*options.time, *options.id, *([options.text] if options.text else ())]
    table = read_file(source, options, columns=_needed(options), text=text)
    panel = panel_from_frame(table.frame, options, source=source_name(source))
    return replace(panel, notes=(*table.notes, *panel.notes))


def panel_from_frame(frame: Any, options: TableOptions | None = None, *, source: str = "table") -> Panel:
    """A table as a panel of target columns, with covariates and a text in each row where they are named.

    Args:
        frame: from `read_file`, or a table of pandas, polars, pyarrow: one row for each time (and series) in any order,
            or a layout that `tables.layout` turns into that.
        options: what its columns are, and what is done about what is missing.
        source: what messages call the table.

    Returns:
        a panel with series in order of appearance, rows in order of time, and one frequency.

    Raises:
        DataError: one line that says what is wrong, where, and what to do. UsageError: when columns are named twice.
    """
    options = options or TableOptions()
    frame = to_pandas(frame, source)
    frame, arranged = arrange(frame, options, source)
    index_is_time = isinstance(frame.index, pd.DatetimeIndex | pd.PeriodIndex) and options.time == (frame.index.name,)
    named = _named(options, () if index_is_time else options.time)
    require(frame, [*named, *options.static_covariates], source)
    if options.time and not index_is_time:
        time = read_time(frame, options.time, options, source)
    else:
        time = find_time(frame, named, options, source)
    notes = [*arranged, *time.notes]
    if time.name is None:
        notes.append(Finding("no_time", "no column of times found: rows are taken in the order of the table"))
    ids = options.id or find_ids(frame, time.times, [*named, *options.static_covariates, *time.columns], source)
    frame, id = with_id(frame, ids)
    if id is not None:
        _check_ids(frame, id, source)
    if ids and not options.id and not arranged:
        notes.append(Finding("id", f"series are told apart by {listed(ids)}: {frame[id].nunique()} of them"))
    others = {*time.columns, *ids, *([id] if id else ()), *([options.text] if options.text else ())}
    cells = frame.drop(columns=[name for name in others if name in frame.columns])
    columns = Columns(frame, time.times, series_codes(frame, id), options, decimal_of(cells, options), source)
    covariates = (*options.past_covariates, *options.future_covariates)
    targets = columns.targets({*others, *covariates, *options.static_covariates})
    values = [*targets.values(), *columns.covariates(covariates).values()]
    schema = Schema(
        tuple(targets),
        time.name,
        id,
        past_covariates=options.past_covariates,
        future_covariates=options.future_covariates,
        zone=_zone(time.times),
        time_format=time.time_format,
        text=options.text,
        static_covariates=options.static_covariates,
        id_columns=ids if len(ids) > 1 else (),
        calendar=options.calendar,
        holidays=options.holidays,
        time_columns=time.columns if len(time.columns) > 1 else (),
        decimal=columns.decimal,
        read_format=time.read_format,
        policies=options.policies(),
    )
    return finish(columns, values, schema, notes, infer=True)


def _needed(options: TableOptions) -> list[str] | None:
    """The columns to read: all (None) unless targets, time and id are named, so that none is to be found."""
    if not (options.target and options.time and options.id):
        return None
    return [*_named(options, options.time), *options.static_covariates]


def _named(options: TableOptions, time: Sequence[str]) -> list[str]:
    """The columns that the user names, each once.

    Raises:
        UsageError: when one is named for two purposes.
    """
    text = [options.text] if options.text else []
    parts = (time, options.id, text, options.target, options.past_covariates, options.future_covariates)
    named = [name for part in parts for name in part]
    repeated = next((name for i, name in enumerate(named) if name in named[:i]), None)
    if repeated is not None:
        raise UsageError(
            f"column {repeated!r} is named twice: time, id, text, targets and covariates are different columns"
        )
    return named


def _check_ids(frame: pd.DataFrame, id: str, source: str) -> None:
    for name in frame[id].drop_duplicates():
        as_text(name, "series", source)
    if len(frame) > 2 and frame[id].nunique() == len(frame):
        raise DataError(
            f"{source}: column {id!r} names {len(frame)} series of one row each, but a row for each time of a series "
            f"is needed: DataFrame.melt({id!r}).dropna() in pandas turns a table that has a series in each row"
        )


def _zone(times: pd.Index) -> str | None:
    return zone_name(times.tz) if isinstance(times, pd.DatetimeIndex) and times.tz is not None else None
