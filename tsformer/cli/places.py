"""Places that a line names for what is written: looked at before hours of work, not after them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tsformer.errors import ResourceError, UsageError


def require_named(flag: str, path: str | None) -> None:
    """Raises UsageError when a path is empty, as an unset variable of the shell leaves it."""
    if path is not None and not path.strip():
        raise UsageError(f"{flag} is empty: name a place, or leave it out")


def place(flag: str, path: str | None) -> Path | None:
    """The path that an option was given, with "~" for the user's folder.

    Raises:
        UsageError: it is empty.
    """
    require_named(flag, path)
    return None if path is None else Path(os.path.expanduser(path))


def require_apart(flag: str, path: str, read: Mapping[str, str | None]) -> None:
    """Raises UsageError when a file that is written is one of those that are `read`, by their flags."""
    written = Path(os.path.expanduser(path))
    for other, name in read.items():
        file = Path(os.path.expanduser(name or ""))
        if name and written.is_file() and file.is_file() and written.samefile(file):
            raise UsageError(f"{flag} and {other} are both {path}, which would be lost: name another {flag}")


def require_writable(what: str, path: Path, *, folder: bool = False) -> None:
    """Try a file without a name in the folder, or in the nearest one above it that is there; nothing stays behind.

    Args:
        what: what messages call the path.
        path: a file, or a folder that may be there.
        folder: which of them.

    Raises:
        ResourceError: nothing can be written there.
    """
    there = path.absolute()
    try:
        if there.is_dir() and not folder:
            raise ResourceError(f"{what} is a folder: name a file in it")
        if not folder:
            there = there.parent
        while not there.exists():
            there = there.parent
        with tempfile.TemporaryFile(dir=there):
            pass
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ResourceError(f"{what} cannot be written: {there} takes no file ({reason}); name another place") from None
