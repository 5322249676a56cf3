"""The split: by time, per series, before any window is cut and before any statistic is taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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
        ids: names for the message.

    Raises:
        DataError: a series is too short; says how many rows are needed.
    """
    train, test = _parts(lengths, horizon)
    short = np.flatnonzero(train < lookback + lost + horizon)
    if len(short):
        first = int(short[0])
        name = f"series '{ids[first]}'" if ids and ids[first] else "the series"
        count = f" ({len(short)} of {len(lengths)} series are too short)" if len(lengths) > 1 else ""
        raise DataError(
            f"{name} has {int(lengths[first])} rows, {max(0, int(train[first]))} of them for training; "
            f"lookback {lookback} and horizon {horizon} need {shortest(lookback + lost, horizon)} rows in all{count}; "
            "use a smaller --lookback or --horizon, or more data"
        )
    return Split(train, lengths - test, lengths)


def shortest(lookback: int, horizon: int) -> int:
    """The fewest rows with which `split_by_time` succeeds."""
    rows = np.arange(lookback + 3 * horizon, 2 * (lookback + 3 * horizon) + 20)
    return int(rows[_parts(rows, horizon)[0] >= lookback + horizon][0])


def _parts(lengths: np.ndarray, horizon: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows for training and for the test."""
    train, validation = lengths * 7 // 10, lengths // 10
    test = np.maximum(lengths - train - validation, horizon)
    return lengths - test - np.maximum(validation, horizon), test
