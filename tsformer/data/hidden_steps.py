"""Steps hidden from a model that is pretrained by finding what was there (Zerveas et al. 2021, arXiv 2010.02803)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from tsformer.data.examples import Examples
from tsformer.data.windows import Batch


@dataclass(frozen=True)
class HiddenSteps:
    """`Examples` around others, whose batches say in `Batch.hidden` which steps are hidden.

    Of the real steps of each example a share is hidden, one at least, and all of them only where there is but one.
    Numbers are hidden in stretches of geometric length, tokens one by one.

    Attributes:
        examples: windows or sequences. A step with numbers and a text is hidden as a whole.
        share: of the real steps, between 0 and 1.
        span: mean length of a stretch of hidden numbers; a stretch is no shorter than steps drawn one by one make it.
        seed: a number hides the same steps of an example each time, whatever the batch that it is in, for validation; a
            generator hides others each time, for training.
    """

    examples: Examples
    share: float
    span: float
    seed: int | np.random.Generator

    def __len__(self) -> int:
        return len(self.examples)

    def batch(self, index: Tensor | None = None) -> Batch:
        """Those examples, int64 `[batch]`, with hidden steps; all of them when None."""
        return self._hiding(self.examples.batch(index))

    def batches(self, size: int) -> Iterator[Batch]:
        """Each example once, as the examples themselves come."""
        return map(self._hiding, self.examples.batches(size))

    def passes(self, size: int, generator: np.random.Generator) -> Iterator[np.ndarray]:
        """The examples of each training step, as the examples themselves come."""
        return self.examples.passes(size, generator)

    def thin(self, most: int) -> HiddenSteps:
        """At most `most` examples, evenly spaced."""
        return replace(self, examples=self.examples.thin(most))

    def _hiding(self, batch: Batch) -> Batch:
        real = _real_steps(batch)
        # Where a stretch may begin; stretches that are hidden side by side are one, hence longer by 1 / (1 - share).
        begin = 1.0 if batch.past is None else min(1.0, 1 / (self.span * (1 - self.share)))
        hidden = _hidden(real, self._noise(batch, real), self.share, begin)
        return replace(batch, hidden=torch.from_numpy(hidden))

    def _noise(self, batch: Batch, real: np.ndarray) -> np.ndarray:
        """Two numbers in [0, 1) for each real step, the first of `[batch, time, 2]`; what follows does not matter."""
        noise = np.zeros((*real.shape, 2))
        if isinstance(self.seed, np.random.Generator):
            return self.seed.random(out=noise)
        names = [tensor.tolist() for tensor in (batch.series, batch.origin) if tensor is not None]
        for row, count, *name in zip(noise, real.sum(axis=1).tolist(), *names, strict=True):
            np.random.default_rng([self.seed, *name]).random(out=row[:count])
        return noise


def _real_steps(batch: Batch) -> np.ndarray:
    """Steps where there is a number or a token, boolean `[batch, time]`."""
    masks = [
        mask.reshape(*mask.shape[:2], -1).any(-1) for mask in (batch.past_mask, batch.token_mask) if mask is not None
    ]
    return torch.stack(masks).any(0).numpy()


def _hidden(real: np.ndarray, noise: np.ndarray, share: float, begin: float) -> np.ndarray:
    """Which steps are hidden, boolean `[batch, time]`.

    A stretch begins with probability `begin` at each step and is drawn as a whole: those with the smallest numbers are
    hidden, the last one in part, so that each example has its share. That is the two-state chain of Zerveas et al.,
    which changes at such steps only, with the share exact and not in the mean. At last the real steps are turned round
    by a random number of steps, so that each is hidden equally often, the first and the last too.
    """
    time, counts = np.arange(real.shape[1]), real.sum(axis=1, keepdims=True)
    there = time < counts  # from here on the real steps come first, as the noise does
    stretch = np.maximum.accumulate(np.where(noise[..., 0] < begin, time, 0), axis=1)
    drawn = np.take_along_axis(noise[..., 1], stretch, axis=1)
    ranks = np.argsort(np.argsort(np.where(there, drawn, np.inf), axis=1, kind="stable"), axis=1)
    turn = (noise[:, :1, 0] * counts).astype(np.int64)  # free at the first step, where a stretch begins anyway
    ranks = np.take_along_axis(ranks, (time + turn) % np.maximum(1, counts), axis=1)
    hidden = np.zeros_like(real)
    hidden[real] = (ranks < np.clip(np.rint(share * counts), 1, np.maximum(1, counts - 1)))[there]
    return hidden
