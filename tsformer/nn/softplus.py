"""Positive numbers by softplus, also where it is no longer above 0 in its precision."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

_LINEAR_BELOW = -8.0  # of the logarithm of a softplus: there it is its argument, up to terms below float32


def log_softplus(x: Tensor) -> Tensor:
    """log(softplus(x)), finite for every finite x, and with a slope everywhere."""
    small = x - 0.5 * x.clamp_max(_LINEAR_BELOW).exp()
    return torch.where(x < _LINEAR_BELOW, small, F.softplus(x.clamp_min(_LINEAR_BELOW)).log())


def inverse_softplus(y: Tensor, log_y: Tensor) -> Tensor:
    """log(exp(y) - 1), of y and its logarithm; the latter alone is needed, and may be far below 0, where y is small."""
    small = log_y + 0.5 * log_y.clamp_max(_LINEAR_BELOW).exp()
    y = y.clamp_min(math.exp(_LINEAR_BELOW))
    return torch.where(log_y < _LINEAR_BELOW, small, y + torch.log(-torch.expm1(-y)))


def rescaled(raw: Tensor, scale: Tensor) -> Tensor:
    """The numbers whose softplus is `scale` times that of `raw`; both broadcast."""
    return inverse_softplus(F.softplus(raw) * scale, log_softplus(raw) + scale.log())
