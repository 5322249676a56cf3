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
# What nobody measures twice: three nines and more, -32768, 1e20; -1, -200, 99 and 888 may well be measured.
_MADE_UP = re.compile(r"-?(9{3,}(\.9+)?|9{2,}\.9+|9\.9{2,}|9{2,}00|8{4,}|7{4,})|-3276[78]|1e\+[23]\d")
_LARGEST_SHARE = 0.95
_NEAR = 0.25  # a number that is suspected lies this far beyond the others, by their range
_FAR = 1.0  # of one above the others more is asked: peaks are common, and 99 is a percentage; so of one cell alone
_VERY_FAR = 2.0  # of one that may be measured, too
_OFTEN = 0.05  # a share of -1 beside nothing negative
_ROUNDS = 3  # suspects in one column


def suspected_sentinels(columns: Mapping[str, np.ndarray], frame: pd.DataFrame) -> tuple[Finding, ...]:
    """Doubts, one for each number that is suspected in any of the columns; nothing is done about it.

    Only those that can hardly be measured have options: made up and there more than once, there where another column
    has such a one, or very far from all others and in stretches of rows.

    Args:
        columns: values float64 `[rows]` by name, NaN where one is missing.
        frame: of the same rows, which names them.
    """
    suspects = {name: _suspects(values) for name, values in columns.items()}
    made_up = {
        name: np.isin(values, [n for n in suspects[name] if _repeats(n, values)]) for name, values in columns.items()
    }
    sure: dict[float, bool] = {}
    for name, numbers in suspects.items():
        others = [there for other, there in made_up.items() if other != name and there.any()]
        for number in numbers:
            there = columns[name] == number
            beside = bool(others) and there[np.any(others, axis=0)].sum() > there.sum() / 2
            certain = beside or _repeats(number, columns[name]) or _in_stretches(there, columns[name])
            sure[number] = sure.get(number, False) or certain
    return tuple(_doubt(number, columns, frame, sure[number]) for number in sorted(sure))


def _repeats(number: float, values: np.ndarray) -> bool:
    return _MADE_UP.fullmatch(f"{number:g}") is not None and int((values == number).sum()) > 1


def _in_stretches(there: np.ndarray, values: np.ndarray) -> bool:
    """Whether most of these cells `[rows]` have one of them above or below, and all lie very far from the others."""
    neighbours = np.r_[False, there[:-1]] | np.r_[there[1:], False]
    return bool((there & neighbours).sum() > there.sum() / 2) and _distance(float(values[there][0]), values) > _VERY_FAR


def _distance(number: float, values: np.ndarray) -> float:
    """How far beyond all other values a number is, by their range."""
    others = values[np.isfinite(values) & (values != number)]
    low, high = np.quantile(others, (0.01, 0.99))
    beyond = others.min() - number if number < others.min() else number - others.max()
    return float(beyond / (high - low)) if high > low else float(np.inf if beyond > 0 else 0.0)


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
    if len(np.unique(others)) < 3 or count > _LARGEST_SHARE * len(values):
        return False
    if count == 1:
        return _MADE_UP.fullmatch(f"{number:g}") is not None and _distance(number, values) > _FAR
    if number == -1 and others.min() >= 0 and count > max(_OFTEN * len(values), 2 * (others < 2).sum()):
        return True
    return _distance(number, values) > (_NEAR if number < others.min() else _FAR)


def _doubt(number: float, columns: Mapping[str, np.ndarray], frame: pd.DataFrame, sure: bool) -> Finding:
    counts = {name: int((values == number).sum()) for name, values in columns.items()}
    names = [name for name, count in counts.items() if count]
    row = min(int((columns[name] == number).argmax()) for name in names)
    where, count = place(frame, row), sum(counts.values())
    remedy = f"--sentinel {number:g} if it stands for a missing value"
    text = (
        f"{number:g} lies far from all other values in {len(names)} column(s) ({listed(names)}), {count} cell(s), "
        f"the first in {where}: {remedy}"
    )
    options = {"data.sentinel": [number]} if sure else {}
    return Finding("sentinel", text, "doubt", names[0], where, count, f"{number:g}", remedy, options)
