"""Batches of like lengths, which need less padding than batches drawn from all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

POOL = 64
"""Batches among whose examples like lengths are looked for: enough to find them, few enough to mix every pass anew."""


def like_lengths(
    order: np.ndarray, lengths: np.ndarray, size: int, generator: np.random.Generator
) -> Iterator[np.ndarray]:
    """Cut shuffled examples into batches of like lengths, which come in random order.

    Examples are sorted within pools of about `POOL` batches. Where they do not come out even, one batch is smaller: any
    one of the last pool, or it would always hold the longest.

    Args:
        order: int64 `[examples]`, shuffled; examples of one length stay in this order.
        lengths: int64 `[examples]`, in that order.
    """
    count, rest = -(-len(order) // size), len(order) % size
    pool = np.arange(count) * max(1, round(count / POOL)) // count  # of each batch
    order = order[np.lexsort((lengths, np.repeat(pool, size)[: len(order)]))]
    sizes = np.full(count, size)
    if rest:
        sizes[generator.choice(np.flatnonzero(pool == pool[-1]))] = rest
    batches = np.split(order, np.cumsum(sizes)[:-1])
    yield from (batches[place] for place in generator.permutation(count))


def padded_share(sides: np.ndarray, batches: Iterable[np.ndarray]) -> float:
    """The share of all positions of some batches that is padded; a batch is padded to its longest, or to one step.

    Args:
        sides: int64 `[examples, sides]`, lengths of what is padded by itself: source and answer.
        batches: int64 `[batch]` each, the examples.
    """
    real = positions = 0
    for batch in batches:
        real += int(sides[batch].sum())
        positions += len(batch) * int(sides[batch].max(axis=0, initial=1).sum())
    return 1 - real / positions if positions else 0.0
