"""How well classes are found, beside what always saying the most frequent one would give. What is undefined is None."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tsformer.data.cells import listed

Metrics = dict[str, float | int | None]
"""Numbers by name."""


@dataclass(frozen=True, eq=False)
class ClassScore:
    """What came of a set of examples.

    Attributes:
        overall: {"accuracy", "macro_f1", "log_loss", "examples"}. Macro-F1 is the mean over the classes that occur,
            in truth or prediction; log loss is in nats.
        by_class: {"precision", "recall", "f1", "support"} of each class. A ratio of nothing is 0 as in scikit-learn;
            for a class that does not occur it is None.
        confusion: int64 `[classes, classes]`, how often; truth in rows, prediction in columns.
    """

    overall: Metrics
    by_class: dict[str, Metrics]
    confusion: np.ndarray

    @property
    def names(self) -> tuple[str, ...]:
        """The classes, in the order of `confusion`."""
        return tuple(self.by_class)

    def to_json(self) -> dict[str, Any]:
        """Plain numbers: the overall ones, "by_class" and "confusion"."""
        return {**self.overall, "by_class": self.by_class, "confusion": self.confusion.tolist()}


def class_score(labels: np.ndarray, probabilities: np.ndarray, names: Sequence[str]) -> ClassScore:
    """Score predictions; the class that is predicted is the most probable one, the first of equal ones.

    Args:
        labels: int64 `[examples]`, the truth.
        probabilities: float64 `[examples, classes]`; those of an example sum to 1.
        names: of the classes, all different.
    """
    count, examples = len(names), len(labels)
    pairs = labels * count + probabilities.argmax(axis=1)
    confusion = np.bincount(pairs, minlength=count**2).reshape(count, count).astype(np.int64)
    by_class = {
        name: _of_one_class(int(confusion[i, i]), int(confusion[i].sum()), int(confusion[:, i].sum()))
        for i, name in enumerate(names)
    }
    found = [metrics["f1"] for metrics in by_class.values() if metrics["f1"] is not None]
    own = np.maximum(probabilities[np.arange(examples), labels], np.finfo(np.float64).eps)  # as scikit-learn does
    overall: Metrics = {
        "accuracy": float(confusion.trace() / examples) if examples else None,
        "macro_f1": float(np.mean(found)) if found else None,
        "log_loss": float(-np.log(own).mean()) if examples else None,
        "examples": examples,
    }
    return ClassScore(overall, by_class, confusion)


def majority(train_labels: np.ndarray, labels: np.ndarray, names: Sequence[str]) -> ClassScore:
    """The score of always giving each class its share of the training part, and so predicting the most frequent one.

    Args:
        train_labels: int64 `[training examples]`, at least one.
        labels: int64 `[examples]`, what is scored.
        names: of the classes.
    """
    share = np.bincount(train_labels, minlength=len(names)) / len(train_labels)
    return class_score(labels, np.tile(share, (len(labels), 1)), names)


def cautions(
    model: str, score: ClassScore, baseline: ClassScore, train_labels: np.ndarray, part: str = "test"
) -> Iterator[str]:
    """What the user should not overlook: no gain over the majority class, and classes that are lacking.

    Args:
        model: its name.
        score, baseline: of the model and of `majority` on the part that is scored.
        train_labels: int64 `[training examples]`.
        part: its name.
    """
    worse = list(_not_better(score.overall, baseline.overall))
    if worse:
        yield f"{model} does not beat the majority class on the {part} part: {', '.join(worse)}"
    trained = np.bincount(train_labels, minlength=len(score.names)) > 0
    if not trained.all():
        lacking = [name for name, there in zip(score.names, trained, strict=True) if not there]
        yield f"the training part has no example of {_classes(lacking)}, which no model can learn"
    missed = trained & (score.confusion.sum(axis=1) > 0) & (score.confusion.sum(axis=0) == 0)
    if missed.any():
        never = [name for name, is_missed in zip(score.names, missed, strict=True) if is_missed]
        yield f"{model} never predicts {_classes(never)}, though the {part} part has examples"


def _not_better(own: Metrics, naive: Metrics) -> Iterator[str]:
    """The scores by which the majority class is as good, unless both are perfect."""
    for key, name, perfect, sign in (
        ("macro_f1", "macro-F1", 1.0, 1),
        ("accuracy", "accuracy", 1.0, 1),
        ("log_loss", "log loss", 0.0, -1),
    ):
        mine, other = own[key], naive[key]
        if mine is not None and other is not None and sign * mine <= sign * other and mine != perfect:
            yield f"{name} {mine:.4g} against {other:.4g}"


def _of_one_class(hits: int, support: int, predicted: int) -> Metrics:
    if not support and not predicted:
        return {"precision": None, "recall": None, "f1": None, "support": 0}
    return {
        "precision": hits / predicted if predicted else 0.0,
        "recall": hits / support if support else 0.0,
        "f1": 2 * hits / (support + predicted),
        "support": support,
    }


def _classes(names: Sequence[str]) -> str:
    return f"class {listed(names)}" if len(names) == 1 else f"{len(names)} of the classes ({listed(names)})"
