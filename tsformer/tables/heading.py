"""The head of a text table: which line holds the names, what stands above it and between it and the rows."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tsformer.data.cells import listed, one_line
from tsformer.data.columns import is_date_name
from tsformer.errors import DataError
from tsformer.findings import Finding
from tsformer.tables.markers import VALUES, has_values, kind_of

_CELLS = 40_000  # of the sample that are looked at: of wide tables fewer rows,
_FEW = 5  # but at least these


@dataclass(frozen=True)
class Record:
    """Cells of one record of a file, and the line that it begins in."""

    line: int
    cells: list[str]


@dataclass(frozen=True)
class Heading:
    """What is known before any row is read.

    Attributes:
        names: of the columns, all different; "Unnamed: 3" where the table has none.
        last: the line in which its last record begins, below which the rows are; 0 where there is nothing above them.
        kinds: what each column holds for the most part: "time", "number", "code" (007), "word" or "empty".
        notes: what was skipped, or made up.
    """

    names: tuple[str, ...]
    last: int
    kinds: tuple[str, ...]
    notes: tuple[Finding, ...]


def heading(sample: Sequence[Record], comment: Record | None, line: int | None, name: str) -> Heading:
    """The head of a table.

    Args:
        sample: the first records, without blank ones and comments.
        comment: the last one above them, split into cells: it holds the names where no other line does.
        line: the line with the names, from 1; 0 for a table without; None finds it.
        name: what messages call the table.

    Raises:
        DataError: there are no records, or no line of names fits the rows.
    """
    if not sample:
        raise DataError(f"{name} is empty: a line with the columns' names and rows are needed")
    usual = Counter(len(record.cells) for record in sample).most_common()
    width = max(cells for cells, count in usual if count == usual[0][1])
    if line:
        place = next((i for i, record in enumerate(sample) if record.line == line), None)
        if place is None:
            raise DataError(f"{name} has no names in line {line}: --data.header gives the line that holds them, from 1")
        return _named(sample, place, width)
    rows = [record.cells for record in sample if len(record.cells) == width]
    filled = Counter(map(_filled, rows)).most_common(1)[0][0]  # without separators at the end of each row
    place = _last_head(sample, filled, width)
    above = sample[place - 1] if place and sample[place - 1].line == sample[place].line - 1 else None
    if line is None and above is not None and _filled(above.cells) > width:
        raise _misfit(above, sample[place], name)
    if line is None and not _is_row(sample[place].cells, [record.cells for record in sample[place + 1 :]]):
        return _named(sample, place, width)
    if line is None and above is not None:
        raise _misfit(above, sample[place], name)
    named = comment is not None and len(comment.cells) == width and not _is_row(comment.cells, rows)
    if line is None and place == 0 and comment is not None and named:
        return _named([comment, *sample], 0, width)
    return _nameless(sample, place, line is None)


def _last_head(sample: Sequence[Record], filled: int, width: int) -> int:
    """The place of the line of names among those that look like one: titles may have as many cells as the table.

    It is the first, or a later one that stands after a blank line or names the times, and has a word in each cell.
    """
    place = next((i for i, record in enumerate(sample) if _may_head(record.cells, filled, width)), 0)
    kinds = _kinds([record.cells for record in sample[place:] if has_values(record.cells)], width)
    key = next((column for column, kind in enumerate(kinds) if kind == "time"), None)
    for later in range(place + 1, len(sample)):
        cells = sample[later].cells
        if key is None or len(cells) != width or kind_of(cells[key]) in VALUES:
            break
        apart = sample[later].line > sample[later - 1].line + 1
        timely = is_date_name(cells[key]) and not is_date_name(sample[place].cells[key])
        if (apart or timely) and all(kind_of(cell) == "word" for cell in cells[:filled]):
            place = later
    return place


def _may_head(cells: Sequence[str], filled: int, width: int) -> bool:
    """Whether there is a name for each column, titles of one cell in a full line ("Title,,,") not counted."""
    named = sum(bool(cell.strip()) for cell in cells)
    fits = len(cells) == width or filled <= _filled(cells) <= width
    return fits and (named > filled / 2 or (filled == 2 and named == 1 and not cells[0]))


def _filled(cells: Sequence[str]) -> int:
    return max((place + 1 for place, cell in enumerate(cells) if cell.strip()), default=0)


def _is_row(cells: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether the line that should hold names holds values like the rows beneath it.

    A word above values is a name. Years above values are names as well, and so are numbers from 0.
    """
    kinds = _kinds(rows, len(cells))
    own = [kind_of(cell) for cell in cells]
    if any(kind == "word" and column in VALUES for kind, column in zip(own, kinds, strict=True)):
        return False
    alike = [cell for cell, kind, column in zip(cells, own, kinds, strict=True) if kind == column and kind in VALUES]
    return bool(alike or (not rows and has_values(cells))) and not _is_numbering([cell for cell in cells if cell])


def _is_numbering(cells: Sequence[str]) -> bool:
    """0, 1, 2 ..., or years in steps."""
    whole = [int(cell.strip()) for cell in cells if cell.strip().isascii() and cell.strip().isdigit()]
    if whole == list(range(len(cells))):
        return True
    steps = {after - before for before, after in itertools.pairwise(whole)}
    return len(whole) > 1 and len(steps) == 1 and min(steps) > 0 and 1000 <= whole[0] <= whole[-1] <= 2999


def _kinds(rows: Sequence[Sequence[str]], width: int) -> tuple[str, ...]:
    """What most cells of each column are, of those that are not empty."""
    kinds = []
    for column in range(width):
        counts = Counter(kind_of(row[column]) for row in rows[: max(_CELLS // width, _FEW)] if len(row) > column)
        del counts["empty"]
        common = counts.most_common(1)[0][0] if counts else "empty"
        kinds.append("code" if common == "number" and counts["code"] else common)
    return tuple(kinds)


def _named(sample: Sequence[Record], place: int, usual: int) -> Heading:
    cells = [one_line(cell) for cell in sample[place].cells]
    width = max(usual, _filled(cells)) if len(cells) > usual else len(cells)
    cells = cells[:width]  # separators at the end of this line only
    following = sample[place + 1 :]
    kinds = _kinds([record.cells for record in following if has_values(record.cells)], width)
    notes = []
    if place:
        notes.append(_skipped("preamble", sample[:place], f"above the names in line {sample[place].line}"))
    further = list(itertools.takewhile(lambda record: _is_further(record.cells, kinds), following[:3]))
    if len(further) == len(following):
        further = []
    if further and len(set(filter(None, cells))) < len(list(filter(None, cells))):
        levels = [cells, *([one_line(cell) for cell in record.cells] for record in further)]
        cells = [" ".join(filter(None, parts)) for parts in itertools.zip_longest(*levels, fillvalue="")][:width]
        text = f"names of columns are joined of lines {sample[place].line} to {further[-1].line}: {cells[-1]!r}"
        notes.append(Finding("joined_names", text, row=f"line {sample[place].line}", example=cells[-1]))
    elif further:
        notes.append(_skipped("units", further, "between names and rows, without values"))
    if all(kind_of(cell) == kind and kind in VALUES for cell, kind in zip(cells, kinds, strict=False)):
        text = f"line {sample[place].line} is taken for the names ({listed(cells)}), --header 0 takes it for a row"
        notes.append(Finding("numbers_as_names", text, row=f"line {sample[place].line}", remedy="--header 0"))
    names = _unique(cells, sample[place].line, notes)
    return Heading(names, (further or sample[place : place + 1])[-1].line, kinds, tuple(notes))


def _is_further(cells: Sequence[str], kinds: Sequence[str]) -> bool:
    """A line of units, or a second line of names: words above values, and no value."""
    pairs = list(zip((kind_of(cell) for cell in cells), kinds, strict=False))
    return not has_values(cells) and any(kind == "word" and column in VALUES for kind, column in pairs)


def _unique(cells: Sequence[str], line: int, notes: list[Finding]) -> tuple[str, ...]:
    """Names that are there once each; what is made up for it is noted."""
    names: dict[str, None] = {}
    written, renamed = set(cells), []
    for place, cell in enumerate(cells):
        chosen, number = cell or f"Unnamed: {place}", 2
        while chosen in names or (chosen != cell and chosen in written):
            chosen, number = f"{cell}.{number}", number + 1
        if cell and chosen != cell:
            renamed.append(chosen)
        names[chosen] = None
    if renamed:
        text = f"line {line} names columns more than once: the later ones are called {listed(renamed)}"
        notes.append(Finding("repeated_names", text, row=f"line {line}", count=len(renamed), example=renamed[0]))
    return tuple(names)


def _nameless(sample: Sequence[Record], place: int, found: bool) -> Heading:
    rows = [record.cells for record in sample[place:]]
    width = max(map(len, rows)) if not found else len(rows[0])
    notes = []
    if place:
        notes.append(_skipped("preamble", sample[:place], "above the rows"))
    if found:
        text = (
            f"line {sample[place].line} holds values like those below, so that no line holds names: columns are called "
            f"c1 to c{width} (--header {sample[place].line} takes that line for the names)"
        )
        notes.append(
            Finding("no_header", text, row=f"line {sample[place].line}", example=rows[0][0], remedy="--header")
        )
    names = tuple(f"c{number}" for number in range(1, width + 1))
    return Heading(names, sample[place - 1].line if place else 0, _kinds(rows, width), tuple(notes))


def _skipped(kind: str, records: Sequence[Record], where: str) -> Finding:
    first = records[0].line
    lines = f"line {first}" if len(records) == 1 else f"lines {first} to {records[-1].line}"
    example = one_line(" ".join(filter(None, records[0].cells)))[:60]
    text = f"skipped {lines} {where}: {example!r}"
    return Finding(kind, text, row=f"line {first}", count=len(records), example=example)


def _misfit(above: Record, row: Record, name: str) -> DataError:
    text = (
        f"{name} line {row.line} has {len(row.cells)} cell(s), the names in line {above.line} are {len(above.cells)}: "
        "name each column (is the decimal mark, or text, in a cell without quotes?)"
    )
    remedy = f"name each column, or --header 0 if line {above.line} holds no names"
    return DataError(text, finding=Finding("uneven", text, "fault", row=f"line {row.line}", remedy=remedy))
