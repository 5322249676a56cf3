"""The outline of a text table, before any cell is read: its names, and on which line each row stands.

pandas fills short rows, takes long ones for an index and renames repeated columns without a word; here they are found.
"""

from __future__ import annotations

import csv
import itertools
from array import array
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TextIO

import numpy as np

from tsformer.data.cells import one_line
from tsformer.errors import DataError
from tsformer.findings import Finding
from tsformer.tables.heading import Heading, Record, heading
from tsformer.tables.markers import VALUES, has_values, kind_of

SAMPLE = 400
"""Lines from which separator and names are found: the first ones, blank ones and comments above not counted."""

_TOTALS = {
    "total",
    "totals",
    "grand total",
    "sum",
    "average",
    "mean",
    "gesamt",
    "summe",
    "总计",
    "合计",
    "合計",
    "합계",
}
_SKIPPED = {
    "blank": "row(s) without any value",
    "comment": "comment(s) that begin with #",
    "hidden": "row(s) that begin with #",
    "names": "line(s) that repeat the columns' names",
    "footer": "line(s) below the rows that are none",
}
_FOOTERS = 20  # full rows at the end of a file that are looked at


@dataclass(frozen=True)
class Outline:
    """Where the rows of a table stand.

    Attributes:
        heading: names, and what the columns hold.
        lines: of the file in which each row begins, int64 `[rows]`, up to the last with a value.
        widest: the cells of the longest row, of which those without a name are empty.
        cut: lines of the file, from 1, that hold no rows but stand between them.
        notes: what was skipped.
    """

    heading: Heading
    lines: np.ndarray
    widest: int
    cut: frozenset[int]
    notes: tuple[Finding, ...]


def outline(source: TextIO, sep: str, header: int | None, name: str) -> Outline:
    """The outline of a table.

    Args:
        source: opened with `newline=""`, at its start.
        sep: what separates cells.
        header: the line of names, from 1; 0 for none; None finds it.
        name: what messages call it.

    Raises:
        DataError: when rows have more or fewer cells than there are names, quotes do not close, there are no rows.
    """
    above, sample = _sample(source)
    records, comment = _records(above, sample, sep)
    head = heading(records, comment, header, name)
    source.seek(0)
    for _ in range(head.last - 1):
        source.readline()
    walk = _Walk(head, not _has_hashes(sample))
    walk.through(source, sep, name)
    walk.drop_footers()
    if not walk.lines:
        raise DataError(f"{name} has no rows, only the columns' names: {', '.join(head.names)[:200]}")
    if walk.odd:
        raise _uneven(name, walk.odd[0], head.names)
    lines = np.array(walk.lines, dtype=np.int64)
    return Outline(head, lines, walk.widest, walk.cut(), walk.notes())


class _Walk:
    """Through all records: rows are counted, the others are kept as blank, comment, footer, or odd."""

    def __init__(self, head: Heading, comments: bool) -> None:
        self.lines = array("q")
        self.widest = self._width = len(head.names)
        self.odd: list[Record] = []
        self._names, self._kinds, self._comments, self._above = head.names, head.kinds, comments, head.last
        self._hashes: list[Record] = []
        self._skipped: dict[str, list[tuple[Record, int]]] = {kind: [] for kind in _SKIPPED}
        self._tail: deque[tuple[int, list[str]]] = deque(maxlen=_FOOTERS)

    def through(self, source: TextIO, sep: str, name: str) -> None:
        """All records below the last one of the head, which comes first, up to an odd one that is not at the end."""
        reader = csv.reader(source, delimiter=sep, skipinitialspace=True, strict=True)
        width, lines, tail, comments = self._width, self.lines, self._tail, self._comments
        skipped, full, again = max(self._above - 1, 0), 0, self._names[0]
        try:
            if self._above:
                next(reader)
            before = skipped + reader.line_num
            for cells in reader:
                first = cells[0] if cells else ""
                if len(cells) == width and any(cells) and first != again and not (comments and first[:1] == "#"):
                    lines.append(before + 1)
                    full = len(lines)
                    tail.append((before + 1, cells))
                    if self.odd:
                        break
                elif self._other(Record(before + 1, cells)) and any(cells):
                    full = len(lines)
                before = skipped + reader.line_num
        except csv.Error as error:
            line = skipped + reader.line_num
            text = f"{name} line {line} cannot be split into cells: {one_line(error)}; check its quotes"
            raise DataError(text, finding=Finding("quotes", text, "fault", row=f"line {line}")) from None
        del lines[full:]

    def _other(self, record: Record) -> bool:
        """Whether it is a row after all."""
        cells, width = record.cells, self._width
        if not any(cell.strip() for cell in cells):
            if width == 1 and self.lines:  # in a table of one column a blank line is a missing value
                self.lines.append(record.line)
                return True
            self._skipped["blank"].append((record, len(self.lines)))
            return False
        if self._comments and cells[0].startswith("#"):
            if self._is_row_with_hash(cells):
                self._hashes.append(record)
                self.lines.append(record.line)
                return True
            hidden = self._has_all_values([cells[0].lstrip("# "), *cells[1:]])
            self._skipped["hidden" if hidden else "comment"].append((record, len(self.lines)))
            return False
        if cells[0] == self._names[0] and [one_line(cell) for cell in cells[:width]] == list(self._names):
            self._skipped["names"].append((record, len(self.lines)))
            return False
        if len(cells) >= width and not any(cells[width:]):
            self.lines.append(record.line)
            self.widest = max(self.widest, len(cells))
            return True
        self.odd.append(record)
        return False

    def _is_row_with_hash(self, cells: Sequence[str]) -> bool:
        """A name that begins with # beside values; "# a remark" has a blank, and is none where values would stand."""
        return self._kinds[0] not in VALUES and not cells[0][1:2].isspace() and self._has_all_values(cells)

    def _has_all_values(self, cells: Sequence[str]) -> bool:
        """Whether there is a value, or nothing, in each column of values."""
        kinds = [kind_of(cell) for cell, column in zip(cells, self._kinds, strict=False) if column in VALUES]
        return len(cells) == self._width and bool(VALUES & set(kinds)) and VALUES | {"empty"} >= set(kinds)

    def drop_footers(self) -> None:
        """Remarks at the end are no rows: lines of words where the rows have values, and totals."""
        last = self.lines[-1] if self.lines else 0
        if all(record.line > last and self._is_footer(record) for record in self.odd):
            self._skipped["footer"] += [(record, len(self.lines)) for record in self.odd]
            self.odd = []
        while not self.odd and len(self.lines) > 1 and self._tail and self._is_footer(Record(*self._tail[-1])):
            self._skipped["footer"].insert(0, (Record(*self._tail.pop()), len(self.lines)))
            self.lines.pop()

    def _is_footer(self, record: Record) -> bool:
        kinds = [kind_of(cell) for cell in record.cells]
        valued = [column in VALUES for column in self._kinds]
        if kinds[0] == "word" and valued[0] and len(record.cells) < self._width:
            return True
        if not has_values(record.cells):
            misplaced = any(kind == "word" and column for kind, column in zip(kinds, valued, strict=False))
            return misplaced or (len(record.cells) < self._width and kinds[0] == "word")
        return valued[0] and record.cells[0].strip(" :").lower() in _TOTALS

    def cut(self) -> frozenset[int]:
        between = [
            record
            for kind in ("blank", "comment", "hidden", "names")
            for record, rows in self._skipped[kind]
            if 0 < rows < len(self.lines) and record.cells
        ]
        return frozenset(record.line for record in between)

    def notes(self) -> tuple[Finding, ...]:
        rows = len(self.lines)
        found = {kind: [record for record, _ in records] for kind, records in self._skipped.items()}
        found["blank"] = [record for record, before in self._skipped["blank"] if 0 < before < rows]
        notes = [_skipped(kind, records) for kind, records in found.items() if records]
        return (*notes, *([_taken(self._hashes)] if self._hashes else ()))


def _taken(records: Sequence[Record]) -> Finding:
    row, example = f"line {records[0].line}", one_line(" ".join(records[0].cells))[:60]
    text = (
        f"{len(records)} line(s) that begin with # are rows, as they have all values, the first in {row}: {example!r}"
    )
    return Finding("hashes", text, row=row, count=len(records), example=example)


def _skipped(kind: str, records: Sequence[Record]) -> Finding:
    example = one_line(" ".join(filter(None, records[0].cells)))[:60]
    shown = f": {example!r}" if example else ""
    text = f"skipped {len(records)} {_SKIPPED[kind]}, the first in line {records[0].line}{shown}"
    row, cell, count = f"line {records[0].line}", example or None, len(records)
    if kind != "hidden":
        return Finding(kind, text, row=row, count=count, example=cell)
    remedy = "remove the # if they are to count"
    return Finding(kind, f"{text}: {remedy}", "doubt", row=row, count=count, example=cell, remedy=remedy)


def _sample(source: Iterable[str]) -> tuple[list[str], list[str]]:
    """The blank lines and comments above all others, and the first lines below; or all, where all are comments."""
    above: list[str] = []
    lines = iter(source)
    for line in lines:
        if line.strip() and not line.startswith("#"):
            return above, [line, *itertools.islice(lines, SAMPLE - 1)]
        above.append(line)
    return [], above[:SAMPLE]


def _records(above: Sequence[str], sample: Sequence[str], sep: str) -> tuple[list[Record], Record | None]:
    """The records of the first lines without blanks and comments, and the last comment above them."""
    records: list[Record] = []
    hashes = _has_hashes(sample)
    reader = csv.reader(sample, delimiter=sep, skipinitialspace=True)
    before = len(above)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells) and (hashes or not cells[0].startswith("#")):
                records.append(Record(before + 1, cells))
            before = len(above) + reader.line_num
    except csv.Error:
        pass  # the walk through all lines says which
    if len(sample) == SAMPLE and len(records) > 1:
        records.pop()  # may be cut off in the middle
    written = [(number, line) for number, line in enumerate(above, 1) if line.startswith("#")]
    if not written:
        return records, None
    number, line = written[-1]
    cells = next(csv.reader([line.lstrip("#").strip()], delimiter=sep, skipinitialspace=True), [])
    return records, Record(number, cells)


def _has_hashes(sample: Sequence[str]) -> bool:
    """Whether rows begin with #, which then begins no comment."""
    return sum(line.startswith("#") for line in sample) > len(sample) / 2


def _uneven(name: str, record: Record, names: Sequence[str]) -> DataError:
    cells = record.cells
    if len(cells) > len(names):
        hint = "is the decimal mark, or text, in a cell without quotes, or do titles stand above the columns' names?"
    else:
        hint = "complete the line, or remove it if it is a remark"
    text = f"{name} line {record.line} has {len(cells)} cell(s), the columns' names are {len(names)}: {hint}"
    row, example = f"line {record.line}", one_line(" ".join(cells))[:60]
    return DataError(text, finding=Finding("uneven", text, "fault", row=row, example=example, remedy=hint))
