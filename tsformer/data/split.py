"""The split: by time, per series, before any window is cut and before any statistic is taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tsformer.data.cells import listed
from tsformer.errors import DataError


@dataclass(frozen=True)
class Split:
    """Where the parts of each series end, in rows counted from the start of that series.

    Attributes:
        train: int64 `[series]`; rows `[0, train)` are for training.
        validation: int64 `[series]`; rows `[train, validation)`; the test part is what follows.
        lengths: int64 `[series]`.
    """

    train: np.ndarray
    validation: np.ndarray
    lengths: np.ndarray


def split_by_time(
    lengths: np.ndarray, horizon: int, lookback: int, lost: int = 0, ids: Sequence[str] | None = None
) -> Split:
    """70/10/20 per series, rounded down, the rest to the test part; validation and test hold at least one horizon.

    Args:
        lengths: int64 `[series]`, rows of each series.
        horizon: steps predicted by a window.
        lookback: steps seen by a window; the training part must hold one whole window.
        lost: rows that transforms lose at the start.
        ids: names for the message; None for a single series without a name.

    Raises:
        DataError: a series is too short; says how many rows are needed.
    """
    train, test = _parts(lengths, horizon)
    short = np.flatnonzero(train < lookback + lost + horizon)
    if len(short):
        needed = shortest(lookback + lost, horizon)
        window = f"lookback {lookback}{f', {lost} row(s) lost to transforms' if lost else ''} and horizon {horizon}"
        needs = f"{window} need {needed} rows in all, to leave enough for training"
        raise too_short(lengths, short, ids, needs, "use a smaller --lookback or --horizon, or more data")
    return Split(train, lengths - test, lengths)


def too_short(lengths: np.ndarray, short: np.ndarray, ids: Sequence[str] | None, needs: str, remedy: str) -> DataError:
    """What to raise when series `short` of all have too few rows: names the first, and says how many there are.

    Args:
        lengths: int64 `[series]`, rows of each series.
        short: int64, which of them are too short; one at least.
        ids: names of the series; None for a single one without a name.
        needs: what rows are needed for, and how many.
        remedy: what to do.
    """
    first = int(short[0])
    name = f"series {ids[first]!r}" if ids else "the series"
    others, drop = "", ""
    if ids and len(lengths) > 1:
        others = f" ({len(short)} of {len(lengths)} series are too short: {listed([ids[i] for i in short])})"
        drop = ", or leave the short series out"
    return DataError(f"{name} has {int(lengths[first])} rows; {needs}{others}; {remedy}{drop}")


def shortest(lookback: int, horizon: int) -> int:
    """The fewest rows with which `split_by_time` succeeds."""
    rows = np.arange(lookback + 3 * horizon, 2 * (lookback + 3 * horizon) + 20)
    return int(rows[_parts(rows, horizon)[0] >= lookback + horizon][0])


def _parts(lengths: np.ndarray, horizon: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows for training and for the test."""
    train, validation = lengths * 7 // 10, lengths // 10
    test = np.maximum(lengths - train - validation, horizon)
    return lengths - test - np.maximum(validation, horizon), test
