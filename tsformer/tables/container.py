"""What a table is packed in: gzip, bzip2, xz, and a zip with one file in it; whatever else is no text is named."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable
from typing import IO, Any

from tsformer.data.cells import listed, one_line
from tsformer.errors import DataError

LARGEST = 4 * 2**30
"""Bytes beyond which a file is not unpacked: a small one may hold more than any memory does."""

_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz"}
_OPENERS: dict[str, Callable[[IO[bytes]], Any]] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
_OTHERS = {
    b"\xd0\xcf\x11\xe0": "an Excel file",
    b"ARROW1": "an Arrow file",
    b"\x89HDF": "an HDF5 or NetCDF file",
    b"CDF": "a NetCDF file",
    b"SQLite format 3": "a SQLite database",
    b"%PDF": "a PDF",
    b"\x93NUMPY": "a NumPy file",
    b"7z\xbc\xaf": "a 7z archive",
    b"Rar!": "a RAR archive",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"RDX": "a file of R",
}
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")


def unpacked(content: bytes, name: str) -> tuple[bytes, str | None]:
    """The bytes of the one file that is packed in others, and what the outermost is: "gzip", "zip", ..., or None.

    Raises:
        DataError: it is damaged, holds several files or none, would be larger than `LARGEST`, or is no text.
    """
    kind = None
    for _ in range(3):  # data.csv.gz in a zip is seen, matryoshkas are not
        found = _kind(content, name)
        if found is None:
            return content, kind
        content = _zipped(content, name) if found == "zip" else _stream(content, found, name)
        kind = kind or found
    raise DataError(f"{name} is packed more than three times: unpack it")


def _kind(content: bytes, name: str) -> str | None:
    if content.startswith(_ZIP):
        return "zip"
    if content[257:262] == b"ustar":
        raise DataError(f"{name} is a tar archive of files, not a table: unpack it and name one of them")
    for magic, what in _OTHERS.items():
        if content.startswith(magic):
            raise DataError(f"{name} is {what}, not a text table: save it as CSV or Parquet")
    return next((kind for magic, kind in _PACKED.items() if content.startswith(magic)), None)


def _stream(content: bytes, kind: str, name: str) -> bytes:
    try:
        with _OPENERS[kind](io.BytesIO(content)) as file:
            unpacked = file.read(LARGEST + 1)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise DataError(f"{name} is a damaged {kind} file ({one_line(error)}): fetch it again") from None
    return _not_too_large(unpacked, name)


def _zipped(content: bytes, name: str) -> bytes:
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
        members = [member for member in archive.infolist() if not member.is_dir() and _is_shown(member.filename)]
        names = [member.filename for member in members]
        if "[Content_Types].xml" in names or "mimetype" in names:
            raise DataError(f"{name} is a workbook (Excel or OpenDocument), not a text table: save the sheet as CSV")
        if len(members) != 1:
            what = f"{len(members)} files ({listed(names)})" if members else "no file"
            remedy = ": unpack it and name one of them" if members else ""
            raise DataError(f"{name} is a zip of {what}, not one table{remedy}")
        if members[0].file_size > LARGEST:
            raise _too_large(name)
        with archive.open(members[0]) as file:
            return _not_too_large(file.read(LARGEST + 1), name)
    except (zipfile.BadZipFile, OSError, EOFError, zlib.error, lzma.LZMAError, ValueError) as error:
        raise DataError(f"{name} is a damaged zip file ({one_line(error)}): fetch it again") from None
    except (RuntimeError, NotImplementedError) as error:  # a password, or a method that Python does not have
        raise DataError(f"{name} cannot be unpacked ({one_line(error)}): unpack it and name the file in it") from None


def _is_shown(member: str) -> bool:
    return not member.startswith("__MACOSX/") and not member.rpartition("/")[2].startswith(".")


def _not_too_large(content: bytes, name: str) -> bytes:
    if len(content) > LARGEST:
        raise _too_large(name)
    return content


def _too_large(name: str) -> DataError:
    return DataError(f"{name} is more than {LARGEST // 2**30} GiB when unpacked: give a part of it, or Parquet")
