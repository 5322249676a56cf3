"""Scaled dot-product attention (Vaswani et al. 2017, "Attention Is All You Need", section 3.2).

One mask convention everywhere: boolean, True = may attend, as in `F.scaled_dot_product_attention`.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tsformer.nn.dropout import Dropout
from tsformer.nn.positions import KINDS, PositionKind, unknown_positions
from tsformer.nn.relative import RelativeBias, buckets_between
from tsformer.nn.rotary import RotaryPositions


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    causal: bool = False,
    bias: Tensor | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """softmax(Q K^T / sqrt(d)) V (equation 1), by the fused kernel.

    Args:
        query: `[batch, heads, queries, d_head]`.
        key, value: `[batch, heads, keys, d_head]`; finite everywhere, also behind the mask.
        mask: boolean, broadcastable to `[batch, heads, queries, keys]`, True = may attend.
        causal: queries are the newest steps of the keys, and see themselves and what came before.
        bias: added to the scaled scores, broadcastable to `[batch, heads, queries, keys]`.
        dropout: share of the weights that the kernel drops.

    Returns:
        `[batch, heads, queries, d_head]`; zeros for a query that may attend to nothing.
    """
    queries, keys = query.shape[-2], key.shape[-2]
    if mask is None and bias is None and causal and queries == keys:
        return F.scaled_dot_product_attention(query, key, value, None, dropout, is_causal=True)
    allowed = _allowed(mask, causal, queries, keys, query.device)
    if allowed is None:
        return F.scaled_dot_product_attention(query, key, value, bias, dropout)
    # Kernels differ on rows that are masked completely (zeros, NaN, or NaN in the gradient only): such a row is opened,
    # and its result thrown away.
    some = allowed.any(-1, keepdim=True)
    opened = allowed | ~some
    added = opened if bias is None else torch.where(opened, bias, -math.inf)
    output = F.scaled_dot_product_attention(query, key, value, added, dropout)
    return torch.where(some, output, 0.0)


def attention_with_weights(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    causal: bool = False,
    bias: Tensor | None = None,
    dropout: nn.Module | None = None,
) -> tuple[Tensor, Tensor]:
    """`attention` written out, for those who want to see the weights, or to drop some.

    Args:
        query, key, value, mask, causal, bias: as for `attention`.
        dropout: what the weights go through before the values are summed.

    Returns:
        output: as `attention`.
        weights: `[batch, heads, queries, keys]`, before any is dropped, each row summing to 1, or all zeros where
            nothing may be attended to.
    """
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if bias is not None:
        scores = scores + bias
    allowed = _allowed(mask, causal, query.shape[-2], key.shape[-2], query.device)
    if allowed is None:
        weights = scores.softmax(-1)
    else:
        some = allowed.any(-1, keepdim=True)
        weights = scores.masked_fill(~allowed & some, -math.inf).softmax(-1).masked_fill(~allowed, 0.0)
    return (weights if dropout is None else dropout(weights)) @ value, weights


def _allowed(mask: Tensor | None, causal: bool, queries: int, keys: int, device: torch.device) -> Tensor | None:
    if not causal or queries == 1:  # a single query is the newest step, before which everything lies
        return mask
    # SDPA's own `is_causal` aligns queries with the oldest keys; a cache needs them aligned with the newest.
    before = torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)
    return before if mask is None else mask & before


class KeyValueCache:
    """The keys and values that one attention module has computed so far.

    For self-attention they grow step by step; for cross-attention they are computed from the memory once. Appending
    concatenates, which keeps gradients intact.

    Attributes:
        keys, values: `[batch, heads, keys, d_head]`, None while empty.
    """

    def __init__(self) -> None:
        self.keys: Tensor | None = None
        self.values: Tensor | None = None

    def __len__(self) -> int:
        return 0 if self.keys is None else self.keys.shape[-2]

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add the newest steps and return all of them."""
        self.keys = keys if self.keys is None else torch.cat([self.keys, keys], dim=-2)
        self.values = values if self.values is None else torch.cat([self.values, values], dim=-2)
        return self.keys, self.values

    def take(self, rows: Tensor) -> None:
        """Keep these rows of the batch, int64 `[rows]`, in that order, as a search does with answers it follows."""
        if self.keys is not None and self.values is not None:
            self.keys, self.values = self.keys[rows], self.values[rows]


class MultiHeadAttention(nn.Module):
    """Multi-head attention (section 3.2.2): self, causal or cross, by what it is called with.

    Args:
        d_model: width of queries, memory and output.
        n_heads: number of heads; divides d_model.
        dropout: rate at which attention weights are dropped in training. On a CPU, where the fused kernel draws slowly,
            training then takes the explicit path.
        positions: "relative" and "rotary" act here, in self-attention only; other kinds have no effect.

    Raises:
        ValueError: when n_heads does not divide d_model, when there are no such positions, or when rotary ones meet an
            odd d_model / n_heads.
    """

    def __init__(self, d_model: int, n_heads: int, dropout: float = 0.0, positions: PositionKind = "none") -> None:
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"d_model {d_model} is not a multiple of n_heads {n_heads}")
        if positions not in KINDS:
            raise unknown_positions(positions)
        self.n_heads = n_heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)
        self.dropout = Dropout(dropout)
        self.relative = RelativeBias(n_heads) if positions == "relative" else None
        self.rotary = RotaryPositions(d_model // n_heads) if positions == "rotary" else None

    def forward(
        self,
        query: Tensor,
        memory: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        causal: bool = False,
        cache: KeyValueCache | None = None,
        buckets: Tensor | None = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from `query` to `memory`, or to itself.

        What stands behind the mask may be anything, NaN included: it is zeroed before it is multiplied with anything,
        because 0 * NaN is NaN. Relative and rotary positions count the real steps, and with a cache go on after those
        in it.

        Args:
            query: `[batch, queries, d_model]`.
            memory: `[batch, keys, d_model]`; None for self-attention.
            mask: boolean `[batch, keys]`, True = may be attended to; with a cache it covers the cached steps as well.
            causal: queries are the newest steps of the keys, and see no later step.
            cache: earlier steps of a self-attention, which it extends; or the keys and values of a memory, which are
                computed at the first call and merely read afterwards.
            buckets: for relative positions, what `buckets_between` gives for these queries and keys, where a stack has
                found it for all its layers; None finds it here.
            need_weights: also return the weights, at the price of the fused kernel.

        Returns:
            output: `[batch, queries, d_model]`.
            weights: `[batch, heads, queries, keys]`, or None.
        """
        bias = None
        if memory is None:
            if mask is not None:
                query = torch.where(mask[:, -query.shape[1] :, None], query, 0.0)
            queries, keys, values = (self._heads(part(query)) for part in (self.query, self.key, self.value))
            if self.rotary is not None:
                offset = 0 if cache is None else len(cache)
                queries, keys = self.rotary(queries, mask, offset), self.rotary(keys, mask, offset)
            if cache is not None:
                keys, values = cache.append(keys, values)
            if self.relative is not None:
                if buckets is None:
                    buckets = buckets_between(queries.shape[-2], keys.shape[-2], causal, mask, query.device)
                bias = self.relative(buckets)
        else:
            queries = self._heads(self.query(query))
            if cache is not None and cache.keys is not None and cache.values is not None:
                keys, values = cache.keys, cache.values
            else:
                if mask is not None:
                    memory = torch.where(mask[..., None], memory, 0.0)
                keys, values = self._heads(self.key(memory)), self._heads(self.value(memory))
                if cache is not None:
                    cache.append(keys, values)

        allowed = None if mask is None else mask[:, None, None, :]
        weights = None
        dropout = self.dropout.p if self.training else 0.0
        if need_weights or (dropout > 0.0 and query.device.type == "cpu"):
            output, weights = attention_with_weights(queries, keys, values, allowed, causal, bias, self.dropout)
        else:
            output = attention(queries, keys, values, allowed, causal, bias, dropout)
        output = self.output(output.transpose(1, 2).flatten(2))
        return output, weights if need_weights else None

    def _heads(self, x: Tensor) -> Tensor:
        """`[batch, time, d_model]` to `[batch, heads, time, d_head]`."""
        return x.view(*x.shape[:-1], self.n_heads, -1).transpose(1, 2)
