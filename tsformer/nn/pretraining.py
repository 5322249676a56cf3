"""Learning without labels: some steps are hidden, and have to be found from the others.

For numbers Zerveas et al. 2021, "A Transformer-based Framework for Multivariate Time Series Representation Learning";
for tokens Devlin et al. 2019, "BERT". Other than in BERT, every chosen token is hidden, by a vector of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tsformer.data.windows import Batch
from tsformer.nn.inputs import Inputs
from tsformer.nn.network import fold
from tsformer.nn.normalisation import RevIN
from tsformer.nn.objective import Verdict, mean_verdict
from tsformer.nn.reader import Reader
from tsformer.plugin import Problem


class HiddenStepNetwork(Reader):
    """Reads a sequence of which some steps are hidden, and says what stood at every step.

    Args:
        problem: numbers or tokens, not both.
        inputs, encoder, revin: see `Reader`; an encoder that shortens sequences says by how much in `stride`.
        d_model: width of the memory.
        channel_independent: each target is read by itself, with the same weights, as for forecasts.
    """

    def __init__(
        self,
        problem: Problem,
        inputs: Inputs,
        encoder: nn.Module,
        d_model: int,
        revin: RevIN | None,
        channel_independent: bool,
    ) -> None:
        super().__init__(inputs, encoder, revin)
        self.targets = problem.targets
        self.channel_independent = channel_independent and problem.targets > 0
        self.stride = int(getattr(encoder, "stride", 1))
        self.outputs = 1 if self.channel_independent else problem.targets or problem.channels or problem.vocabulary
        self.head = nn.Linear(d_model, self.stride * self.outputs)

    def forward(self, batch: Batch, truth: float = 0.0) -> Tensor:
        """What stood at each step; `truth` is ignored.

        Returns:
            `[batch, time, vocabulary]` for tokens, padded as the batch is; `[batch, time, channels]` for numbers, of
            the targets only where there are any, in the units of `batch.past`.
        """
        if batch.past is None:
            if batch.tokens is None or batch.token_mask is None:
                raise ValueError("a batch needs past or tokens")
            return _to_right(self._steps(batch, batch.tokens.shape[1]), batch.token_mask)
        past, scale, shift = batch.past, None, None
        if self.revin is not None:
            seen = batch.past_mask if batch.hidden is None else batch.past_mask & ~batch.hidden[..., None]
            scale, shift = self.revin.statistics(torch.where(batch.past_mask, past, 0.0), seen)
        found = self._each(batch) if self.channel_independent else self._steps(batch, past.shape[1])
        if scale is None or shift is None:
            return found
        return found * scale[..., : found.shape[-1]] + shift[..., : found.shape[-1]]

    def _each(self, batch: Batch) -> Tensor:
        """Each target by itself: `[batch, time, targets]`."""
        past, mask = (fold(x, self.targets) for x in (batch.past, batch.past_mask))
        shared = {"hidden": batch.hidden, "tokens": batch.tokens, "token_mask": batch.token_mask}
        each = {name: x.repeat_interleave(self.targets, 0) for name, x in shared.items() if x is not None}
        found = self._steps(replace(batch, past=past, past_mask=mask, **each), past.shape[1])
        return found.view(-1, self.targets, past.shape[1]).transpose(1, 2)

    def _steps(self, batch: Batch, time: int) -> Tensor:
        """A token of the memory stands for `stride` steps, counted back from the last: `[batch, time, outputs]`."""
        memory, _ = self.read(batch)
        return self.head(memory).reshape(len(memory), -1, self.outputs)[:, -time:]


def _to_right(x: Tensor, mask: Tensor) -> Tensor:
    """From padding on the left to padding on the right: `[batch, time, features]`, `mask` `[batch, time]`."""
    time = x.shape[1]
    steps = torch.arange(time, device=x.device) + (time - mask.sum(1, keepdim=True))
    return x.take_along_dim((steps % time)[..., None], dim=1)


class HiddenOutput:
    """What stood at hidden steps: numbers by their squared error, tokens by cross-entropy. An `Objective`."""

    name = "hidden"
    truth = 0.0

    def loss(self, prediction: Tensor, batch: Batch) -> Tensor:
        """Mean over the hidden steps, of `[batch, time, channels]` or `[batch, time, vocabulary]` to a scalar."""
        total, count = self.tally(prediction, batch).unbind()
        return total / count.clamp_min(1.0)

    def tally(self, prediction: Tensor, batch: Batch) -> Tensor:
        """Summed loss, and how many numbers or tokens were hidden."""
        if batch.hidden is None:
            raise ValueError("nothing is hidden in this batch")
        if batch.past is None:
            if batch.tokens is None:
                raise ValueError("a batch needs past or tokens")
            found, wanted = prediction[batch.hidden], batch.tokens[batch.hidden]
            total = F.cross_entropy(found.float(), wanted, reduction="sum")
            return torch.stack([total, torch.tensor(float(len(wanted)), device=total.device)])
        channels = prediction.shape[-1]
        counts = batch.past_mask[..., :channels] & batch.hidden[..., None]
        wanted = torch.where(counts, batch.past[..., :channels], 0.0)
        errors = (torch.where(counts, prediction, 0.0) - wanted).square()
        return torch.stack([errors.sum(), counts.sum().to(errors.dtype)])

    def verdict(self, tally: Sequence[float]) -> Verdict:
        """The mean loss."""
        return mean_verdict(tally)
