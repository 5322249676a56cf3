"""What is predicted of each target, and the loss that fits it.

Decoders and models know only `Output`: how many numbers describe one value, which of them to feed back, and how they
follow an affine change of the target. A new kind of output is a new class here and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from tsformer.data.windows import Batch
from tsformer.errors import PluginError, UsageError
from tsformer.plugin import Problem

_LOSSES: dict[str, Callable[..., Tensor]] = {"mse": F.mse_loss, "mae": F.l1_loss, "huber": F.huber_loss}


class Output(Protocol):
    """What a prediction `[batch, horizon, targets, outputs]` means.

    Attributes:
        name: as in `Problem.output`.
        outputs: numbers that describe one predicted value.
    """

    @property
    def name(self) -> str: ...

    @property
    def outputs(self) -> int: ...

    def loss(self, prediction: Tensor, batch: Batch) -> Tensor:
        """Mean loss over the real values of `batch.future`, a scalar."""
        ...

    def point(self, prediction: Tensor) -> Tensor:
        """The point forecast `[batch, horizon, targets]`."""
        ...

    def rescale(self, prediction: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        """The prediction of `scale * target + shift`, given that of the target.

        `scale` and `shift` broadcast to `[batch, horizon, targets]`, and scale is positive.
        """
        ...


class Point:
    """One number for each value.

    Args:
        loss: "mse", "mae" or "huber" (delta 1).

    Raises:
        UsageError: when there is no such loss.
    """

    name = "point"
    outputs = 1

    def __init__(self, loss: str = "mse") -> None:
        if loss not in _LOSSES:
            raise UsageError(f"unknown loss '{loss}' for a point forecast; known: {', '.join(sorted(_LOSSES))}")
        self._loss = _LOSSES[loss]

    def loss(self, prediction: Tensor, batch: Batch) -> Tensor:
        """Mean loss over the real values, a scalar; 0 when none is real.

        Args:
            prediction: `[batch, horizon, targets, 1]`.
            batch: with `future` `[batch, horizon, targets]`; without `future_mask` all of it is real.

        Raises:
            ValueError: when the batch has no future, or one of another shape.
        """
        if batch.future is None:
            raise ValueError("a loss needs batch.future")
        point = self.point(prediction)
        if point.shape != batch.future.shape:  # which torch would stretch silently
            raise ValueError(
                f"a prediction {tuple(prediction.shape)} does not fit a future {tuple(batch.future.shape)}"
            )
        if batch.future_mask is None:
            return self._loss(point, batch.future)
        mask = batch.future_mask
        # A NaN behind the mask must not reach the product: nothing is compared with nothing.
        errors = self._loss(torch.where(mask, point, 0.0), torch.where(mask, batch.future, 0.0), reduction="none")
        return errors.sum() / mask.sum().clamp_min(1)

    def point(self, prediction: Tensor) -> Tensor:
        """`[batch, horizon, targets, 1]` to `[batch, horizon, targets]`."""
        return prediction.squeeze(-1)

    def rescale(self, prediction: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        """`[batch, horizon, targets, 1]` to the same."""
        return prediction * scale[..., None] + shift[..., None]


def output_of(problem: Problem, loss: str = "mse") -> Output:
    """The output that a problem asks for.

    Args:
        problem: says which, in `output`.
        loss: for a point forecast, "mse", "mae" or "huber".

    Raises:
        PluginError: when there is no such output.
        UsageError: when there is no such loss.
    """
    if problem.output == "point":
        return Point(loss)
    raise PluginError(f"unknown output '{problem.output}'; known: point")
