"""Outputs: losses against torch's own, masks, and the way back to the target's scale."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tsformer.data.windows import Batch
from tsformer.errors import PluginError, UsageError
from tsformer.nn.outputs import Point, output_of
from tsformer.plugin import Problem

THEIRS = {"mse": F.mse_loss, "mae": F.l1_loss, "huber": F.huber_loss}


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("loss", THEIRS)
def test_equals_torch(loss: str) -> None:
    prediction, future = 3 * torch.randn(4, 6, 2, 1), torch.randn(4, 6, 2)
    expected = THEIRS[loss](prediction[..., 0], future)
    whole = torch.ones(4, 6, 2, dtype=torch.bool)
    for mask in (None, whole):
        torch.testing.assert_close(Point(loss).loss(prediction, Batch(future=future, future_mask=mask)), expected)


@pytest.mark.parametrize("loss", THEIRS)
def test_only_real_values_count(loss: str) -> None:
    prediction: Tensor = torch.randn(4, 6, 2, 1, requires_grad=True)
    future, mask = torch.randn(4, 6, 2), torch.rand(4, 6, 2) < 0.5
    value = Point(loss).loss(prediction, Batch(future=torch.where(mask, future, math.nan), future_mask=mask))
    torch.testing.assert_close(value, THEIRS[loss](prediction[..., 0][mask], future[mask]))
    value.backward()
    assert torch.equal(prediction.grad[..., 0] != 0, mask)


def test_nothing_real_costs_nothing() -> None:
    prediction = torch.randn(1, 2, 1, 1, requires_grad=True)
    empty = Batch(future=torch.full((1, 2, 1), math.nan), future_mask=torch.zeros(1, 2, 1, dtype=torch.bool))
    value = Point().loss(prediction, empty)
    value.backward()
    assert value.item() == 0.0
    assert torch.equal(prediction.grad, torch.zeros_like(prediction))


def test_point_and_rescale() -> None:
    prediction, scale, shift = torch.randn(3, 5, 2, 1), torch.rand(3, 1, 2) + 0.5, torch.randn(3, 1, 2)
    rescaled = Point().rescale(prediction, scale, shift)
    assert rescaled.shape == prediction.shape
    torch.testing.assert_close(Point().point(rescaled), prediction[..., 0] * scale + shift)


def test_output_of_a_problem() -> None:
    output = output_of(Problem(targets=1), "mae")
    assert (output.name, output.outputs) == ("point", 1)
    future = torch.zeros(1, 2, 1)
    assert output.loss(torch.full((1, 2, 1, 1), 3.0), Batch(future=future)).item() == 3.0
    with pytest.raises(PluginError, match="unknown output 'tea leaves'"):
        output_of(Problem(output="tea leaves"))
    with pytest.raises(UsageError, match=r"unknown loss 'hinge'.*huber, mae, mse"):
        output_of(Problem(), "hinge")


def test_a_loss_needs_a_future() -> None:
    with pytest.raises(ValueError, match=r"needs batch\.future"):
        Point().loss(torch.zeros(1, 2, 1, 1), Batch())
