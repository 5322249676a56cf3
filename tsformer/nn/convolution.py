"""Causal convolutions in time: the temporal convolutional network (Bai, Kolter and Koltun 2018), and patches.

Strides count back from the last step, so that the amount of padding on the left cannot shift them. Every layer zeroes
what stands behind the mask before it convolves, for a bias would otherwise leak out of the padding.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tsformer.nn.dropout import Dropout


def shorten(mask: Tensor, stride: int) -> Tensor:
    """The mask of tokens that stand for `stride` steps each: real if any of their steps is.

    Args:
        mask: boolean `[batch, time]`.
        stride: steps to a token, counted back from the last step.

    Returns:
        boolean `[batch, ceil(time / stride)]`.
    """
    if stride == 1:
        return mask
    padded = F.pad(mask, (-mask.shape[1] % stride, 0))
    return padded.view(len(mask), -1, stride).any(-1)


class CausalConv1d(nn.Module):
    """A convolution that sees the present step and earlier ones, `[batch, time, channels]`.

    Args:
        channels: channels in.
        d_model: channels out.
        kernel: taps.
        dilation: steps between taps.
        stride: steps between outputs; the last output stands at the last step.
    """

    def __init__(self, channels: int, d_model: int, kernel: int, dilation: int = 1, stride: int = 1) -> None:
        super().__init__()
        self.reach = (kernel - 1) * dilation
        self.stride = stride
        self.convolution = nn.Conv1d(channels, d_model, kernel, stride=stride, dilation=dilation)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Convolve; the mask of the result is `shorten(mask, stride)`.

        Args:
            x: `[batch, time, channels]`.
            mask: boolean `[batch, time]`, True = real.

        Returns:
            `[batch, ceil(time / stride), d_model]`.
        """
        if mask is not None:
            x = torch.where(mask[..., None], x, 0.0)
        # Pad so that the last window ends at the last step. When the stride skips more steps than the kernel covers,
        # this is negative and crops the oldest steps.
        pad = self.reach - (x.shape[1] - 1) % self.stride
        y: Tensor = self.convolution(F.pad(x.transpose(1, 2), (pad, 0)))
        return y.transpose(1, 2)


class Patches(nn.Module):
    """Cut a series into patches and project each to a token: a strided stem (Nie et al. 2023, PatchTST, section 3.1).

    With a stride of 1 and the default kernel it is a plain linear embedding of each step.

    Args:
        channels: channels in.
        d_model: width of a token.
        stride: steps to a token, counted back from the last step; the oldest token is filled up with zeros.
        kernel: steps that a token sees, at least `stride`; by default `stride`, so that patches do not overlap.

    Raises:
        ValueError: when the kernel is shorter than the stride, and steps would be skipped.
    """

    def __init__(self, channels: int, d_model: int, stride: int, kernel: int | None = None) -> None:
        super().__init__()
        kernel = stride if kernel is None else kernel
        if kernel < stride:
            raise ValueError(f"a kernel of {kernel} with a stride of {stride} would skip steps")
        self.stride = stride
        self.convolution = CausalConv1d(channels, d_model, kernel, stride=stride)

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """`[batch, time, channels]` and `[batch, time]` to `[batch, tokens, d_model]` and `[batch, tokens]`."""
        return self.convolution(x, mask), shorten(mask, self.stride)


class TemporalBlock(nn.Module):
    """Two dilated causal convolutions with a residual connection (Bai et al. 2018, figure 1b).

    Two things differ from the paper: no weight normalisation, so that saved weights are plain, and no ReLU after the
    sum, so that the residual stream may carry negative values.

    Args:
        d_model: channels.
        kernel: taps.
        dilation: steps between taps.
        dropout: rate after each convolution.
    """

    def __init__(self, d_model: int, kernel: int, dilation: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(CausalConv1d(d_model, d_model, kernel, dilation) for _ in range(2))
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """`[batch, time, d_model]` to the same; `mask` `[batch, time]`, True = real; zero behind it."""
        y = x
        for convolution in self.convolutions:
            y = self.dropout(F.relu(convolution(y, mask)))
        x = x + y
        return x if mask is None else torch.where(mask[..., None], x, 0.0)
