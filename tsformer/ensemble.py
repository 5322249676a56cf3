"""Several models as one: each sees its own lookback, and their forecasts are averaged.

Models that err differently correct each other (Bates & Granger 1969, "The combination of forecasts").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from tsformer.building import build_module
from tsformer.data.windows import Batch, Windows
from tsformer.errors import UsageError
from tsformer.members import Member
from tsformer.nn.averaging import averaged
from tsformer.nn.outputs import output_of
from tsformer.plugin import Problem
from tsformer.training.loop import PREDICTED_AT_ONCE, predictions

FORECASTS_FOR_EQUAL = 10
"""For each member, so many forecasts that do not overlap weigh as much as the belief that equal weights are best."""

Weights = Literal["equal", "validation"]


class Ensemble(nn.Module):
    """The weighted mean of the forecasts of its members, which see the last part of the window, each its own.

    A plugin that builds one says by `ModelPlugin.members` what it is made of; each member is then trained by itself, as
    it would be alone, and `weigh` is called when all are.

    Args:
        models: the members.
        problem: its lookback is at least the longest of the members'.
        weights: "equal", with the weights that members name where they name any; or "validation".

    Raises:
        UsageError: a member looks back further than the window, or says how steps scatter only given those before.
    """

    def __init__(self, models: Sequence[Member], problem: Problem, weights: Weights = "equal") -> None:
        super().__init__()
        self.models, self.output, self.weighting = tuple(models), output_of(problem), weights
        for model in self.models:
            if model.lookback is not None and model.lookback > problem.lookback:
                raise UsageError(
                    f"{model} looks back {model.lookback} steps, and the window has {problem.lookback}: use "
                    f"--lookback {model.lookback} or more, or leave it out"
                )
        self.problems = tuple(replace(problem, lookback=model.lookback or problem.lookback) for model in self.models)
        self.members = nn.ModuleList(map(build_module, self.models, self.problems))
        for model, module in zip(self.models, self.members, strict=True):
            if getattr(module, "rolls_out", False):
                raise UsageError(
                    f"{model} says how a step scatters only given the steps before it, and that cannot be averaged "
                    "with what others say: give it decoder=direct, or take --train.output point"
                )
        self.weights: Tensor
        self.register_buffer("weights", torch.ones(len(self.models)))
        self.keep(range(len(self.models)))

    def forward(self, batch: Batch, truth: float = 0.0) -> Tensor:
        """`[batch, horizon, targets, outputs]`; `truth` goes on to the members."""
        used = [place for place, weight in enumerate(self.weights.tolist()) if weight > 0]
        found = [self.members[place](narrowed(batch, self.problems[place].lookback), truth=truth) for place in used]
        return averaged(self.output, found, self.weights[used])

    def keep(self, places: Sequence[int]) -> None:
        """Let only the members at these places, counted from 0, have a weight: the named ones, or equal ones."""
        named = torch.tensor([model.weight or 1.0 for model in self.models], device=self.weights.device)
        kept = torch.zeros_like(named)
        kept[list(places)] = named[list(places)]
        self.weights.copy_(kept / kept.sum())

    def weigh(self, places: Sequence[int], validation: Windows, device: torch.device) -> None:
        """Set the weights of trained members; others get none.

        Args:
            places: of the members that have been trained, counted from 0.
            validation: windows that no gradient has seen.
            device: where the module is.
        """
        self.keep(places)
        if self.weighting == "validation" and len(places) > 1:
            products = self._error_products(places, validation, device)
            found = shrunk(simplex_weights(products), independent(validation))
            weights = torch.zeros_like(self.weights)
            weights[list(places)] = torch.from_numpy(found).to(weights)
            self.weights.copy_(weights)

    def _error_products(self, places: Sequence[int], windows: Windows, device: torch.device) -> np.ndarray:
        """Sums of the products of two members' errors, float64 `[members, members]`; each target counts the same."""
        total = torch.zeros(windows.targets, len(places), len(places), dtype=torch.float64)
        each = [
            predictions(self.members[place], replace(windows, lookback=self.problems[place].lookback), device)
            for place in places
        ]
        for batch, *found in zip(windows.batches(PREDICTED_AT_ONCE), *each, strict=True):
            future, mask = batch.future, batch.future_mask
            assert future is not None
            assert mask is not None
            points = torch.stack([self.output.point(prediction).cpu() for prediction, _ in found])
            errors = torch.where(mask, points - future, 0.0).double()
            total += torch.einsum("ibht,jbht->tij", errors, errors)
        sizes = total.diagonal(dim1=1, dim2=2).mean(1)
        products: np.ndarray = (total[sizes > 0] / sizes[sizes > 0, None, None]).sum(0).numpy()
        return products


def narrowed(batch: Batch, lookback: int) -> Batch:
    """The batch as a model sees it that looks back less far."""
    if batch.past.shape[1] == lookback:
        return batch
    known, tokens, real = batch.past_known, batch.tokens, batch.token_mask
    return replace(
        batch,
        past=batch.past[:, -lookback:],
        past_mask=batch.past_mask[:, -lookback:],
        past_known=None if known is None else known[:, -lookback:],
        tokens=None if tokens is None else tokens[:, -lookback:],
        token_mask=None if real is None else real[:, -lookback:],
    )


def simplex_weights(products: np.ndarray) -> np.ndarray:
    """The weights, none below 0 and with sum 1, of which the weighted sum of errors has the least square.

    Weights below 0 overfit (Breiman 1996, "Stacked regressions"); with sum 1 a level that all members share is kept.
    Non-negative least squares of the errors towards 0 beside one row of ones towards 1 give these weights up to a
    factor: of t w with w on the simplex the sum of squares is t^2 q(w) + (1 - t)^2, at best q(w) / (1 + q(w)).

    Args:
        products: sums of the products of two members' errors, float64 `[members, members]`.

    Returns:
        float64 `[members]`.
    """
    from scipy.optimize import nnls  # slow to import

    members = len(products)
    size = float(np.trace(products)) / members
    if not size > 0:
        return np.full(members, 1 / members)
    variances, directions = np.linalg.eigh(products / size)
    root = np.sqrt(np.maximum(variances, 0))[:, None] * directions.T
    found, _ = nnls(np.vstack([root, np.ones(members)]), np.append(np.zeros(members), 1.0))
    weights: np.ndarray = found / found.sum()
    return weights


def shrunk(weights: np.ndarray, forecasts: float) -> np.ndarray:
    """Weights drawn towards equal ones, the more the fewer forecasts they come from (Diebold & Pauly 1990).

    Args:
        weights: float64 `[members]`.
        forecasts: that do not overlap.
    """
    members = len(weights)
    share = forecasts / (forecasts + FORECASTS_FOR_EQUAL * members)
    return np.asarray(share * weights + (1 - share) / members)


def independent(windows: Windows) -> float:
    """How many forecasts there would be if none overlapped."""
    origins, series = windows.origins.numpy(), windows.series.numpy()
    _, first = np.unique(series, return_index=True)
    reach = np.maximum.reduceat(origins, first) - np.minimum.reduceat(origins, first)
    return float((1 + reach / windows.horizon).sum())
