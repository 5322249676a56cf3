"""From memory to prediction, all steps at once: by queries, or by a flat head.

They are called like all decoders, see `tsformer.nn.decoders`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tsformer.nn.layers import Decoder
from tsformer.nn.outputs import Output
from tsformer.nn.positions import sinusoid


class QueryDecoder(nn.Module):
    """All steps at once: a learned query for each step of the horizon attends to the memory.

    Queries start as sinusoidal positions, so that steps can be told apart from the first update on. Their number is
    the horizon, beyond which the decoder cannot go.

    Args:
        layers: the stack, used without causal mask.
        output: what is predicted.
        targets: number of targets.
        horizon: number of steps.
    """

    def __init__(self, layers: Decoder, output: Output, targets: int, horizon: int) -> None:
        super().__init__()
        self.layers = layers
        self.output = output
        self.targets = targets
        self.queries = nn.Parameter(sinusoid(horizon, layers.d_model))
        self.head = nn.Linear(layers.d_model, targets * output.outputs)

    def forward(
        self, memory: Tensor, memory_mask: Tensor, last: Tensor, future: Tensor | None = None, truth: float = 0.0
    ) -> Tensor:
        """`[batch, horizon, targets, outputs]`; `last`, `future` and `truth` are ignored."""
        queries = self.queries.expand(len(memory), -1, -1)
        y: Tensor = self.head(self.layers(queries, memory, memory_mask, causal=False))
        return y.view(*y.shape[:2], self.targets, self.output.outputs)


class FlatHead(nn.Module):
    """All steps at once, by one linear map of the whole memory (Nie et al. 2023, PatchTST, section 3.1).

    Both the number of tokens and the horizon are fixed by the weights.

    Args:
        output: what is predicted.
        targets: number of targets.
        horizon: number of steps.
        tokens: number of tokens of the memory.
        d_model: their width.
    """

    def __init__(self, output: Output, targets: int, horizon: int, tokens: int, d_model: int) -> None:
        super().__init__()
        self.shape = (horizon, targets, output.outputs)
        self.tokens = tokens
        self.head = nn.Linear(tokens * d_model, horizon * targets * output.outputs)

    def forward(
        self, memory: Tensor, memory_mask: Tensor, last: Tensor, future: Tensor | None = None, truth: float = 0.0
    ) -> Tensor:
        """`[batch, horizon, targets, outputs]`; `last`, `future` and `truth` are ignored.

        Raises:
            ValueError: when the memory has another number of tokens than the head was built for.
        """
        if memory.shape[1] != self.tokens:
            raise ValueError(f"a flat head built for {self.tokens} tokens was given {memory.shape[1]}")
        memory = torch.where(memory_mask[..., None], memory, 0.0)
        y: Tensor = self.head(memory.flatten(1))
        return y.view(-1, *self.shape)
