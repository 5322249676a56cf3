"""The time of each row: found in a table or read from the columns that the user names, on the evidence of all rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tsformer.data.cells import listed, place, plain_numbers
from tsformer.data.clock import check_format, in_any_zone
from tsformer.data.columns import free_name, index_name, is_date_name, is_time_name, rank
from tsformer.data.table_options import TableOptions
from tsformer.errors import DataError
from tsformer.findings import Finding
from tsformer.tables.ids import find_ids
from tsformer.tables.time_cells import cells_of, read_cells
from tsformer.tables.time_choice import tell_the_same
from tsformer.tables.time_claims import (
    about_numbers,
    claim_of,
    dates_in,
    keeps_zeros,
    number_format,
    numbered,
    refuse_unread,
)
from tsformer.tables.time_parts import find_clock, find_parts, parts_format, written_together
from tsformer.tables.zones import check_zone, come_twice, localised


@dataclass(frozen=True)
class TimeColumn:
    """The times of a table.

    Attributes:
        name: what the time is called in tables that are written; None when rows are only in order.
        times: `[rows]`, dates in microseconds, aware if their zone is known, or numbers.
        time_format: the format of `data.clock` that writes them again; None for dates in memory and for numbers.
        columns: the columns of the table that they were made of.
        notes: what was decided on the way.
        read_format: the format that reads the columns joined by blanks, where that is another one.
    """

    name: str | None
    times: pd.Index
    time_format: str | None
    columns: tuple[str, ...]
    notes: tuple[Finding, ...] = ()
    read_format: str | None = None


def read_time(
    frame: pd.DataFrame, names: Sequence[str], options: TableOptions, source: str, *, plain: bool = False
) -> TimeColumn:
    """The times in a column, or in several that make one together: dates, text, years, digits, or plain numbers.

    Args:
        names: the columns; cells of several are joined by blanks, in that order.
        plain: numbers are never dates.

    Raises:
        DataError: at the first cell that is no time, when the order of day and month would be a guess, or at a local
            time that its zone skips. UsageError: for a format or a zone that is none.
    """
    if options.tz is not None:
        check_zone(options.tz)
    if len(names) > 1:
        return _in_zone(_joined(frame, names, options, source), frame, options, source)
    return _in_zone(_single(frame, names[0], options, source, plain=plain), frame, options, source)


def find_time(frame: pd.DataFrame, taken: Collection[str], options: TableOptions, source: str) -> TimeColumn:
    """The time where the user names no column: an index of dates; a column that holds times throughout, perhaps with a
    time of day beside it; year, month and day in columns of their own; years in a column called like a time, or a
    regular counter in one (t, time, step, ds). Without any, rows are in order.

    Args:
        taken: columns that are something else.

    Raises:
        DataError: when several columns have equal claims, the only one that looks like times cannot be read, or,
            unless the user names targets, a column is called like a time and holds irregular numbers.
    """
    if options.tz is not None:
        check_zone(options.tz)
    if isinstance(frame.index, pd.DatetimeIndex | pd.PeriodIndex):
        name = index_name(frame, source)
        return read_time(frame.index.to_frame(name=name).set_axis(range(len(frame))), (name,), options, source)
    if options.time_format is not None:
        check_format(options.time_format)
    found: dict[str, TimeColumn] = {}
    doubtful: list[str] = []
    for name in (column for column in frame.columns if column not in taken):
        claim = claim_of(frame[name], name, options)
        if claim:
            try:
                found[name] = _single(frame, name, options, source, plain=False)
            except DataError:
                doubtful += [name] * (claim == "good" or is_date_name(name))
    best = {name: column for name, column in found.items() if is_time_name(name)} or found
    if best and (any(map(is_time_name, best)) or not any(map(is_date_name, doubtful))):
        chosen = _with_clock(frame, _chosen(best, source), taken, options, source)
        return _in_zone(chosen, frame, options, source)
    parts = find_parts(frame, taken) if options.time_format is None else ()
    if parts:
        return read_time(frame, parts, options, source)
    if options.time_format is not None and not doubtful:
        raise DataError(
            f"{source} has no column of times written as {options.time_format!r}: name the column with --time"
        )
    for name in sorted(doubtful, key=lambda name: not is_time_name(name)):
        joined = _together(frame, name, taken, options, source)
        return _in_zone(joined, frame, options, source) if joined else read_time(frame, (name,), options, source)
    numbers, kind = numbered(frame, taken, source, chosen=bool(options.target))
    if numbers is None:
        if not options.target:
            refuse_unread(frame, taken, source)
        return TimeColumn(None, pd.RangeIndex(len(frame)), None, ())
    return read_time(frame, (numbers,), options, source, plain=kind == "counter")


def _single(frame: pd.DataFrame, name: str, options: TableOptions, source: str, *, plain: bool) -> TimeColumn:
    dates = dates_in(frame, name, source)
    if dates is not None:
        return TimeColumn(name, dates, None, (name,))
    cells = cells_of(frame, (name,), source)
    values = None if cells.intervals or keeps_zeros(cells.text) else plain_numbers(cells.text)
    if values is None or options.time_format is not None:
        times, time_format, notes = read_cells(cells, options)
        return TimeColumn(name, times.take(cells.codes), time_format, (name,), tuple(notes))
    known = None if plain else number_format(name, values[cells.codes], values)
    if known is None:
        return TimeColumn(name, pd.Index(values[cells.codes]), None, (name,))
    if known == "%s" and cells.text.str.contains(".", regex=False).any():
        known = "%s.%f"  # whole seconds, written with a fraction all the same
    times, time_format, _ = read_cells(cells, options.model_copy(update={"time_format": known}))
    notes = about_numbers(name, cells.text[0], times, time_format)
    return TimeColumn(name, times.take(cells.codes), time_format, (name,), tuple(notes))


def _joined(frame: pd.DataFrame, names: Sequence[str], options: TableOptions, source: str) -> TimeColumn:
    """The time that several columns make together, written as one in ISO."""
    cells = cells_of(frame, names, source)
    known = options.time_format or parts_format(frame, names)
    times, read_format, notes = read_cells(cells, options.model_copy(update={"time_format": known}))
    written = written_together(read_format) + ("%:z" if times.tz is not None else "")
    name = names[0] if parts_format(frame, names) is None else free_name(frame)
    text = f"columns {listed(names)} are one time together, called {name!r}"
    return TimeColumn(
        name, times.take(cells.codes), written, tuple(names), (Finding("joined", text), *notes), read_format
    )


def _with_clock(
    frame: pd.DataFrame, chosen: TimeColumn, taken: Collection[str], options: TableOptions, source: str
) -> TimeColumn:
    """Dates with the time of day that stands in a column beside them, if one does."""
    times = chosen.times
    if not isinstance(times, pd.DatetimeIndex) or chosen.time_format is None or options.time_format is not None:
        return chosen
    if times.tz is not None or not (times == times.normalize()).all():
        return chosen
    return _together(frame, chosen.columns[0], taken, options, source) or chosen


def _together(
    frame: pd.DataFrame, name: str, taken: Collection[str], options: TableOptions, source: str
) -> TimeColumn | None:
    clock = find_clock(frame, {*taken, name})
    if clock is None:
        return None
    try:
        return _joined(frame, (name, clock), options, source)
    except DataError:
        return None


def _chosen(best: dict[str, TimeColumn], source: str) -> TimeColumn:
    """One of several columns of times: the finest and first, where all tell the same time."""

    def order(name: str) -> tuple[bool, bool, tuple[int, bool]]:
        column = best[name]
        times = pd.DatetimeIndex(column.times)
        number = any(note.kind == "number" for note in column.notes)
        return bool((times == times.normalize()).all()), number, rank(name)

    names = sorted(best, key=order)
    chosen = best[names[0]]
    others = [name for name in names[1:] if not tell_the_same(chosen.times, best[name].times)]
    if others:
        first = next(iter(best))
        remedy = f"choose one, --time {first}"
        text = f"{source} has {len(best)} columns of times ({listed(list(best))}): {remedy}"
        options = {"data.time": [first]}
        raise DataError(
            text,
            finding=Finding("time_columns", text, "fault", others[0], count=len(best), remedy=remedy, options=options),
        )
    if len(names) == 1:
        return chosen
    text = f"columns {listed(list(best))} tell the same time: {names[0]} is taken (--time chooses)"
    return replace(chosen, notes=(*chosen.notes, Finding("time_columns", text, column=names[0], count=len(best))))


def _in_zone(column: TimeColumn, frame: pd.DataFrame, options: TableOptions, source: str) -> TimeColumn:
    """The times in the zone that the user names, if any."""
    times = column.times
    if options.tz is None or not isinstance(times, pd.DatetimeIndex) or column.name is None:
        return column
    if times.tz is not None:
        time_format = column.time_format and in_any_zone(column.time_format)
        return replace(column, times=times.tz_convert(options.tz), time_format=time_format)
    local = localised(times, options.tz, _series(frame, column, options, source))
    skipped = np.asarray(local.times.isna())
    if skipped.any():
        first, count = int(skipped.argmax()), int(skipped.sum())
        row, remedy = place(frame, first), "choose another --tz, or correct the rows"
        text = (
            f"{source}: column {column.name!r} has {count} time(s) that the clocks of {options.tz} skip, the first "
            f"{times[first]} in {row}: {remedy}"
        )
        raise DataError(text, finding=Finding("skipped_time", text, "fault", column.name, row, count, remedy=remedy))
    if not local.once:
        return replace(column, times=local.times)
    text = f"{local.once} time(s) that come twice when clocks in {options.tz} go back stand once: taken as before that"
    return replace(column, times=local.times, notes=(*column.notes, Finding("once", text, count=local.once)))


def _series(frame: pd.DataFrame, column: TimeColumn, options: TableOptions, source: str) -> np.ndarray:
    """A number for the series of each row, int64 `[rows]`: those that the user names, or that the table tells apart."""
    names: Sequence[str] = [name for name in options.id if name in frame.columns]
    twice = come_twice(pd.DatetimeIndex(column.times), str(options.tz))
    if not names and twice.any():
        # Times that the clock repeats say nothing about the number of series.
        others = (*options.target, *options.past_covariates, *options.future_covariates, *options.static_covariates)
        taken = [*column.columns, *others, *([options.text] if options.text else ())]
        names = find_ids(frame[~twice], column.times[~twice], taken, source)
    if not names:
        return np.zeros(len(frame), dtype=np.int64)
    return frame.groupby(list(names), sort=False, dropna=False).ngroup().to_numpy().astype(np.int64)
