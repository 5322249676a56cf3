"""Where a step stands: what is added to its embedding, by the sine or by a learned table.

Two further kinds, `tsformer.nn.relative` and `tsformer.nn.rotary`, act inside self-attention instead. All of them count
real steps, so that padding on the left shifts nothing.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tsformer.errors import UsageError

PositionKind = Literal["sinusoidal", "learned", "relative", "rotary", "none"]
IN_ATTENTION: tuple[PositionKind, ...] = ("relative", "rotary")
"""Those that act in self-attention, and add nothing to the tokens."""
KINDS: tuple[PositionKind, ...] = get_args(PositionKind)


def additive_positions(kind: PositionKind, d_model: int, length: int) -> nn.Module:
    """A module `positions(x, mask=None, offset=0)` that adds positions of that kind to `[batch, time, d_model]`.

    Args:
        kind: "relative" and "rotary" act inside self-attention and add nothing here, as "none".
        d_model: width.
        length: steps that a learned table has.

    Raises:
        ValueError: when there is no such kind.
    """
    if kind == "sinusoidal":
        return SinusoidalPositions(d_model)
    if kind == "learned":
        return LearnedPositions(d_model, length)
    if kind in (*IN_ATTENTION, "none"):
        return NoPositions()
    raise unknown_positions(kind)


def unknown_positions(kind: str) -> ValueError:
    """What to raise for positions of which there are none."""
    return ValueError(f"unknown positions '{kind}'; known: {', '.join(KINDS)}")


def real_steps(mask: Tensor) -> Tensor:
    """The position of each step, counting real ones from 0; a masked step repeats the real one before it.

    `mask` boolean `[batch, time]`, True = real, to int64 `[batch, time]`.
    """
    return (mask.cumsum(1) - 1).clamp_min(0)


def sinusoid(length: int, d_model: int) -> Tensor:
    """sin(pos / 10000^(2i/d_model)) at even indices 2i, the cosine at the odd ones beside them.

    From Vaswani et al. 2017, section 3.5. Computed in float64, so that far positions keep their phase.

    Returns:
        float32 `[length, d_model]`.
    """
    position = torch.arange(length, dtype=torch.float64)[:, None]
    rate = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(10_000.0) / d_model))
    table = torch.empty(length, d_model, dtype=torch.float64)
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate[: d_model // 2])  # one cosine fewer when d_model is odd
    return table.float()


class SinusoidTable(nn.Module):
    """The rows of `sinusoid`, kept. The table grows when a longer series comes, and is not saved with the weights.

    Args:
        width: of a row; odd widths end in a sine.
    """

    rows: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("rows", torch.empty(0, width), persistent=False)

    def forward(self, length: int) -> Tensor:
        """At least `length` rows `[..., width]`."""
        if length > len(self.rows):
            with torch.inference_mode(False):  # a table born in inference mode could not be used in training later
                self.rows = sinusoid(max(length, 2 * len(self.rows)), self.width).to(self.rows)
        return self.rows


class SinusoidalPositions(nn.Module):
    """Add sinusoidal positions, for any length.

    Args:
        d_model: width; odd widths end in a sine.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.table = SinusoidTable(d_model)

    def forward(self, x: Tensor, mask: Tensor | None = None, offset: int = 0) -> Tensor:
        """Add to each step its position.

        Args:
            x: `[batch, time, d_model]`.
            mask: boolean `[batch, time]`, True = real. The first real step of each row has position `offset`, however
                much padding stands before it; a masked step repeats the position of the real one before it.
            offset: position of the first step, for decoding step by step.

        Returns:
            `[batch, time, d_model]`.
        """
        needed = offset + x.shape[1]
        rows = self.table(needed)
        return x + (rows[offset:needed] if mask is None else rows[real_steps(mask) + offset])


class LearnedPositions(nn.Module):
    """Add a learned vector for each position (Gehring et al. 2017, "Convolutional Sequence to Sequence Learning").

    The vectors start as sinusoidal positions, so that steps can be told apart from the first update on.

    Args:
        d_model: width.
        length: number of positions; there is none beyond it.
    """

    def __init__(self, d_model: int, length: int) -> None:
        super().__init__()
        self.table = nn.Parameter(sinusoid(length, d_model))

    def forward(self, x: Tensor, mask: Tensor | None = None, offset: int = 0) -> Tensor:
        """`[batch, time, d_model]` to the same; arguments as for `SinusoidalPositions`.

        Raises:
            UsageError: when there are more real steps than positions.
        """
        length, needed = len(self.table), offset + x.shape[1]
        steps = None if mask is None else real_steps(mask) + offset
        if needed > length and steps is not None:  # padding may take up what is too much
            needed = int(steps.max()) + 1
        if needed > length:
            raise UsageError(
                f"learned positions end after {length} steps, and {needed} were given; give fewer, "
                f"fit with a lookback and horizon as long, or with other positions than learned"
            )
        return x + (self.table[offset:needed] if steps is None else F.embedding(steps, self.table))


class NoPositions(nn.Module):
    """Add nothing: for a stack that finds the order elsewhere, or shall not know it."""

    def forward(self, x: Tensor, mask: Tensor | None = None, offset: int = 0) -> Tensor:
        """`[batch, time, d_model]` as it is."""
        return x
