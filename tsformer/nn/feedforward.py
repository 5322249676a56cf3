"""The feed-forward network of a layer, with a choice of activations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

Activation = Literal["relu", "gelu", "swiglu"]

_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "swiglu": F.silu}


class FeedForward(nn.Module):
    """f(x W1 + b1) W2 + b2 for each step by itself (Vaswani et al. 2017, equation 2).

    f is ReLU, GELU (Hendrycks and Gimpel 2016, with the exact normal distribution), or SwiGLU (Shazeer 2020, "GLU
    Variants Improve Transformer", equation 6), which is (silu(x W) * x V) W2, without biases. SwiGLU has three matrices
    of d_model times d_ff instead of two: two thirds of d_ff give as many weights as the others have.

    Args:
        d_model: width in and out.
        d_ff: width between.
        activation: "relu", "gelu" or "swiglu".

    Raises:
        ValueError: when there is no such activation.
    """

    def __init__(self, d_model: int, d_ff: int, activation: Activation = "relu") -> None:
        super().__init__()
        if activation not in _FUNCTIONS:
            raise ValueError(f"unknown activation '{activation}'; known: {', '.join(_FUNCTIONS)}")
        gated = activation == "swiglu"
        self.activation = _FUNCTIONS[activation]
        self.inner = nn.Linear(d_model, d_ff, bias=not gated)
        self.gate = nn.Linear(d_model, d_ff, bias=False) if gated else None
        self.outer = nn.Linear(d_ff, d_model, bias=not gated)

    def forward(self, x: Tensor) -> Tensor:
        """`[..., d_model]` to the same."""
        y = self.activation(self.inner(x))
        if self.gate is not None:
            y = y * self.gate(x)
        y = self.outer(y)
        return y
