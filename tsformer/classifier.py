"""Classes of series and texts, in scikit-learn's manners."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from tsformer.data.arrays import Layout, examples_from
from tsformer.data.labels import classes_from, kind_of, labels_from
from tsformer.data.sequences import TRAIN, Sequences, SequenceSchema
from tsformer.errors import DataError, RunError, UsageError
from tsformer.estimators import Estimator, shared_arguments
from tsformer.fitted import Fitted
from tsformer.plugin import Task
from tsformer.prediction import answer


class Classifier(ClassifierMixin, Estimator):  # type: ignore[misc]
    """Fits a model plugin on labelled series or texts, and labels others.

    `X` is, for `fit` and for all that predicts:

    * an array `[examples, time]`, or a list of series `[time]` of any length: one channel;
    * an array of three dimensions, or a list of arrays of two: with `layout` only, which says what the axes are;
    * texts: a list, an array or a Series;
    * what `tsformer.read` gives for series or texts, with its own labels where `y` is left out.

    NaN stands for a missing value. `y` holds text, whole numbers or bool.

    Args:
        model: name of a model plugin.
        layout: "NTC" (examples, time, channels; as in torch) or "NCT" (as in aeon and sktime).
        lookback: steps or tokens that the model sees; None: as many as the longest of `fit` has, up to 512.
        model_options: options of the model, `{"d_model": 128}`.
        train_options: options of the training loop, `{"max_steps": 1000, "class_weights": "balanced"}`.
        token_options: how texts become tokens, `{"tokenizer": "char"}`.
        scale: the scaler of all numbers, or "none"; with options, `{"name": ..., option: value}`.
        init_from: an earlier run, of any task, whose encoder is loaded.
        freeze: leave what was loaded as it is.
        seed: same seed, same machine: same predictions.
        device: "auto", "cpu", "cuda", ...

    Attributes:
        classes_: the labels, sorted, in the type of `y`; the columns of `predict_proba`. After `tsformer.load` of a run
            that a Classifier saved they are text, int64, float64 or bool as `y` was; of other runs they are text.
        fitted_: everything that a prediction needs.
        metrics_: the score and that of the majority class. It is called "validation" where nothing is held out: it is
            that of the examples that decided when training stopped, and so a little too good. "test" otherwise.
        history_: how the training went; None after `tsformer.load`.
    """

    def __init__(
        self,
        model: str = "transformer",
        *,
        layout: Layout | None = None,
        lookback: int | None = None,
        model_options: Mapping[str, Any] | None = None,
        train_options: Mapping[str, Any] | None = None,
        token_options: Mapping[str, Any] | None = None,
        scale: str | Mapping[str, Any] = "standard",
        init_from: str | Path | None = None,
        freeze: bool = False,
        seed: int = 0,
        device: str = "auto",
    ) -> None:
        self.model = model
        self.layout = layout
        self.lookback = lookback
        self.model_options = model_options
        self.train_options = train_options
        self.token_options = token_options
        self.scale = scale
        self.init_from = init_from
        self.freeze = freeze
        self.seed = seed
        self.device = device

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Fit on all examples but a tenth of each class, a fifth where there are fewer than 200: when the model labels
        these best, training stops. Nothing is held out for a test, except what `tsformer.read` was given as test part.

        Raises:
            DataError, UsageError, PluginError, DivergedError: what is wrong, in one line.

        Warns:
            UserWarning: always giving the most frequent class is as good, series are cut, or an option has no effect.
        """
        settings = self._settings()
        examples, labels = self._labelled(X, y)
        lines = self._fit(settings, examples)
        self.classes_ = np.unique(labels)
        self._tell(lines)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        """How likely each of `classes_` is, float64 `[examples, classes]`.

        Raises:
            DataError, UsageError, DivergedError: what is wrong, in one line.
        """
        self._check_fitted()
        answered = answer(self.fitted_, self._new(X))
        for note in answered.notes:
            warnings.warn(note, stacklevel=2)
        names = self.fitted_.words.classes
        assert answered.probabilities is not None
        found: np.ndarray = answered.probabilities[:, [names.index(str(label)) for label in self.classes_]]
        return found

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """The most likely label of each example, in the type of `y`, `[examples]`."""
        self._check_fitted()
        labels: np.ndarray = self.classes_[self.predict_proba(X).argmax(1)]
        return labels

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:  # noqa: N803
        """Accuracy. `y` may be left out where `X` has labels of its own."""
        if y is None and isinstance(X, Sequences) and X.labels is not None:
            return float(accuracy_score(X.labels, [str(label) for label in self.predict(X)]))
        return float(super().score(X, y, sample_weight))

    @classmethod
    def from_run(cls, fitted: Fitted, summary: Mapping[str, Any]) -> Self:
        """The Classifier of a run."""
        settings, own = fitted.settings, summary.get("python", {})
        classifier = cls(
            **shared_arguments(settings),
            layout=own.get("layout"),
            lookback=settings.window.lookback,
        )
        classifier._set(fitted, summary)
        try:
            classifier.classes_ = classes_from(fitted.words.classes, own.get("labels", "text"))
        except (KeyError, ValueError):
            raise RunError(f"the classes of the run are no {own['labels']}") from None
        return classifier

    def _own(self) -> dict[str, Any]:
        return {"labels": kind_of(self.classes_), "layout": self.layout}

    def _values(self) -> dict[str, Any]:
        return {
            **super()._values(),
            "task": Task.CLASSIFY.value,
            "window": {"lookback": self.lookback},
        }

    def _new(self, data: Any) -> Sequences:
        """Examples to be labelled; the channels of arrays, which have no names, are those that the model knows."""
        examples, schema = examples_from(data, self.layout), self.fitted_.schema
        assert isinstance(schema, SequenceSchema)
        known, width = len(schema.channels), len(examples.schema.channels)
        if known and width and known != width:
            raise DataError(f"X has {width} channel(s), and the model was fitted on {known}")
        if isinstance(data, Sequences) or not (known and width):
            return examples
        return replace(examples, schema=replace(examples.schema, channels=schema.channels))

    def _labelled(self, data: Any, y: Any) -> tuple[Sequences, np.ndarray]:
        """All examples with their labels, which are to be fitted on but for a part that the data name a test part."""
        examples = examples_from(data, self.layout)
        if y is None:
            if examples.labels is None:
                raise UsageError("fit needs labels: fit(X, y)")
            labels = np.array(examples.labels, dtype=object)
        else:
            labels = labels_from(y, len(examples))
        if len(np.unique(labels)) < 2:
            raise DataError(f"all {len(labels)} examples have the label {str(labels[0])!r}; at least two are needed")
        parts = np.full(len(examples), TRAIN, dtype=np.int8) if examples.parts is None else examples.parts
        schema = replace(examples.schema, label=examples.schema.label or "label")
        return replace(examples, schema=schema, labels=tuple(map(str, labels)), parts=parts), labels
