"""From a run folder to the estimator of its task."""

from __future__ import annotations

import warnings
from pathlib import Path

from tsformer import run as runs
from tsformer.classifier import Classifier
from tsformer.errors import UsageError
from tsformer.forecaster import Forecaster
from tsformer.plugin import Task

ELSEWHERE = {
    Task.SEQUENCE: "answers sequences by sequences: tsformer predict {run} --input FILE",
    Task.PRETRAIN: "was pretrained and predicts nothing by itself: Classifier(init_from='{run}') or --init-from {run}",
}
"""What a run is for that has no estimator."""


def load(path: str | Path = "latest") -> Forecaster | Classifier:
    """The Forecaster or the Classifier of a run folder; "latest" is the newest run in `runs/`.

    Raises:
        RunError: missing, incomplete or damaged.
        PluginError: it was made with a plugin that is not here; `register` it first.
        UsageError: a run of another task; the line says what to do with it.

    Warns:
        UserWarning: a plugin of the same name comes from elsewhere than the one that it was made with.
    """
    folder = runs.find(str(path))
    fitted, summary = runs.load(folder)
    task = fitted.problem.task
    if task in ELSEWHERE:
        raise UsageError(f"'{folder}' {ELSEWHERE[task].format(run=folder)}")
    for note in runs.other_plugins(folder, fitted):
        warnings.warn(note, stacklevel=2)
    return Classifier.from_run(fitted, summary) if task is Task.CLASSIFY else Forecaster.from_run(fitted, summary)
