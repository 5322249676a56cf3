"""Texts from files: one a line, or the cells of a table. Every cell stays as it is written, "1" and "007" too.

Lines are counted against rows, so that an unpaired quote cannot swallow lines: it is found, and said.
"""

from __future__ import annotations

import csv
import itertools
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

from tsformer.data.cells import listed, one_line
from tsformer.data.declarations import TextFileOptions
from tsformer.data.files import content_of, shipped, source_name
from tsformer.errors import DataError, UsageError, did_you_mean
from tsformer.tables.container import unpacked
from tsformer.tables.dialect import check_dialect
from tsformer.tables.encoding import as_utf8, check_encoding

TABLES = (".csv", ".tsv", ".tab")
"""Endings of files that are tables, whatever they hold; others may be plain lines."""


@dataclass(frozen=True)
class TextTable:
    """Rows of cells.

    Attributes:
        source: what messages call it.
        names: of the columns; "1", "2", ... where the table does not name them.
        rows: cells `[rows][columns]`.
        lines: line of the file in which each row begins `[rows]`, from 1.
        notes: what was done on reading that the user should hear of.
    """

    source: str
    names: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    lines: Sequence[int]
    notes: tuple[str, ...] = ()

    def place(self, wanted: str) -> int:
        """Where a column stands, by its name or else by its number from 1; raises DataError when it does not."""
        if wanted in self.names:
            return self.names.index(wanted)
        if is_number(wanted) and 1 <= int(wanted) <= len(self.names):
            return int(wanted) - 1
        hint = did_you_mean(wanted, self.names)
        if len(self.names) == 1:
            first = self.names[0] if self.names != ("1",) else self.rows[0][0]
            found = [sep for sep in (";", "\t", "|", ",") if sep in first]
            hint = f": it seems to want --data.sep {found[0]!r}" if found else hint
        raise DataError(f"{self.source} has no column {wanted!r}, it has {listed(self.names)}{hint}")

    def has(self, wanted: str) -> bool:
        """Whether there is a column of that very name."""
        return wanted in self.names

    def column(self, *wanted: str) -> list[str]:
        """The cells of a column; of several, joined by a space where they are not empty."""
        places = [self.place(name) for name in wanted]
        if len(places) == 1:
            return [row[places[0]] for row in self.rows]
        return [" ".join(row[place] for place in places if row[place]) for row in self.rows]

    def title(self, *wanted: str) -> str:
        """What such a column is called."""
        return " ".join(self.names[self.place(name)] for name in wanted)

    def only_where(self, filled: Sequence[bool], note: str) -> TextTable:
        """Without the rows that lack something; `note` says so, after their number. Itself when none does."""
        missing = len(filled) - sum(filled)
        if not missing:
            return self
        rows, lines = [*itertools.compress(self.rows, filled)], [*itertools.compress(self.lines, filled)]
        return TextTable(self.source, self.names, rows, lines, (*self.notes, f"{missing} {note}"))


def is_number(name: str) -> bool:
    """Whether a column is given by number."""
    return name.isascii() and name.isdigit()


def read_text(source: str | os.PathLike[str] | IO[Any], encoding: str = "utf-8-sig") -> str:
    """A whole file, gzip included, a shipped data set, or stdin ("-"); its lines end with a line feed.

    Raises:
        DataError: it is not there, empty, or no text in that encoding. ResourceError: it may not be read.
    """
    check_encoding(encoding)
    name = source_name(source)
    if ending_of(name) in (".json", ".jsonl", ".html", ".xml"):
        raise DataError(f"{name} is JSON, HTML or XML: save the texts as a table, or one a line")
    content = content_of(source)
    if isinstance(content, bytes):
        content = as_utf8(unpacked(content, name)[0], encoding, name)[0].decode("utf-8", "surrogatepass")
    text = content.removeprefix("\ufeff").replace("\r\n", "\n")
    if "\n" not in text:
        text = text.replace("\r", "\n")  # as files were written on a Mac long ago
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise DataError(f"{name} holds a NUL character in line {line}: it is not a text, or in another --data.encoding")
    if not text:
        raise DataError(f"{name} is empty: texts are needed, one in each line")
    return text


def plain_lines(text: str, source: str, title: str) -> TextTable:
    """Each line is a text, an empty line an empty text."""
    lines = _lines(text)
    return TextTable(source, (title,), [[line] for line in lines], range(1, len(lines) + 1))


def text_table(text: str, options: TextFileOptions, path: str, named: Sequence[str]) -> TextTable:
    """The rows of a table.

    Args:
        text: from `read_text`.
        options: how it is written.
        path: where it is from: its ending tells what separates columns, when the options do not.
        named: columns that the user asks for; by number alone, they say that the table does not name them.

    Raises:
        DataError: rows of unequal length, lines that a quote joins, blank lines. UsageError: options without sense.
    """
    source = source_name(path)
    header = options.header
    by_name = [name for name in named if not is_number(name)]
    if header is False and by_name:
        raise UsageError(f"--data.header false: columns are given by number, from 1, not as {by_name[0]!r}")
    if header is None:
        header = bool(by_name) or not named
    sep = separator(options, path, text.partition("\n")[0] if header else "")
    rows, starts, notes = _split(_lines(text), sep, options.quoting, source)
    while rows and rows[-1] == [""] and (len(rows[0]) > 1 or rows[0] == [""]):  # of one column they are empty texts
        del rows[-1], starts[-1]
    _check_widths(rows, starts, sep, source)
    if not header:
        names = tuple(str(number) for number in range(1, len(rows[0]) + 1))
        return TextTable(source, names, rows, starts, notes)
    names = tuple(one_line(name) for name in rows[0])
    repeated = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if repeated is not None:
        raise DataError(
            f"{source} line {starts[0]} names several columns {repeated!r}: give each its own name, or say "
            "--data.header false where these are no names"
        )
    if len(rows) == 1:
        raise DataError(f"{source} has no rows, only the columns' names: {listed(names)}")
    return TextTable(source, names, rows[1:], starts[1:], notes)


def separator(options: TextFileOptions, path: str, names: str = "") -> str:
    """What separates the columns of a table, by its ending, or else by its line of names."""
    if options.sep is not None:
        return check_dialect(options.sep) or ","
    ending = ending_of(path)
    return "," if ending == ".csv" or (ending not in TABLES and names and "\t" not in names) else "\t"


def ending_of(path: str) -> str:
    """ ".csv" and the like, in small letters; ".gz" does not count."""
    path = shipped()[path].name if path in shipped() and not os.path.exists(path) else path
    return os.path.splitext(path.lower().removesuffix(".gz"))[1]


def new_texts(options: TextFileOptions, source: str, columns: Sequence[str], title: str) -> TextTable:
    """Texts at predict time: a table with those columns, or plain lines in a column of that title.

    A file that is neither .csv nor .tsv holds plain lines, unless its first line names the columns; those given by
    number are taken where each line has as many cells, separated by tabs, or as in such a file that the run was fitted
    on.

    Raises:
        DataError: a table without the columns, or what `read_text` and `text_table` refuse.
    """
    text = read_text(source, options.encoding)
    if ending_of(source) in TABLES:
        return text_table(text, options, source, columns)
    lines = plain_lines(text, source_name(source), title)
    if not all(map(is_number, columns)):
        names = lines.rows[0][0]
        cells = names.split(separator(options, source, names))
        named = {cell.strip('"') for cell in cells}.issuperset(columns)  # " review" in prose is no name
        if not named:
            return lines
        try:
            table = text_table(text, options, source, columns)
        except DataError:
            sep = separator(options, source, names)
            if any(sep in line for (line,) in lines.rows[1:]):
                raise
            return lines  # its first text happens to hold the name
        note = f"{table.source} is read as a table, for its first line holds the name {listed(columns)}"
        return table if len(cells) == len(columns) else replace(table, notes=(*table.notes, note))
    try:
        table = text_table(text, options, source, columns)
    except DataError:
        return lines
    apart = separator(options, source) == "\t" or ending_of(options.path) not in TABLES
    return table if apart and max(2, *map(int, columns)) <= len(table.names) else lines


def _lines(text: str) -> list[str]:
    lines = text.split("\n")  # splitlines would also part texts at form feeds and the like
    return lines[:-1] if lines[-1] == "" else lines


def _split(
    lines: list[str], sep: str, quoting: bool | None, source: str
) -> tuple[list[list[str]], list[int], tuple[str, ...]]:
    """Cells of each row, the line in which it begins, and notes."""
    as_written = [line.split(sep) for line in lines], list(range(1, len(lines) + 1))
    if quoting is False or not any('"' in line for line in lines):
        return *as_written, ()
    note = ('quotes (") are taken as text, since they do not balance (--data.quoting)',)
    try:
        rows, starts = _quoted(lines, sep, source)
    except DataError:
        if quoting is None and sep == "\t":
            return *as_written, note
        raise
    ends = [*(start - 1 for start in starts[1:]), len(lines)]
    joined = [(start, end) for start, end in zip(starts, ends, strict=True) if end > start]
    if not joined:
        return rows, starts, ()
    first, last = joined[0]
    width = len(rows[0])
    alone = [span for span in joined if all(len(line.split(sep)) == width for line in lines[span[0] - 1 : span[1]])]
    if quoting is None and len(alone) > len(joined) / 2:
        if sep == "\t":
            return *as_written, note
        raise DataError(
            f"{source}: a quote makes one row of lines {alone[0][0]} to {alone[0][1]}, each of which could be a row: "
            "--data.quoting false takes quotes as text, true joins the lines"
        )
    return (
        rows,
        starts,
        (f"{len(joined)} row(s) go over several lines, as quotes say; the first, lines {first}-{last}",),
    )


def _quoted(lines: list[str], sep: str, source: str) -> tuple[list[list[str]], list[int]]:
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=sep, strict=True)
    rows: list[list[str]] = []
    starts: list[int] = []
    before = 0
    limit = csv.field_size_limit(sys.maxsize >> 32)  # of a cell, for all of Python; a text may be long
    try:
        for row in reader:
            rows.append(row or [""])
            starts.append(before + 1)
            before = reader.line_num
    except csv.Error as error:
        raise DataError(
            f"{source} line {before + 1} cannot be split into cells: {error}; check its quotes, or take them as text: "
            "--data.quoting false"
        ) from None
    finally:
        csv.field_size_limit(limit)
    return rows, starts


def _check_widths(rows: list[list[str]], starts: list[int], sep: str, source: str) -> None:
    if not rows:
        raise DataError(f"{source} is empty: a table of texts is needed")
    width = len(rows[0])
    uneven = next((place for place, row in enumerate(rows) if len(row) != width), None)
    if uneven is None:
        return
    if rows[uneven] == [""] or rows[0] == [""]:
        line = starts[0] if rows[0] == [""] else starts[uneven]
        raise DataError(f"{source} line {line} is blank, but rows follow it: remove the line")
    raise DataError(
        f"{source} line {starts[uneven]} has {len(rows[uneven])} cell(s), line {starts[0]} has {width}, when split at "
        f"{sep!r}: put texts that hold it in quotes, or give another --data.sep"
    )
