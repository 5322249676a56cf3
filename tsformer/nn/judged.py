"""What all outputs of numbers share: a mean loss over the values that are real."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tsformer.data.windows import Batch
from tsformer.nn.objective import Verdict, mean_verdict


class Judged:
    """Numbers are judged by their mean loss, of forecasts that run freely.

    A subclass says what each value costs.
    """

    truth = 0.0
    outputs = 1
    probabilistic = True
    counts = False

    def costs(self, prediction: Tensor, future: Tensor) -> Tensor:
        """`[batch, horizon, targets, outputs]` and `[batch, horizon, targets]`, finite, to a loss for each value."""
        raise NotImplementedError

    def loss(self, prediction: Tensor, batch: Batch) -> Tensor:
        """`[batch, horizon, targets, outputs]` to a scalar."""
        prediction, future, mask = real(prediction, batch, self.outputs)
        costs = self.costs(prediction, future)
        if mask is None:
            return costs.mean()
        return torch.where(mask, costs, 0.0).sum() / mask.sum().clamp_min(1)

    def tally(self, prediction: Tensor, batch: Batch) -> Tensor:
        """The loss times the real values, and their count: `[2]`."""
        loss = self.loss(prediction, batch).float()
        whole = torch.tensor(prediction[..., 0].numel(), device=loss.device)
        count = whole if batch.future_mask is None else batch.future_mask.sum()
        return torch.stack([loss * count, count.to(loss.dtype)])

    def verdict(self, tally: Sequence[float]) -> Verdict:
        """The mean loss."""
        return mean_verdict(tally)

    def located(self, point: Tensor) -> Tensor:
        """The location, number 0 of a prediction, of which `point` gives that point forecast."""
        return point


def real(prediction: Tensor, batch: Batch, outputs: int) -> tuple[Tensor, Tensor, Tensor | None]:
    """Prediction and future with zeros where nothing real stands: a NaN there must not reach any product."""
    if batch.future is None:
        raise ValueError("a loss needs batch.future")
    if prediction.shape != (*batch.future.shape, outputs):  # which torch would stretch silently
        raise ValueError(f"a prediction {tuple(prediction.shape)} does not fit a future {tuple(batch.future.shape)}")
    mask = batch.future_mask
    if mask is None:
        return prediction, batch.future, None
    return torch.where(mask[..., None], prediction, 0.0), torch.where(mask, batch.future, 0.0), mask
