"""What every network for sequences begins with: inputs as vectors, an encoder, and chunks where sequences are long."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from tsformer.data.windows import Batch
from tsformer.nn.chunks import Chunks
from tsformer.nn.inputs import Inputs
from tsformer.nn.normalisation import RevIN


class Reader(nn.Module):
    """Reads a batch of sequences into a memory.

    Its parts bear the same names in every network, so that an encoder learned in one task goes into another.

    Args:
        inputs: what a batch holds, as one vector for each step.
        encoder: `encoder(x, mask) -> (memory, memory_mask)`, built for `inputs.width` channels.
        revin: normalise the numbers of each example by their own mean and standard deviation; None leaves them.
        chunks: reads long sequences in pieces; None reads them whole.
    """

    def __init__(self, inputs: Inputs, encoder: nn.Module, revin: RevIN | None = None, chunks: Chunks | None = None):
        super().__init__()
        self.inputs = inputs
        self.encoder = encoder
        self.revin = revin
        self.chunks = chunks

    def read(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Memory `[batch, tokens, d_model]` and its mask `[batch, tokens]`."""
        if self.revin is not None:
            batch = replace(batch, past=normalised(self.revin, batch))
        x, mask = self.inputs(batch)
        found: tuple[Tensor, Tensor] = (
            self.encoder(x, mask) if self.chunks is None else self.chunks(self.encoder, x, mask)
        )
        return found


def normalised(revin: RevIN, batch: Batch) -> Tensor:
    """The past `[batch, time, channels]` by the statistics of what a model may see of it; zero where masked."""
    mask = batch.past_mask
    seen = mask if batch.hidden is None else mask & ~batch.hidden[..., None]
    past = torch.where(mask, batch.past, 0.0)
    scale, shift = revin.statistics(past, seen)
    return torch.where(mask, revin.normalise(past, scale, shift), 0.0)
