"""Intervals as a user asks for them: their levels in percent, `80,95`, and where they come from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, get_args

from tsformer.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

Intervals = Literal["native", "conformal", "adaptive"]
INTERVALS: tuple[Intervals, ...] = get_args(Intervals)


def read_levels(given: str | float | Iterable[object]) -> tuple[float, ...]:
    """Levels, ascending.

    Args:
        given: numbers between commas, or several numbers: "80,95", [80, 95]; none of an empty list.

    Raises:
        UsageError: what is no number from 1 to below 100, or is there twice.
    """
    if isinstance(given, str):
        parts: list[object] = [part.strip() for part in given.split(",")]
    else:
        parts = list(given) if isinstance(given, Iterable) else [given]
    levels = sorted(_level(part) for part in parts)
    names = [level_name(level) for level in levels]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"--levels names {twice} twice")
    return tuple(levels)


def read_intervals(given: str | None) -> Intervals | None:
    """Where intervals come from. Raises UsageError for what is none of `INTERVALS`."""
    found = next((known for known in INTERVALS if known == given), None)
    if found is None and given is not None:
        raise UsageError(f"--intervals must be one of {', '.join(INTERVALS)}, not {given!r}")
    return found


def level_name(level: float) -> str:
    """A level as columns and options have it: "80", "99.5"."""
    return f"{level:.10g}"


def ends_of(quantiles: np.ndarray, levels: Sequence[float], level: float) -> tuple[np.ndarray, np.ndarray]:
    """The lower and the upper end of an interval, `[...]` each.

    Args:
        quantiles: `[..., 2 * levels]`, the ends of the intervals of all levels, ascending.
        levels: ascending, in percent.
        level: one of them.
    """
    place = len(levels) - 1 - list(levels).index(level)
    return quantiles[..., place], quantiles[..., -1 - place]


def _level(part: object) -> float:
    try:
        level = math.nan if isinstance(part, bool) else float(part)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        level = math.nan
    if not 1 <= level < 100 or level_name(level) == "100":
        raise UsageError(f"--levels are in percent, from 1 to below 100, with commas between them: 80,95; not {part!r}")
    return level
