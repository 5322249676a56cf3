"""A table from a file, whatever it is packed, written and separated like; what had to be found out is said."""

from __future__ import annotations

import io
import itertools
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import IO, Any

import pandas as pd

from tsformer.data.cells import LINE, MISSING, listed, one_line
from tsformer.data.columns import is_time_name
from tsformer.data.files import content_of, source_name
from tsformer.data.table_options import TableOptions
from tsformer.errors import DataError
from tsformer.findings import Finding
from tsformer.tables import parquet, tsf
from tsformer.tables.container import unpacked
from tsformer.tables.decimals import decimal_of, may_be_grouped
from tsformer.tables.dialect import BLANKS, check_dialect, find_separator
from tsformer.tables.encoding import as_utf8, check_encoding
from tsformer.tables.outline import SAMPLE, Outline, outline

# Before pandas 3.1 a third of all decimals come out one bit wrong unless asked for; from 3.1 on asking is deprecated.
_EXACT: Any = {} if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1) else {"float_precision": "round_trip"}
_SEVERAL = 3  # distinct whole numbers beside those with a point
_NOT_A_TABLE = re.compile(rb"\s*(\{|\[\s*[\[{]|<[!?]|<[a-zA-Z][^,;\t|>]*>\s*<)")


@dataclass(frozen=True)
class RawTable:
    """A table as it stands in a file.

    Attributes:
        frame: a column of plain numbers is int64 or float64, and exact; another holds text as it is written, NaN where
            a cell is missing, or what Parquet holds. The index of a text table holds each row's line number in the
            file and is named "line".
        notes: what was skipped, or found by evidence.
        form: how the file is written: "container", "encoding", "separator", as far as it has them.
    """

    frame: pd.DataFrame
    notes: tuple[Finding, ...] = ()
    form: Mapping[str, str] = field(default_factory=dict)


def read_file(
    source: str | os.PathLike[str] | IO[Any],
    options: TableOptions,
    *,
    columns: Collection[str] | None = None,
    text: Collection[str] = (),
    decimal: str = "",
) -> RawTable:
    """Read a text table, a Parquet file or a .tsf file, alone or in gzip, bzip2, xz or a zip.

    Args:
        source: a file; the name of a data set that comes with tsformer; "-" for stdin; or an open file.
        options: how the table is written, as far as the user says so.
        columns: the only ones that are needed, those that are there; None takes all.
        text: columns to be kept as they are written ("007" is not 7), "NA" and empty cells too. Columns named like
            times always are.
        decimal: mark of a table like it, for where the cells leave it open; "" where none is known.

    Raises:
        DataError: on anything that is not one regular table, with line and what to do.
        UsageError: on options that make no sense. ResourceError: when the file may not be read.
    """
    sep = check_dialect(options.sep, options.decimal)
    if options.encoding is not None:
        check_encoding(options.encoding)
    name = source_name(source)
    given = content_of(source)
    if isinstance(given, str):  # an open text file: its encoding is whoever's opened it
        content, container = given.encode("utf-8", "surrogatepass"), None
        content, encoding, notes = as_utf8(content, "utf-8", name)
    else:
        content, container = unpacked(given, name)
        if content.startswith(parquet.MAGIC):
            return RawTable(parquet.read(content, columns, name), form=_form(container or "parquet"))
        content, encoding, notes = as_utf8(content, options.encoding, name)
    if _NOT_A_TABLE.match(content):
        raise DataError(f"{name} is JSON, HTML or XML, not a text table: save it as CSV")
    if tsf.is_tsf(content):
        frame, found = tsf.read(content.decode(), name)
        return RawTable(frame, (*notes, *found), _form(container, encoding))
    raw = _text_table(content, sep, options, columns, text, decimal, name)
    return replace(raw, notes=(*notes, *raw.notes), form={**_form(container, encoding), **raw.form})


def read_table(
    path_or_buffer: str | os.PathLike[str] | IO[Any],
    *,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    text: Collection[str] = (),
) -> pd.DataFrame:
    """The frame of `read_file` alone, for tables of anything; with decimal commas, numbers are written with points."""
    options = TableOptions(sep=sep, decimal=decimal, encoding=encoding)
    frame = read_file(path_or_buffer, options, text=text).frame
    kept = {column for column in frame.columns if column in text or is_time_name(column)}
    return frame if decimal != "," else _with_points(frame, decimal, kept)


def _form(container: str | None, encoding: str | None = None) -> dict[str, str]:
    return {key: value for key, value in (("container", container), ("encoding", encoding)) if value is not None}


def _text_table(
    content: bytes,
    sep: str | None,
    options: TableOptions,
    columns: Collection[str] | None,
    text: Collection[str],
    decimal: str,
    name: str,
) -> RawTable:
    notes: list[Finding] = []
    if sep is None:
        sep = find_separator(_head(content))
        if sep != ",":
            shown = {"\t": "tabs", BLANKS: "blanks"}.get(sep, repr(sep))
            notes.append(Finding("separator", f"columns are separated by {shown}", example=sep))
    form = {"separator": sep}
    if sep == BLANKS:
        content = b"\n".join(b"\t".join(line.split()) for line in content.splitlines())
        sep = "\t"
    body = io.TextIOWrapper(io.BytesIO(content), "utf-8", "surrogatepass", newline="")
    found = outline(body, sep, options.header, name)
    _refuse_other_separator(found, sep, name)
    names = [*found.heading.names, *(f"Unnamed: {place}" for place in range(len(found.heading.names), found.widest))]
    frame, doubts = _cells(content, found, sep, names, options, columns, text, decimal, name)
    frame.index = pd.Index(found.lines, name=LINE)
    return RawTable(frame, (*notes, *found.heading.notes, *found.notes, *doubts), form)


def _head(content: bytes) -> list[str]:
    """The first lines that are neither blank nor comments."""
    lines = io.TextIOWrapper(io.BytesIO(content), "utf-8", "surrogatepass", newline="")
    return list(itertools.islice((line for line in lines if line.strip() and not line.startswith("#")), SAMPLE))


def _refuse_other_separator(found: Outline, sep: str, name: str) -> None:
    names = found.heading.names
    others = [other for other in (";", "\t", "|", ",") if other != sep and other in names[0]]
    if len(names) == 1 and others:
        best = max(others, key=names[0].count)
        shown = "'\\t'" if best == "\t" else repr(best)
        text = f"{name} has one column, {names[0][:60]!r}, when split at {sep!r}: it seems to want --data.sep {shown}"
        finding = Finding("separator", text, "fault", example=names[0][:60], options={"data.sep": best})
        raise DataError(text, finding=finding)


def _cells(
    content: bytes,
    found: Outline,
    sep: str,
    names: list[str],
    options: TableOptions,
    columns: Collection[str] | None,
    text: Collection[str],
    decimal: str,
    name: str,
) -> tuple[pd.DataFrame, tuple[Finding, ...]]:
    """The rows `[rows, columns]`, of columns without a name those with a value; and what is doubtful in them."""
    wanted = [column for column in names if columns is None or column in columns]
    kept = {column for column in wanted if column in text or is_time_name(column)}
    kinds = dict(itertools.zip_longest(names, found.heading.kinds, fillvalue="empty"))
    words = {column for column in wanted if kinds[column] in ("time", "word", "code")} | kept
    rows = _rows(content, found)
    doubts: tuple[Finding, ...] = ()

    def read(these: list[str], as_text: Collection[str]) -> pd.DataFrame:
        rows.seek(0 if found.cut else _start(content, int(found.lines[0])))
        return pd.read_csv(
            rows,
            sep=sep,
            decimal=options.decimal or ".",
            header=None,
            names=names,
            usecols=these,
            index_col=False,
            nrows=len(found.lines),
            dtype=dict.fromkeys(as_text, object),
            keep_default_na=False,
            na_values={column: list(MISSING) for column in names if column not in kept},
            skipinitialspace=True,
            skip_blank_lines=len(found.heading.names) > 1,
            low_memory=False,
            encoding_errors="surrogatepass",
            **_EXACT,
        )

    try:
        frame = read(wanted, words) if wanted else pd.DataFrame(index=range(len(found.lines)))
        unlike = [c for c in wanted if c not in words and frame[c].dtype.kind not in "iuf"]
        if unlike:  # TRUE, FALSE and text as they are written
            frame[unlike] = read(unlike, unlike)
        floats = [column for column in frame.columns if frame[column].dtype.kind == "f"]
        mark = decimal_of(frame.drop(columns=floats), options) if floats else ""
        if mark == "," != options.decimal:
            frame[floats] = read(floats, floats)  # beside decimal commas 1.234 is grouped by its point
        elif floats and mark == "" and (decimal == "," or (decimal == "" and sep in (";", "\t"))):
            cells = read(floats, floats)
            doubts = _grouped_points(cells)
            if doubts and decimal:
                frame[floats], doubts = cells, ()
    except (ValueError, OverflowError) as error:
        raise DataError(f"{name} cannot be read as a table: {one_line(error)}") from None
    if len(frame) != len(found.lines):
        raise DataError(
            f"{name} has {len(found.lines)} rows by its lines, {len(frame)} by its cells: check the quotes in it"
        )
    nameless = [column for column in wanted if column.startswith("Unnamed: ")]
    blank = [column for column in nameless if (frame[column].isna() | (frame[column].astype(str) == "")).all()]
    return frame.drop(columns=blank), doubts


def _grouped_points(cells: pd.DataFrame) -> tuple[Finding, ...]:
    """A doubt where all numbers of a table with semicolons or tabs may be whole, grouped by points as in Germany."""
    columns = {name: cells[name].dropna().unique() for name in cells.columns}
    names = [name for name, distinct in columns.items() if any("." in cell for cell in distinct)]
    if not names or not all(may_be_grouped(columns[name]) for name in names):
        return ()
    example = next(cell for cell in columns[names[0]] if "." in cell)
    remedy = "--decimal , if the point separates thousands, --decimal . if not"
    text = f"{example} is read as a number below a thousand in {len(names)} column(s) ({listed(names)}): {remedy}"
    whole = {cell for name in names for cell in columns[name] if cell.isdigit()} - {"0"}
    options = {"data.decimal": ","} if len(whole) >= _SEVERAL else {}  # decimals would seldom all be zero
    return (Finding("decimal", text, "doubt", column=names[0], example=example, remedy=remedy, options=options),)


def _rows(content: bytes, found: Outline) -> io.BytesIO:
    """The file, or what is left of it without lines that stand between rows."""
    if not found.cut:
        return io.BytesIO(content)
    lines = content.splitlines(keepends=True)
    first = found.lines[0]
    return io.BytesIO(
        b"".join(line for number, line in enumerate(lines, 1) if number >= first and number not in found.cut)
    )


def _start(content: bytes, first: int) -> int:
    """Where a line begins, as many bytes from the start; lines are counted from 1."""
    ends = itertools.islice(re.finditer(rb"\r\n|\r|\n", content), first - 1)
    return max((end.end() for end in ends), default=0)


def _with_points(frame: pd.DataFrame, decimal: str, kept: Collection[str]) -> pd.DataFrame:
    """Numbers in columns that also hold words get a decimal point, so that they are recognised as numbers."""
    for column in frame.columns:
        if column not in kept and not pd.api.types.is_numeric_dtype(frame[column]):
            cells = frame[column].astype(object)
            pointed = cells.map(lambda cell: cell.replace(decimal, ".") if isinstance(cell, str) else cell)
            frame[column] = cells.where(pd.to_numeric(pointed, errors="coerce").isna(), pointed)
    return frame
