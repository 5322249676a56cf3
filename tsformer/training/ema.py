"""The exponential moving average of the weights (after Polyak & Juditsky 1992), steadier than the last weights.

`torch.optim.swa_utils.AveragedModel` does the same sum. It is not used because it copies the whole module: a buffer
that grows, as a table of positions does, no longer fits its copy, and whatever else a plugin's module holds would be
there twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from tsformer.training.schedules import ema_decay


class WeightAverage:
    """The moving average of a module's trained weights: average += (1 - decay) (weights - average) after each step.

    It starts as the initial weights, which a growing decay soon forgets; see `ema_decay`. Buffers are not averaged: the
    module's own count. Nothing is drawn, and what is kept is a function of the weights and the step alone.

    Args:
        module: whose weights.
        decay: the highest decay; 0 keeps no average, and the weights themselves count.

    Attributes:
        averages: by parameter name; of weights in half precision in float32, where small changes would be rounded off.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        self.decay = decay
        self.weights = {name: p for name, p in module.named_parameters() if p.requires_grad and decay > 0.0}
        self.averages = {
            name: weight.detach().to(torch.promote_types(weight.dtype, torch.float32), copy=True)
            for name, weight in self.weights.items()
        }

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after a step, counted from 0."""
        share = 1.0 - ema_decay(step, self.decay)
        for name, average in self.averages.items():
            average.lerp_(self.weights[name].to(average.dtype), share)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Within this, the module carries the averages in place of its weights."""
        # Copied rather than swapped: cuDNN wants the weights of an LSTM to stay in the one block that they lie in.
        own = {name: weight.detach().clone() for name, weight in self.weights.items()}
        try:
            self._carry(self.averages)
            yield
        finally:
            self._carry(own)

    @torch.no_grad()
    def _carry(self, values: Mapping[str, Tensor]) -> None:
        for name, weight in self.weights.items():
            weight.copy_(values[name])
