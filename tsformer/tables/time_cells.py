"""The distinct cells of a column of times, or of several that make one together, and how they are read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tsformer.data.cells import listed, place, plain_numbers
from tsformer.data.clock import OFFSET, as_written, check_format, is_own_format, is_week, show
from tsformer.data.columns import is_week_name
from tsformer.data.stamps import UnreadableTimeError, read_written
from tsformer.data.table_options import TableOptions
from tsformer.errors import DataError
from tsformer.findings import Finding
from tsformer.tables.time_formats import is_interval, readings, start_of
from tsformer.tables.time_intervals import starts_of
from tsformer.tables.time_order import Reading, decided, is_day_first

_SAMPLE = 100
_AHEAD = 5
"""Years from now that a table may look ahead."""
_MIDNIGHT = re.compile(r"(?<!\d)24[:.h]?00|[ T]24$")


@dataclass(frozen=True)
class TimeCells:
    """Cells of times.

    Attributes:
        names: the columns, of which each cell is joined by blanks.
        codes: of each row the distinct cell, int64 `[rows]`.
        text: the distinct cells as text, of intervals the starts, in order of appearance.
        frame: the table, for the places in messages.
        source: what messages call it.
        intervals: how many of the distinct cells are intervals.
    """

    names: tuple[str, ...]
    codes: np.ndarray
    text: pd.Series
    frame: pd.DataFrame
    source: str
    intervals: int

    @property
    def column(self) -> str:
        return f"column {self.names[0]!r}" if len(self.names) == 1 else f"columns {listed(self.names)}"

    @property
    def where(self) -> str:
        return f"{self.source}: {self.column}"

    def fault(self, kind: str, text: str, cell: int, count: int, remedy: str) -> DataError:
        """What is wrong with a distinct cell, and with `count` rows like it."""
        row = place(self.frame, int((self.codes == cell).argmax()))
        line = f"{self.source}: {self.column}, {row}: {text}{f' ({count} such rows)' if count > 1 else ''}: {remedy}"
        finding = Finding(
            kind, line, "fault", column=self.names[0], row=row, count=count, example=self.text[cell], remedy=remedy
        )
        return DataError(line, finding=finding)


def cells_of(frame: pd.DataFrame, names: Sequence[str], source: str) -> TimeCells:
    """The cells of columns, each once.

    Raises:
        DataError: when some rows have none.
    """
    codes, text = np.zeros(len(frame), dtype=np.int64), pd.Series([""], dtype=object)
    for i, name in enumerate(names):
        check_filled(frame, name, source)
        mine, found = _distinct(frame[name])
        codes, pairs = pd.factorize(codes * len(found) + mine)
        heads, tails = text.iloc[pairs // len(found)], found.iloc[pairs % len(found)]
        text = pd.Series(tails.array if i == 0 else heads.to_numpy() + " " + tails.to_numpy(), dtype=object)
    sample = text.iloc[np.linspace(0, len(text) - 1, min(len(text), _SAMPLE)).astype(np.int64)]
    intervals = 0
    if any(start_of(cell) != cell for cell in sample):
        intervals = sum(map(is_interval, text))
        text = text.map(start_of)
    starts = starts_of(text)
    if starts is not None:
        intervals, text = len(text), starts
    return TimeCells(tuple(names), codes.astype(np.int64), text, frame, source, intervals)


def read_cells(cells: TimeCells, options: TableOptions) -> tuple[pd.DatetimeIndex, str, list[Finding]]:
    """Times of the distinct cells, the format that writes them again, and what was decided.

    Raises:
        DataError: at the first cell that is no time, or when the order of day and month would be a guess.
    """
    notes: list[Finding] = []
    if options.time_format is not None:
        check_format(options.time_format)
        try:
            times = read_written(cells.text, options.time_format)
        except UnreadableTimeError as fault:
            raise _unreadable(cells, fault, "correct it, or the --time-format") from None
        time_format = options.time_format
    else:
        try:
            found = readings(cells.text, weeks=any(map(is_week_name, cells.names)))
        except UnreadableTimeError as fault:
            remedy = "correct it, or say how times are written with --time-format '%d.%m.%Y %H:%M'"
            raise _unreadable(cells, fault, remedy) from None
        time_format, times = _chosen(cells, found, options, notes)
        if "%y" in time_format:
            notes.append(_about_century(cells, times, time_format))
    time_format = as_written(cells.text, time_format)
    if cells.intervals:
        text = f"{cells.column}: of intervals (A - B) the start is the time, {cells.text[0]} in the first"
        notes.append(Finding("interval", text, column=cells.names[0], count=cells.intervals))
    midnight = np.asarray(times == times.normalize()) & bool(re.search("%-?H", time_format))
    late = sum(bool(_MIDNIGHT.search(cell)) for cell in cells.text[midnight])
    if late:
        text = f"{cells.column}: 24:00 is 00:00 of the next day"
        notes.append(Finding("midnight", text, column=cells.names[0], count=late))
    if is_week(time_format) and any(map(is_week_name, cells.names)) and "W" not in time_format:
        text = f"{cells.column}: {cells.text[0]} is read as week {times[0]:%V of %G} (ISO), its Monday {show(times[0])}"
        notes.append(Finding("week", text, column=cells.names[0], example=cells.text[0]))
    if times.tz is not None and "%s" not in time_format:
        notes += _about_offsets(cells, options)
    return times, time_format, notes


def _chosen(cells: TimeCells, found: list[Reading], options: TableOptions, notes: list[Finding]) -> Reading:
    """One of several readings: the one that the user asks for, or that the rows bear out."""
    if options.dayfirst is not None:
        asked = [reading for reading in found if is_day_first(reading[0]) in (options.dayfirst, None)]
        if not asked:
            flag = "--dayfirst" if options.dayfirst else "--no-dayfirst"
            remedy = f"leave {flag} out"
            raise cells.fault("dayfirst", f"{flag} goes with no date like {cells.text[0]!r}", 0, 1, remedy)
        found = asked
    reading = decided(found)
    if reading is None:
        raise _ambiguous(cells, found)
    order = is_day_first(reading[0])
    if options.dayfirst is None and order is not None and not is_own_format(reading[0]):
        swaps = len(found) > 1
        at = int((reading[1].day <= 12).argmax())
        why = "only so the rows follow each other regularly" if swaps else "the only order that all cells allow"
        first = "day" if order else "month"
        text = f"{cells.column}: {cells.text[at]} is read as {show(reading[1][at])}, {first} first: {why}"
        notes.append(Finding("dayfirst", text, column=cells.names[0], example=cells.text[at]))
    return reading


def _ambiguous(cells: TimeCells, found: list[Reading]) -> DataError:
    flags = {is_day_first(time_format) for time_format, _ in found}
    remedy = "--dayfirst or --no-dayfirst says which" if flags == {True, False} else "--time-format says which"
    apart = int(np.asarray(found[0][1] != found[1][1]).argmax())
    ways = [f"{show(times[apart])} ({time_format!r})" for time_format, times in found]
    text = f"{cells.text[apart]!r} may be {' or '.join(ways)}, and no row tells"
    return cells.fault("dayfirst", text, apart, 1, remedy)


def _about_century(cells: TimeCells, times: pd.DatetimeIndex, time_format: str) -> Finding:
    """What years of two digits are taken for.

    Raises:
        DataError: when some would be far ahead, so that they are rather those of another century.
    """
    first, last = int(times.argmin()), int(times.argmax())
    text = f"{cells.text[last]!r} is read as {show(times[last])}: years of two digits are those of 1950 to 2049"
    if times[last].year > pd.Timestamp.now().year + _AHEAD:
        remedy = f"write years with four digits, or say --time-format {time_format!r} if they are meant so"
        raise cells.fault("century", text, last, int((times.year == times[last].year).sum()), remedy)
    text = f"{cells.column}: years of two digits are {times[first].year} to {times[last].year}"
    return Finding("century", text, column=cells.names[0], example=cells.text[last])


def _unreadable(cells: TimeCells, fault: UnreadableTimeError, remedy: str) -> DataError:
    text = f"{cells.text[fault.row]!r} {fault.why}"
    count = max(fault.count, int((cells.codes == fault.row).sum()))
    return cells.fault("unreadable_time", text, fault.row, count, remedy)


def _about_offsets(cells: TimeCells, options: TableOptions) -> list[Finding]:
    offsets = cells.text.str.extract(rf"({OFFSET})$", expand=False).str.strip().unique()
    if len(offsets) < 2 or options.tz is not None:
        return []
    found = listed(sorted(map(str, offsets)))
    text = f"{cells.column}: offsets from UTC differ ({found}): times are kept in UTC (or in --tz)"
    return [Finding("offsets", text, column=cells.names[0], count=len(offsets))]


def check_filled(frame: pd.DataFrame, name: str, source: str) -> None:
    """Raise DataError where a row has no time in a column, or blanks only."""
    column = frame[name]
    empty = column.isna().to_numpy()
    if column.dtype == object or pd.api.types.is_string_dtype(column):
        empty = empty | (column == "").fillna(False).to_numpy(dtype=bool)
    if not empty.any():
        return
    row, count, remedy = place(frame, int(empty.argmax())), int(empty.sum()), "complete or remove them"
    text = f"{source}: column {name!r} has no time in {count} row(s), the first in {row}: {remedy}"
    raise DataError(text, finding=Finding("no_time", text, "fault", name, row, count, remedy=remedy))


def _distinct(column: pd.Series) -> tuple[np.ndarray, pd.Series]:
    """Of each row the distinct cell, and these as text: whole numbers without a point."""
    try:
        codes, found = pd.factorize(column)
    except TypeError:  # lists and the like
        codes, found = pd.factorize(column.map(str))
    values = pd.Series(found)
    numbers = None if all(isinstance(cell, str) for cell in found) else plain_numbers(values)
    if numbers is not None and (numbers == np.rint(numbers)).all():
        values = pd.Series(numbers.astype(np.int64))
    return codes, pd.Series([str(cell).strip() for cell in values.tolist()], dtype=object)
