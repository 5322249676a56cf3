"""Checks of a model plugin, each a plain function that explains what is wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import safetensors.torch
import torch

from tsformer.nn.outputs import output_of
from tsformer.plugin import ModelPlugin
from tsformer.testing.trials import (
    PROBLEM,
    CheckFailedError,
    batch_of,
    build,
    close,
    drawn,
    given,
    gradients,
    rows,
    trains,
)


def check_shapes(plugin: ModelPlugin) -> None:
    """forward returns finite `[batch, horizon, targets, outputs]`, with and without a truth to feed."""
    module = build(plugin).eval()
    for size in (1, 3):
        batch = batch_of(size)
        wanted = (size, PROBLEM.horizon, PROBLEM.targets, PROBLEM.outputs)
        free = {"truth=0": module(replace(batch, future=None, future_mask=None)), "truth=1": module(batch, truth=1.0)}
        for call, prediction in free.items():
            if tuple(prediction.shape) != wanted:
                raise CheckFailedError(f"forward({call}) returns {tuple(prediction.shape)}, not {wanted}")
            if not bool(torch.isfinite(prediction).all()):
                raise CheckFailedError(f"forward({call}) returns values that are not finite")


def check_causality(plugin: ModelPlugin) -> None:
    """At truth > 0, step k never sees future[k:]; at truth=0 nothing in the future matters. In training as well."""
    module, batch = build(plugin), batch_of(3)
    future = given(batch.future)
    for training in (False, True):
        module.train(training)
        mode = "train()" if training else "eval()"
        for truth in (1.0, 0.5):
            before = drawn(module, batch, truth)
            for k in range(PROBLEM.horizon):
                changed = future.clone()
                changed[:, k:] += 7.0
                after = drawn(module, replace(batch, future=changed), truth)
                if not close(after[:, : k + 1], before[:, : k + 1]):
                    raise CheckFailedError(
                        f"in {mode} at truth={truth}, changing future[:, {k}:] changes the prediction of step {k} or "
                        "an earlier one; is the mask the right way round, and the decoder's input shifted by one step?"
                    )
        if not close(drawn(module, replace(batch, future=future + 7.0), 0.0), drawn(module, batch, 0.0)):
            raise CheckFailedError(f"in {mode} at truth=0, the prediction depends on batch.future")


def check_mask_invariance(plugin: ModelPlugin) -> None:
    """What stands behind past_mask changes nothing, not even NaN, and not even when nothing stands before it."""
    module, batch = build(plugin).eval(), batch_of(6)
    mask = batch.past_mask.clone()
    mask[1, :3] = False  # padding on the left
    mask[2, :5, 0] = False  # one channel starts later
    mask[3, 4, 1] = False  # a hole
    mask[4] = False  # nothing at all
    mask[5, :, 0] = False  # nothing of one channel
    batch = replace(batch, past_mask=mask)
    with torch.no_grad():
        clean = module(replace(batch, past=torch.where(mask, batch.past, 0.0)))
        if not bool(torch.isfinite(clean).all()):
            raise CheckFailedError(
                "the prediction of a window without a single real value, or without one in a channel, is not finite; "
                "look for means over no steps, and for attention to nothing"
            )
        for garbage in (5.0, 1e6, float("nan")):
            dirty = module(replace(batch, past=torch.where(mask, batch.past, garbage)))
            if not close(dirty, clean):
                raise CheckFailedError(
                    f"putting {garbage} behind past_mask changes the prediction; zero masked inputs, and give the mask "
                    "to attention, convolutions and normalisation"
                )
    if trains(plugin, module):
        batch = replace(batch, past=torch.where(mask, batch.past, float("nan")))
        for truth in (1.0, 0.5, 0.0):
            for name, gradient in gradients(module.train(), batch, truth).items():
                if gradient is not None and not bool(torch.isfinite(gradient).all()):
                    raise CheckFailedError(
                        f"the gradient of parameter '{name}' is not finite at truth={truth} when windows or channels "
                        "are masked entirely, with NaN behind the mask; zero masked inputs before computing with them, "
                        "for torch.where at the end hides a NaN from the prediction, not from the gradient"
                    )


def check_batch_invariance(plugin: ModelPlugin) -> None:
    """A window's prediction does not depend on the windows beside it."""
    module, batch = build(plugin).eval(), batch_of(4)
    with torch.no_grad():
        together = module(batch)
        for row in range(4):
            if not close(module(rows(batch, slice(row, row + 1))), together[row : row + 1]):
                raise CheckFailedError(
                    "a window alone gets another prediction than in a batch; statistics must not run over the batch"
                )


def check_gradients(plugin: ModelPlugin) -> None:
    """Every parameter gets a finite gradient at every truth, with padded windows, and not always zero.

    Only a gradient that is exactly zero everywhere counts as none: that of a key bias in attention is zero in theory
    and rounding errors in practice. Neither does one count that is zero merely at the start, as below a head whose
    weights start at zero, or for windows with a past: zeros are looked at again after a random step and with a window
    that is masked entirely.
    """
    module = build(plugin).train()
    if not trains(plugin, module):
        return
    batch = batch_of(4)
    mask = batch.past_mask.clone()
    mask[0, :6] = False
    batch = replace(batch, past_mask=mask, past=torch.where(mask, batch.past, 0.0))
    dead = {name for name, parameter in module.named_parameters() if parameter.requires_grad}
    for truth in (1.0, 0.5, 0.0):
        for name, gradient in gradients(module, batch, truth).items():
            if gradient is None:
                raise CheckFailedError(f"parameter '{name}' gets no gradient at truth={truth}")
            if not bool(torch.isfinite(gradient).all()):
                raise CheckFailedError(f"the gradient of parameter '{name}' is not finite at truth={truth}")
            if bool(gradient.any()):
                dead.discard(name)
    if dead:
        mask[1] = False
        batch = replace(batch, past_mask=mask, past=torch.where(mask, batch.past, 0.0))
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
        for truth in (1.0, 0.5, 0.0):
            found = gradients(module, batch, truth)
            dead -= {name for name, gradient in found.items() if gradient is not None and bool(gradient.any())}
    if dead:
        raise CheckFailedError(
            f"the gradient of parameter '{min(dead)}' is zero everywhere and at every truth: it changes nothing; "
            "leave it out, or let it take part"
        )


def check_overfits_one_batch(plugin: ModelPlugin) -> None:
    """A few hundred steps on one batch bring its loss down to a tenth."""
    module = build(plugin)
    if not trains(plugin, module):
        return
    batch, output = batch_of(8), output_of(PROBLEM)
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
    module, batch = build(plugin).eval(), batch_of(3)
    weights = {name: tensor.contiguous() for name, tensor in module.state_dict().items()}
    again = build(plugin, seed=1).eval()
    again.load_state_dict(safetensors.torch.load(safetensors.torch.save(weights)))
    with torch.no_grad():
        if not torch.equal(again(batch), module(batch)):
            raise CheckFailedError(
                "the state dict does not bring the forecast back; keep what is learned or drawn in buffers"
            )


def check_leaves_rng_alone(plugin: ModelPlugin) -> None:
    """Building and predicting leave the caller's random generators as they were; prediction draws nothing.

    Building may draw from torch's generator, which the caller has seeded, and so may a forward in training; neither
    may seed it.
    """
    callers = random.getstate(), np.random.get_state()  # noqa: NPY002
    seed = 20201  # that nobody seeds with by chance
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    before = random.getstate(), repr(np.random.get_state())  # noqa: NPY002
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            module, batch = plugin.build(plugin.example, PROBLEM).eval(), batch_of(2)
            seeded = "building" if torch.initial_seed() != seed else ""
            torch.manual_seed(seed)
            start = torch.random.get_rng_state()
            with torch.no_grad():
                module(batch)
            draws = not torch.equal(start, torch.random.get_rng_state())
            after = random.getstate(), repr(np.random.get_state())  # noqa: NPY002
            if trains(plugin, module):
                torch.manual_seed(seed)
                module.train()(batch, truth=0.5)
                seeded = seeded or ("a forward in train()" if torch.initial_seed() != seed else "")
    finally:
        random.setstate(callers[0])
        np.random.set_state(callers[1])  # noqa: NPY002
    if draws:
        raise CheckFailedError("a prediction draws from torch's global generator; in eval() nothing may be random")
    if seeded:
        raise CheckFailedError(f"{seeded} seeds torch's global generator; leave that to the caller, who has a --seed")
    if before != after:
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
