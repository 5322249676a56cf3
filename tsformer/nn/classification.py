"""Classes: the head that predicts them, the loss that fits it, and what validation says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tsformer.data.windows import Batch
from tsformer.nn.dropout import Dropout
from tsformer.nn.objective import Verdict
from tsformer.nn.pooling import Pooling, PoolingKind

UNLABELLED = -1


class ClassificationHead(nn.Module):
    """Pooling, dropout, and a linear map to the classes.

    Args:
        d_model: width of a token.
        classes: number of classes.
        pooling: how the tokens become one vector.
        dropout: rate on that vector.
    """

    def __init__(self, d_model: int, classes: int, pooling: PoolingKind = "mean", dropout: float = 0.0) -> None:
        super().__init__()
        self.pooling = Pooling(pooling, d_model)
        self.dropout = Dropout(dropout)
        self.linear = nn.Linear(d_model, classes)

    def forward(self, memory: Tensor, mask: Tensor) -> Tensor:
        """`[batch, tokens, d_model]` and boolean `[batch, tokens]`, True = real, to logits `[batch, classes]`."""
        logits: Tensor = self.linear(self.dropout(self.pooling(memory, mask)))
        return logits


class ClassOutput:
    """One of several classes, by its logits `[batch, classes]`: the `Objective` of `batch.label` `[batch]`.

    The loss is the cross-entropy with smoothed labels, (1 - smoothing) * one-hot + smoothing / classes (Szegedy et al.
    2016). With weights it is a weighted mean, exactly as in `F.cross_entropy`: each class's part of an example's loss
    counts by the weight of that class, and the sum is divided by the weights of the true classes. An example whose
    label is -1 counts nothing.

    Args:
        classes: number of classes.
        smoothing: share of each label that is spread evenly over all classes.
        weights: one for each class, not negative; all 1 when None.

    Raises:
        ValueError: when the smoothing is outside [0, 1), or the weights do not fit.
    """

    name = "classes"
    outputs = 1
    truth = 0.0

    def __init__(self, classes: int, smoothing: float = 0.0, weights: Sequence[float] | None = None) -> None:
        if not 0.0 <= smoothing < 1.0:
            raise ValueError(f"label smoothing must be in [0, 1), not {smoothing}")
        self.classes = classes
        self.smoothing = smoothing
        self.weights = torch.ones(classes) if weights is None else torch.tensor(weights, dtype=torch.float32)
        if self.weights.shape != (classes,):
            raise ValueError(f"{classes} classes need as many weights, not {len(self.weights)}")
        if not bool((self.weights.isfinite() & (self.weights >= 0)).all()):
            raise ValueError(f"class weights must be finite and not negative: {self.weights.tolist()}")

    def loss(self, prediction: Tensor, batch: Batch) -> Tensor:
        """Mean loss over labelled examples, `[batch, classes]` to a scalar; 0 when there is none.

        Raises:
            ValueError: when the batch has no labels, labels of another shape, or one that is no class.
        """
        losses, weights = self._losses(prediction, self._label(prediction, batch))
        total = weights.sum()
        return losses.sum() / torch.where(total > 0, total, 1.0)

    def probabilities(self, prediction: Tensor) -> Tensor:
        """`[batch, classes]` to the same, each row summing to 1."""
        return prediction.softmax(-1)

    def tally(self, prediction: Tensor, batch: Batch) -> Tensor:
        """Loss, weight, and how often each class was taken for which: float64 `[2 + classes * classes]`, on the CPU.

        The counts are in the order true class * classes + predicted class. Raises ValueError as `loss` does.
        """
        prediction = prediction.detach().cpu().double()  # some devices have no float64
        label = self._label(prediction, batch)
        losses, weights = self._losses(prediction, label)
        pairs = (label * self.classes + prediction.argmax(-1))[label != UNLABELLED]
        counts = pairs.bincount(minlength=self.classes**2)
        return torch.cat([torch.stack([losses.sum(), weights.sum()]), counts.double()])

    def verdict(self, tally: Sequence[float]) -> Verdict:
        """Accuracy and macro F1 over the classes that occur, in truth or prediction; the better F1 wins."""
        loss, weight, *counts = tally
        confusion = np.array(counts).reshape(self.classes, self.classes)
        hits, both = confusion.diagonal(), confusion.sum(0) + confusion.sum(1)
        occurs = both > 0
        f1 = float((2.0 * hits[occurs] / both[occurs]).mean()) if occurs.any() else 0.0
        accuracy = float(hits.sum() / max(1.0, confusion.sum()))
        loss = loss / weight if weight > 0.0 else 0.0
        return Verdict(loss, (f1, -loss), {"validation_accuracy": accuracy, "validation_f1": f1})

    def _losses(self, prediction: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        """Weighted loss and weight of each example, `[batch]` both."""
        labelled = label != UNLABELLED
        prediction = torch.where(labelled[:, None], prediction, 0.0)  # a NaN would come back in the gradient
        weights = self.weights.to(prediction)
        losses = F.cross_entropy(
            prediction,
            label,
            weights,
            ignore_index=UNLABELLED,
            reduction="none",
            label_smoothing=self.smoothing,
        )
        return losses, torch.where(labelled, weights[label.clamp_min(0)], 0.0)

    def _label(self, prediction: Tensor, batch: Batch) -> Tensor:
        """The labels, on the device of the prediction."""
        label = batch.label
        if label is None:
            raise ValueError("a loss needs batch.label")
        if label.dtype != torch.int64 or label.ndim != 1:
            raise ValueError(f"labels must be int64 [batch], not {label.dtype} {tuple(label.shape)}")
        if prediction.shape != (len(label), self.classes):
            raise ValueError(
                f"a prediction {tuple(prediction.shape)} does not fit {len(label)} labels of {self.classes} classes"
            )
        wrong = label[(label < UNLABELLED) | (label >= self.classes)]
        if len(wrong):
            raise ValueError(
                f"label {int(wrong[0])} is none of {self.classes} classes, counted from 0; -1 = unlabelled"
            )
        return label.to(prediction.device)


def balanced_weights(labels: np.ndarray, classes: int) -> list[float]:
    """Weights with which every class that occurs counts the same: examples / (classes that occur * those of the class).

    Args:
        labels: int64 `[examples]`; -1 = unlabelled, which counts nothing.
        classes: number of classes.

    Returns:
        One weight for each class; 1, the mean over examples, for a class without any.

    Raises:
        ValueError: when a label is no class.
    """
    labels = labels[labels != UNLABELLED]
    if len(labels) and not (labels.min() >= 0 and labels.max() < classes):
        raise ValueError(f"labels {labels.min()} to {labels.max()} are not all among {classes} classes, counted from 0")
    counts = np.bincount(labels, minlength=classes)
    occurs = counts > 0
    weights = np.ones(classes)
    weights[occurs] = len(labels) / (occurs.sum() * counts[occurs])
    return [float(weight) for weight in weights]
