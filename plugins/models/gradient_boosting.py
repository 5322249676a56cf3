"""Gradient boosting on lags (Friedman 2001): scikit-learn's histogram trees, one ensemble of them for every step.

A row for each window, step and target: the last values of the target, its values at the same place in the seasons
before the step, mean and deviation of the lookback, how far ahead the step is, future covariates of that step and of
the last one, and the last values of past covariates. Values are relative to the level of their window, so that trees,
which cannot go on beyond what they have seen, need not. The number of trees is the best on the validation part. A value
that is missing is left to the trees.

Trees cannot be saved without pickle: the model is for backtests and comparisons.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tsformer.data.windows import Batch, Windows
from tsformer.nn.covariates import given
from tsformer.nn.lookback import numbers_only, target_values
from tsformer.nn.network import filled, last_real
from tsformer.nn.normalisation import window_statistics
from tsformer.plugin import Config, Field, ModelPlugin, Problem

CHECKED_EVERY = 25  # trees


class GradientBoostingConfig(Config):
    """Options of gradient boosting."""

    lags: int = Field(
        24, ge=1, le=10_000, search=(4, 96), description="last values of a target that are seen; at most the lookback"
    )
    seasons: int = Field(3, ge=0, le=1000, description="values at the same place in so many seasons before a step")
    trees: int = Field(400, ge=1, le=100_000, description="trees at most; how many is decided on the validation part")
    learning_rate: float = Field(
        0.05, gt=0, le=1, search=(0.02, 0.2), description="share of each tree's correction that is taken"
    )
    leaves: int = Field(31, ge=2, le=4096, search=(4, 128), description="leaves of a tree")
    rows: int = Field(
        200_000, ge=100, description="rows to learn from at most, of windows that are evenly spaced; a window has "
        "horizon x targets of them"
    )  # fmt: skip


class GradientBoosting(nn.Module):
    """Before it is fitted it repeats the last value, or the last season where the lookback holds one."""

    def __init__(self, config: GradientBoostingConfig, problem: Problem) -> None:
        super().__init__()
        numbers_only(problem, "gradient_boosting")
        self.config, self.problem = config, problem
        self.trees: Any = None

    def forward(self, batch: Batch, truth: float = 0.0) -> Tensor:
        """`[batch, horizon, targets, 1]`; `truth` is ignored."""
        rows, scale, shift = self.rows(batch)
        change = rows[..., 0] if self.trees is None else self._grown(rows)
        return (change.to(scale) * scale + shift)[..., None]

    def _grown(self, rows: Tensor) -> Tensor:
        flat = rows.flatten(0, 2).double().cpu().numpy()
        return torch.from_numpy(self.trees.predict(flat)).view(rows.shape[:-1])

    def rows(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """What trees see, `[batch, horizon, targets, features]`, NaN where nothing is known, and the level of windows.

        Returns:
            With the rows scale and shift, both `[batch, 1, targets]`: value = scale * row + shift. The first feature is
            the last value at the same place in the season.
        """
        problem, config = self.problem, self.config
        past = torch.where(batch.past_mask, batch.past, 0.0)
        scale, _ = window_statistics(past, batch.past_mask)
        shift = last_real(past, batch.past_mask)[:, None]
        level = (past - shift) / scale
        level = filled(level, batch.past_mask, torch.full_like(level[:, 0], torch.nan))
        values, real = target_values(batch, problem.targets)
        own = level[..., : problem.targets]
        steps = torch.arange(problem.horizon, device=past.device)
        features = [self._seasons(own, steps)]
        lags = own[:, -min(config.lags, problem.lookback) :].flip(1).transpose(1, 2)[:, None]
        count = real.sum(1)
        mean = torch.where(real, (values - shift[..., : problem.targets]) / scale[..., : problem.targets], 0.0).sum(1)
        mean = mean / count.clamp_min(1)
        about = torch.stack([mean, scale[:, 0, : problem.targets].log()], dim=-1)[:, None]
        shape = (len(past), problem.horizon, problem.targets)
        features += [part.expand(*shape, -1) for part in (lags, about)]
        features.append(steps[:, None, None].expand(*shape, 1).to(past))
        features.append(torch.arange(problem.targets, device=past.device)[:, None].expand(*shape, 1).to(past))
        if problem.past_covariates:
            features.append(level[:, -1, problem.targets :][:, None, None].expand(*shape, -1))
        if problem.future_covariates:
            features.append(given(batch, "future_known")[:, :, None].expand(*shape, -1))
            features.append(given(batch, "past_known")[:, -1, None, None].expand(*shape, -1))
        return torch.cat(features, dim=-1), scale[..., : problem.targets], shift[..., : problem.targets]

    def _seasons(self, own: Tensor, steps: Tensor) -> Tensor:
        """Values at the place of each step in the seasons before it, the nearest first: `[batch, horizon, targets, k]`.

        The first of them goes back as many seasons as it takes; the last value of all stands for it in a lookback
        without a season.
        """
        season, lookback = self.problem.season, self.problem.lookback
        first = lookback - season + steps % season
        found = []
        for back in range(max(1, self.config.seasons)):
            place = first - back * season
            there = (place >= 0)[None, :, None]
            otherwise = torch.zeros_like(own[:, -1:]) if back == 0 else torch.full_like(own[:, -1:], torch.nan)
            found.append(torch.where(there, own[:, place.clamp_min(0)], otherwise))
        found[0] = found[0].nan_to_num(0.0)  # nothing is real so far back: the level itself
        return torch.stack(found, dim=-1)


def fit(module: GradientBoosting, train: Windows, validation: Windows) -> None:
    """Grow trees on the training windows as long as they help on the validation windows."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    config = module.config
    rows, change, weight = _table(module, train, config.rows)
    held_rows, held_change, held_weight = _table(module, validation, config.rows // 4)

    def grown(trees: int) -> Any:
        regressor = HistGradientBoostingRegressor(
            learning_rate=config.learning_rate,
            max_iter=trees,
            max_leaf_nodes=config.leaves,
            early_stopping=False,
            random_state=0,
        )
        return regressor.fit(rows, change, sample_weight=weight)

    if not len(rows):
        return
    everything = grown(config.trees)
    if not len(held_rows):
        module.trees = everything
        return
    errors = {
        number: float(np.average((path - held_change) ** 2, weights=held_weight))
        for number, path in enumerate(everything.staged_predict(held_rows), start=1)
        if number % CHECKED_EVERY == 0 or number == config.trees
    }
    best = min(errors, key=errors.__getitem__)
    module.trees = everything if best == config.trees else grown(best)


def _table(module: GradientBoosting, windows: Windows, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, the changes that follow them, and weights: what counts is the error of the forecast itself."""
    problem = module.problem
    windows = windows.thin(max(1, most // (problem.horizon * problem.targets)))
    parts = []
    for batch in windows.batches(256):
        if batch.future is None or batch.future_mask is None:
            raise ValueError("gradient boosting is fitted on windows with a future")
        rows, scale, shift = module.rows(batch)
        change = (torch.where(batch.future_mask, batch.future, 0.0) - shift) / scale
        kept = batch.future_mask.flatten()
        flat = rows.flatten(0, 2), change.flatten(), scale.expand_as(change).flatten().square()
        parts.append([part[kept].double().numpy() for part in flat])
    table, following, weights = (np.concatenate(column) for column in zip(*parts, strict=True))
    table[:, np.isnan(table).all(axis=0)] = 0.0  # of which scikit-learn cannot make bins
    return table, following, weights


plugin = ModelPlugin(
    config=GradientBoostingConfig,
    build=GradientBoosting,
    example=GradientBoostingConfig(trees=24, learning_rate=0.5, leaves=16),
    fit=fit,
    persistent=False,
    covariates={"future"},
    steps_apart=True,
    outputs={"point"},
)
