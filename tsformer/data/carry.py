"""The last real value before a row, where values may be missing."""

from __future__ import annotations

import numpy as np


def last_real(real: np.ndarray, group: np.ndarray) -> np.ndarray:
    """The row of the last real value at or before each row in its group, int64 `[rows, columns]`; -1 without one.

    Args:
        real: boolean `[rows, columns]`.
        group: int64 `[rows]`; the rows of a group need not stand side by side.
    """
    order = np.argsort(group, kind="stable")
    begins = np.flatnonzero(np.diff(group[order], prepend=group[order[:1]] - 1))
    begin = np.repeat(begins, np.diff(begins, append=len(order)))
    place = np.maximum.accumulate(np.where(real[order], np.arange(len(order))[:, None], -1), axis=0)
    found = np.empty(real.shape, dtype=np.int64)
    found[order] = np.where(place >= begin[:, None], order[place], -1)
    return found


def carried(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Values `[rows, columns]` with the last real one of the group where one is missing; NaN before the first."""
    rows = last_real(~np.isnan(values), group)
    return np.where(rows >= 0, np.take_along_axis(values, np.maximum(rows, 0), axis=0), np.nan)


def filled(values: np.ndarray, nothing: float) -> np.ndarray:
    """A series `[time, channels]` without gaps: the last value before one, or the first after it.

    Args:
        nothing: what stands in a channel without any value.
    """
    one = np.zeros(len(values), dtype=np.int64)
    values = carried(carried(values, one)[::-1], one)[::-1]
    return np.where(np.isnan(values), nothing, values)
