"""The feed-forward network: against torch's layers and Shazeer's equation."""

import math

import pytest
import torch
from torch import nn

from tsformer.nn.feedforward import FeedForward


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize(("activation", "theirs"), [("relu", nn.ReLU()), ("gelu", nn.GELU())])
def test_equals_torch(activation: str, theirs: nn.Module) -> None:
    ours, x = FeedForward(6, 10, activation), torch.randn(2, 5, 6)
    torch.testing.assert_close(ours(x), nn.Sequential(ours.inner, theirs, ours.outer)(x))


def test_gelu_is_x_times_the_normal_distribution() -> None:
    ours = FeedForward(1, 1, "gelu")
    with torch.no_grad():
        for layer in (ours.inner, ours.outer):
            layer.weight.fill_(1.0)
            layer.bias.zero_()
    assert ours(torch.tensor([1.5])).item() == pytest.approx(1.5 * 0.5 * (1 + math.erf(1.5 / math.sqrt(2))), abs=1e-6)


def test_swiglu_by_the_equation() -> None:
    ours, x = FeedForward(6, 10, "swiglu"), torch.randn(5, 6)
    w, v, w2 = ours.inner.weight.T, ours.gate.weight.T, ours.outer.weight.T
    assert (w.shape, v.shape, w2.shape) == ((6, 10), (6, 10), (10, 6))
    xw = x @ w
    torch.testing.assert_close(ours(x), (xw / (1 + torch.exp(-xw)) * (x @ v)) @ w2)
    assert len(list(ours.parameters())) == 3


def test_an_unknown_activation_is_named() -> None:
    with pytest.raises(ValueError, match="unknown activation 'swish'; known: relu, gelu, swiglu"):
        FeedForward(6, 10, "swish")
