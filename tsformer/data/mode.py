"""The most frequent of numbers."""

from __future__ import annotations

import numpy as np


def commonest(values: np.ndarray) -> int:
    """The most frequent of whole numbers, one at least, and the smallest if several are."""
    found, counts = np.unique(values, return_counts=True)
    return int(found[counts.argmax()])
