"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_atomically(file: Path, content: bytes) -> None:
    """Write beside the file, flush to the disk, rename: a crash or a full disk leaves the old file or none.

    Raises:
        OSError: it cannot be written.
    """
    target = file.resolve()  # a link stays a link
    temporary = target.with_name(f".{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
