"""Checks of a model plugin, each a plain function that explains what is wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import safetensors.torch
import torch
from torch import Tensor, nn

from tsformer.data.windows import Batch
from tsformer.nn.outputs import output_of
from tsformer.plugin import ModelPlugin, Problem

PROBLEM = Problem(lookback=20, horizon=5, targets=2, season=10)
TOLERANCE = 1e-5


class CheckFailedError(AssertionError):
    """A plugin does not keep its contract; the message says how and what to look for."""


def check_shapes(plugin: ModelPlugin) -> None:
    """forward returns finite `[batch, horizon, targets, outputs]`, with and without a truth to feed."""
    module = _build(plugin).eval()
    for size in (1, 3):
        batch = _batch(size)
        wanted = (size, PROBLEM.horizon, PROBLEM.targets, PROBLEM.outputs)
        free = {"truth=0": module(replace(batch, future=None, future_mask=None)), "truth=1": module(batch, truth=1.0)}
        for call, prediction in free.items():
            if tuple(prediction.shape) != wanted:
                raise CheckFailedError(f"forward({call}) returns {tuple(prediction.shape)}, not {wanted}")
            if not bool(torch.isfinite(prediction).all()):
                raise CheckFailedError(f"forward({call}) returns values that are not finite")


def check_causality(plugin: ModelPlugin) -> None:
    """At truth=1, step k never sees future[k:]; at truth=0 nothing in the future matters."""
    module, batch = _build(plugin).eval(), _batch(3)
    future = _given(batch.future)
    with torch.no_grad():
        before = module(batch, truth=1.0)
        for k in range(PROBLEM.horizon):
            changed = future.clone()
            changed[:, k:] += 7.0
            after = module(replace(batch, future=changed), truth=1.0)
            if not _close(after[:, : k + 1], before[:, : k + 1]):
                raise CheckFailedError(
                    f"at truth=1, changing future[:, {k}:] changes the prediction of step {k} or an earlier one; "
                    "is the mask the right way round, and the decoder's input shifted by one step?"
                )
        if not _close(module(replace(batch, future=future + 7.0)), module(batch)):
            raise CheckFailedError("at truth=0, the prediction depends on batch.future")


def check_mask_invariance(plugin: ModelPlugin) -> None:
    """What stands behind past_mask changes nothing, not even NaN."""
    module, batch = _build(plugin).eval(), _batch(4)
    mask = batch.past_mask.clone()
    mask[1, :3] = False  # padding on the left
    mask[2, :5, 0] = False  # one channel starts later
    mask[3, 4, 1] = False  # a hole
    batch = replace(batch, past_mask=mask)
    with torch.no_grad():
        clean = module(replace(batch, past=torch.where(mask, batch.past, 0.0)))
        for garbage in (5.0, 1e6, float("nan")):
            dirty = module(replace(batch, past=torch.where(mask, batch.past, garbage)))
            if not _close(dirty, clean):
                raise CheckFailedError(
                    f"putting {garbage} behind past_mask changes the prediction; zero masked inputs, and give the mask "
                    "to attention, convolutions and normalisation"
                )


def check_batch_invariance(plugin: ModelPlugin) -> None:
    """A window's prediction does not depend on the windows beside it."""
    module, batch = _build(plugin).eval(), _batch(4)
    with torch.no_grad():
        together = module(batch)
        for row in range(4):
            if not _close(module(_rows(batch, slice(row, row + 1))), together[row : row + 1]):
                raise CheckFailedError(
                    "a window alone gets another prediction than in a batch; statistics must not run over the batch"
                )


def check_gradients(plugin: ModelPlugin) -> None:
    """Every parameter gets a finite gradient, with padded windows and at every truth."""
    module = _build(plugin).train()
    if not _trains(plugin, module):
        return
    batch = _batch(4)
    mask = batch.past_mask.clone()
    mask[0, :6] = False
    batch = replace(batch, past_mask=mask, past=torch.where(mask, batch.past, 0.0))
    for truth in (1.0, 0.5, 0.0):
        module.zero_grad(set_to_none=True)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            output_of(PROBLEM).loss(module(batch, truth=truth), batch).backward()  # type: ignore[no-untyped-call]
        for name, parameter in module.named_parameters():
            if not parameter.requires_grad:
                continue
            if parameter.grad is None:
                raise CheckFailedError(f"parameter '{name}' gets no gradient at truth={truth}")
            if not bool(torch.isfinite(parameter.grad).all()):
                raise CheckFailedError(f"the gradient of parameter '{name}' is not finite at truth={truth}")


def check_overfits_one_batch(plugin: ModelPlugin) -> None:
    """A few hundred steps on one batch bring its loss down to a tenth."""
    module = _build(plugin)
    if not _trains(plugin, module):
        return
    batch, output = _batch(8), output_of(PROBLEM)
    optimizer = torch.optim.Adam(module.parameters(), lr=5e-3)

    def loss() -> float:
        module.eval()
        with torch.no_grad():
            return float(output.loss(module(batch, truth=1.0), batch))

    before = after = loss()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for step in range(400):
            module.train()
            optimizer.zero_grad()
            output.loss(module(batch, truth=1.0), batch).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            if step % 20 == 19:
                after = loss()
                if after < 0.1 * before:
                    return
    raise CheckFailedError(
        f"400 steps on one batch of 8 windows bring the loss from {before:.3g} to {after:.3g} only; "
        "does every part take part in the computation?"
    )


def check_save_and_load(plugin: ModelPlugin) -> None:
    """The state dict alone brings the forecast back, bit by bit, in a module built anew."""
    if not plugin.persistent:
        return
    module, batch = _build(plugin).eval(), _batch(3)
    weights = {name: tensor.contiguous() for name, tensor in module.state_dict().items()}
    again = _build(plugin, seed=1).eval()
    again.load_state_dict(safetensors.torch.load(safetensors.torch.save(weights)))
    with torch.no_grad():
        if not torch.equal(again(batch), module(batch)):
            raise CheckFailedError(
                "the state dict does not bring the forecast back; keep what is learned or drawn in buffers"
            )


def check_leaves_rng_alone(plugin: ModelPlugin) -> None:
    """Building and predicting leave the caller's random generators as they were; prediction draws nothing."""
    callers = random.getstate(), np.random.get_state()  # noqa: NPY002
    random.seed(20201)  # a state that nobody seeds by chance
    np.random.seed(20201)  # noqa: NPY002
    before = random.getstate(), repr(np.random.get_state())  # noqa: NPY002
    torch_before = torch.random.get_rng_state()
    try:
        module, batch = _build(plugin).eval(), _batch(2)
        built = torch.random.get_rng_state()
        with torch.no_grad():
            module(batch)
        drawn = not torch.equal(built, torch.random.get_rng_state())
        after = random.getstate(), repr(np.random.get_state())  # noqa: NPY002
    finally:
        random.setstate(callers[0])
        np.random.set_state(callers[1])  # noqa: NPY002
    if drawn:
        raise CheckFailedError("a prediction draws from torch's global generator; in eval() nothing may be random")
    if before != after or not torch.equal(torch_before, torch.random.get_rng_state()):
        raise CheckFailedError("building or predicting changes a global random generator; do not seed or draw from it")


MODEL_CHECKS: tuple[Callable[[ModelPlugin], None], ...] = (
    check_shapes,
    check_causality,
    check_mask_invariance,
    check_batch_invariance,
    check_gradients,
    check_overfits_one_batch,
    check_save_and_load,
    check_leaves_rng_alone,
)


def check_model(plugin: ModelPlugin) -> dict[str, str]:
    """Run all checks; what failed, by the check's name, with the explanation."""
    failed = {}
    for check in MODEL_CHECKS:
        try:
            check(plugin)
        except CheckFailedError as failure:
            failed[check.__name__] = str(failure)
        except Exception as error:
            failed[check.__name__] = f"{type(error).__name__}: {error}"
    return failed


def _build(plugin: ModelPlugin, seed: int = 0) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return plugin.build(plugin.example, PROBLEM)


def _trains(plugin: ModelPlugin, module: nn.Module) -> bool:
    return plugin.fit is None and any(parameter.requires_grad for parameter in module.parameters())


def _batch(size: int) -> Batch:
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


def _rows(batch: Batch, rows: slice) -> Batch:
    return replace(
        batch,
        past=batch.past[rows],
        past_mask=batch.past_mask[rows],
        future=_given(batch.future)[rows],
        future_mask=_given(batch.future_mask)[rows],
        series=_given(batch.series)[rows],
        origin=_given(batch.origin)[rows],
    )


def _given(tensor: Tensor | None) -> Tensor:
    if tensor is None:
        raise CheckFailedError("the check's own batch is incomplete")
    return tensor


def _close(a: Tensor, b: Tensor) -> bool:
    return bool(torch.allclose(a, b, atol=TOLERANCE, rtol=TOLERANCE))
