"""Outputs: losses against torch's own, masks, and the way back to the target's scale."""

import math
from typing import get_args

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tsformer.data.windows import Batch
from tsformer.errors import PluginError, UsageError
from tsformer.nn import outputs
from tsformer.nn.counts import NegativeBinomial
from tsformer.nn.distributions import Normal, StudentT
from tsformer.nn.outputs import Output, output_of
from tsformer.nn.points import Point, log_cosh
from tsformer.nn.quantiles import Quantiles
from tsformer.plugin import Problem
from tsformer.settings import TrainConfig


def log_cosh_in_float64(prediction: Tensor, future: Tensor) -> Tensor:
    return torch.log(torch.cosh((prediction - future).double())).mean().float()


THEIRS = {
    "mse": (Point("mse"), F.mse_loss),
    "mae": (Point("mae"), F.l1_loss),
    "huber": (Point("huber"), F.huber_loss),
    "huber 0.3": (Point("huber", 0.3), lambda prediction, future: F.huber_loss(prediction, future, delta=0.3)),
    "log_cosh": (Point("log_cosh"), log_cosh_in_float64),
}
LEVELS = (0.1, 0.5, 0.9)
SCATTERING = [Quantiles(LEVELS), Normal(), StudentT(), NegativeBinomial()]
OUTPUTS = [Point("mse"), Point("mae"), Point("huber"), Point("log_cosh"), *SCATTERING]


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("loss", THEIRS)
def test_equals_torch(loss: str) -> None:
    ours, theirs = THEIRS[loss]
    prediction, future = 3 * torch.randn(4, 6, 2, 1), torch.randn(4, 6, 2)
    expected = theirs(prediction[..., 0], future)
    whole = torch.ones(4, 6, 2, dtype=torch.bool)
    for mask in (None, whole):
        torch.testing.assert_close(ours.loss(prediction, Batch(future=future, future_mask=mask)), expected)


@pytest.mark.parametrize("loss", THEIRS)
def test_only_real_values_count(loss: str) -> None:
    ours, theirs = THEIRS[loss]
    prediction: Tensor = torch.randn(4, 6, 2, 1, requires_grad=True)
    future, mask = torch.randn(4, 6, 2), torch.rand(4, 6, 2) < 0.5
    value = ours.loss(prediction, Batch(future=torch.where(mask, future, math.nan), future_mask=mask))
    torch.testing.assert_close(value, theirs(prediction[..., 0][mask], future[mask]))
    value.backward()
    assert torch.equal(prediction.grad[..., 0] != 0, mask)


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda output: output.name)
def test_nothing_real_costs_nothing(output: Output) -> None:
    prediction = torch.randn(1, 2, 1, output.outputs, requires_grad=True)
    empty = Batch(future=torch.full((1, 2, 1), math.nan), future_mask=torch.zeros(1, 2, 1, dtype=torch.bool))
    value = output.loss(prediction, empty)
    value.backward()
    assert value.item() == 0.0
    assert torch.equal(prediction.grad, torch.zeros_like(prediction))


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda output: output.name)
def test_a_loss_needs_a_future_that_fits(output: Output) -> None:
    prediction = torch.zeros(1, 2, 1, output.outputs)
    with pytest.raises(ValueError, match=r"needs batch\.future"):
        output.loss(prediction, Batch())
    for wrong in (prediction[..., :0], prediction[:, :1], torch.zeros(1, 2, 1, output.outputs + 1)):
        with pytest.raises(ValueError, match="does not fit a future"):
            output.loss(wrong, Batch(future=torch.zeros(1, 2, 1)))


@pytest.mark.parametrize("size", [1e-6, 1e-3, 0.1, 1.0, 10.0, 89.0, 700.0])
def test_log_cosh_of_small_and_large_errors(size: float) -> None:
    errors = torch.tensor([size, -size], dtype=torch.float64)
    expected = torch.log(torch.cosh(errors))
    torch.testing.assert_close(log_cosh(errors), expected, atol=1e-15, rtol=1e-9)
    single = errors.float().requires_grad_()
    value = log_cosh(single)
    torch.testing.assert_close(value.double(), expected, atol=2e-7, rtol=1e-6)
    (gradient,) = torch.autograd.grad(value.sum(), single)
    torch.testing.assert_close(gradient.double(), torch.tanh(errors), atol=2e-7, rtol=1e-6)


def test_log_cosh_where_cosh_overflows() -> None:
    errors = torch.tensor([-1e30, 0.0, 1e30], requires_grad=True)
    value = log_cosh(errors)
    assert value.tolist() == pytest.approx([1e30, 0.0, 1e30], rel=1e-6, abs=1e-7)
    (gradient,) = torch.autograd.grad(value.sum(), errors)
    assert gradient.tolist() == [-1.0, 0.0, 1.0]


def test_point_and_rescale() -> None:
    prediction, scale, shift = torch.randn(3, 5, 2, 1), torch.rand(3, 1, 2) + 0.5, torch.randn(3, 1, 2)
    rescaled = Point().rescale(prediction, scale, shift)
    assert rescaled.shape == prediction.shape
    torch.testing.assert_close(Point().point(rescaled), prediction[..., 0] * scale + shift)


def test_a_point_has_no_distribution() -> None:
    assert not Point.probabilistic
    with pytest.raises(UsageError, match="no distribution to draw from"):
        Point().sample(torch.zeros(1, 2, 1, 1))


def test_output_of_a_problem() -> None:
    output = output_of(Problem(targets=1), "mae")
    assert (output.name, output.outputs) == ("point", 1)
    future = torch.zeros(1, 2, 1)
    assert output.loss(torch.full((1, 2, 1, 1), 3.0), Batch(future=future)).item() == 3.0
    assert output_of(Problem(), "huber", 0.5).loss(torch.full((1, 2, 1, 1), 3.0), Batch(future=future)).item() == 1.375
    assert isinstance(output_of(Problem(output="normal", outputs=2)), Normal)
    with pytest.raises(
        PluginError, match="unknown output 'tea leaves'; known: negative_binomial, normal, point, quantiles"
    ):
        output_of(Problem(output="tea leaves"))
    with pytest.raises(UsageError, match=r"unknown loss 'hinge'.*huber, log_cosh, mae, mse"):
        output_of(Problem(), "hinge")


def test_every_output_can_be_chosen() -> None:
    assert sorted(get_args(TrainConfig.model_fields["output"].annotation)) == sorted(outputs.OUTPUTS)
    for name, build in outputs.OUTPUTS.items():
        output: Output = build("mse", 1.0, LEVELS)
        assert output.name == name
        assert output.probabilistic == (name != "point")
        assert output.counts == (name == "negative_binomial")


@pytest.mark.parametrize("output", SCATTERING, ids=lambda output: output.name)
def test_only_real_values_count_whatever_is_predicted(output: Output) -> None:
    prediction = torch.randn(4, 6, 2, output.outputs, requires_grad=True)
    future, mask = torch.randint(0, 9, (4, 6, 2)).float(), torch.rand(4, 6, 2) < 0.5
    value = output.loss(prediction, Batch(future=torch.where(mask, future, math.nan), future_mask=mask))
    value.backward()
    torch.testing.assert_close(
        value, output.loss(prediction[mask][:, None, None], Batch(future=future[mask][:, None, None]))
    )
    assert torch.equal((prediction.grad != 0).any(-1), mask)


@pytest.mark.parametrize("output", SCATTERING, ids=lambda output: output.name)
@pytest.mark.parametrize("raw", [-1e4, -100.0, -20.0, 0.0, 20.0, 1e4])
@pytest.mark.parametrize("scale", [3e-3, 1.0, 1e5])
def test_loss_and_gradient_stay_finite(output: Output, raw: float, scale: float) -> None:
    numbers = torch.full((1, 1, 1, output.outputs), raw)
    for location in (0.0, raw):
        numbers[..., 0] = location
        prediction = numbers.clone().requires_grad_()
        rescaled = output.rescale(prediction, torch.full((1, 1, 1), scale), torch.full((1, 1, 1), scale))
        for future in (0.0, 1.0, 1e5):
            loss = output.loss(rescaled, Batch(future=torch.full((1, 1, 1), future)))
            (gradient,) = torch.autograd.grad(loss, prediction, retain_graph=True)
            assert loss.isfinite(), (location, future)
            assert gradient.isfinite().all(), (location, future)
        ends = output.quantiles(rescaled.detach().double(), (0.1, 0.5, 0.9))
        assert ends.isfinite().all()
        assert (ends.diff(dim=-1) >= 0).all()
        assert output.sample(rescaled).isfinite().all()


@pytest.mark.parametrize("output", SCATTERING, ids=lambda output: output.name)
def test_a_location_gives_its_point(output: Output) -> None:
    point = torch.tensor([[[0.25, 3.0, 1e5]]])
    prediction = torch.cat([output.located(point)[..., None], torch.zeros(1, 1, 3, output.outputs - 1)], dim=-1)
    torch.testing.assert_close(output.point(prediction), point, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("output", SCATTERING, ids=lambda output: output.name)
def test_draws_follow_the_quantiles_and_carry_no_gradient(output: Output) -> None:
    prediction = torch.tensor([3.0, 0.5, -0.5])[: output.outputs].expand(1, 20000, 1, -1).clone().requires_grad_()
    draws = output.sample(prediction)
    assert draws.shape == (1, 20000, 1)
    assert not draws.requires_grad
    for p in (0.1, 0.3, 0.5, 0.7, 0.9):
        quantile = output.quantiles(prediction[:, :1].detach(), (p,)).item()
        low, high = (draws < quantile).float().mean().item(), (draws <= quantile).float().mean().item()
        assert low - 0.015 <= p <= high + 0.015  # four standard errors; counts have steps
