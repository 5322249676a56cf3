"""Checks of a model that forecasts, each a plain function that explains what is wrong."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from tsformer.data.windows import Batch
from tsformer.errors import TsformerError, in_words
from tsformer.parameters import by_gradients
from tsformer.plugin import ModelPlugin, Problem, Task
from tsformer.testing.cases import Case, cases
from tsformer.testing.failure import CheckFailedError
from tsformer.testing.problem import PROBLEM, batch_of, build, close, drawn, fitted, given, gradients

OTHER_PROBLEMS = (
    Problem(lookback=7, horizon=1, targets=1),
    Problem(lookback=24, horizon=30, targets=1, past_covariates=2, season=12),
)
"""Shapes that a model takes besides `PROBLEM`, or refuses in words: a short window, a long horizon with covariates."""


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
    for case in cases(plugin, Task.FORECAST):
        _mask_invariance(plugin, case)


def _mask_invariance(plugin: ModelPlugin, case: Case) -> None:
    module, batch = case.fitted(plugin).eval(), case.rows(6)
    mask = batch.past_mask.clone()
    mask[1, :3] = False  # padding on the left
    mask[2, :5, 0] = False  # one channel starts later
    mask[3, 4, 1] = False  # a hole
    mask[3, -2:, 0] = False  # and one at the end
    mask[4] = False  # nothing at all
    mask[5, :, 0] = False  # nothing of one channel
    batch = replace(batch, past_mask=mask)
    with torch.no_grad():
        clean = module(replace(batch, past=torch.where(mask, batch.past, 0.0)))
        if not bool(torch.isfinite(clean).all()):
            raise CheckFailedError(
                "the prediction of a window without a single real value, or without one in a channel, is not finite"
                f"{case.about}; look for means over no steps, and for attention to nothing"
            )
        for garbage in (5.0, 1e6, 1e30, float("nan")):
            dirty = module(replace(batch, past=torch.where(mask, batch.past, garbage)))
            if not close(dirty, clean):
                raise CheckFailedError(
                    f"putting {garbage} behind past_mask changes the prediction{case.about}; zero masked inputs, and "
                    "give the mask to attention, convolutions and normalisation"
                )
    if by_gradients(plugin, module):
        batch = replace(batch, past=torch.where(mask, batch.past, float("nan")))
        for truth in (1.0, 0.5, 0.0):
            for name, gradient in gradients(module.train(), batch, truth, case.objective).items():
                if gradient is not None and not bool(torch.isfinite(gradient).all()):
                    raise CheckFailedError(
                        f"the gradient of parameter '{name}' is not finite at truth={truth} when windows or channels "
                        f"are masked entirely, with NaN behind the mask{case.about}; zero masked inputs before "
                        "computing with them, for torch.where at the end hides a NaN from the prediction, not from the "
                        "gradient"
                    )
