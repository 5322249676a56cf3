"""Numbers that may stand for a missing value: they repeat, far from all others, and look made up."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd

from tsformer.data.cells import listed, place
from tsformer.findings import Finding

# -999, -9999.0, -99.99, -9900, 99999, -888, -7777, -1, -200, -32768, 1e20
_LIKE_ONE = re.compile(r"-?(9+|9+00|9*\.9+|8{3,}|7{3,})|-?9{2,}(\.9+)|-1|-[1-9]00|-?9\.9+|-0\.9+|-3276[78]|1e\+[23]\d")
_LARGEST_SHARE = 0.95
_NEAR = 0.25  # a number that is suspected lies this far beyond the others, by their range
_FAR = 1.0  # of one above the others more is asked: peaks are common, and 99 is a percentage
_OFTEN = 0.05  # a share of -1 beside nothing negative
_ROUNDS = 3  # suspects in one column


def suspected_sentinels(columns: Mapping[str, np.ndarray], frame: pd.DataFrame) -> tuple[Finding, ...]:
    """Doubts, one for each number that is suspected in any of the columns; nothing is done about it.

    Args:
        columns: values float64 `[rows]` by name, NaN where one is missing.
        frame: of the same rows, which names them.
    """
    suspects = {number for values in columns.values() for number in _suspects(values)}
    return tuple(_doubt(number, columns, frame) for number in sorted(suspects))


def _suspects(values: np.ndarray) -> list[float]:
    """Numbers beyond all others of a column, from the outside in."""
    rest = values[np.isfinite(values)]
    found: list[float] = []
    for _ in range(_ROUNDS):
        if not len(rest):
            break
        ends = [number for number in (float(rest.min()), float(rest.max())) if _is_one(number, rest)]
        if not ends:
            break
        found.append(ends[0])
        rest = rest[rest != ends[0]]
    return found


def _is_one(number: float, values: np.ndarray) -> bool:
    if not _LIKE_ONE.fullmatch(f"{number:g}"):
        return False
    others = values[values != number]
    count = len(values) - len(others)
    if count < 2 or len(np.unique(others)) < 3 or count > _LARGEST_SHARE * len(values):
        return False
    if number == -1 and others.min() >= 0 and count > max(_OFTEN * len(values), 2 * (others < 2).sum()):
        return True
    low, high = np.quantile(others, (0.01, 0.99))
    if number < others.min():
        return bool(others.min() - number > _NEAR * (high - low))
    return bool(number - others.max() > _FAR * (high - low))


def _doubt(number: float, columns: Mapping[str, np.ndarray], frame: pd.DataFrame) -> Finding:
    counts = {name: int((values == number).sum()) for name, values in columns.items()}
    names = [name for name, count in counts.items() if count]
    row = min(int((columns[name] == number).argmax()) for name in names)
    where, count = place(frame, row), sum(counts.values())
    remedy = f"--sentinel {number:g} if it stands for a missing value"
    text = (
        f"{number:g} lies far from all other values in {len(names)} column(s) ({listed(names)}), {count} cell(s), "
        f"the first in {where}: {remedy}"
    )
    return Finding(
        "sentinel", text, "doubt", names[0], where, count, f"{number:g}", remedy, {"data.sentinel": [number]}
    )
