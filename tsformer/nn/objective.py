"""What training makes smaller, and what validation goes by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from tsformer.data.windows import Batch


@dataclass(frozen=True)
class Verdict:
    """What came of a validation.

    Attributes:
        loss: mean over all that is real.
        rank: weights whose rank is higher are kept; compared from left to right.
        measures: further numbers for the log, by name: "validation_f1".
    """

    loss: float
    rank: tuple[float, ...]
    measures: Mapping[str, float] = field(default_factory=dict)


class Objective(Protocol):
    """What a prediction means, by its loss. Sums of batches add up, so that a verdict depends on no batch size.

    Attributes:
        truth: with which models are judged: 0 lets them run freely, 1 feeds the true tokens before each one.
    """

    truth: float

    def loss(self, prediction: Tensor, batch: Batch) -> Tensor:
        """Mean loss over what is real, a scalar; 0 when nothing is."""
        ...

    def tally(self, prediction: Tensor, batch: Batch) -> Tensor:
        """Sums over a batch, `[numbers]`; those of several batches are added."""
        ...

    def verdict(self, tally: Sequence[float]) -> Verdict:
        """What the sums over all batches say."""
        ...


def mean_verdict(tally: Sequence[float]) -> Verdict:
    """By the loss alone, of a tally (loss times count, count)."""
    total, count = tally
    loss = total / max(1.0, count)
    return Verdict(loss, (-loss,))
