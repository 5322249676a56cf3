"""How well hidden steps are found, beside a guess that looks at nothing but what usually stands there."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tsformer.data.examples import Examples
from tsformer.data.windows import Batch
from tsformer.errors import DivergedError
from tsformer.nn.normalisation import window_statistics
from tsformer.nn.pretraining import HiddenOutput
from tsformer.parts import Parts
from tsformer.training.loop import PREDICTED_AT_ONCE, predictions


@dataclass(frozen=True)
class HiddenScore:
    """Losses on the hidden steps of the test part.

    Attributes:
        kind: "mse" of scaled numbers, or "cross_entropy" of tokens in nats.
        loss: of the model.
        baseline: of the mean of what each window shows, or of the frequencies of the tokens in the training part.
        examples: how many there are.
    """

    kind: str
    loss: float
    baseline: float
    examples: int

    def to_json(self) -> dict[str, Any]:
        return {
            "test": {self.kind: self.loss, "examples": self.examples},
            "baselines": {"mean" if self.kind == "mse" else "frequency": {self.kind: self.baseline}},
        }

    def cautions(self, model: str) -> Iterator[str]:
        """A line when nothing was learned."""
        if self.loss >= self.baseline:
            yield (
                f"{model} finds hidden steps no better than a guess: {self.kind} {self.loss:.4g} against "
                f"{self.baseline:.4g}"
            )


def hidden_score(module: nn.Module, parts: Parts, device: torch.device) -> HiddenScore:
    """Score a pretrained model on the test part.

    Raises:
        DivergedError: what it finds is not finite.
    """
    numbers, output = parts.problem.channels > 0, HiddenOutput()
    naive = _mean_of_window if numbers else _Frequencies(parts.train, parts.problem.vocabulary)
    sums = []
    for found, batch in predictions(module, parts.test, device):
        guess = naive(batch)[..., : found.shape[-1]]  # of the targets, where there are covariates too
        sums.append(torch.stack([output.tally(found.cpu(), batch), output.tally(guess, batch)]))
    loss, baseline = (output.verdict(each).loss for each in torch.stack(sums).double().sum(0).tolist())
    if not math.isfinite(loss):
        raise DivergedError(f"the loss on the test part is {loss}; nothing usable was learned")
    return HiddenScore("mse" if numbers else "cross_entropy", loss, baseline, len(parts.test))


def _mean_of_window(batch: Batch) -> Tensor:
    """The mean of what is shown of each channel, at every step."""
    assert batch.hidden is not None
    seen = batch.past_mask & ~batch.hidden[..., None]
    _, mean = window_statistics(torch.where(batch.past_mask, batch.past, 0.0), seen)
    return mean.expand_as(batch.past)


class _Frequencies:
    """Logits of each token by how often it occurs in the training part; a token that does not counts as once."""

    def __init__(self, train: Examples, vocabulary: int) -> None:
        counts = torch.ones(vocabulary, dtype=torch.float64)
        for batch in train.batches(PREDICTED_AT_ONCE):
            assert batch.tokens is not None
            assert batch.token_mask is not None
            counts += torch.bincount(batch.tokens[batch.token_mask], minlength=vocabulary)
        self.logits = counts.log().float()

    def __call__(self, batch: Batch) -> Tensor:
        assert batch.tokens is not None
        return self.logits.expand(*batch.tokens.shape, -1)
