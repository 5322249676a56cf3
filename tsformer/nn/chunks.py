"""Long sequences in two stages: an encoder reads chunks, and another one what it made of each.

So do Pappagari et al. 2019 ("Hierarchical Transformers for Long Document Classification"). Time and memory of the first
stage grow linearly with the length of a sequence, whatever the encoder.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tsformer.nn.pooling import Pooling, PoolingKind
from tsformer.nn.positions import SinusoidalPositions

Encode = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""`encoder(x, mask) -> (memory, memory_mask)`, which padding on the left does not change."""


class Chunks(nn.Module):
    """Cut sequences into overlapping chunks, encode and pool each by itself, and then encode the chunks of an example.

    Chunks count back from the last step, as strides do in `tsformer.nn.convolution`: the newest one ends there, and the
    oldest is filled up on the left. Each holds `stride` steps that no newer one has, so that n real steps in a row make
    1 + ceil((n - chunk) / stride) chunks, and a single one when there are at most `chunk`.

    Args:
        chunk: steps in a chunk.
        stride: steps between two chunks, at most `chunk`.
        d_model: width of the encoder's tokens.
        upper: `upper(x, mask)`, `[batch, n_chunks, d_model]` to the same: a `tsformer.nn.layers.Encoder`.
        pooling: how the tokens of a chunk become one vector.

    Raises:
        ValueError: when the stride is below 1, or longer than a chunk, and steps would be skipped.
    """

    def __init__(self, chunk: int, stride: int, d_model: int, upper: nn.Module, pooling: PoolingKind = "mean") -> None:
        super().__init__()
        if not 1 <= stride <= chunk:
            raise ValueError(f"chunks of {chunk} steps need a stride from 1 to {chunk}, not {stride}")
        self.chunk = chunk
        self.stride = stride
        self.pooling = Pooling(pooling, d_model)
        self.positions = SinusoidalPositions(d_model)
        self.upper = upper

    def forward(self, encoder: Encode, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Encode in two stages. No time is spent on chunks that are all padding.

        Args:
            encoder: of single chunks, which it gets as one batch.
            x: `[batch, time, width]`.
            mask: boolean `[batch, time]`, True = real; padding on the left changes nothing.

        Returns:
            memory: `[batch, n_chunks, d_model]`, in the order of time.
            memory_mask: boolean `[batch, n_chunks]`; all False for an example without a real step.
        """
        x = torch.where(mask[..., None], x, 0.0)
        length = min(self.chunk, x.shape[1])
        missing = (length - x.shape[1]) % self.stride
        steps = F.pad(x, (0, 0, missing, 0)).unfold(1, length, self.stride)  # [batch, n_chunks, width, length]
        real = F.pad(mask, (missing, 0)).unfold(1, length, self.stride)  # [batch, n_chunks, length]

        used = real[..., : self.stride].any(-1)  # a chunk whose first steps are padding repeats the one after it
        used[:, -1] = True  # which no other repeats; it is encoded even when it is empty, for a batch needs an element
        tokens, token_mask = encoder(steps.transpose(2, 3)[used], real[used])
        pooled: Tensor = self.pooling(tokens, token_mask)
        chunks = pooled.new_zeros(*used.shape, pooled.shape[-1])
        chunks[used] = pooled

        memory_mask = used & real.any(-1)
        return self.upper(self.positions(chunks, memory_mask), memory_mask), memory_mask
