"""The lookback without a network: what naive and linear forecasts start from."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from tsformer.data.windows import Batch
from tsformer.errors import PluginError, UsageError
from tsformer.nn.network import last_real
from tsformer.nn.normalisation import window_statistics
from tsformer.plugin import Problem

Level = Literal["standard", "last", "none"]
"""What a window is brought to: its mean and standard deviation, its last real value, or nothing."""


def points_only(problem: Problem, model: str) -> None:
    """Raises UsageError when a model that gives one number for each value is asked for more."""
    if problem.outputs != 1:
        raise UsageError(f"model '{model}' forecasts points only: use output point, not {problem.output}")


def numbers_only(problem: Problem, model: str) -> None:
    """Raises PluginError or UsageError when there are covariates or texts that a model of the lookback cannot see."""
    if problem.text_length:
        raise UsageError(f"model '{model}' reads no texts: leave --text out")
    if problem.future_covariates or problem.static_covariates or problem.static_cardinalities:
        raise PluginError(f"model '{model}' takes neither future nor static covariates: leave them out")


def target_values(batch: Batch, targets: int) -> tuple[Tensor, Tensor]:
    """The targets' part of the past and of its mask, both `[batch, lookback, targets]`."""
    return batch.past[..., :targets], batch.past_mask[..., :targets]


def repeated(values: Tensor, horizon: int) -> Tensor:
    """A value for each target, `[batch, targets]`, at every step: `[batch, horizon, targets, 1]`."""
    return values[:, None, :, None].expand(-1, horizon, -1, -1)


def width(problem: Problem) -> int:
    """Numbers that `rows` gives for each target: its own lookback, and that of every past covariate."""
    return problem.lookback * (1 + problem.past_covariates)


def rows(batch: Batch, targets: int, level: Level) -> tuple[Tensor, Tensor, Tensor]:
    """Each target's lookback, and those of the past covariates, as one row of numbers on a common level.

    Args:
        batch: with `past` and `past_mask`; what stands behind the mask counts as the level itself.
        targets: number of targets.
        level: what each channel of each window is brought to.

    Returns:
        `[batch, targets, width]`; and scale and shift, both `[batch, 1, targets]`, which undo it:
        value = scale * row + shift.
    """
    mask = batch.past_mask
    past = torch.where(mask, batch.past, 0.0)  # first of all: a NaN behind the mask would reach gradients
    if level == "standard":
        scale, shift = window_statistics(past, mask)
    else:
        scale = torch.ones_like(past[:, :1])
        shift = last_real(past, mask)[:, None] if level == "last" else torch.zeros_like(scale)
    past = torch.where(mask, (past - shift) / scale, 0.0).transpose(1, 2)
    covariates = past[:, targets:].flatten(1)[:, None].expand(-1, targets, -1)
    return torch.cat([past[:, :targets], covariates], dim=-1), scale[..., :targets], shift[..., :targets]
