"""What the checks of models work with: a problem, its batches and windows, and a model built for it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from tsformer.data.windows import Batch, Windows, cut_windows
from tsformer.nn.objective import Objective
from tsformer.nn.outputs import output_of
from tsformer.nn.spread import build_with_outputs
from tsformer.parameters import first_lazy
from tsformer.plugin import Config, ModelPlugin, Problem, Task
from tsformer.testing.failure import CheckFailedError
from tsformer.testing.generators import seeded

PROBLEM = Problem(lookback=20, horizon=5, targets=2, season=10)
COVARIATES: dict[str, dict[str, Any]] = {
    "future": {"past_covariates": 1, "future_covariates": 2},
    "static": {"static_covariates": 1, "static_cardinalities": (3, 4)},
}
"""What a problem has more, by the kind of covariates that a model declares."""
TOLERANCE = 1e-5


def build(plugin: ModelPlugin, seed: int = 0, problem: Problem = PROBLEM) -> nn.Module:
    """A module with the weights of that seed, as it is before training."""
    with seeded(seed):
        module = build_with_outputs(plugin, example_for(plugin, problem.task), problem)
    if not isinstance(module, nn.Module):
        raise CheckFailedError(f"build returns {type(module).__name__}, not a torch.nn.Module")
    lazy = first_lazy(module)
    if lazy is not None:
        raise CheckFailedError(
            f"'{lazy}' has no shape until the first forward (nn.LazyLinear or the like), so that a saved run could "
            "not be loaded; give the shape in build, from problem.lookback, problem.channels and so on"
        )
    return module


def with_covariates(plugin: ModelPlugin) -> Problem:
    """`PROBLEM` with covariates of all kinds that the model declares."""
    problem = PROBLEM
    for kind in sorted(plugin.covariates):
        problem = replace(problem, **COVARIATES[kind])
    return problem


def example_for(plugin: ModelPlugin, task: Task) -> Config:
    """The example without options that the task does not read, which a model of several tasks would refuse."""
    example = plugin.example
    while faults := len(list(example.faults_for(task))):
        better = (config for config in _less(example) if len(list(config.faults_for(task))) < faults)
        found = next(better, None)
        if found is None:  # build says what is wrong
            break
        example = found
    return example


def _less(config: Config) -> Iterator[Config]:
    """The same with one option fewer that is not at its default."""
    given = config.model_dump(exclude_defaults=True)
    for left_out in given:
        try:
            yield type(config).model_validate({name: value for name, value in given.items() if name != left_out})
        except ValidationError:
            continue


def fitted(plugin: ModelPlugin, seed: int = 0, problem: Problem = PROBLEM, parts: Any = None) -> nn.Module:
    """A module as the checks look at it: what has a `fit` hook has been fitted.

    Training and validation part are `windows` unless they are given.
    """
    module = build(plugin, seed, problem)
    if plugin.fit is not None:
        train, validation = parts or windows(problem)
        with seeded(seed):
            plugin.fit(module, train, validation)
    return module


def drawn(module: nn.Module, batch: Batch, truth: float) -> Tensor:
    """A forward with the same coins and masks each time; with a graph in training, which may take another path.

    Buffers that it changes in training, such as those of spectral norm, are afterwards as they were.
    """
    buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}
    with seeded(0), torch.set_grad_enabled(module.training):
        prediction: Tensor = torch.func.functional_call(module, buffers, (batch,), {"truth": truth})
        return prediction.detach()


def gradients(
    module: nn.Module, batch: Batch, truth: float, objective: Objective | None = None
) -> dict[str, Tensor | None]:
    """The gradient of the loss for each parameter that is trained, None where there is none."""
    objective = output_of(PROBLEM) if objective is None else objective
    module.zero_grad(set_to_none=True)
    with seeded(0):
        objective.loss(module(batch, truth=truth), batch).backward()  # type: ignore[no-untyped-call]
    return {name: parameter.grad for name, parameter in module.named_parameters() if parameter.requires_grad}


def learns(module: nn.Module, batch: Batch, truth: float, output: int) -> bool:
    """Whether one of the numbers that describe a value, counted from 0, depends on what is trained."""
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    with seeded(0):
        prediction: Tensor = module(batch, truth=truth)[..., output]
        some = (prediction * torch.randn_like(prediction)).sum()  # not the plain sum, which softmax keeps
    if not prediction.requires_grad:
        return False
    found = torch.autograd.grad(some, parameters, allow_unused=True)
    return any(gradient is not None and bool(gradient.any()) for gradient in found)


def _sines(count: int, steps: int, channels: int) -> Tensor:
    """Waves of one period and several phases with a little noise: enough structure to be learned."""
    generator = np.random.default_rng(7)
    step = np.arange(steps)[None, :, None]
    phase = generator.uniform(0, 2 * np.pi, (count, 1, channels))
    noise = generator.normal(0, 0.05, (count, steps, channels))
    return torch.from_numpy(np.sin(2 * np.pi * step / PROBLEM.season + phase) + noise).float()


def _values(count: int, steps: int, problem: Problem) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Series `[count, steps, channels + known]`, static numbers and codes: all covariates move the targets."""
    generator = np.random.default_rng(8)

    def noise(*shape: int) -> Tensor:
        return torch.from_numpy(generator.standard_normal(shape)).float()

    values = torch.cat([_sines(count, steps, problem.channels), noise(count, steps, problem.future_covariates)], dim=-1)
    static = noise(count, problem.static_covariates) if problem.static_covariates else None
    sizes = problem.static_cardinalities
    codes = torch.stack([torch.arange(count) % size for size in sizes], dim=1) if sizes else None
    moved = 0.5 * values[..., problem.channels :].sum(-1, keepdim=True)
    for each in (static, codes):
        if each is not None:
            moved = moved + 0.3 * each.sum(-1)[:, None, None] * values[..., :1]
    values[..., : problem.targets] += moved
    return values, static, codes


def windows(problem: Problem = PROBLEM) -> tuple[Windows, Windows]:
    """Training and validation windows of three series; after them come rows that belong to neither."""
    rows, train, validation = 150, 105, 125
    values, static, codes = _values(3, rows, problem)
    offsets = np.arange(4) * rows

    def cut(first: int, stop: int) -> Windows:
        return cut_windows(
            values.flatten(0, 1).clone(),
            offsets,
            np.full(3, first),
            np.full(3, stop),
            lookback=problem.lookback,
            horizon=problem.horizon,
            targets=problem.targets,
            known=problem.future_covariates,
            static=static,
            static_codes=codes,
        )

    return cut(problem.lookback, train), cut(train, validation)


def spoiled_behind(some: Windows) -> Windows:
    """The same windows, with garbage in the rows behind the last of each series."""
    values = some.values.clone()
    starts = [*np.unique(some.starts.numpy()), len(values)]
    for start, following in itertools.pairwise(starts):
        last = int(some.origins[some.starts == start].max())
        values[last + some.horizon : following] = 1e3
    return replace(some, values=values)


def batch_of(size: int, problem: Problem = PROBLEM) -> Batch:
    """Windows with the whole past and the future that follows."""
    values, static, codes = _values(size, problem.lookback + problem.horizon, problem)
    past, ahead = values[:, : problem.lookback], values[:, problem.lookback :]
    channels, known = problem.channels, problem.future_covariates
    future = ahead[..., : problem.targets]
    return Batch(
        past=past[..., :channels],
        past_mask=torch.ones_like(past[..., :channels], dtype=torch.bool),
        past_known=past[..., channels:] if known else None,
        future_known=ahead[..., channels:] if known else None,
        static=static,
        static_codes=codes,
        future=future,
        future_mask=torch.ones_like(future, dtype=torch.bool),
        series=torch.zeros(size, dtype=torch.long),
        origin=torch.full((size,), problem.lookback),
    )


def given(tensor: Tensor | None) -> Tensor:
    if tensor is None:
        raise CheckFailedError("the check's own batch is incomplete")
    return tensor


def close(a: Tensor, b: Tensor) -> bool:
    return bool(torch.allclose(a, b, atol=TOLERANCE, rtol=TOLERANCE))
