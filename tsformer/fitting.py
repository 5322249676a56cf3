"""From settings and a panel to a fitted model with its score: what the command line and the Python API share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from tsformer import memory
from tsformer.building import build_module, check_kept, device_of, same_random_state, try_out, without_effect
from tsformer.data.panel import Panel, Schema
from tsformer.data.split import Split
from tsformer.data.transforms import Chain
from tsformer.errors import DivergedError
from tsformer.evaluation.baselines import BASELINES
from tsformer.evaluation.cautions import not_beaten, without_mase
from tsformer.evaluation.metrics import Errors, Score, seasonal_scale
from tsformer.nn.outputs import Output, output_of
from tsformer.parameters import by_gradients, parameters_of
from tsformer.plugin import Problem
from tsformer.preparation import Prepared, complete, origin_rows, prepare
from tsformer.settings import Settings
from tsformer.training.loop import History, Progress, evaluate, predict, train

SCORED_AT_ONCE = 2**20
"""Numbers of a forecast that are compared with the truth at a time: errors take several arrays of that size."""


@dataclass(frozen=True)
class Fitted:
    """All that a forecast needs, and all that a run folder holds."""

    settings: Settings
    problem: Problem
    schema: Schema
    chain: Chain
    module: nn.Module


@dataclass(frozen=True)
class Result:
    """What a fit gives.

    Attributes:
        fitted: the model.
        prepared: the data that it was fitted on.
        history: how the training went.
        test: errors on the test part, in the user's units.
        baselines: the same for each naive forecast.
        forecast: the model's forecasts of all test windows, float64 `[windows, horizon, targets]`.
        seconds: wall time.
    """

    fitted: Fitted
    prepared: Prepared
    history: History
    test: Score
    baselines: Mapping[str, Score]
    forecast: np.ndarray
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

    def cautions(self) -> list[str]:
        """What the user should not overlook, one line each."""
        name, season = self.fitted.settings.model.name, self.fitted.problem.season
        rows = int(self.prepared.split.validation.max())
        return [
            *not_beaten(name, self.test, self.baselines, season),
            *without_mase(self.test, season, rows),
        ]

    def metrics(self) -> dict[str, Any]:
        """Errors on the test part: of the model, by target, and of the naive forecasts."""
        return {
            "test": self.test.overall,
            "by_target": self.test.by_target,
            "baselines": {name: baseline.overall for name, baseline in self.baselines.items()},
        }

    def to_json(self, run: str | None) -> dict[str, Any]:
        """The object that `fit --json` prints. What is undefined is null."""
        settings = self.fitted.settings
        return {
            "schema": 1,
            "task": self.fitted.problem.task.value,
            "run": run,
            "model": settings.model.name,
            "data": settings.data.name if settings.data else None,
            "series": len(self.prepared.panel.ids),
            "season": self.fitted.problem.season,
            "seconds": round(self.seconds, 3),
            "steps": self.history.steps,
            "parameters": parameters_of(self.fitted.module),
            **self.metrics(),
        }


@dataclass(frozen=True)
class Ready:
    """A fit before its first step: everything has been checked, and nothing learned.

    Attributes:
        fitted: the untrained model; its settings have a complete window.
        prepared: the data.
        output: with the loss of the settings.
        device: where the module is.
        order: seed of the order of windows.
        draws: seed of dropout and scheduled sampling.
        notes: what the user should hear of, one line each.
    """

    fitted: Fitted
    prepared: Prepared
    output: Output
    device: torch.device
    order: np.random.SeedSequence
    draws: np.random.SeedSequence
    notes: tuple[str, ...] = ()


def make_ready(settings: Settings, panel: Panel, split: Split | None = None) -> Ready:
    """All that a fit does before its first step: prepare the data, build the model, try it on two windows.

    The caller's random state is left as it was.

    Raises:
        DataError, PluginError, UsageError: data, model and options do not go together.
        ResourceError: the device is not there, or its memory cannot hold the model.
    """
    settings = complete(settings, panel)
    device = device_of(settings.train.device)
    prepared = prepare(settings, panel, split)
    output = output_of(prepared.problem, settings.train.loss, settings.train.huber_delta)
    memory.require(settings, prepared, device)
    weights, order, draws = np.random.SeedSequence(settings.train.seed).spawn(3)
    with torch_seeded(weights):
        module = build_module(settings.model, prepared.problem).to(device)
        try_out(settings.model, module, prepared.train, prepared.problem)
        notes = without_effect(settings.model, module, prepared.train, settings.train)
    fitted = Fitted(settings, prepared.problem, panel.schema, prepared.chain, module)
    return Ready(fitted, prepared, output, device, order, draws, notes)


@contextmanager
def torch_seeded(seed: np.random.SeedSequence) -> Iterator[None]:
    """Within this torch's global generators start from a seed; the caller's are put back."""
    with same_random_state():
        torch.manual_seed(int(seed.generate_state(1, np.uint64)[0]))
        yield


def fit(
    settings: Settings,
    panel: Panel,
    *,
    split: Split | None = None,
    on_note: Callable[[str], None] = lambda line: None,
    on_start: Callable[[Fitted], None] = lambda fitted: None,
    on_step: Callable[[Progress], None] = lambda progress: None,
    on_evaluation: Callable[[dict[str, Any]], None] = lambda record: None,
    interrupted: Callable[[], bool] = lambda: False,
) -> Result:
    """Fit a model on a panel and score it on the test part beside the naive forecasts.

    The caller's random state is left as it was; the same seed gives the same bytes on the same machine.

    Args:
        split: where the parts of each series end, for a published split; by default 70/10/20.
        on_note: told of options that have no effect.
        on_start: called with the untrained model, when everything has been checked.
        on_step, on_evaluation: told of the progress.
        interrupted: asked before each step; True ends the training and keeps the best weights.

    Raises:
        DataError, PluginError, ResourceError: before the first step.
        DivergedError: when nothing usable was learned before the loss ceased to be finite.
    """
    started = time.perf_counter()
    ready = make_ready(settings, panel, split)
    fitted, prepared, output, device = ready.fitted, ready.prepared, ready.output, ready.device
    settings, module = fitted.settings, fitted.module
    plugin = settings.model.plugin
    for note in ready.notes:
        on_note(note)
    on_start(fitted)
    with torch_seeded(ready.draws):
        if by_gradients(plugin, module):
            with settings.model.at_fault("training"):
                history = train(
                    module,
                    prepared.train,
                    prepared.validation,
                    output,
                    settings.train,
                    generator=np.random.default_rng(ready.order),
                    device=device,
                    on_step=on_step,
                    on_evaluation=on_evaluation,
                    interrupted=interrupted,
                )
        else:
            with settings.model.at_fault("fit"):
                if plugin.fit is not None:
                    plugin.fit(module.cpu(), prepared.train, prepared.validation)  # windows are on the CPU
                    module.to(device)
                history = without_steps(module, prepared, output, settings.train.eval_windows, device, started)
            on_evaluation(history.evaluations[0])
        if history.error is not None and history.best_step == 0:
            raise history.error
        check_kept(settings.model, prepared.problem, module)
        forecast = backcast(fitted, prepared, device)
    test, baselines = _score(prepared, forecast)
    return Result(fitted, prepared, history, test, baselines, forecast, time.perf_counter() - started)


def without_steps(
    module: nn.Module, prepared: Prepared, output: Output, windows: int, device: torch.device, started: float
) -> History:
    """The history of a model that is fitted without gradients, or not at all: one evaluation, at step 0.

    Args:
        windows: how many are looked at, at most, in each part.
        started: when the fit began, on the clock of `time.perf_counter`.
    """
    losses = (evaluate(module, part.thin(windows), output, device) for part in (prepared.train, prepared.validation))
    record = {
        **dict(zip(("train_loss", "validation_loss"), losses, strict=True)),
        "learning_rate": None,
        "truth": None,
        "seconds": round(time.perf_counter() - started, 3),
    }
    return History([{"step": 0, **record}])


def backcast(fitted: Fitted, prepared: Prepared, device: torch.device) -> np.ndarray:
    """Forecasts of all test windows in the user's units, float64 `[windows, horizon, targets]`."""
    test = prepared.test
    with fitted.settings.model.at_fault("prediction"):
        path = predict(fitted.module, test, output_of(fitted.problem), device)
    forecast = fitted.chain.inverse(path, prepared.data, test.series.numpy(), test.origins.numpy())
    if not np.isfinite(forecast).all():
        raise DivergedError(f"{fitted.settings.model} predicts values that are not finite; nothing usable was learned")
    return forecast


def _score(prepared: Prepared, forecast: np.ndarray) -> tuple[Score, dict[str, Score]]:
    panel, problem = prepared.panel, prepared.problem
    series, origin = prepared.test.series.numpy(), origin_rows(prepared)
    scale = seasonal_scale(panel, prepared.split.validation, problem.season)
    own = Errors(scale, panel.schema.targets)
    naive = {name: Errors(scale, panel.schema.targets) for name in BASELINES}
    size = max(1, SCORED_AT_ONCE // (problem.horizon * problem.targets))
    for start in range(0, len(series), size):
        part = slice(start, start + size)
        truth = panel.values[origin[part, None] + np.arange(problem.horizon), : problem.targets]
        own.add(forecast[part], truth, series[part])
        for name, errors in naive.items():
            path = BASELINES[name](panel, series[part], origin[part], problem.horizon, problem.season)
            errors.add(path, truth, series[part])
    return own.score(), {name: errors.score() for name, errors in naive.items()}
