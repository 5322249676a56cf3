"""What a fit gives, task by task: the model, how training went, and its score on the test part."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from tsformer.data.sequence_set import Padding
from tsformer.evaluation import classes
from tsformer.evaluation.answers import AnswerScore, answer_score
from tsformer.evaluation.cautions import not_beaten, too_narrow, without_forecast, without_mase
from tsformer.evaluation.classes import ClassScore
from tsformer.evaluation.hidden import HiddenScore, hidden_score
from tsformer.evaluation.metrics import Score
from tsformer.fitted import Fitted
from tsformer.held_out import HeldOut, held_out
from tsformer.parameters import by_gradients, parameters_of
from tsformer.plugin import Task
from tsformer.prediction import answers_of, probabilities_of
from tsformer.preparation import Prepared
from tsformer.sequence_preparation import PreparedSequences
from tsformer.training.loop import History


@dataclass(frozen=True)
class Result:
    """What a fit gives, whatever the task.

    Attributes:
        fitted: the model.
        prepared: the data that it was fitted on.
        history: how the training went.
        seconds: wall time.
    """

    fitted: Fitted
    prepared: Prepared | PreparedSequences
    history: History
    seconds: float

    def summary(self) -> dict[str, Any]:
        """What a run's manifest says of its fit."""
        stopped = self.history.stopped
        return {
            "status": "complete" if stopped in ("finished", "early") else stopped,
            "steps": self.history.steps,
            "best_step": self.history.best_step,
            "metrics": self.metrics(),
        }

    @abstractmethod
    def metrics(self) -> dict[str, Any]:
        """The score on the test part, and what naive answers would get."""

    @abstractmethod
    def cautions(self) -> list[str]:
        """What the user should not overlook, one line each."""

    @abstractmethod
    def about(self) -> dict[str, Any]:
        """What the data are, in plain numbers and words."""

    def to_json(self, run: str | None) -> dict[str, Any]:
        """The object that `fit --json` prints. What is undefined is null."""
        settings = self.fitted.settings
        return {
            "schema": 1,
            "task": self.fitted.problem.task.value,
            "run": run,
            "model": settings.model.name,
            "data": settings.data.name if settings.data else None,
            **self.about(),
            "seconds": round(self.seconds, 3),
            "steps": self.history.steps,
            "parameters": parameters_of(self.fitted.module),
            **self.metrics(),
        }


@dataclass(frozen=True)
class ForecastResult(Result):
    """A forecaster.

    Attributes:
        held_out: what came of the test part.
    """

    prepared: Prepared
    held_out: HeldOut

    @property
    def test(self) -> Score:
        """Errors on the test part, in the user's units."""
        return self.held_out.test

    @property
    def baselines(self) -> Mapping[str, Score]:
        """The same for each naive forecast."""
        return self.held_out.baselines

    @property
    def forecast(self) -> np.ndarray:
        """The model's forecasts of all test windows, float64 `[windows, horizon, targets]`."""
        return self.held_out.forecast

    def metrics(self) -> dict[str, Any]:
        """Errors on the test part: of the model, by target, and of the naive forecasts."""
        return {
            "test": self.test.overall,
            "by_target": self.test.by_target,
            "baselines": {name: baseline.overall for name, baseline in self.baselines.items()},
        }

    def cautions(self) -> list[str]:
        name, season = self.fitted.settings.model.name, self.fitted.problem.season
        rows = int(self.prepared.split.validation.max())
        return [
            *not_beaten(name, self.test, self.baselines, season),
            *without_forecast(self.baselines),
            *without_mase(self.test, season, rows),
            *too_narrow(self.test, self.held_out.intervals),
        ]

    def about(self) -> dict[str, Any]:
        return {
            "series": len(self.prepared.panel.ids),
            "season": self.fitted.problem.season,
            "output": self.fitted.problem.output,
            "intervals": self.held_out.intervals,
        }


@dataclass(frozen=True)
class SequenceResult(Result):
    """A model of sequences: classes, answers or hidden steps.

    Attributes:
        padding: how much of a pass is padded; None for windows of a panel, and where nothing is learned in passes.
    """

    padding: Padding | None

    def about(self) -> dict[str, Any]:
        parts = self.prepared.parts
        counts = {name: len(getattr(parts, name)) for name in ("train", "validation", "test")}
        padding = self.padding and {
            "bucketing": self.bucketing,
            "bucketed": self.padding.bucketed,
            "shuffled": self.padding.shuffled,
        }
        return {"examples": counts, "lookback": parts.problem.lookback, "padding": padding}

    @property
    def bucketing(self) -> bool:
        """Whether batches were of like lengths."""
        return isinstance(self.prepared, PreparedSequences) and self.prepared.train.bucketing

    def cautions(self) -> list[str]:
        return []


@dataclass(frozen=True)
class ClassResult(SequenceResult):
    """A classifier.

    Attributes:
        score: on the part that is scored.
        baseline: of always giving each class its share of the training part.
        part: "test", or "validation" where nothing is held out.
    """

    score: ClassScore
    baseline: ClassScore
    part: str = "test"

    def metrics(self) -> dict[str, Any]:
        """Of the model, by class, and of the majority class."""
        return {
            self.part: self.score.overall,
            "by_class": self.score.by_class,
            "confusion": self.score.confusion.tolist(),
            "baselines": {"majority": self.baseline.overall},
        }

    def cautions(self) -> list[str]:
        model = self.fitted.settings.model.name
        return list(classes.cautions(model, self.score, self.baseline, labels_of(self.prepared, "train"), self.part))


@dataclass(frozen=True)
class AnswerResult(SequenceResult):
    """A model that answers one sequence by another.

    Attributes:
        score: on the test part, beside naive answers.
    """

    score: AnswerScore

    def metrics(self) -> dict[str, Any]:
        return self.score.to_json()

    def cautions(self) -> list[str]:
        return list(self.score.cautions(self.fitted.settings.model.name))


@dataclass(frozen=True)
class HiddenResult(SequenceResult):
    """A pretrained model.

    Attributes:
        score: how well it finds hidden steps of the test part, beside a naive guess.
    """

    score: HiddenScore

    def metrics(self) -> dict[str, Any]:
        return self.score.to_json()

    def cautions(self) -> list[str]:
        return list(self.score.cautions(self.fitted.settings.model.name))


def result_of(
    fitted: Fitted,
    prepared: Prepared | PreparedSequences,
    history: History,
    device: torch.device,
    seconds: Callable[[], float],
) -> Result:
    """Score a model on the test part.

    Args:
        seconds: asked at the end how long all of it took.
    """
    parts = prepared.parts
    if isinstance(prepared, Prepared) and fitted.problem.task is Task.FORECAST:
        made = held_out(fitted, prepared)
        fitted = replace(fitted, calibration=made.calibration)
        return ForecastResult(fitted, prepared, history, seconds(), made)
    padding = None
    if isinstance(prepared, PreparedSequences) and by_gradients(fitted.settings.model.plugin, fitted.module):
        padding = prepared.padding(fitted.settings.train)
    with fitted.settings.model.at_fault("prediction"):
        if fitted.problem.task is Task.CLASSIFY:
            part = "test" if len(parts.test) else "validation"
            probabilities, labels = probabilities_of(fitted, getattr(parts, part), device), labels_of(prepared, part)
            names = fitted.words.classes
            score = classes.class_score(labels, probabilities, names)
            naive = classes.majority(labels_of(prepared, "train"), labels, names)
            return ClassResult(fitted, prepared, history, seconds(), padding, score, naive, part)
        if fitted.problem.task is Task.SEQUENCE:
            answered = answer_score(*answers_of(fitted, parts.test, parts.train, device))
            return AnswerResult(fitted, prepared, history, seconds(), padding, answered)
        hidden = hidden_score(fitted.module, parts, device)
    return HiddenResult(fitted, prepared, history, seconds(), padding, hidden)


def labels_of(prepared: Prepared | PreparedSequences, part: str) -> np.ndarray:
    """The class of each example of a part, int64 `[examples]`."""
    examples = getattr(prepared.parts, part)
    labels: np.ndarray = examples.labels[examples.index]
    return labels
