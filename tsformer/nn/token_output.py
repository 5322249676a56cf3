"""The loss of predicted tokens, and what validation says of them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from tsformer.data.windows import Batch
from tsformer.nn.objective import Verdict


class TokenOutput:
    """One word after the other, by logits `[batch, length, vocabulary]`: the `Objective` of `batch.target_tokens`.

    The loss is the cross-entropy of the real tokens with smoothed labels, (1 - smoothing) * one-hot + smoothing /
    vocabulary (Szegedy et al. 2016). Models are validated on the truth before each token: fed its own tokens, a model
    that once says a word more or less is wrong about all words behind it, and its loss compares nothing.

    Args:
        smoothing: share of each label that is spread evenly over the vocabulary.

    Raises:
        ValueError: when the smoothing is outside [0, 1).
    """

    name = "tokens"
    outputs = 1
    truth = 1.0

    def __init__(self, smoothing: float = 0.0) -> None:
        if not 0.0 <= smoothing < 1.0:
            raise ValueError(f"label smoothing must be in [0, 1), not {smoothing}")
        self.smoothing = smoothing

    def loss(self, prediction: Tensor, batch: Batch) -> Tensor:
        """Mean loss over the real tokens, `[batch, length, vocabulary]` to a scalar; 0 when there is none.

        Logits beyond the longest true answer, which a model that runs freely may have, count nothing.

        Raises:
            ValueError: when the batch has no target tokens, or a prediction does not fit them.
        """
        logits, tokens = self._real(prediction, batch)
        return self._total(logits, tokens) / max(1, len(tokens))

    def tally(self, prediction: Tensor, batch: Batch) -> Tensor:
        """Loss, tokens, and how many of them have the highest logit: `[3]`. Raises ValueError as `loss` does."""
        logits, tokens = self._real(prediction.detach(), batch)
        hits = (logits.argmax(-1) == tokens).sum()
        return torch.stack([self._total(logits, tokens), hits.new_tensor(len(tokens)), hits])

    def verdict(self, tally: Sequence[float]) -> Verdict:
        """The loss decides; the share of tokens that are right is a measure."""
        total, count, hits = tally
        loss = total / max(1.0, count)
        return Verdict(loss, (-loss,), {"validation_token_accuracy": hits / max(1.0, count)})

    def _total(self, logits: Tensor, tokens: Tensor) -> Tensor:
        return F.cross_entropy(logits, tokens, reduction="sum", label_smoothing=self.smoothing)

    def _real(self, prediction: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Logits and truth of the real tokens, `[tokens, vocabulary]` and `[tokens]`."""
        tokens, mask = batch.target_tokens, batch.target_token_mask
        if tokens is None or mask is None:
            raise ValueError("a loss needs batch.target_tokens and batch.target_token_mask")
        length = tokens.shape[1]
        if prediction.ndim != 3 or len(prediction) != len(tokens) or prediction.shape[1] < length:
            raise ValueError(f"logits {tuple(prediction.shape)} do not fit target tokens {tuple(tokens.shape)}")
        return prediction[:, :length][mask], tokens[mask]
