"""The lookback without a network: what naive and linear forecasts start from.

A value that is missing in the lookback counts as the last one before it.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from tsformer.data.windows import Batch
from tsformer.errors import UsageError
from tsformer.nn.covariates import given
from tsformer.nn.network import filled, last_real
from tsformer.nn.normalisation import window_statistics
from tsformer.plugin import Problem

Level = Literal["standard", "last", "none"]
"""What a window is brought to: its mean and standard deviation, its last real value, or nothing."""


def numbers_only(problem: Problem, model: str) -> None:
    """Raises UsageError when there are texts, which a model of the lookback cannot see."""
    if problem.text_length:
        raise UsageError(f"model '{model}' reads no texts: leave --text out")


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
        batch: with `past` and `past_mask`; before any real value stands the level itself.
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
    past = filled((past - shift) / scale, mask, torch.zeros_like(past[:, 0])).transpose(1, 2)
    covariates = past[:, targets:].flatten(1)[:, None].expand(-1, targets, -1)
    return torch.cat([past[:, :targets], covariates], dim=-1), scale[..., :targets], shift[..., :targets]


def known_width(problem: Problem) -> int:
    """Numbers that `known_rows` gives for each target."""
    words = sum(max(1, cardinality - 1) for cardinality in problem.static_cardinalities)
    return (problem.lookback + problem.horizon) * problem.future_covariates + problem.static_covariates + words


def known_rows(batch: Batch, problem: Problem, scale: Tensor) -> Tensor:
    """What is known of each window beside its past: covariates that are known ahead, at all steps, and static ones.

    Words are one-hot; one that is unknown counts as the mean of all others. Everything is divided by the scale of the
    window, so that a covariate is worth the same in the units of the data, however far a window is spread.

    Args:
        batch: with `past_known`, `future_known`, `static` and `static_codes`, where the problem has them.
        problem: says which.
        scale: `[batch, 1, targets]`, as `rows` gives it.

    Returns:
        `[batch, targets, known_width]`.

    Raises:
        ValueError: when the batch lacks what the problem has.
    """
    names = {"past_known": problem.future_covariates, "future_known": problem.future_covariates}
    names |= {"static": problem.static_covariates}
    parts = [given(batch, name).flatten(1) for name, count in names.items() if count]
    for place, cardinality in enumerate(problem.static_cardinalities):
        words = torch.eye(max(1, cardinality - 1), dtype=scale.dtype, device=scale.device)
        parts.append(torch.cat([words.mean(0, keepdim=True), words])[given(batch, "static_codes")[:, place]])
    if not parts:
        return scale.new_zeros(len(scale), scale.shape[-1], 0)
    return torch.cat(parts, dim=-1)[:, None] / scale.transpose(1, 2)
