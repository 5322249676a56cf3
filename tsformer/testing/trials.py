"""What the checks of a model plugin work with: a problem, batches, and ways to call a module twice alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from tsformer.data.windows import Batch
from tsformer.nn.outputs import output_of
from tsformer.plugin import ModelPlugin, Problem

PROBLEM = Problem(lookback=20, horizon=5, targets=2, season=10)
TOLERANCE = 1e-5


class CheckFailedError(AssertionError):
    """A plugin does not keep its contract; the message says how and what to look for."""


def build(plugin: ModelPlugin, seed: int = 0) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return plugin.build(plugin.example, PROBLEM)


def drawn(module: nn.Module, batch: Batch, truth: float) -> Tensor:
    """A forward with the same coins and masks each time; with a graph in training, which may take another path."""
    with torch.random.fork_rng(devices=[]), torch.set_grad_enabled(module.training):
        torch.manual_seed(0)
        prediction: Tensor = module(batch, truth=truth)
        return prediction.detach()


def gradients(module: nn.Module, batch: Batch, truth: float) -> dict[str, Tensor | None]:
    """The gradient of the loss for each parameter that is trained, None where there is none."""
    module.zero_grad(set_to_none=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        output_of(PROBLEM).loss(module(batch, truth=truth), batch).backward()  # type: ignore[no-untyped-call]
    return {name: parameter.grad for name, parameter in module.named_parameters() if parameter.requires_grad}


def trains(plugin: ModelPlugin, module: nn.Module) -> bool:
    return plugin.fit is None and any(parameter.requires_grad for parameter in module.parameters())


def batch_of(size: int) -> Batch:
    """Sines of one period and several phases with a little noise: enough structure to be learned."""
    generator = np.random.default_rng(7)
    steps = np.arange(PROBLEM.lookback + PROBLEM.horizon)[None, :, None]
    phase = generator.uniform(0, 2 * np.pi, (size, 1, PROBLEM.targets))
    noise = generator.normal(0, 0.05, (size, steps.shape[1], PROBLEM.targets))
    values = torch.from_numpy(np.sin(2 * np.pi * steps / PROBLEM.season + phase) + noise).float()
    past, future = values[:, : PROBLEM.lookback], values[:, PROBLEM.lookback :]
    return Batch(
        past=past,
        past_mask=torch.ones_like(past, dtype=torch.bool),
        future=future,
        future_mask=torch.ones_like(future, dtype=torch.bool),
        series=torch.zeros(size, dtype=torch.long),
        origin=torch.full((size,), PROBLEM.lookback),
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
