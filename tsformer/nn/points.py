"""One number for each predicted value, and what it minimises."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch.nn.functional as F
from torch import Tensor

from tsformer.errors import UsageError
from tsformer.nn.judged import Judged


class Point(Judged):
    """One number for each value.

    Args:
        loss: "mse", "mae", "huber" or "log_cosh".
        delta: of huber, the error above which the loss is no longer squared but absolute.

    Raises:
        UsageError: when there is no such loss.
    """

    name = "point"
    probabilistic = False

    def __init__(self, loss: str = "mse", delta: float = 1.0) -> None:
        losses: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
            "mse": lambda point, future: F.mse_loss(point, future, reduction="none"),
            "mae": lambda point, future: F.l1_loss(point, future, reduction="none"),
            "huber": lambda point, future: F.huber_loss(point, future, reduction="none", delta=delta),
            "log_cosh": lambda point, future: log_cosh(point - future),
        }
        if loss not in losses:
            raise UsageError(f"unknown loss '{loss}' for a point forecast; known: {', '.join(sorted(losses))}")
        self._loss = losses[loss]

    def costs(self, prediction: Tensor, future: Tensor) -> Tensor:
        return self._loss(self.point(prediction), future)

    def point(self, prediction: Tensor) -> Tensor:
        """`[batch, horizon, targets, 1]` to `[batch, horizon, targets]`."""
        return prediction.squeeze(-1)

    def quantiles(self, prediction: Tensor, probabilities: Sequence[float]) -> Tensor:
        """Raises UsageError."""
        raise UsageError("a point forecast has no quantiles of its own; fit with --train.output quantiles or normal")

    def sample(self, prediction: Tensor) -> Tensor:
        """Raises UsageError."""
        raise UsageError(
            "a point forecast has no distribution to draw from; fit with --train.output quantiles or normal"
        )

    def rescale(self, prediction: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        """`[batch, horizon, targets, 1]` to the same."""
        return prediction * scale[..., None] + shift[..., None]


def log_cosh(x: Tensor) -> Tensor:
    """log(cosh(x)), elementwise: x^2 / 2 near 0, |x| - log 2 far away, where cosh itself would overflow."""
    # The terms cancel near 0. In float32 the value is off by up to 1e-7, which hides x^2 / 2 for |x| below 5e-4; so is
    # the gradient, tanh(x), but of that 1e-7 is next to nothing.
    x = x.abs()
    return x + F.softplus(-2.0 * x) - math.log(2.0)
