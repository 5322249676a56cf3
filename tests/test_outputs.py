"""Outputs: losses against torch's own, masks, and the way back to the target's scale."""

import math
from typing import get_args

import pytest
import torch
import torch.nn.functional as F
from scipy import stats
from torch import Tensor, distributions

from tsformer.data.windows import Batch
from tsformer.errors import PluginError, UsageError
from tsformer.nn import outputs
from tsformer.nn.outputs import SMALLEST_SCALE, Normal, Output, Point, log_cosh, output_of
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
OUTPUTS = [Point("mse"), Point("mae"), Point("huber"), Point("log_cosh"), Normal()]


def normal_by_torch(prediction: Tensor, future: Tensor) -> Tensor:
    mean, raw = prediction.double().unbind(-1)
    return -distributions.Normal(mean, F.softplus(raw)).log_prob(future.double()).mean().float()


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


@pytest.mark.parametrize("output", OUTPUTS)
def test_nothing_real_costs_nothing(output: Output) -> None:
    prediction = torch.randn(1, 2, 1, output.outputs, requires_grad=True)
    empty = Batch(future=torch.full((1, 2, 1), math.nan), future_mask=torch.zeros(1, 2, 1, dtype=torch.bool))
    value = output.loss(prediction, empty)
    value.backward()
    assert value.item() == 0.0
    assert torch.equal(prediction.grad, torch.zeros_like(prediction))


@pytest.mark.parametrize("output", OUTPUTS)
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


class TestNormal:
    def test_equals_torch(self) -> None:
        prediction, future = torch.randn(4, 6, 2, 2), 3 * torch.randn(4, 6, 2)
        expected = normal_by_torch(prediction, future)
        for mask in (None, torch.ones(4, 6, 2, dtype=torch.bool)):
            loss = Normal().loss(prediction, Batch(future=future, future_mask=mask))
            torch.testing.assert_close(loss, expected, atol=1e-4, rtol=1e-4)

    def test_only_real_values_count(self) -> None:
        prediction: Tensor = torch.randn(4, 6, 2, 2, requires_grad=True)
        future, mask = torch.randn(4, 6, 2), torch.rand(4, 6, 2) < 0.5
        value = Normal().loss(prediction, Batch(future=torch.where(mask, future, math.nan), future_mask=mask))
        torch.testing.assert_close(value, normal_by_torch(prediction[mask], future[mask]), atol=1e-4, rtol=1e-4)
        value.backward()
        assert torch.equal((prediction.grad != 0).all(-1), mask)
        assert torch.equal((prediction.grad != 0).any(-1), mask)

    def test_its_point_is_the_mean(self) -> None:
        prediction = torch.randn(3, 5, 2, 2)
        assert torch.equal(Normal().point(prediction), prediction[..., 0])

    def test_rescale_is_that_of_the_distribution(self) -> None:
        prediction, future = torch.randn(3, 5, 2, 2), torch.randn(3, 5, 2)
        scale, shift = torch.tensor([0.01, 1.0, 50.0])[:, None, None].expand(3, 1, 2), torch.randn(3, 1, 2)
        rescaled = Normal().rescale(prediction, scale, shift)
        mean, spread = Normal().parameters(prediction)
        for ours, theirs in zip(Normal().parameters(rescaled), (mean * scale + shift, spread * scale), strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-5)
        # a density is divided by the scale
        before = Normal().loss(prediction, Batch(future=future))
        after = Normal().loss(rescaled, Batch(future=future * scale + shift))
        torch.testing.assert_close(after, before + scale.expand(3, 5, 2).log().mean(), atol=1e-3, rtol=1e-4)

    @pytest.mark.parametrize("raw", [-1e4, -100.0, -20.0, 0.0, 100.0, 1e4])
    @pytest.mark.parametrize("scale", [3e-3, 1.0, 1e6])
    def test_stays_finite(self, raw: float, scale: float) -> None:
        prediction = torch.tensor([[[[0.5, raw]]]], requires_grad=True)
        rescaled = Normal().rescale(prediction, torch.full((1, 1, 1), scale), torch.zeros(1, 1, 1))
        for future in (0.5 * scale, 100 * scale):
            loss = Normal().loss(rescaled, Batch(future=torch.full((1, 1, 1), future)))
            (gradient,) = torch.autograd.grad(loss, prediction, retain_graph=True)
            assert loss.isfinite()
            assert gradient.isfinite().all()
        spread = Normal().parameters(rescaled)[1]
        assert spread.item() >= 0.999 * SMALLEST_SCALE
        if raw >= -5:
            assert spread.item() == pytest.approx(
                scale * math.log1p(math.exp(raw)) if raw < 50 else scale * raw, rel=1e-3
            )

    @pytest.mark.parametrize("scale", [3e-3, 1.0, 1e3])
    def test_rescale_of_any_spread_is_exact_and_keeps_a_slope(self, scale: float) -> None:
        raw = torch.linspace(-80, 80, 321, dtype=torch.float64)
        spread = torch.where(raw < 0, raw.exp().log1p(), raw + (-raw).exp().log1p())  # softplus in float64
        y = scale * spread
        expected = torch.where(y < 1e-3, y.log() + y / 2, y + torch.log(-torch.expm1(-y)))
        prediction = torch.stack([torch.zeros_like(raw), raw], -1).float()[None, None].requires_grad_()
        ours = Normal().rescale(prediction, torch.full((1, 1, 1), scale), torch.zeros(1, 1, 1))[0, 0, :, 1]
        torch.testing.assert_close(ours.double(), expected, atol=1e-5, rtol=1e-5)
        (gradient,) = torch.autograd.grad(ours.sum(), prediction)
        assert (gradient[0, 0, :, 1] > 0).all()

    @pytest.mark.parametrize("scale", [3e-3, 1.0])
    def test_a_window_that_was_confidently_wrong_widens_again(self, scale: float) -> None:
        prediction = torch.tensor([[[[0.0, -14.0]]]], requires_grad=True)
        batch, ones = Batch(future=torch.full((1, 1, 1), scale)), torch.ones(1, 1, 1)
        optimizer = torch.optim.Adam([prediction], lr=0.1)
        for step in range(500):
            loss = Normal().loss(Normal().rescale(prediction, scale * ones, 0 * ones), batch)
            optimizer.zero_grad()
            loss.backward()
            prediction.grad[..., 0] = 0.0  # the mean stays wrong
            torch.nn.utils.clip_grad_norm_(prediction, 1.0)
            torch.nn.utils.clip_grad_norm_(prediction, 1.0)
            if step == 0:
                assert prediction.grad[..., 1].item() < 0.0
            optimizer.step()
        assert F.softplus(prediction[..., 1]).item() == pytest.approx(1.0, rel=0.05)  # of an error of 1, the likeliest

    def test_samples_follow_the_distribution_and_carry_no_gradient(self) -> None:
        prediction = torch.tensor([1.5, -0.5]).expand(1, 4000, 1, 2).clone().requires_grad_()
        draws = Normal().sample(prediction)
        assert draws.shape == (1, 4000, 1)
        assert not draws.requires_grad
        expected = stats.norm(1.5, math.log1p(math.exp(-0.5)))
        assert stats.kstest(draws.flatten().numpy(), expected.cdf).pvalue > 0.001


def test_output_of_a_problem() -> None:
    output = output_of(Problem(targets=1), "mae")
    assert (output.name, output.outputs) == ("point", 1)
    future = torch.zeros(1, 2, 1)
    assert output.loss(torch.full((1, 2, 1, 1), 3.0), Batch(future=future)).item() == 3.0
    assert output_of(Problem(), "huber", 0.5).loss(torch.full((1, 2, 1, 1), 3.0), Batch(future=future)).item() == 1.375
    assert isinstance(output_of(Problem(output="normal", outputs=2)), Normal)
    with pytest.raises(PluginError, match="unknown output 'tea leaves'; known: normal, point"):
        output_of(Problem(output="tea leaves"))
    with pytest.raises(UsageError, match=r"unknown loss 'hinge'.*huber, log_cosh, mae, mse"):
        output_of(Problem(), "hinge")


def test_every_output_can_be_chosen() -> None:
    assert sorted(get_args(TrainConfig.model_fields["output"].annotation)) == sorted(outputs.OUTPUTS)
    for name, build in outputs.OUTPUTS.items():
        assert build("mse", 1.0).name == name
