"""Rows of a table put together as series: grouped, in order of time, at one frequency, with nothing missing unsaid."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

import numpy as np
import pandas as pd

from tsformer.data.cells import LINE, as_text, place
from tsformer.data.duplicates import refuse_series_in_one, settle_duplicates
from tsformer.data.frequency import check_times, normalise
from tsformer.data.gaps import settle_gaps, taken_as_holidays
from tsformer.data.grid import Frequency, inside_series
from tsformer.data.missing import check_columns, leave_out, settle_missing
from tsformer.data.panel import Panel, Schema
from tsformer.data.partial_steps import without_partial
from tsformer.data.regularity import closed_weekdays, common_frequency, regular_grid, without_closed_days
from tsformer.data.resampling import brought_to, said
from tsformer.data.sorted_rows import Rows
from tsformer.data.table_options import TableOptions
from tsformer.data.wall import as_numbers
from tsformer.errors import DataError, UsageError
from tsformer.findings import Finding

_HALF_CHARACTER = re.compile("[\ud800-\udfff]")  # of a surrogate pair


def assemble(
    frame: pd.DataFrame,
    values: Sequence[np.ndarray],
    times: pd.Index,
    schema: Schema,
    notes: Sequence[Finding | str],
    source: str,
    *,
    infer: bool,
    options: TableOptions | None = None,
) -> Panel:
    """Rows grouped by series, put in order of time, and settled by the policies.

    Args:
        frame: the table, for the columns of ids and of texts, and for messages.
        values: one float64 `[rows]` for each of the schema's columns, NaN where one is missing.
        times: of each row, `[rows]`.
        schema: what is known; with `infer` its frequency is found, otherwise the rows are checked against it.
        notes: what the user should hear of.
        source: what messages call the table.
        options: the frequency to which times are brought, and what is done about duplicates, gaps and missing values;
            None refuses them all.

    Raises:
        DataError: on times that repeat within a series, gaps, irregular steps, several frequencies and missing values,
            unless the options say what is done; on numbers that are too large or too small to compute with, and texts
            that no file can hold. UsageError: for options that do not go together.
    """
    options = options or TableOptions()
    rows, found = _in_order(frame, values, times, schema, source, read_again=infer and not options.id)
    check_columns(rows)
    if options.missing == "drop":
        if options.gaps == "fill":
            raise UsageError("--gaps fill adds rows without values, which --missing drop leaves out: --gaps split")
        rows, more = leave_out(rows)
        found += more
    step = None if options.freq is None else _chosen_frequency(options.freq, rows) if infer else schema.frequency
    if step is not None:
        if options.duplicates == "error":
            refuse_series_in_one(rows, fitted=not infer)
        rows, more = _brought_to(rows, step)
        found += more
        rows, more = without_partial(rows)
        found += more
    rows, more = settle_duplicates(rows, options.duplicates, step=step, fitted=not infer)
    found += more
    frequency = _frequency(rows, step, infer=infer)
    rows, more = without_closed_days(rows, frequency)
    found += more
    if infer and step is None:
        found += closed_weekdays(rows, frequency)
    grid = regular_grid(rows, frequency, options.gaps, fitted=not infer)
    found += taken_as_holidays(rows, grid)
    rows, more = settle_gaps(rows, grid, options.gaps)
    found += more
    rows, more = settle_missing(rows, options.missing)
    found += more
    return Panel(
        np.ascontiguousarray(rows.values),
        rows.offsets,
        rows.times,
        rows.ids,
        schema if schema.time is None else replace(schema, frequency=frequency),
        notes=(*notes, *found),
        texts=None if schema.text is None else _texts(rows),
        masked=bool(np.isnan(rows.values).any()),
        breaks=np.setdiff1d(np.flatnonzero(rows.fresh), rows.offsets),
    )


def _in_order(
    frame: pd.DataFrame,
    values: Sequence[np.ndarray],
    times: pd.Index,
    schema: Schema,
    source: str,
    *,
    read_again: bool,
) -> tuple[Rows, list[Finding]]:
    """Rows by series, in order of appearance, and time; what repeats stays in the order of the table."""
    codes, ids = _series(frame, schema, source, read_again=read_again)
    offsets = np.concatenate(([0], np.cumsum(np.bincount(codes)))).astype(np.int64)
    inside = inside_series(offsets)
    order = np.argsort(codes, kind="stable")
    found: list[Finding] = []
    if schema.time is None:
        times = pd.Index(np.arange(len(frame), dtype=np.int64) - np.repeat(offsets[:-1], np.diff(offsets)))
    else:
        check_times(times)
        keys = as_numbers(times)
        back = inside & (np.diff(keys[order]) < 0)
        if back.any():
            order = np.lexsort((keys, codes))
            how = "newest first" if back.sum() == inside.sum() else f"not ascending in {int(back.sum())} place(s)"
            text = f"rows were {how}: sorted by {schema.time!r}"
            found.append(Finding("sorted", text, column=schema.time, count=int(back.sum())))
        times = times[order]
    table = np.column_stack(values)[order].astype(np.float64, copy=False)
    fresh = np.zeros(len(frame), dtype=bool)
    return Rows(frame, source, schema, ids, offsets, times, table, order, fresh), found


def _series(
    frame: pd.DataFrame, schema: Schema, source: str, *, read_again: bool
) -> tuple[np.ndarray, tuple[str, ...]]:
    """A number for each row's series, in order of appearance, and the names.

    Args:
        read_again: --id, which takes cells as they are written, would read a file in another way.
    """
    id = schema.id
    if id is None:
        return np.zeros(len(frame), dtype=np.int64), (PurePath(source).name.split(".")[0] or source,)
    column = frame[id]
    if column.dtype == object:  # of several types, perhaps: 1 and "1" are written alike
        column = column.map(str, na_action="ignore")
    codes, distinct = pd.factorize(column)
    ids = tuple(as_text(name, "series", source) for name in distinct)
    blank = [code for code, name in enumerate(ids) if not name.strip()]
    empty = (codes < 0) | np.isin(codes, blank)
    if empty.any():
        remedy, options = "complete or remove them", dict[str, object]()
        if read_again and frame.index.name == LINE:
            names = list(schema.id_columns or (id,))
            remedy, options = (
                f"--id {','.join(names)} takes cells as they are written, NA among them",
                {"data.id": names},
            )
        count, where = int(empty.sum()), place(frame, int(empty.argmax()))
        text = f"{source}: column {id!r} names no series in {count} row(s), the first in {where}: {remedy}"
        found = Finding("id", text, "fault", id, where, count, remedy=remedy, options=options)
        raise DataError(text, finding=found)
    return codes.astype(np.int64), ids


def _texts(rows: Rows) -> tuple[str, ...]:
    """The text of each row; "" where a cell is missing or the row was filled in."""
    name = str(rows.schema.text)
    column = rows.frame[name]
    texts = ["" if missing else str(cell) for cell, missing in zip(column, column.isna(), strict=True)]
    broken = next((row for row, text in enumerate(texts) if _HALF_CHARACTER.search(text)), None)
    if broken is not None:
        raise DataError(
            f"{rows.source}: column {name!r} holds half of a character in {place(rows.frame, broken)}, which no file "
            "can hold: correct it"
        )
    return tuple("" if row < 0 else texts[row] for row in rows.origin)


def _chosen_frequency(freq: str, rows: Rows) -> Frequency:
    """What --freq says, in the own spelling; a number where the times are numbers."""
    times = rows.times
    if rows.schema.time is None:
        raise UsageError(
            f"--freq {freq} is the step of times, and {rows.source} has no column of times: name it, --time"
        )
    if isinstance(times, pd.DatetimeIndex):
        return normalise(freq) or freq
    try:
        step = float(freq)
    except ValueError:
        step = np.nan
    if not 0 < step < np.inf:
        raise UsageError(f"--freq {freq}: the times are numbers, so their step is a number above 0")
    return int(step) if step.is_integer() and times.dtype.kind in "iu" else step


def _brought_to(rows: Rows, frequency: Frequency) -> tuple[Rows, tuple[Finding, ...]]:
    times = brought_to(rows.times, rows.offsets, frequency)
    text, count = said(rows.times, times, frequency)
    finding = Finding("resampled", text, column=rows.schema.time, count=count)
    return replace(rows, times=times), (finding,) if count else ()


def _frequency(rows: Rows, chosen: Frequency | None, *, infer: bool) -> Frequency:
    """The model's, the chosen one, or the one that the rows take; rows that are only in order are one apart."""
    if rows.schema.time is None:
        return 1
    known = chosen if infer else rows.schema.frequency
    return common_frequency(rows) if known is None else known
