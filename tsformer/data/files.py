"""Tables as files: a text table read with the line number of every row, and one written whole or not at all."""

from __future__ import annotations

import codecs
import difflib
import gzip
import importlib.resources
import io
import os
import sys
import zlib
from collections.abc import Collection
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import IO, Any

import pandas as pd

from tsformer.atomic import write_atomically
from tsformer.data.cells import LINE, MISSING
from tsformer.data.columns import is_time_name
from tsformer.data.outline import one_line, outline
from tsformer.errors import DataError, ResourceError, UsageError

# Before pandas 3.1 a third of all decimals come out one bit wrong unless asked for; from 3.1 on asking is deprecated.
_EXACT: Any = {} if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1) else {"float_precision": "round_trip"}


def read_table(
    path_or_buffer: str | os.PathLike[str] | IO[Any],
    *,
    sep: str = ",",
    decimal: str = ".",
    encoding: str = "utf-8-sig",
    text: Collection[str] = (),
) -> pd.DataFrame:
    """Read a text table with one line of names at its head.

    Args:
        path_or_buffer: a file, gzip included; the name of a data set that comes with tsformer; "-" for stdin; or an
            open file.
        sep, decimal, encoding: how the table is written.
        text: columns to be kept as they are written ("007" is not 7). Columns named like times always are.

    Returns:
        a table whose index holds each row's line number in the file and is named "line". Numbers are exact; empty
        cells and NA, N/A, NaN, null and the like are missing. Columns without a name and without a value are left
        out; others without a name are called "Unnamed: 0" by their place.

    Raises:
        DataError: on anything that is not a regular table, with line and what to do.
        UsageError: on options that make no sense. ResourceError: when the file may not be read.
    """
    sep = check_options(sep, decimal, encoding)
    name = source_name(path_or_buffer)
    # Two passes over bytes: a StringIO has four bytes for each character.
    content = io.BytesIO(_text(content_of(path_or_buffer), encoding, name).encode("utf-8", "surrogatepass"))
    body = io.TextIOWrapper(content, "utf-8", "surrogatepass", newline="")
    names, start, lines = outline(body, sep, name)
    kept = {column for column in names if column in text or is_time_name(column)}
    body.seek(start)
    try:
        frame = pd.read_csv(
            body,
            sep=sep,
            decimal=decimal,
            header=None,
            names=names,
            index_col=False,
            nrows=len(lines),
            dtype=dict.fromkeys(kept, str),
            keep_default_na=False,
            na_values={column: list(MISSING) for column in names if column not in kept},
            skipinitialspace=True,
            low_memory=False,
            **_EXACT,
        )
    except (ValueError, OverflowError) as error:
        raise DataError(f"{name} cannot be read as a table: {one_line(error)}") from None
    if len(frame) != len(lines):
        raise DataError(f"{name} has {len(lines)} rows by its lines, {len(frame)} by its cells: check the quotes in it")
    frame.index = pd.Index(lines, name=LINE)
    blank = [c for c in names if c.startswith("Unnamed: ") and (frame[c].isna() | (frame[c].astype(str) == "")).all()]
    frame = frame.drop(columns=blank)
    nameless = [column for column in frame.columns if column.startswith("Unnamed: ")]
    if len(nameless) > 1:
        # One is a row index that somebody saved; several mean that the first line is not the one with the names.
        raise DataError(
            f"{name} has {len(nameless)} columns without a name: name them, or remove what is above the line of names"
        )
    return frame if decimal == "." else _with_points(frame, decimal, kept)


def write_table(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a table as CSV, to a file or to stdout ("-"); floats with all their digits, no index.

    A file appears whole or not at all; a name that ends in .gz is compressed. Raises ResourceError when it cannot
    be written.
    """
    if os.fspath(path) == "-":
        sys.stdout.write(frame.to_csv(index=False, lineterminator="\n"))
        return
    target = Path(os.path.expanduser(path))
    try:
        content = frame.to_csv(index=False, lineterminator="\n").encode()
        target = target.resolve()
        content = gzip.compress(content) if target.suffix == ".gz" else content
        if target.exists() and not target.is_file() and not target.is_dir():
            # A pipe or /dev/null must be written to, never replaced by a file.
            target.write_bytes(content)
            return
        write_atomically(target, content)
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ResourceError(f"{path} cannot be written ({reason}): name another place") from None


def source_name(path_or_buffer: str | os.PathLike[str] | IO[Any]) -> str:
    """What messages call the table."""
    if isinstance(path_or_buffer, (str, os.PathLike)):
        path = os.fspath(path_or_buffer)
        return "stdin" if path == "-" else path
    name = getattr(path_or_buffer, "name", None)
    return name if isinstance(name, str) else "table"


def find_table(path: str | os.PathLike[str]) -> Path | Traversable:
    """The file of that path, or else the data set of that name that comes with tsformer ("air_passengers").

    Raises:
        DataError: when there is neither, with what looks alike.
    """
    file = Path(os.path.expanduser(path))
    try:
        if file.is_file() or (file.exists() and not file.is_dir()):
            return file
        known = shipped()
        if os.fspath(path) in known:
            return known[os.fspath(path)]
        if file.is_dir():
            raise DataError(f"{path} is a folder: name a file in it{_alike('', file, every=True)}")
        folder = file.parent
        if not folder.is_dir():
            here = "" if folder.is_absolute() else f" in {Path.cwd()}"
            raise DataError(f"no file {path}: there is no folder {folder}{here}")
    except (OSError, ValueError) as error:
        raise DataError(f"no file {os.fspath(path)!r}: {one_line(error)}") from None
    raise DataError(
        f"no file {path}{'' if file.is_absolute() else f' in {folder.resolve()}'}{_alike(file.name, folder)}"
        f"; data sets that come with tsformer: {', '.join(sorted(known))}"
    )


def shipped() -> dict[str, Traversable]:
    """The data sets that come with tsformer, by name."""
    try:
        folder = importlib.resources.files("tsformer_datasets")
    except ModuleNotFoundError:
        return {}
    return {file.name[:-4]: file for file in folder.iterdir() if file.name.endswith((".csv", ".tsv"))}


def _alike(name: str, folder: Path, every: bool = False) -> str:
    found = sorted(entry.name for entry in os.scandir(folder) if not entry.name.startswith("."))
    alike = found[:5] if every else difflib.get_close_matches(name, found, n=3, cutoff=0.6)
    return f" (there is {', '.join(alike)})" if alike else ""


def check_options(sep: str, decimal: str, encoding: str) -> str:
    """The separator as one character. Raises UsageError for options that make no sense."""
    sep = {r"\t": "\t", "tab": "\t"}.get(sep, sep)
    if len(sep) != 1 or sep.isalnum() or sep in '"\r\n.+-' or ord(sep) > 127:
        raise UsageError(f"--data.sep {sep!r} cannot separate columns: one of , ; | or tab")
    if decimal not in (".", ","):
        raise UsageError(f"--data.decimal {decimal!r} is no decimal mark: . or ,")
    if decimal == sep:
        raise UsageError(f"--data.sep and --data.decimal are both {sep!r}: give the right --data.sep, for example ';'")
    try:
        if codecs.lookup(encoding)._is_text_encoding:
            return sep
    except (LookupError, ValueError):
        pass
    raise UsageError(f"--data.encoding {encoding!r} is not known: for example utf-8, cp1252, latin-1, utf-16")


def content_of(path_or_buffer: str | os.PathLike[str] | IO[Any]) -> bytes | str:
    """All of a file, as it stands there. Raises DataError or ResourceError when it is not there or may not be read."""
    if not isinstance(path_or_buffer, (str, os.PathLike)):
        content: bytes | str = path_or_buffer.read()
    elif os.fspath(path_or_buffer) == "-":
        content = _stdin()
    else:
        try:
            content = find_table(path_or_buffer).read_bytes()
        except OSError as error:
            raise ResourceError(f"{path_or_buffer} cannot be read: {error.strerror or error}") from None
    return content


def _stdin() -> bytes | str:
    try:
        if sys.stdin is not None:
            return getattr(sys.stdin, "buffer", sys.stdin).read()
        reason = "there is none"
    except (OSError, ValueError) as error:
        reason = one_line(getattr(error, "strerror", None) or error)
    raise DataError(f"stdin cannot be read ({reason}): pipe a table into it, or name a file")


def _text(content: bytes | str, encoding: str, name: str) -> str:
    text = content if isinstance(content, str) else decoded(content, encoding, name)
    if text.lstrip()[:1] in ("{", "<"):
        raise DataError(f"{name} is JSON, HTML or XML, not a text table: save it as CSV")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise DataError(f"{name} holds a NUL character in line {line}: it is not a text table")
    return text.removeprefix("\ufeff")


def decoded(content: bytes, encoding: str, name: str) -> str:
    if content.startswith(b"\x1f\x8b"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{name} is a damaged gzip file ({one_line(error)}): fetch it again") from None
    if content.startswith((b"PK\x03\x04", b"PAR1", b"\xd0\xcf\x11\xe0")):
        raise DataError(f"{name} is a zip, Excel or Parquet file, not a text table: save it as CSV")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) and not encoding.lower().replace("_", "-").startswith("utf-16"):
        raise DataError(f"{name} is written in UTF-16: --data.encoding utf-16")
    try:
        return content.decode(encoding)
    except UnicodeError as error:
        start = getattr(error, "start", None)
        line = content.count(b"\n", 0, start) + 1
        where = "" if start is None else f" at byte {start} (line {line})"
        raise DataError(
            f"{name} is not written in {encoding}{where}: give its encoding, --data.encoding cp1252 (Western), "
            "gb18030 (Chinese), cp932 (Japanese), cp949 (Korean) ..."
        ) from None


def _with_points(frame: pd.DataFrame, decimal: str, kept: Collection[str]) -> pd.DataFrame:
    """Numbers in columns that also hold words get a decimal point, so that they are recognised as numbers."""
    for column in frame.columns:
        if column not in kept and not pd.api.types.is_numeric_dtype(frame[column]):
            cells = frame[column].astype(object)
            pointed = cells.map(lambda cell: cell.replace(decimal, ".") if isinstance(cell, str) else cell)
            frame[column] = cells.where(pd.to_numeric(pointed, errors="coerce").isna(), pointed)
    return frame
