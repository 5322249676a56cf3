"""What the checks work with: a problem, batches and windows for models, and ways to do a thing twice alike."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from tsformer.data.windows import Batch, Windows, cut_windows
from tsformer.nn.outputs import output_of
from tsformer.plugin import ModelPlugin, Problem

PROBLEM = Problem(lookback=20, horizon=5, targets=2, season=10)
TOLERANCE = 1e-5


class CheckFailedError(AssertionError):
    """A plugin does not keep its contract; the message says how and what to look for."""


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Within this the global generators of Python, numpy and torch start from a seed; the caller's are put back."""
    callers = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=[]):
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(callers[0])
            np.random.set_state(callers[1])  # noqa: NPY002


def generators() -> dict[str, object]:
    """The state of each global random generator, to be compared."""
    return {
        "Python's": random.getstate(),
        "numpy's": repr(np.random.get_state()),  # noqa: NPY002
        "torch's": torch.random.get_rng_state().tolist(),
    }


def build(plugin: ModelPlugin, seed: int = 0, problem: Problem = PROBLEM) -> nn.Module:
    """A module with the weights of that seed, as it is before training."""
    with seeded(seed):
        module = plugin.build(plugin.example, problem)
    if not isinstance(module, nn.Module):
        raise CheckFailedError(f"build returns {type(module).__name__}, not a torch.nn.Module")
    return module


def fitted(plugin: ModelPlugin, seed: int = 0) -> nn.Module:
    """A module as the checks look at it: what has a `fit` hook has been fitted."""
    module = build(plugin, seed)
    if plugin.fit is not None:
        train, validation = windows()
        with seeded(seed):
            plugin.fit(module, train, validation)
    return module


def drawn(module: nn.Module, batch: Batch, truth: float) -> Tensor:
    """A forward with the same coins and masks each time; with a graph in training, which may take another path."""
    with seeded(0), torch.set_grad_enabled(module.training):
        prediction: Tensor = module(batch, truth=truth)
        return prediction.detach()


def gradients(module: nn.Module, batch: Batch, truth: float) -> dict[str, Tensor | None]:
    """The gradient of the loss for each parameter that is trained, None where there is none."""
    module.zero_grad(set_to_none=True)
    with seeded(0):
        output_of(PROBLEM).loss(module(batch, truth=truth), batch).backward()  # type: ignore[no-untyped-call]
    return {name: parameter.grad for name, parameter in module.named_parameters() if parameter.requires_grad}


def trains(plugin: ModelPlugin, module: nn.Module) -> bool:
    return plugin.fit is None and any(parameter.requires_grad for parameter in module.parameters())


def _sines(count: int, steps: int, channels: int) -> Tensor:
    """Waves of one period and several phases with a little noise: enough structure to be learned."""
    generator = np.random.default_rng(7)
    step = np.arange(steps)[None, :, None]
    phase = generator.uniform(0, 2 * np.pi, (count, 1, channels))
    noise = generator.normal(0, 0.05, (count, steps, channels))
    return torch.from_numpy(np.sin(2 * np.pi * step / PROBLEM.season + phase) + noise).float()


def windows() -> tuple[Windows, Windows]:
    """Training and validation windows of three series; after them come rows that belong to neither."""
    rows, train, validation = 150, 105, 125
    values = _sines(3, rows, PROBLEM.channels).reshape(3 * rows, -1)
    offsets = np.arange(4) * rows

    def cut(first: int, stop: int) -> Windows:
        return cut_windows(
            values.clone(),
            offsets,
            np.full(3, first),
            np.full(3, stop),
            lookback=PROBLEM.lookback,
            horizon=PROBLEM.horizon,
            targets=PROBLEM.targets,
        )

    return cut(PROBLEM.lookback, train), cut(train, validation)


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
    values = _sines(size, problem.lookback + problem.horizon, problem.channels)
    past, future = values[:, : problem.lookback], values[:, problem.lookback :, : problem.targets]
    return Batch(
        past=past,
        past_mask=torch.ones_like(past, dtype=torch.bool),
        future=future,
        future_mask=torch.ones_like(future, dtype=torch.bool),
        series=torch.zeros(size, dtype=torch.long),
        origin=torch.full((size,), problem.lookback),
    )


def rows(batch: Batch, rows: slice) -> Batch:
    return replace(
        batch,
        past=batch.past[rows],
        past_mask=batch.past_mask[rows],
        future=given(batch.future)[rows],
        future_mask=given(batch.future_mask)[rows],
        series=given(batch.series)[rows],
        origin=given(batch.origin)[rows],
    )


def given(tensor: Tensor | None) -> Tensor:
    if tensor is None:
        raise CheckFailedError("the check's own batch is incomplete")
    return tensor


def close(a: Tensor, b: Tensor) -> bool:
    return bool(torch.allclose(a, b, atol=TOLERANCE, rtol=TOLERANCE))
