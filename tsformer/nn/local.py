"""Models that are fitted to the lookback of each window by itself, as statistical methods are.

They learn nothing of other windows or series, and take their time when they forecast. What they see is the lookback: to
give them the history that such methods are used with, make it long.
"""

from __future__ import annotations

import importlib.util
from abc import abstractmethod

import numpy as np
import torch
from torch import Tensor, nn

from tsformer.data.windows import Batch
from tsformer.errors import UsageError
from tsformer.nn.lookback import target_values
from tsformer.nn.network import filled
from tsformer.plugin import Problem


class Local(nn.Module):
    """One history after another, in float64. Covariates are ignored.

    Steps before the first real value are cut off, and a value that is missing later is the last one before it. A target
    of which nothing is real is forecast as 0.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__()
        self.problem = problem

    @abstractmethod
    def one(self, history: np.ndarray) -> np.ndarray:
        """The forecast `[horizon]` of what follows a history `[steps]`, finite and of one step at least."""

    def forward(self, batch: Batch, truth: float = 0.0) -> Tensor:
        """`[batch, horizon, targets, 1]`; `truth` is ignored."""
        values, mask = target_values(batch, self.problem.targets)
        steps = filled(torch.where(mask, values, 0.0), mask, torch.zeros_like(values[:, 0])).double().cpu().numpy()
        there = mask.cpu().numpy()
        result = np.zeros((len(steps), self.problem.horizon, self.problem.targets))
        for window, target in np.argwhere(there.any(axis=1)):
            first = there[window, :, target].argmax()
            result[window, :, target] = self.one(np.ascontiguousarray(steps[window, first:, target]))
        return torch.from_numpy(result).to(values)[..., None]


def enough_seasons(config: object, season: int) -> int | None:
    """The lookback from which a season can be told from a trend, where the user names none: four seasons."""
    return 4 * season if season > 1 else None


def require_statsmodels(model: str) -> None:
    """Raises UsageError when the package is not there."""
    if importlib.util.find_spec("statsmodels") is None:
        raise UsageError(f"model '{model}' needs statsmodels: pip install 'tsformer[baselines]'")
