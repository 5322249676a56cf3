"""Dropout (Srivastava et al. 2014) that is cheap on a CPU.

`F.dropout` draws its mask element by element in a serial loop, which made up to 60 % of a training step. Here one
64-bit random integer decides for eight elements, one byte each.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Dropout(nn.Module):
    """Zero each element with probability p in training and scale the others to keep the mean.

    On a CPU the rate is rounded to a multiple of 1/256, and the scale is that of the rounded rate; below 1/512 nothing
    is dropped. Elsewhere it is `F.dropout`. Randomness comes from torch's global generator.

    Args:
        p: probability of dropping an element, in [0, 1).

    Raises:
        ValueError: when p is outside [0, 1).
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0.0 <= p < 1.0:
            raise ValueError(f"dropout must be in [0, 1), not {p}")
        self.p = p
        self.threshold = min(round(p * 256), 255)  # bytes below it drop their element; 256 would drop all of them

    def forward(self, x: Tensor) -> Tensor:
        """`[...]` to `[...]`."""
        if not self.training or self.p == 0.0:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.p)
        if self.threshold == 0:
            return x
        # Plain `random_()` leaves the top bit 0, and every eighth element would drop twice as often.
        words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        kept = words.view(torch.uint8)[: x.numel()].view(x.shape) >= self.threshold
        # The product with a float mask takes a quarter of the time of `torch.where`.
        return x * kept.to(x.dtype).mul_(256 / (256 - self.threshold))

    def extra_repr(self) -> str:
        return f"p={self.p}"
