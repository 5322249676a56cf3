"""A model plugin's module: built, tried out, and on which device."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn

from tsformer import weights
from tsformer.data.examples import Examples
from tsformer.data.windows import Batch
from tsformer.errors import PluginError, ResourceError, UsageError
from tsformer.nn.spread import build_with_outputs
from tsformer.parameters import first_lazy
from tsformer.parts import Parts
from tsformer.plugin import Problem, Task, changed
from tsformer.settings import DEVICES, Chosen, TrainConfig

COVARIATES = {"future": "--future-covariates and --calendar", "static": "--static-covariates"}
"""The options that give covariates of a kind."""


def build_module(model: Chosen, problem: Problem) -> nn.Module:
    """Raises PluginError when the model cannot do the task, or its build fails."""
    if problem.task not in model.plugin.tasks:
        can = ", ".join(sorted(model.plugin.tasks)) or "nothing"
        raise PluginError(f"{model} cannot {problem.task}; it can: {can}")
    with model.at_fault("build"):
        module = build_with_outputs(model.plugin, model.config, problem)
    if not isinstance(module, nn.Module):
        raise PluginError(f"{model} built {type(module).__name__}, not a torch.nn.Module")
    lazy = first_lazy(module)
    if lazy is not None:
        raise PluginError(
            f"{model}: the weights '{lazy}' have no shape before the first forward (a lazy module, like "
            "nn.LazyLinear): give all sizes in build, they are in the problem"
        )
    return module


@contextmanager
def same_random_state() -> Iterator[None]:
    """What is drawn within this changes nothing for the caller: torch's global generators are put back after it."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):  # manual_seed seeds all of them
        yield


@contextmanager
def torch_seeded(seed: np.random.SeedSequence) -> Iterator[None]:
    """Within this torch's global generators start from a seed; the caller's are put back."""
    with same_random_state():
        torch.manual_seed(int(seed.generate_state(1, np.uint64)[0]))
        yield


def rebuilt(model: Chosen, problem: Problem) -> nn.Module:
    """A newly built module for weights that are there already; the caller's random state is left as it was.

    Raises:
        PluginError: as `build_module` does.
    """
    with same_random_state():
        return build_module(model, problem)


def check_kept(model: Chosen, problem: Problem, module: nn.Module) -> None:
    """Raises PluginError when a module's weights do not go into one that is newly built, as a run's will have to.

    The caller's random state is left as it was.
    """
    if not model.persistent:
        return
    again = rebuilt(model, problem)
    try:
        weights.load(again, weights.save(module))
    except ValueError as error:
        raise PluginError(
            f"{model}: after training its weights do not fit a module that is newly built, so that no run of it could "
            f"be loaded: {error}"
        ) from None


def try_out(model: Chosen, module: nn.Module, examples: Examples, problem: Problem) -> None:
    """Two examples through the module, so that a model which breaks its contract is named before anything is written.

    Raises:
        PluginError: forward fails, or its result has another shape than promised, or is not finite.
    """
    batch = _two(examples, module)
    module.eval()
    for truth in (0.0, 1.0):
        with model.at_fault(f"forward(batch, truth={truth})"), torch.no_grad():
            prediction = module(batch, truth=truth)
        wanted, axes = promised(problem, batch, truth)
        shape = tuple(prediction.shape) if isinstance(prediction, torch.Tensor) else type(prediction).__name__
        if not _fits(shape, wanted):
            raise PluginError(f"{model}: forward(batch, truth={truth}) returns {shape}, not {wanted} [{axes}]")
        if not bool(torch.isfinite(prediction).all()):
            raise PluginError(f"{model}: forward(batch, truth={truth}) returns values that are not finite")
    if model.persistent:
        with model.at_fault("its state dict, which must hold plain tensors that can be saved and loaded"):
            weights.load(module, weights.save(module))


def promised(problem: Problem, batch: Batch, truth: float) -> tuple[tuple[int | None, ...], str]:
    """The shape that a forward has to return, None where any size will do, and what its axes are."""
    if problem.task is Task.FORECAST:
        return (len(batch.past), problem.horizon, problem.targets, problem.outputs), "batch, horizon, targets, outputs"
    source = batch.tokens if problem.channels == 0 else batch.past
    assert source is not None
    if problem.task is Task.CLASSIFY:
        return (len(source), problem.classes), "batch, classes"
    if problem.task is Task.SEQUENCE:
        length = None if batch.target_tokens is None or truth == 0.0 else batch.target_tokens.shape[1]
        return (len(source), length, problem.target_vocabulary), "batch, target_length, vocabulary"
    size = problem.targets or problem.channels or problem.vocabulary
    return (len(source), source.shape[1], size), f"batch, time, {'channels' if problem.channels else 'vocabulary'}"


def _fits(shape: object, wanted: tuple[int | None, ...]) -> bool:
    return (
        isinstance(shape, tuple)
        and len(shape) == len(wanted)
        and all(want in (None, size) for size, want in zip(shape, wanted, strict=True))
    )


def without_effect(model: Chosen, module: nn.Module, parts: Parts, train: TrainConfig) -> tuple[str, ...]:
    """A line on each kind of covariates, and one on options of the training, that this model does not read.

    A file may hold them for another one.
    """
    lines = tuple(
        f"{options} without effect: model '{model.name}' reads no {kind} covariates to {parts.problem.task}"
        for kind, options in COVARIATES.items()
        if kind in model.unread(parts.problem)
    )
    lines += tuple(
        f"{member} reads no {kind} covariates, others do"
        for member in model.members
        for kind in member.unread(parts.problem)
        if kind not in model.unread(parts.problem)
    )
    unread = changed(train, "truth_start", "truth_end")
    if not unread or _feeds_back(model, module, _two(parts.train, module)):
        return lines
    forecasts = parts.problem.task is Task.FORECAST and "decoder" in type(model.config).model_fields
    other = "; decoder autoregressive does, with a horizon of several steps" if forecasts else ""
    fed = f"train.{' and train.'.join(unread)} without effect: model '{model.name}' feeds nothing back here{other}"
    return (*lines, fed)


def _two(examples: Examples, module: nn.Module) -> Batch:
    return examples.batch(torch.arange(min(2, len(examples)))).to(device_in_use(module))


def _feeds_back(model: Chosen, module: nn.Module, batch: Batch) -> bool:
    """Whether a prediction depends on the truth that is fed; the weights are left as they were."""

    def differs() -> bool:
        with model.at_fault("forward"):
            without, fed = (module(batch, truth=truth) for truth in (0.0, 1.0))
        return without.shape != fed.shape or not torch.equal(without, fed)

    with torch.no_grad():
        if differs():
            return True
        # weights that are zero at first, as those of a last layer may be, hide the truth
        kept = [(parameter, parameter.clone()) for parameter in module.parameters()]
        for parameter, value in kept:
            parameter.add_(0.1 * torch.randn_like(value))
        found = differs()
        for parameter, value in kept:
            parameter.copy_(value)
    return found


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
