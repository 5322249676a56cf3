"""Reversible instance normalisation (Kim et al. 2022, "Reversible Instance Normalization", RevIN)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

EPS = 1e-5


class RevIN(nn.Module):
    """Bring each window and channel to mean 0 and standard deviation 1, and give back what undoes it.

    Everything is said by one affine map, value = scale * normalised + shift: `normalise` inverts it, and an output's
    `rescale` applies it, whatever it predicts.

    Args:
        channels: number of channels, for the affine weights.
        affine: learn a weight and a bias for each channel (equation 2). The weight is the exponential of what is
            learned, so that undoing it never divides by zero.
        eps: as for `window_statistics`.
    """

    def __init__(self, channels: int, affine: bool = False, eps: float = EPS) -> None:
        super().__init__()
        self.eps = eps
        self.log_weight = nn.Parameter(torch.zeros(channels)) if affine else None
        self.bias = nn.Parameter(torch.zeros(channels)) if affine else None

    def statistics(self, past: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Scale and shift of each window; `window_statistics`, and the affine weights."""
        scale, mean = window_statistics(past, mask, self.eps)
        if self.log_weight is None or self.bias is None:
            return scale, mean
        scale = scale * torch.exp(-self.log_weight)
        return scale, mean - scale * self.bias

    def normalise(self, values: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        """`[batch, time, channels]` to the same, with the statistics of the same channels."""
        return (values - shift) / scale


def window_statistics(past: Tensor, mask: Tensor, eps: float = EPS) -> tuple[Tensor, Tensor]:
    """Scale and shift of each window, from its real steps (equation 1).

    Args:
        past: `[batch, lookback, channels]`; what stands behind the mask does not matter.
        mask: boolean `[batch, lookback, channels]`, True = real.
        eps: added to the variance; a window whose variance is below it counts as constant and is only shifted, for
            dividing by next to nothing would blow up the first step that differs.

    Returns:
        scale, shift: `[batch, 1, channels]`; 1 and 0 for a window without real steps.
    """
    count = mask.sum(1, keepdim=True).clamp_min(1)
    mean = torch.where(mask, past, 0.0).sum(1, keepdim=True) / count
    variance = torch.where(mask, past - mean, 0.0).square().sum(1, keepdim=True) / count
    return torch.where(variance > eps, (variance + eps).sqrt(), 1.0), mean
