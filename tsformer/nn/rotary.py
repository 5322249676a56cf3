"""Rotary positions (Su et al. 2021, "RoFormer", section 3.2.2)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tsformer.nn.positions import SinusoidTable, real_steps


class RotaryPositions(nn.Module):
    """Turn each pair of features of queries and keys by an angle that grows with the position.

    Pair i = 0, 1, ... at position m is turned by m / 10000^(2i/d_head) (equations 14 and 15), so that the product of a
    query with a key depends on their distance only. Nothing is learned, and any length will do.

    Args:
        d_head: width of one head, even.

    Raises:
        ValueError: when d_head is odd.
    """

    def __init__(self, d_head: int) -> None:
        super().__init__()
        if d_head % 2:
            raise ValueError(f"rotary positions turn pairs: they need an even d_model / n_heads, not {d_head}")
        self.table = SinusoidTable(d_head)  # of the same angles

    def forward(self, x: Tensor, mask: Tensor | None = None, offset: int = 0) -> Tensor:
        """Turn queries or keys.

        Args:
            x: `[batch, heads, time, d_head]`.
            mask: boolean `[batch, offset + time]`, True = real; only real steps are counted.
            offset: steps before the first one of `x`.

        Returns:
            `[batch, heads, time, d_head]`.
        """
        needed = offset + x.shape[-2]
        rows = self.table(needed)
        rows = rows[offset:needed] if mask is None else rows[real_steps(mask)[:, offset:]][:, None]
        sin, cos = rows[..., 0::2], rows[..., 1::2]
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)
