"""Sequences of unequal length in one flat array with offsets: no padding is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Ragged:
    """Sequences one after another. Raises ValueError when the parts do not fit together.

    Attributes:
        values: `[rows]` or `[rows, channels]`, of any type of numbers.
        offsets: int64 `[sequences + 1]`; sequence i is rows `offsets[i]:offsets[i + 1]`, and may be empty.
    """

    values: np.ndarray
    offsets: np.ndarray

    def __post_init__(self) -> None:
        offsets = self.offsets
        if offsets.ndim != 1 or offsets.dtype != np.int64 or len(offsets) < 1:
            raise ValueError(f"Ragged.offsets must be int64 [sequences + 1], not {offsets.dtype} {offsets.shape}")
        if offsets[0] != 0 or (np.diff(offsets) < 0).any() or offsets[-1] != len(self.values):
            raise ValueError("Ragged.offsets must ascend from 0 to the number of rows")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        """One sequence, `[length]` or `[length, channels]`."""
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    @property
    def lengths(self) -> np.ndarray:
        """Rows of each sequence, int64 `[sequences]`."""
        return np.diff(self.offsets)

    def take(self, index: np.ndarray) -> Ragged:
        """Some of the sequences, in the order of `index` int64 `[count]`."""
        lengths = self.lengths[index]
        offsets = offsets_of(lengths)
        rows = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][index] - offsets[:-1], lengths)
        return Ragged(self.values[rows], offsets)


def ragged(sequences: Sequence[np.ndarray] | Sequence[Sequence[int]], dtype: type = np.int64) -> Ragged:
    """From single sequences, `[length]` or `[length, channels]` each; at least one, or the width would be unknown."""
    arrays: list[np.ndarray] = [np.asarray(sequence, dtype=dtype) for sequence in sequences]
    return Ragged(np.concatenate(arrays), offsets_of([len(array) for array in arrays]))


def offsets_of(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    """Where each sequence begins, and where the last one ends: int64 `[sequences + 1]`."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
