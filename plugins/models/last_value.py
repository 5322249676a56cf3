"""Repeat the last value: the simplest forecast there is, and hard to beat for prices.

It acts on transformed values. A scaler changes nothing; with `log_return` or `difference` it repeats the last change.

Nothing is fitted, so that training options such as the loss change nothing.
"""

from __future__ import annotations

from torch import Tensor, nn

from tsformer.data.windows import Batch
from tsformer.nn.lookback import repeated, target_values
from tsformer.nn.network import last_real
from tsformer.plugin import Config, ModelPlugin, Problem


class LastValueConfig(Config):
    """There are no options."""


class LastValue(nn.Module):
    """The last real value of each target at every step, 0 where a window has none. Covariates are ignored."""

    def __init__(self, config: LastValueConfig, problem: Problem) -> None:
        super().__init__()
        self.problem = problem

    def forward(self, batch: Batch, truth: float = 0.0) -> Tensor:
        """`[batch, horizon, targets, 1]`; `truth` is ignored."""
        return repeated(last_real(*target_values(batch, self.problem.targets)), self.problem.horizon)


plugin = ModelPlugin(config=LastValueConfig, build=LastValue, example=LastValueConfig(), outputs={"point"})
