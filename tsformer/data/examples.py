"""What a model is trained and judged on, whatever the task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, Self

import numpy as np
from torch import Tensor

from tsformer.data.windows import Batch


class Examples(Protocol):
    """A part of the data, cut into examples: windows of a panel, or labelled sequences."""

    def __len__(self) -> int: ...

    def batch(self, index: Tensor | None = None) -> Batch:
        """Those examples, int64 `[batch]`; all of them when None."""
        ...

    def batches(self, size: int) -> Iterator[Batch]:
        """Each example once. Windows come in order; of sequences, `Batch.series` says which ones a batch holds."""
        ...

    def passes(self, size: int, generator: np.random.Generator) -> Iterator[np.ndarray]:
        """The examples of each training step, int64 `[at most size]`, without end; each pass has all of them once."""
        ...

    def thin(self, most: int) -> Self:
        """At most `most` examples, evenly spaced."""
        ...
