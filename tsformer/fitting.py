"""From settings and a panel to a fitted model with its score: what the command line and the Python API share."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from tsformer import memory, weights
from tsformer.data.panel import Panel, Schema
from tsformer.data.split import Split
from tsformer.data.transforms import Chain
from tsformer.data.windows import Windows
from tsformer.errors import DivergedError, PluginError, ResourceError, UsageError
from tsformer.evaluation.baselines import BASELINES
from tsformer.evaluation.metrics import Errors, Score, seasonal_scale
from tsformer.nn.outputs import Output, output_of
from tsformer.plugin import Problem
from tsformer.preparation import Prepared, complete, origin_rows, prepare
from tsformer.settings import DEVICES, Chosen, Settings
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
            "parameters": sum(p.numel() for p in self.fitted.module.parameters()),
            **self.metrics(),
        }


def build_module(model: Chosen, problem: Problem) -> nn.Module:
    """Raises PluginError when the model cannot do the task, or its build fails."""
    if problem.task not in model.plugin.tasks:
        can = ", ".join(sorted(model.plugin.tasks)) or "nothing"
        raise PluginError(f"{model} cannot {problem.task}; it can: {can}")
    with model.at_fault("build"):
        module = model.plugin.build(model.config, problem)
    if not isinstance(module, nn.Module):
        raise PluginError(f"{model} built {type(module).__name__}, not a torch.nn.Module")
    return module


def try_out(model: Chosen, module: nn.Module, windows: Windows, problem: Problem) -> None:
    """Two windows through the module, so that a model which breaks its contract is named before anything is written.

    Raises:
        PluginError: forward fails, or its result has another shape than promised, or is not finite.
    """
    batch = windows.batch(torch.arange(min(2, len(windows)))).to(device_in_use(module))
    wanted = (len(batch.past), problem.horizon, problem.targets, problem.outputs)
    module.eval()
    for truth in (0.0, 1.0):
        with model.at_fault(f"forward(batch, truth={truth})"), torch.no_grad():
            prediction = module(batch, truth=truth)
        shape = tuple(prediction.shape) if isinstance(prediction, torch.Tensor) else type(prediction).__name__
        if shape != wanted:
            raise PluginError(
                f"{model}: forward(batch, truth={truth}) returns {shape}, "
                f"not {wanted} [batch, horizon, targets, outputs]"
            )
        if not bool(torch.isfinite(prediction).all()):
            raise PluginError(f"{model}: forward(batch, truth={truth}) returns values that are not finite")
    if model.plugin.persistent:
        with model.at_fault("its state dict, which must hold plain tensors that can be saved and loaded"):
            weights.load(module, weights.save(module))


def device_in_use(module: nn.Module) -> torch.device:
    """Where a module's weights are; the CPU when it has none."""
    tensors = itertools.chain(module.parameters(), module.buffers())
    return next((tensor.device for tensor in tensors), torch.device("cpu"))


def device_of(name: str) -> torch.device:
    """The device of that name; "auto" is CUDA when there is one, else the CPU.

    Raises:
        ResourceError: it is not there.
    """
    if not re.fullmatch(DEVICES, name):
        raise UsageError(f"--device '{name}' is none of auto, cpu, cuda, cuda:1, mps")
    cuda = torch.cuda.is_available()
    if name == "auto":
        return torch.device("cuda" if cuda else "cpu")
    device = torch.device(name)
    there = {"cpu": True, "cuda": cuda and (device.index or 0) < torch.cuda.device_count()}
    if not there.get(device.type, device.type == "mps" and torch.backends.mps.is_available()):
        raise ResourceError(f"device '{name}' is not there; use --device auto or cpu")
    return device


def fit(
    settings: Settings,
    panel: Panel,
    *,
    split: Split | None = None,
    on_start: Callable[[Fitted], None] = lambda fitted: None,
    on_step: Callable[[Progress], None] = lambda progress: None,
    on_evaluation: Callable[[dict[str, Any]], None] = lambda record: None,
    interrupted: Callable[[], bool] = lambda: False,
) -> Result:
    """Fit a model on a panel and score it on the test part beside the naive forecasts.

    The caller's random state is left as it was; the same seed gives the same bytes on the same machine.

    Args:
        split: where the parts of each series end, for a published split; by default 70/10/20.
        on_start: called with the untrained model, when everything has been checked.
        on_step, on_evaluation: told of the progress.
        interrupted: asked before each step; True ends the training and keeps the best weights.

    Raises:
        DataError, PluginError, ResourceError: before the first step.
        DivergedError: when nothing usable was learned before the loss ceased to be finite.
    """
    started = time.perf_counter()
    settings = complete(settings, panel)
    device = device_of(settings.train.device)
    prepared = prepare(settings, panel, split)
    output = output_of(prepared.problem, settings.train.loss, settings.train.huber_delta)
    memory.require(settings, prepared, device)
    seeds = np.random.SeedSequence(settings.train.seed).spawn(3)  # weights, order of windows, dropout and sampling
    plugin = settings.model.plugin
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):  # manual_seed seeds all of them
        torch.manual_seed(_integer(seeds[0]))
        module = build_module(settings.model, prepared.problem).to(device)
        fitted = Fitted(settings, prepared.problem, panel.schema, prepared.chain, module)
        try_out(settings.model, module, prepared.train, prepared.problem)
        on_start(fitted)
        torch.manual_seed(_integer(seeds[2]))
        if plugin.fit is None and any(p.requires_grad for p in module.parameters()):
            with settings.model.at_fault("training"):
                history = train(
                    module,
                    prepared.train,
                    prepared.validation,
                    output,
                    settings.train,
                    generator=np.random.default_rng(seeds[1]),
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


def _integer(seed: np.random.SeedSequence) -> int:
    return int(seed.generate_state(1, np.uint64)[0])
