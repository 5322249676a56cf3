"""Names of series that several columns tell apart together: joined by "/", and taken apart again."""

from __future__ import annotations

import re
from collections.abc import Sequence


def join_id(parts: Sequence[str]) -> str:
    """One name of several: `Adelaide/Business`; a slash or backslash in a part has a backslash before it."""
    return "/".join(re.sub(r"([\\/])", r"\\\1", part) for part in parts)


def split_id(name: str) -> tuple[str, ...]:
    """The inverse of `join_id`."""
    parts = re.findall(r"((?:[^\\/]|\\.)*)(?:/|$)", name, re.DOTALL)
    return tuple(re.sub(r"\\(.)", r"\1", part, flags=re.DOTALL) for part in parts[: name_count(name)])


def name_count(name: str) -> int:
    """How many parts a joined name has."""
    return 1 + len(re.findall(r"/", re.sub(r"\\.", "", name, flags=re.DOTALL)))
