"""Transformer layers and stacks (Vaswani et al. 2017, section 3; Xiong et al. 2020 for Pre-LN).

Post-LN (the original) is norm(x + f(x)). Pre-LN is x + f(norm(x)), and needs a final norm at the end of the stack,
because nothing else has normalised the residual stream.

Dropout acts on the output of each sub-layer (section 5.4), and nowhere else: dropped from an embedding, a number is
lost for good, and the network learns to shrink towards the mean (on a clean sine RMSE 0.087 instead of 0.003).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from tsformer.nn.attention import KeyValueCache, MultiHeadAttention
from tsformer.nn.dropout import Dropout


class FeedForward(nn.Sequential):
    """max(0, x W1 + b1) W2 + b2 (equation 2), `[..., d_model]` to `[..., d_model]`."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))


class Residual(nn.Module):
    """The residual connection, dropout and norm around one sub-layer.

    Args:
        d_model: width.
        dropout: rate on the sub-layer's output.
        norm_first: Pre-LN when True, Post-LN when False.
        eps: of the layer norm.
    """

    def __init__(self, d_model: int, dropout: float, norm_first: bool, eps: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model, eps=eps)
        self.dropout = Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """`[batch, time, d_model]` to the same."""
        y: Tensor = self.norm(x) if self.norm_first else x
        y = x + self.dropout(sublayer(y))
        if not self.norm_first:
            y = self.norm(y)
        return y


class EncoderLayer(nn.Module):
    """Self-attention, then a feed-forward network.

    Args:
        d_model, n_heads, d_ff: width, heads, and width of the feed-forward network.
        dropout: rate on the output of each sub-layer.
        norm_first: Pre-LN when True, Post-LN when False.
        eps: of the layer norms.
    """

    def __init__(
        self, d_model: int, n_heads: int, d_ff: int, dropout: float = 0.0, norm_first: bool = True, eps: float = 1e-5
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.residuals = nn.ModuleList(Residual(d_model, dropout, norm_first, eps) for _ in range(2))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """`[batch, time, d_model]` to the same.

        `mask` `[batch, time]`, True = real; the output at other steps is meaningless.
        """
        x = self.residuals[0](x, lambda y: self.self_attention(y, mask=mask)[0])
        x = self.residuals[1](x, self.feed_forward)
        return x


@dataclass
class LayerCache:
    """What one decoder layer remembers between steps: its own past, and the memory's keys and values."""

    past: KeyValueCache = field(default_factory=KeyValueCache)
    memory: KeyValueCache = field(default_factory=KeyValueCache)


class DecoderLayer(nn.Module):
    """Self-attention, cross-attention to the memory, then a feed-forward network.

    Args:
        as `EncoderLayer`.
    """

    def __init__(
        self, d_model: int, n_heads: int, d_ff: int, dropout: float = 0.0, norm_first: bool = True, eps: float = 1e-5
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.cross_attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.residuals = nn.ModuleList(Residual(d_model, dropout, norm_first, eps) for _ in range(3))

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        memory_mask: Tensor | None = None,
        causal: bool = True,
        cache: LayerCache | None = None,
    ) -> Tensor:
        """`[batch, time, d_model]` to the same.

        Args:
            x: `[batch, time, d_model]`; with a cache, the newest steps only.
            memory: `[batch, tokens, d_model]`.
            memory_mask: boolean `[batch, tokens]`, True = may be attended to.
            causal: no step sees a later one.
            cache: what earlier calls have computed.
        """
        past, seen = (None, None) if cache is None else (cache.past, cache.memory)
        x = self.residuals[0](x, lambda y: self.self_attention(y, causal=causal, cache=past)[0])
        x = self.residuals[1](x, lambda y: self.cross_attention(y, memory, memory_mask, cache=seen)[0])
        x = self.residuals[2](x, self.feed_forward)
        return x


class Encoder(nn.Module):
    """A stack of encoder layers, with a final norm when Pre-LN.

    Args:
        n_layers: number of layers; 0 leaves only the final norm.
        final_norm: False leaves out the final norm of Pre-LN, for a head that wants the residual stream itself.
        others: as `EncoderLayer`.
    """

    def __init__(
        self,
        n_layers: int,
        d_model: int,
        n_heads: int,
        d_ff: int,
        dropout: float = 0.0,
        norm_first: bool = True,
        eps: float = 1e-5,
        final_norm: bool = True,
    ) -> None:
        super().__init__()
        self.d_model = d_model
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, n_heads, d_ff, dropout, norm_first, eps) for _ in range(n_layers)
        )
        self.norm = nn.LayerNorm(d_model, eps=eps) if norm_first and final_norm else nn.Identity()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """`[batch, time, d_model]` to the same; `mask` `[batch, time]`, True = real."""
        if mask is not None:
            # A NaN behind the mask would reach the weights' gradients through norm and feed-forward, step by step.
            x = torch.where(mask[..., None], x, 0.0)
        for layer in self.layers:
            x = layer(x, mask)
        x = self.norm(x)
        return x


class Decoder(nn.Module):
    """A stack of decoder layers, with a final norm when Pre-LN.

    Args:
        n_layers: number of layers, at least 1: without one the memory would be ignored.
        others: as `DecoderLayer`.

    Raises:
        ValueError: when n_layers is below 1.
    """

    def __init__(
        self,
        n_layers: int,
        d_model: int,
        n_heads: int,
        d_ff: int,
        dropout: float = 0.0,
        norm_first: bool = True,
        eps: float = 1e-5,
    ) -> None:
        super().__init__()
        if n_layers < 1:
            raise ValueError(f"a decoder needs at least 1 layer, not {n_layers}")
        self.d_model = d_model
        self.layers = nn.ModuleList(
            DecoderLayer(d_model, n_heads, d_ff, dropout, norm_first, eps) for _ in range(n_layers)
        )
        self.norm = nn.LayerNorm(d_model, eps=eps) if norm_first else nn.Identity()

    def caches(self) -> list[LayerCache]:
        """An empty cache for each layer."""
        return [LayerCache() for _ in self.layers]

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        memory_mask: Tensor | None = None,
        causal: bool = True,
        caches: Sequence[LayerCache] | None = None,
    ) -> Tensor:
        """`[batch, time, d_model]` to the same; arguments as `DecoderLayer`, with one cache for each layer."""
        for index, layer in enumerate(self.layers):
            x = layer(x, memory, memory_mask, causal, None if caches is None else caches[index])
        x = self.norm(x)
        return x
