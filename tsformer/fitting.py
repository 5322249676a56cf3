"""From settings and a panel to a fitted model with its score: what the command line and the Python API share."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from tsformer import registry
from tsformer.config import Chosen, Settings, WindowConfig, validate_options
from tsformer.data.frames import read_panel
from tsformer.data.frequency import season_of
from tsformer.data.panel import Panel, Schema
from tsformer.data.split import Split, split_by_time
from tsformer.data.transforms import Chain, Step, Transformed
from tsformer.data.windows import Windows, cut_windows
from tsformer.errors import DataError, PluginError, ResourceError, UsageError
from tsformer.evaluation.baselines import BASELINES
from tsformer.evaluation.metrics import Score, score, seasonal_scale
from tsformer.nn.outputs import output_of
from tsformer.plugin import Problem, State, Task
from tsformer.registry import Kind
from tsformer.training.loop import History, Progress, predict, train


@dataclass(frozen=True)
class Fitted:
    """All that a forecast needs, and all that a run folder holds."""

    settings: Settings
    problem: Problem
    schema: Schema
    chain: Chain
    module: nn.Module


@dataclass(frozen=True)
class Prepared:
    """A panel, split, transformed and cut into windows."""

    panel: Panel
    split: Split
    chain: Chain
    data: Transformed
    problem: Problem
    train: Windows
    validation: Windows
    test: Windows


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
            "season": self.fitted.problem.season,
            "seconds": round(self.seconds, 3),
            "steps": self.history.steps,
            "parameters": sum(p.numel() for p in self.fitted.module.parameters()),
            **self.metrics(),
        }


def read(name: str, **options: Any) -> Panel:
    """Load data by a data plugin's name: `read("csv", path="air_passengers")`.

    Raises:
        PluginError: unknown plugin.
        UsageError: options that it does not take.
        DataError: data that cannot be taken.
    """
    plugin = registry.get(Kind.DATA, name)
    return load_data(Chosen(Kind.DATA, name, plugin, validate_options(plugin.config, "data", options)))


def load_data(data: Chosen | None) -> Panel:
    """The panel of a data plugin, with the windows that it recommends.

    Raises:
        UsageError: None, as in a run that was fitted on rows from Python.
        DataError: data that cannot be taken.
    """
    if data is None:
        raise UsageError("this run was fitted on rows from Python; give rows to predict from (--input)")
    panel: Panel = data.plugin.load(data.config)
    if not isinstance(panel, Panel):
        raise PluginError(f"data '{data.name}' ({data.origin}) returned {type(panel).__name__}, not a Panel")
    if not np.isfinite(panel.values).all():
        raise DataError(f"data '{data.name}' ({data.origin}) returned values that are not finite")
    return replace(panel, defaults=data.plugin.defaults(panel)) if data.plugin.defaults else panel


def read_rows(settings: Settings, source: str | None, schema: Schema) -> Panel:
    """New rows in the columns of a schema: from a file or "-" (stdin), or the run's own data when None.

    Raises:
        DataError: rows that cannot be taken.
    """
    if source is None:
        return load_data(settings.data)
    if settings.data is not None and settings.data.plugin.read is not None:
        panel: Panel = settings.data.plugin.read(settings.data.config, source, schema)
        return panel
    return read_panel(source, schema)


def complete_window(window: WindowConfig, panel: Panel) -> WindowConfig:
    """Fill in what the user left open: from the data plugin, else from the frequency and the number of rows."""
    defaults, rows = panel.defaults, int(panel.lengths.min())
    season = window.season or defaults.season or season_of(panel.schema.frequency)
    horizon = window.horizon or defaults.horizon
    if horizon is None:
        horizon = max(1, min(season if 1 < season <= 24 else 12, rows // 10))
    lookback = window.lookback or defaults.lookback
    if lookback is None:
        # at least half of the training rows stay targets
        lookback = max(1, min(max(2 * season, 2 * horizon, 24), rows * 7 // 20 - horizon))
    stride = window.stride or defaults.stride or 1
    return WindowConfig(lookback=lookback, horizon=horizon, season=season, stride=stride)


def prepare(settings: Settings, panel: Panel) -> Prepared:
    """Split, fit the transforms on training rows, cut windows.

    Args:
        settings: with a complete window.

    Raises:
        DataError: too few rows, or values outside a transform's domain.
    """
    window = settings.window
    lookback, horizon, season = window.lookback, window.horizon, window.season
    if lookback is None or horizon is None or season is None:
        raise UsageError("the window is not complete; see complete_window")
    targets = len(panel.schema.targets)
    chain = build_chain(settings, panel.schema)
    split = split_by_time(panel.lengths, horizon, lookback + chain.lost, panel.ids)
    chain.fit(panel, split.train)
    data = chain.forward(panel)
    tensor = data.tensor()

    def windows(first: np.ndarray, stop: np.ndarray, stride: int = 1) -> Windows:
        return cut_windows(
            tensor,
            data.offsets,
            first - chain.lost,
            stop - chain.lost,
            lookback=lookback,
            horizon=horizon,
            targets=targets,
            stride=stride,
        )

    problem = Problem(
        task=Task.FORECAST,
        lookback=lookback,
        horizon=horizon,
        targets=targets,
        past_covariates=len(panel.schema.past_covariates),
        future_covariates=len(panel.schema.future_covariates),
        season=season,
    )
    first = np.full_like(split.train, lookback + chain.lost)
    return Prepared(
        panel=panel,
        split=split,
        chain=chain,
        data=data,
        problem=problem,
        train=windows(first, split.train, window.stride or 1),
        validation=windows(split.train, split.validation),
        test=windows(split.validation, split.lengths),
    )


def build_chain(settings: Settings, schema: Schema, states: Mapping[str, list[State]] | None = None) -> Chain:
    """The chain of transforms: those named act on the targets, the scaler on every column."""
    steps = [(chosen, (0, len(schema.targets))) for chosen in settings.transforms]
    if settings.scale is not None:
        steps.append((settings.scale, (0, len(schema.columns))))
    return Chain([Step(c.name, c.plugin.build(c.config), columns) for c, columns in steps], states)


def build_module(model: Chosen, problem: Problem) -> nn.Module:
    """Raises PluginError when the model cannot do the task, or its build fails."""
    if problem.task not in model.plugin.tasks:
        can = ", ".join(sorted(model.plugin.tasks)) or "nothing"
        raise PluginError(f"model '{model.name}' ({model.origin}) cannot {problem.task}; it can: {can}")
    module = model.plugin.build(model.config, problem)
    if not isinstance(module, nn.Module):
        raise PluginError(f"model '{model.name}' ({model.origin}) built {type(module).__name__}, not a torch.nn.Module")
    return module


def device_of(name: str) -> torch.device:
    """The device of that name; "auto" is CUDA when there is one, else the CPU.

    Raises:
        ResourceError: it is not there.
    """
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
    on_start: Callable[[Fitted], None] = lambda fitted: None,
    on_step: Callable[[Progress], None] = lambda progress: None,
    on_evaluation: Callable[[dict[str, Any]], None] = lambda record: None,
    interrupted: Callable[[], bool] = lambda: False,
) -> Result:
    """Fit a model on a panel and score it on the test part beside the naive forecasts.

    The caller's random state is left as it was; the same seed gives the same bytes on the same machine.

    Args:
        on_start: called with the untrained model, when everything has been checked.
        on_step, on_evaluation: told of the progress.
        interrupted: asked before each step; True ends the training and keeps the best weights.

    Raises:
        DataError, PluginError, ResourceError: before the first step.
        DivergedError: when nothing usable was learned before the loss ceased to be finite.
    """
    started = time.perf_counter()
    settings = replace(settings, window=complete_window(settings.window, panel))
    device = device_of(settings.train.device)
    prepared = prepare(settings, panel)
    output = output_of(prepared.problem, settings.train.loss)
    seeds = np.random.SeedSequence(settings.train.seed).spawn(3)  # weights, order of windows, dropout and sampling
    plugin = settings.model.plugin
    history = History()
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(_integer(seeds[0]))
        module = build_module(settings.model, prepared.problem).to(device)
        fitted = Fitted(settings, prepared.problem, panel.schema, prepared.chain, module)
        on_start(fitted)
        torch.manual_seed(_integer(seeds[2]))
        if plugin.fit is not None:
            plugin.fit(module, prepared.train, prepared.validation)
        elif any(p.requires_grad for p in module.parameters()):
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
        if history.error is not None and history.best_step == 0:
            raise history.error
        forecast = backcast(fitted, prepared, device)
    test, baselines = _score(prepared, forecast)
    return Result(fitted, prepared, history, test, baselines, forecast, time.perf_counter() - started)


def backcast(fitted: Fitted, prepared: Prepared, device: torch.device) -> np.ndarray:
    """Forecasts of all test windows in the user's units, float64 `[windows, horizon, targets]`."""
    test = prepared.test
    path = predict(fitted.module, test, output_of(fitted.problem), device)
    return fitted.chain.inverse(path, prepared.data, test.series.numpy(), test.origins.numpy())


def origin_rows(prepared: Prepared) -> np.ndarray:
    """Row in `panel.values` of the first predicted step of each test window, int64 `[windows]`."""
    series = prepared.test.series.numpy()
    within = prepared.test.origins.numpy() - prepared.data.offsets[series]
    return np.asarray(prepared.panel.offsets[series] + within + prepared.chain.lost)


def _score(prepared: Prepared, forecast: np.ndarray) -> tuple[Score, dict[str, Score]]:
    panel, problem = prepared.panel, prepared.problem
    series, origin = prepared.test.series.numpy(), origin_rows(prepared)
    truth = panel.values[origin[:, None] + np.arange(problem.horizon), : problem.targets]
    scale = seasonal_scale(panel, prepared.split.validation, problem.season)

    def against_truth(path: np.ndarray) -> Score:
        return score(path, truth, series, scale, panel.schema.targets)

    naive = {name: f(panel, series, origin, problem.horizon, problem.season) for name, f in BASELINES.items()}
    return against_truth(forecast), {name: against_truth(path) for name, path in naive.items()}


def _integer(seed: np.random.SeedSequence) -> int:
    return int(seed.generate_state(1, np.uint64)[0])
