"""From the tokens of an example to one vector."""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from tsformer.nn.attention import attention

PoolingKind = Literal["mean", "cls", "max", "attention"]
POOLINGS: tuple[PoolingKind, ...] = get_args(PoolingKind)


class Pooling(nn.Module):
    """One vector for each example; what stands behind the mask, NaN included, changes neither it nor a gradient.

    "attention" weighs tokens by their product with one learned query: a single hop of Lin et al. 2017 ("A Structured
    Self-Attentive Sentence Embedding"), with the scaled dot product of Vaswani et al. 2017 in place of a hidden layer.
    The query starts at zero, where all tokens weigh the same.

    Args:
        kind: "mean" or "max" over the real tokens of each feature, "attention" over the real tokens, or "cls": the last
            token, which whoever calls has added to the example to be read here.
        d_model: width of a token.

    Raises:
        ValueError: when there is no such kind.
    """

    def __init__(self, kind: PoolingKind, d_model: int) -> None:
        super().__init__()
        if kind not in POOLINGS:
            raise ValueError(f"unknown pooling '{kind}'; known: {', '.join(POOLINGS)}")
        self.kind = kind
        self.query = nn.Parameter(torch.zeros(d_model)) if kind == "attention" else None

    def forward(self, memory: Tensor, mask: Tensor) -> Tensor:
        """Pool.

        Args:
            memory: `[batch, tokens, d_model]`.
            mask: boolean `[batch, tokens]`, True = real.

        Returns:
            `[batch, d_model]`; zeros for an example without a real token, or for "cls" without a real last one.
        """
        real = mask[..., None]
        memory = torch.where(real, memory, 0.0)
        if self.kind == "cls":
            return memory[:, -1]
        if self.kind == "mean":
            return memory.sum(1) / real.sum(1).clamp_min(1)
        if self.query is None:
            return torch.where(real.any(1), memory.masked_fill(~real, -math.inf).amax(1), 0.0)
        query = self.query.expand(len(memory), 1, 1, -1)
        tokens = memory[:, None]
        return attention(query, tokens, tokens, mask[:, None, None, :])[:, 0, 0]

    def extra_repr(self) -> str:
        return self.kind
