"""Checks of what a model predicts beside points: quantiles and distributions, as it describes them or around points."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from tsformer.data.windows import Batch
from tsformer.errors import PluginError, UsageError, in_words
from tsformer.nn.outputs import Output, build_output, output_of
from tsformer.nn.spread import Spread
from tsformer.parameters import by_gradients
from tsformer.plugin import ModelPlugin, Problem
from tsformer.testing.failure import CheckFailedError
from tsformer.testing.generators import seeded
from tsformer.testing.problem import PROBLEM, batch_of, drawn, fitted, given, gradients, learns, windows

LEVELS = (0.1, 0.5, 0.9)
PROBABILITIES = (0.1, 0.3, 0.9)
SCATTER_WINDOWS = 2
"""Of which scatter around points is learned: few, for models that take their time."""


def problem_for(name: str) -> Problem:
    """The problem of the checks with that output."""
    levels = LEVELS if name == "quantiles" else ()
    return replace(PROBLEM, output=name, outputs=build_output(name, quantiles=levels).outputs, quantiles=levels)


def check_outputs(plugin: ModelPlugin) -> None:
    """Quantiles and distributions, two or three numbers for each value, are predicted and learned, or refused by build.

    A model whose plugin says `outputs={"point"}` is left with its points, and scatter is put around them.
    """
    own = plugin.outputs
    points = fitted(plugin) if own is not None and "point" in own else None
    for name in ("quantiles", "normal", "student_t", "negative_binomial"):
        problem = problem_for(name)
        asked = f"with output {name} (problem.outputs = {problem.outputs})"
        if own is None or name in own:
            module = _described(plugin, problem, asked)
            if module is not None:
                _check(plugin, module, problem, asked)
        elif points is not None:
            around = Spread(points, problem)
            around.fit(windows(problem)[1].thin(SCATTER_WINDOWS))
            _check(plugin, around, problem, asked)


def _described(plugin: ModelPlugin, problem: Problem, asked: str) -> nn.Module | None:
    """The module of a model that describes an output by itself; None when its build refuses that in words."""
    try:
        return fitted(plugin, problem=problem)
    except (PluginError, UsageError):
        return None
    except CheckFailedError:
        raise
    except Exception as error:
        raise CheckFailedError(
            f"{asked} building raises {in_words(error)}; give that many numbers for each value, or declare "
            "outputs={'point'}: scatter is then put around the model's points"
        ) from error


def _check(plugin: ModelPlugin, module: nn.Module, problem: Problem, asked: str) -> None:
    batch, output = batch_of(3, problem), output_of(problem)
    future = given(batch.future)
    batch = replace(batch, future=future.abs().round() if output.counts else future)
    for truth in (0.0,) if isinstance(module, Spread) else (0.0, 1.0):
        _prediction(module, batch, truth, problem, output, asked)
    _paths(module, batch, asked)
    if not by_gradients(plugin, module) or isinstance(module, Spread):
        return
    for truth in (0.0, 1.0) if problem.output == "quantiles" else (1.0,):
        for name, gradient in gradients(module.train(), batch, truth, output).items():
            if gradient is not None and not bool(torch.isfinite(gradient).all()):
                raise CheckFailedError(f"{asked} the gradient of parameter '{name}' is not finite")
        for number in range(problem.outputs if problem.output == "quantiles" else 0):
            if not learns(module, batch, truth, number):
                what = "of the scatter" if number else "the location"
                raise CheckFailedError(
                    f"{asked} no parameter gets a gradient from number {number}, {what}: it is never learned; predict "
                    "it, or declare outputs={'point'}"
                )


def _prediction(module: nn.Module, batch: Batch, truth: float, problem: Problem, output: Output, asked: str) -> None:
    """The right shape, finite, with a finite loss and quantiles that ascend."""
    prediction = drawn(module.eval(), batch, truth)
    wanted = (3, problem.horizon, problem.targets, problem.outputs)
    if tuple(prediction.shape) != wanted:
        raise CheckFailedError(
            f"{asked} forward(batch, truth={truth:g}) returns {tuple(prediction.shape)}, not {wanted}; give that many "
            "numbers for each value, or declare outputs={'point'}"
        )
    if not bool(torch.isfinite(prediction).all()):
        raise CheckFailedError(f"{asked} forward(batch, truth={truth:g}) is not finite")
    if not bool(torch.isfinite(output.loss(prediction, batch))):
        raise CheckFailedError(f"{asked} the loss is not finite")
    ends = output.quantiles(prediction.double(), PROBABILITIES)
    if not bool((ends.diff(dim=-1) >= 0).all()):
        raise CheckFailedError(f"{asked} quantiles cross")


def _paths(module: nn.Module, batch: Batch, asked: str) -> None:
    """A module that says `rolls_out` draws paths, of any number, and looks at no future."""
    if not getattr(module, "rolls_out", False):
        return
    with seeded(0), torch.no_grad():
        paths: Tensor = module.draw(replace(batch, future=None, future_mask=None), 2)  # type: ignore[operator]
    wanted = (len(batch.past), 2, *given(batch.future).shape[1:])
    if tuple(paths.shape) != wanted or not bool(torch.isfinite(paths).all()):
        raise CheckFailedError(
            f"{asked} rolls_out is True and draw(batch, samples=2) returns {tuple(paths.shape)}; it must be {wanted} "
            "[batch, samples, horizon, targets], and finite"
        )
