"""Checks of a model plugin, each a plain function that explains what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import torch
from torch import Tensor, nn

from tsformer import weights
from tsformer.data.windows import Batch
from tsformer.errors import PluginError, TsformerError, UsageError, in_words
from tsformer.parameters import by_gradients
from tsformer.plugin import ModelPlugin, Problem
from tsformer.testing.failure import CheckFailedError
from tsformer.testing.generators import generators, seeded
from tsformer.testing.learning import check_fit_hook, check_gradients, check_overfits_one_batch
from tsformer.testing.problem import (
    PROBLEM,
    batch_of,
    build,
    close,
    drawn,
    fitted,
    given,
    gradients,
    learns,
    rows,
    windows,
)

OTHER_PROBLEMS = (
    Problem(lookback=7, horizon=1, targets=1),
    Problem(lookback=24, horizon=30, targets=1, past_covariates=2, season=12),
)
"""Shapes that a model takes besides `PROBLEM`, or refuses in words: a short window, a long horizon with covariates."""

NORMAL = replace(PROBLEM, output="normal", outputs=2)
"""Two numbers for each value instead of one."""


def check_shapes(plugin: ModelPlugin) -> None:
    """forward returns finite `[batch, horizon, targets, outputs]`, with and without a truth to feed."""
    for problem in (PROBLEM, *OTHER_PROBLEMS):
        try:
            module = (fitted(plugin) if problem is PROBLEM else build(plugin, problem=problem)).eval()
        except TsformerError:
            if problem is PROBLEM:
                raise
            continue
        for size in (1, 3):
            batch = batch_of(size, problem)
            wanted = (size, problem.horizon, problem.targets, problem.outputs)
            with torch.no_grad():
                free = {"truth=0": _without_future(module, batch), "truth=1": module(batch, truth=1.0)}
            where = f"lookback {problem.lookback}, {problem.channels} channels"
            for call, prediction in free.items():
                shape = tuple(prediction.shape) if isinstance(prediction, torch.Tensor) else type(prediction).__name__
                if shape != wanted:
                    raise CheckFailedError(
                        f"forward({call}) returns {shape}, not {wanted} [batch, horizon, targets, outputs] ({where})"
                    )
                if not bool(torch.isfinite(prediction).all()):
                    raise CheckFailedError(f"forward({call}) returns values that are not finite ({where})")


def _without_future(module: nn.Module, batch: Batch) -> Tensor:
    """The forward of a prediction."""
    try:
        prediction: Tensor = module(replace(batch, future=None, future_mask=None))
    except Exception as error:
        try:
            module(batch)
        except Exception:
            raise error from None
        raise CheckFailedError(
            f"forward(truth=0) fails when batch.future is None, as it is when predicting: {in_words(error)}; read "
            "batch.future only where truth > 0"
        ) from error
    return prediction


def check_outputs(plugin: ModelPlugin) -> None:
    """A normal distribution, two numbers for each value, is predicted and learned, or refused in words by build."""
    try:
        module = fitted(plugin, problem=NORMAL)
    except (PluginError, UsageError):
        return
    except CheckFailedError:
        raise
    except Exception as error:
        raise CheckFailedError(
            f"with problem.outputs = 2 building raises {in_words(error)}; give two numbers for each value, or refuse: "
            "raise UsageError that says to use --train.output point"
        ) from error
    batch, trained = batch_of(3, NORMAL), by_gradients(plugin, module)
    wanted = (3, NORMAL.horizon, NORMAL.targets, NORMAL.outputs)
    for truth in (0.0, 1.0):
        prediction = drawn(module.eval(), batch, truth)
        if tuple(prediction.shape) != wanted:
            raise CheckFailedError(
                f"with problem.outputs = 2 forward(batch, truth={truth:g}) returns {tuple(prediction.shape)}, not "
                f"{wanted}; give two numbers for each value, or raise UsageError in build"
            )
        if not bool(torch.isfinite(prediction).all()):
            raise CheckFailedError(f"with problem.outputs = 2 forward(batch, truth={truth:g}) is not finite")
        if not trained:
            continue
        for name, gradient in gradients(module.train(), batch, truth, NORMAL).items():
            if gradient is not None and not bool(torch.isfinite(gradient).all()):
                raise CheckFailedError(f"with problem.outputs = 2 the gradient of parameter '{name}' is not finite")
        for number, what in enumerate(("mean", "scale")):
            if not learns(module, batch, truth, number):
                raise CheckFailedError(
                    f"with problem.outputs = 2 no parameter gets a gradient from output {number}, the {what}: it is "
                    "never learned; predict it, or raise UsageError in build"
                )


def check_causality(plugin: ModelPlugin) -> None:
    """At truth > 0, step k never sees future[k:]; at truth=0 nothing in the future matters. In training as well."""
    module, batch = fitted(plugin), batch_of(3)
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
                        "an earlier one; is the mask the right way round, and the decoder's input shifted by one "
                        "step? A model without a decoder leaves batch.future alone"
                    )
        if not close(drawn(module, replace(batch, future=future + 7.0), 0.0), drawn(module, batch, 0.0)):
            raise CheckFailedError(
                f"in {mode} at truth=0, the prediction depends on batch.future: feed back the model's own "
                "values instead; a model without a decoder leaves batch.future alone"
            )


def check_mask_invariance(plugin: ModelPlugin) -> None:
    """What stands behind past_mask changes nothing, not even NaN, and not even when nothing stands before it."""
    module, batch = fitted(plugin).eval(), batch_of(6)
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
    if by_gradients(plugin, module):
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
    module, batch = fitted(plugin).eval(), batch_of(4)
    with torch.no_grad():
        together = module(batch)
        for row in range(4):
            if not close(module(rows(batch, slice(row, row + 1))), together[row : row + 1]):
                raise CheckFailedError(
                    "a window alone gets another prediction than in a batch; statistics must not run over the batch"
                )


def check_save_and_load(plugin: ModelPlugin) -> str | None:
    """The state dict alone brings the forecast back, bit by bit, in a module built anew; after a training step, too."""
    if not plugin.persistent:
        return "persistent is False"
    module, batch = fitted(plugin).eval(), batch_of(3)
    _save_and_load(plugin, module, batch)
    if by_gradients(plugin, module):
        module = build(plugin)
        gradients(module.train(), batch, truth=0.5)
        torch.optim.SGD(module.parameters(), lr=1e-3).step()
        _save_and_load(plugin, module.eval(), batch, " after a training step")
    return None


def _save_and_load(plugin: ModelPlugin, module: nn.Module, batch: Batch, when: str = "") -> None:
    with torch.no_grad():
        prediction = module(batch)
    again = build(plugin, seed=1).eval()
    try:
        weights.load(again, weights.save(module))
    except (RuntimeError, ValueError) as error:
        raise CheckFailedError(
            f"a module built anew does not take the state dict{when} ({' '.join(str(error).split())}); "
            "build must make every parameter and buffer in the shape that it has after training"
        ) from error
    with torch.no_grad():
        if not torch.equal(again(batch), prediction):
            raise CheckFailedError(
                f"the state dict{when} does not bring the forecast back; keep what is learned or drawn in buffers"
            )


def check_repeats_itself(plugin: ModelPlugin) -> None:
    """The same seed builds the same module, which predicts the same each time and leaves the batch as it was."""
    module, again, batch = build(plugin), build(plugin), batch_of(3)
    state, other = module.state_dict(), again.state_dict()
    if state.keys() != other.keys() or not all(torch.equal(state[name], other[name]) for name in state):
        raise CheckFailedError("built twice with the same seed of torch, the module has other weights")
    module.eval(), again.eval()
    before = {field.name: getattr(batch, field.name) for field in fields(batch)}
    before = {name: tensor.clone() for name, tensor in before.items() if tensor is not None}
    with torch.no_grad():
        module(batch)
        module(rows(batch, slice(0, 1)), truth=1.0)
        if not torch.equal(module(batch), again(batch)):
            raise CheckFailedError("what was predicted before changes a prediction; in eval() a module keeps no memory")
    for name, tensor in before.items():
        if not torch.equal(getattr(batch, name), tensor):
            raise CheckFailedError(f"forward changes batch.{name} in place; work on a copy")


def check_leaves_rng_alone(plugin: ModelPlugin) -> None:
    """Building, fitting and predicting leave the caller's random generators as they were; prediction draws nothing.

    Building and a `fit` hook may draw from torch's generator, which the caller has seeded, and so may a forward in
    training; none may seed it.
    """
    seed, batch = 20201, batch_of(2)  # a seed that nobody takes by chance
    with seeded(seed):
        before = generators()

        def no_seed_in(doing: str) -> None:
            if torch.initial_seed() != seed:
                raise CheckFailedError(
                    f"{doing} seeds torch's global generator; leave that to the caller, who has a --seed"
                )
            torch.manual_seed(seed)

        module = plugin.build(plugin.example, PROBLEM)
        no_seed_in("building")
        if plugin.fit is not None:
            plugin.fit(module, *windows())
            no_seed_in("fit")
        with torch.no_grad():
            module.eval()(batch)
        if torch.random.get_rng_state().tolist() != before["torch's"]:
            raise CheckFailedError("a prediction draws from torch's global generator; in eval() nothing may be random")
        if by_gradients(plugin, module):
            module.train()(batch, truth=0.5)
            no_seed_in("a forward in train()")
        if {**generators(), "torch's": None} != {**before, "torch's": None}:
            raise CheckFailedError(
                "building or predicting changes a global random generator; do not seed or draw from it"
            )


MODEL_CHECKS: tuple[Callable[[ModelPlugin], str | None], ...] = (
    check_shapes,
    check_outputs,
    check_causality,
    check_mask_invariance,
    check_batch_invariance,
    check_gradients,
    check_overfits_one_batch,
    check_fit_hook,
    check_save_and_load,
    check_repeats_itself,
    check_leaves_rng_alone,
)
