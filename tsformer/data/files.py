"""Files of tables: found and read as bytes, and written whole or not at all."""

from __future__ import annotations

import difflib
import importlib.resources
import os
import sys
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import IO, Any

import pandas as pd

from tsformer.atomic import write_atomically
from tsformer.data.cells import one_line
from tsformer.errors import DataError, ResourceError
from tsformer.tables.output import encoded


def write_table(frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a table as CSV, to a file or to stdout ("-"); floats with all their digits, no index.

    A file appears whole or not at all; a name that ends in .gz is compressed, one in .parquet is Parquet. Raises
    ResourceError when it cannot be written.
    """
    if os.fspath(path) == "-":
        sys.stdout.write(frame.to_csv(index=False, lineterminator="\n"))
        return
    target = Path(os.path.expanduser(path))
    try:
        content = encoded(frame, target)
        target = target.resolve()
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


def content_of(path_or_buffer: str | os.PathLike[str] | IO[Any]) -> bytes | str:
    """All of a file, as it stands there. Raises DataError or ResourceError when it is not there or may not be read."""
    if not isinstance(path_or_buffer, (str, os.PathLike)):
        content: bytes | str = path_or_buffer.read()
    elif os.fspath(path_or_buffer) == "-":
        content = _stdin()
    else:
        try:
            file = find_table(path_or_buffer)
            if isinstance(file, Path) and _is_endless(file):
                raise DataError(f"{path_or_buffer} is a device, not a file: name a file, or - for stdin")
            content = file.read_bytes()
        except OSError as error:
            raise ResourceError(f"{path_or_buffer} cannot be read: {error.strerror or error}") from None
    return content


def _is_endless(file: Path) -> bool:
    """Whether it is a device other than /dev/null and stdin: /dev/zero gives bytes without end."""
    if not (file.is_char_device() or file.is_block_device()):
        return False
    known = [os.devnull, "/dev/stdin"]
    return not any(os.path.exists(path) and file.samefile(path) for path in known)


def _stdin() -> bytes | str:
    try:
        if sys.stdin is not None:
            return getattr(sys.stdin, "buffer", sys.stdin).read()
        reason = "there is none"
    except (OSError, ValueError) as error:
        reason = one_line(getattr(error, "strerror", None) or error)
    raise DataError(f"stdin cannot be read ({reason}): pipe a table into it, or name a file")
