"""Sinusoidal positions (Vaswani et al. 2017, section 3.5)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def sinusoid(length: int, d_model: int) -> Tensor:
    """sin(pos / 10000^(2i/d_model)) at even indices 2i, the cosine at the odd ones beside them.

    Computed in float64, so that far positions keep their phase.

    Returns:
        float32 `[length, d_model]`.
    """
    position = torch.arange(length, dtype=torch.float64)[:, None]
    rate = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(10_000.0) / d_model))
    table = torch.empty(length, d_model, dtype=torch.float64)
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate[: d_model // 2])  # one cosine fewer when d_model is odd
    return table.float()


class SinusoidalPositions(nn.Module):
    """Add positions that count real steps, for any length.

    The table grows when a longer series comes, and is no part of the saved weights.

    Args:
        d_model: width; odd widths end in a sine.
    """

    table: Tensor

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.register_buffer("table", torch.empty(0, d_model), persistent=False)

    def forward(self, x: Tensor, mask: Tensor | None = None, offset: int = 0) -> Tensor:
        """Add to each step its position.

        Args:
            x: `[batch, time, d_model]`.
            mask: boolean `[batch, time]`, True = real. The first real step of each row has position `offset`, however
                much padding stands before it; a masked step repeats the position of the real one before it.
            offset: position of the first step, for decoding step by step.

        Returns:
            `[batch, time, d_model]`.
        """
        needed = offset + x.shape[1]
        if needed > len(self.table):
            with torch.inference_mode(False):  # a table born in inference mode could not be used in training later
                self.table = sinusoid(max(needed, 2 * len(self.table)), self.d_model).to(self.table)
        if mask is None:
            return x + self.table[offset:needed]
        return x + self.table[(mask.cumsum(1) - 1).clamp_min(0) + offset]
