"""From settings and data to a fitted model with its score: what the command line and the Python API share."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from tsformer import memory, transfer
from tsformer.building import build_module, check_kept, device_of, torch_seeded, try_out, without_effect
from tsformer.data.calendar import constant_features
from tsformer.data.panel import Panel
from tsformer.data.sequences import Sequences
from tsformer.data.split import Split
from tsformer.data.step import Step
from tsformer.data.windows import Windows
from tsformer.dependence import learn_dependence
from tsformer.errors import PluginError, UsageError
from tsformer.fitted import Fitted
from tsformer.joint import members_of, train_members
from tsformer.nn.outputs import output_of
from tsformer.nn.points import Point
from tsformer.nn.spread import Spread, inner
from tsformer.parameters import by_gradients
from tsformer.plugin import Task
from tsformer.preparation import Prepared, complete, prepare, up_to_end
from tsformer.results import Result, result_of
from tsformer.sequence_preparation import PreparedSequences, complete_sequences, prepare_sequences
from tsformer.settings import Settings
from tsformer.training.loop import History, Progress, evaluate, train


@dataclass(frozen=True)
class Ready:
    """A fit before its first step: everything has been checked, and nothing learned.

    Attributes:
        fitted: the untrained model; its settings have a complete window.
        prepared: the data.
        groups: of parameters, with the share of the learning rate of each.
        device: where the module is.
        order: seed of the order of examples.
        draws: seed of dropout and scheduled sampling.
        notes: what the user should hear of, one line each.
        members: the fits of the models that this one is made of; none of most.
    """

    fitted: Fitted
    prepared: Prepared | PreparedSequences
    groups: list[dict[str, Any]]
    device: torch.device
    order: np.random.SeedSequence
    draws: np.random.SeedSequence
    notes: tuple[str, ...] = ()
    members: tuple[Ready, ...] = ()


def make_ready(settings: Settings, data: Panel | Sequences, split: Split | None = None) -> Ready:
    """All that a fit does before its first step: prepare the data, build the model, try it on two examples.

    The caller's random state is left as it was.

    Raises:
        DataError, PluginError, UsageError: data, model and options do not go together.
        ResourceError: the device is not there, or its memory cannot hold the model.
    """
    _check_kind(settings, data)
    device = device_of(settings.train.device)
    earlier = transfer.earlier_run(settings.transfer)
    tokenizer = None if earlier is None else earlier.tokenizer
    prepared: Prepared | PreparedSequences
    notes: tuple[str, ...] = ()
    if isinstance(data, Panel):
        data = data if split is None else up_to_end(data, split)
        settings = complete(settings, data)
        prepared = prepare(settings, data, split, tokenizer)
        notes = (*_idle(data), *prepared.notes)
    elif split is not None:
        raise UsageError("a split by time is for rows of a panel, not for sequences")
    else:
        prepared = prepare_sequences(settings, data, tokenizer)
        settings, notes = complete_sequences(settings, prepared.problem), prepared.notes
    parts = prepared.parts
    memory.require(settings, prepared, device)
    weights, order, draws = np.random.SeedSequence(settings.train.seed).spawn(3)
    with torch_seeded(weights):
        module = build_module(settings.model, parts.problem).to(device)
        taken = transfer.take_over(module, earlier, parts.words, frozen=settings.transfer.freeze)
        notes += taken.lines
        try_out(settings.model, module, parts.train, parts.problem)
        notes += without_effect(settings.model, module, parts, settings.train)
    groups = transfer.parameter_groups(module, settings.transfer, taken.loaded)
    fitted = Fitted(settings, parts.problem, data.schema, parts.chain, module, parts.words, parts.statics)
    ready = Ready(fitted, prepared, groups, device, order, draws, notes)
    members = members_of(ready)
    return replace(ready, members=members, notes=notes + tuple(note for each in members for note in each.notes))


def _check_kind(settings: Settings, data: Panel | Sequences) -> None:
    """Raises PluginError when rows come where sequences are needed, or the other way about."""
    wanted = {Task.FORECAST: Panel, Task.CLASSIFY: Sequences, Task.SEQUENCE: Sequences}.get(settings.task)
    if wanted is not None and not isinstance(data, wanted):
        source = settings.data or "the data"
        raise PluginError(f"{source}: to {settings.task} takes {wanted.__name__}, not {type(data).__name__}")


def _idle(panel: Panel) -> tuple[str, ...]:
    """A line for what is said of the calendar and tells nothing about these rows."""
    schema, lines = panel.schema, []
    names = constant_features(panel.times, schema)
    if names:
        lines.append(f"--calendar {','.join(names)} without effect: the same at all times of these data")
    closes = isinstance(schema.frequency, str) and Step.parse(schema.frequency).closes
    if schema.holidays is not None and "holiday" not in schema.calendar and not closes:
        lines.append(f"--holidays {schema.holidays} without effect: --calendar holiday or steps of weekdays read it")
    return tuple(lines)


@dataclass(frozen=True)
class Watch:
    """Who is told of a fit, and may end it.

    Attributes:
        note: told of options that have no effect, of what was taken over from an earlier run, and the like.
        start: called with the untrained model, when everything has been checked.
        step, evaluation: told of the progress.
        interrupted: asked before each step; True ends the training and keeps the best weights.
    """

    note: Callable[[str], None] = lambda line: None
    start: Callable[[Fitted], None] = lambda fitted: None
    step: Callable[[Progress], None] = lambda progress: None
    evaluation: Callable[[dict[str, Any]], None] = lambda record: None
    interrupted: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class Learned:
    """A model that has been fitted, and not yet been scored.

    Attributes:
        prepared: the data that it was fitted on.
        history: how the training went.
        device: where the module is.
    """

    fitted: Fitted
    prepared: Prepared | PreparedSequences
    history: History
    device: torch.device


def fit(
    settings: Settings, data: Panel | Sequences, *, split: Split | None = None, watch: Watch | None = None
) -> Result:
    """Fit a model and score it on the test part beside naive answers; otherwise like `learn`."""
    started = time.perf_counter()
    learned = learn(settings, data, split=split, watch=watch)
    return result_of(
        learned.fitted, learned.prepared, learned.history, learned.device, lambda: time.perf_counter() - started
    )


def learn(
    settings: Settings, data: Panel | Sequences, *, split: Split | None = None, watch: Watch | None = None
) -> Learned:
    """Fit a model. Rows after the validation part are not looked at.

    The caller's random state is left as it was; the same seed gives the same bytes on the same machine.

    Args:
        split: where the parts of each series end, for a published split of a panel; by default 70/10/20.
        watch: who is told of it.

    Raises:
        DataError, PluginError, ResourceError: before the first step.
        DivergedError: when nothing usable was learned before the loss ceased to be finite.
    """
    watch = watch or Watch()
    started = time.perf_counter()
    ready = make_ready(settings, data, split)
    fitted, module = ready.fitted, ready.fitted.module
    for note in ready.notes:
        watch.note(note)
    watch.start(fitted)
    with torch_seeded(ready.draws):
        history = _trained(ready, watch, started)
    if history.error is not None and history.best_step == 0:
        raise history.error
    check_kept(fitted.settings.model, ready.prepared.parts.problem, module)
    if isinstance(ready.prepared, Prepared) and fitted.problem.task is Task.FORECAST:
        with torch_seeded(ready.draws), fitted.settings.model.at_fault("prediction"):
            fitted = with_dependence(fitted, ready.prepared.validation)
    return Learned(fitted, ready.prepared, history, ready.device)


def with_dependence(fitted: Fitted, validation: Windows) -> Fitted:
    """The model with what the validation part says of how the steps of one forecast depend on each other."""
    most = 4 * fitted.settings.train.eval_windows  # once, and correlations take more windows than a mean loss
    return replace(fitted, dependence=learn_dependence(fitted.module, output_of(fitted.problem), validation, most))


def _trained(ready: Ready, watch: Watch, started: float) -> History:
    """Train the module in place: by gradients, or as its plugin says. Points come before the scatter around them."""
    if ready.members:
        return train_members(
            ready,
            watch,
            lambda member, told: _trained(member, told, time.perf_counter()),
            lambda: without_steps(ready, started).evaluations[0],
        )
    fitted, parts = ready.fitted, ready.prepared.parts
    settings, module, plugin = fitted.settings, fitted.module, fitted.settings.model.plugin
    if by_gradients(plugin, module):
        with settings.model.at_fault("training"):
            history = train(
                inner(module),
                parts.train,
                parts.validation,
                Point() if isinstance(module, Spread) else parts.objective,
                settings.train,
                groups=ready.groups,
                generator=np.random.default_rng(ready.order),
                device=ready.device,
                on_step=watch.step,
                on_evaluation=watch.evaluation,
                interrupted=watch.interrupted,
            )
            if history.error is None or history.best_step:
                _fit_scatter(ready)
            return history
    with settings.model.at_fault("fit"):
        if plugin.fit is not None:
            plugin.fit(inner(module.cpu()), parts.train, parts.validation)  # examples are on the CPU
            module.to(ready.device)
        _fit_scatter(ready)
        history = without_steps(ready, started)
    watch.evaluation(history.evaluations[0])
    return history


def _fit_scatter(ready: Ready) -> None:
    """Where a model gives points only, learn how values scatter around them, on at most `eval_windows` windows."""
    module, validation = ready.fitted.module, ready.prepared.parts.validation
    if isinstance(module, Spread) and isinstance(validation, Windows):
        module.fit(validation.thin(ready.fitted.settings.train.eval_windows), ready.device)


def without_steps(ready: Ready, started: float) -> History:
    """The history of a model that is fitted without gradients, or not at all: one evaluation, at step 0.

    Args:
        ready: of which at most `eval_windows` examples of each part are looked at.
        started: when the fit began, on the clock of `time.perf_counter`.
    """
    parts, module, most = ready.prepared.parts, ready.fitted.module, ready.fitted.settings.train.eval_windows
    first, second = (
        evaluate(module, part.thin(most), parts.objective, ready.device) for part in (parts.train, parts.validation)
    )
    record = {
        "step": 0,
        "train_loss": first.loss,
        "validation_loss": second.loss,
        **second.measures,
        "learning_rate": None,
        "truth": None,
        "seconds": round(time.perf_counter() - started, 3),
    }
    return History([record])
