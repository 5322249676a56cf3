"""Checks of a forecast that reads covariates: those that are known ahead, and those of each series."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from tsformer.data.windows import Batch
from tsformer.errors import PluginError, UsageError
from tsformer.parameters import by_gradients
from tsformer.plugin import ModelPlugin, Problem
from tsformer.testing.failure import CheckFailedError
from tsformer.testing.generators import seeded
from tsformer.testing.problem import COVARIATES, PROBLEM, batch_of, close, drawn, fitted, given


def check_future_covariates(plugin: ModelPlugin) -> str | None:
    """Covariates known ahead are read, at each step those of that step and, if steps_apart, of none after it."""
    problem = _with("future")
    batch = batch_of(4, problem)
    if "future" not in plugin.covariates:
        return _unread(plugin, "future", problem, batch, replace(batch, future_known=_moved(batch.future_known)))
    module = _shaken(plugin, problem)
    for truth in (0.0, 1.0):
        before = _predicted(module, batch, truth)
        if close(_predicted(module, replace(batch, past_known=_moved(batch.past_known)), truth), before):
            raise CheckFailedError(
                f"at truth={truth:g}, other future covariates over the lookback (batch.past_known) change nothing, and "
                "covariates has 'future'; let them stand beside batch.past"
            )
        for step in range(problem.horizon):
            known = given(batch.future_known).clone()
            known[:, step] = _moved(known[:, step])
            after = _predicted(module, replace(batch, future_known=known), truth)
            if plugin.steps_apart and not close(after[:, :step], before[:, :step]):
                raise CheckFailedError(
                    f"at truth={truth:g}, other future covariates of step {step} (batch.future_known[:, {step}]) "
                    "change the prediction of a step before, and steps_apart is True; leave it False"
                )
            if close(after[:, step], before[:, step]):
                raise CheckFailedError(
                    f"at truth={truth:g}, other future covariates of step {step} (batch.future_known[:, {step}]) do "
                    "not change the prediction of that step, and covariates has 'future'"
                )
    return None


def check_static_covariates(plugin: ModelPlugin) -> str | None:
    """Covariates of a series, numbers and codes, are read, or leave the prediction alone; code 0 is an unknown word."""
    problem = _with("static")
    batch = batch_of(4, problem)

    def other_code(place: int) -> Batch:
        codes = given(batch.static_codes).clone()
        codes[:, place] = (codes[:, place] + 1) % problem.static_cardinalities[place]
        return replace(batch, static_codes=codes)

    if "static" not in plugin.covariates:
        return _unread(plugin, "static", problem, batch, replace(other_code(0), static=_moved(batch.static)))
    module = _shaken(plugin, problem)
    before = _predicted(module, batch)
    others = {"numbers (batch.static)": replace(batch, static=_moved(batch.static))}
    for place in range(len(problem.static_cardinalities)):
        others[f"codes (batch.static_codes[:, {place}])"] = other_code(place)
    for name, other in others.items():
        if close(_predicted(module, other), before):
            raise CheckFailedError(f"other static {name} change nothing, and covariates has 'static'")
    return None


def _with(kind: str) -> Problem:
    return replace(PROBLEM, **{**COVARIATES[kind], "past_covariates": 0})


def _moved(values: Tensor | None) -> Tensor:
    """By an amount of its own in each channel, which no map is likely to lose."""
    return given(values) + torch.linspace(1.0, 2.0, given(values).shape[-1])


def _shaken(plugin: ModelPlugin, problem: Problem) -> nn.Module:
    """A module whose last layers are no longer zero, as they may be at the start."""
    module = fitted(plugin, problem=problem).eval()
    if by_gradients(plugin, module):
        with seeded(0), torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
    return module


def _predicted(module: nn.Module, batch: Batch, truth: float = 0.0) -> Tensor:
    prediction = drawn(module, batch, truth)
    if not bool(torch.isfinite(prediction).all()):
        raise CheckFailedError("with covariates the prediction is not finite")
    return prediction


def _unread(plugin: ModelPlugin, kind: str, problem: Problem, batch: Batch, other: Batch) -> str | None:
    """What is not declared is not read, or refused in words by build."""
    try:
        module = _shaken(plugin, problem)
    except (PluginError, UsageError) as refusal:
        return str(refusal)
    if not close(_predicted(module, other), _predicted(module, batch)):
        raise CheckFailedError(
            f"{kind} covariates change the prediction, but covariates has no '{kind}', so that users are told that "
            f"they do nothing; declare it: ModelPlugin(..., covariates={{'{kind}'}})"
        )
    return None
