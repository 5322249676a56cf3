"""Normal and Student's t: losses, quantiles and draws against torch and scipy, and the way back to units."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import stats
from torch import Tensor, distributions

from tsformer.data.windows import Batch
from tsformer.nn.distributions import SMALLEST_SCALE, Normal, StudentT


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def normal_by_torch(prediction: Tensor, future: Tensor) -> Tensor:
    mean, raw = prediction.double().unbind(-1)
    return -distributions.Normal(mean, F.softplus(raw)).log_prob(future.double()).mean().float()


def test_equals_torch() -> None:
    prediction, future = torch.randn(4, 6, 2, 2), 3 * torch.randn(4, 6, 2)
    expected = normal_by_torch(prediction, future)
    for mask in (None, torch.ones(4, 6, 2, dtype=torch.bool)):
        loss = Normal().loss(prediction, Batch(future=future, future_mask=mask))
        torch.testing.assert_close(loss, expected, atol=1e-4, rtol=1e-4)


def test_only_real_values_count() -> None:
    prediction: Tensor = torch.randn(4, 6, 2, 2, requires_grad=True)
    future, mask = torch.randn(4, 6, 2), torch.rand(4, 6, 2) < 0.5
    value = Normal().loss(prediction, Batch(future=torch.where(mask, future, math.nan), future_mask=mask))
    torch.testing.assert_close(value, normal_by_torch(prediction[mask], future[mask]), atol=1e-4, rtol=1e-4)
    value.backward()
    assert torch.equal((prediction.grad != 0).all(-1), mask)
    assert torch.equal((prediction.grad != 0).any(-1), mask)


def test_its_point_is_the_mean() -> None:
    prediction = torch.randn(3, 5, 2, 2)
    assert torch.equal(Normal().point(prediction), prediction[..., 0])


def test_rescale_is_that_of_the_distribution() -> None:
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
def test_stays_finite(raw: float, scale: float) -> None:
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
        assert spread.item() == pytest.approx(scale * math.log1p(math.exp(raw)) if raw < 50 else scale * raw, rel=1e-3)


@pytest.mark.parametrize("scale", [3e-3, 1.0, 1e3])
def test_rescale_of_any_spread_is_exact_and_keeps_a_slope(scale: float) -> None:
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
def test_a_window_that_was_confidently_wrong_widens_again(scale: float) -> None:
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


def test_samples_follow_the_distribution_and_carry_no_gradient() -> None:
    prediction = torch.tensor([1.5, -0.5]).expand(1, 4000, 1, 2).clone().requires_grad_()
    draws = Normal().sample(prediction)
    assert draws.shape == (1, 4000, 1)
    assert not draws.requires_grad
    expected = stats.norm(1.5, math.log1p(math.exp(-0.5)))
    assert stats.kstest(draws.flatten().numpy(), expected.cdf).pvalue > 0.001


def test_normal_quantiles_are_those_of_scipy() -> None:
    prediction, levels = torch.randn(2, 3, 2, 2, dtype=torch.float64), (0.001, 0.1, 0.5, 0.975)
    mean, scale = (part.numpy()[..., None] for part in Normal().parameters(prediction))
    np.testing.assert_allclose(Normal().quantiles(prediction, levels), stats.norm(mean, scale).ppf(levels), rtol=1e-9)


class TestStudentT:
    def test_equals_torch(self) -> None:
        prediction = torch.randn(8, 6, 2, 3) * torch.tensor([1.0, 2.0, 20.0])
        future = 5 * torch.randn(8, 6, 2)
        location, scale, freedom = StudentT().parameters(prediction.double())
        expected = -distributions.StudentT(freedom, location, scale).log_prob(future.double()).mean()
        loss = StudentT().loss(prediction, Batch(future=future))
        torch.testing.assert_close(loss.double(), expected, atol=1e-5, rtol=1e-5)

    @pytest.mark.parametrize("freedom", [2.001, 5.0, 15.9, 16.1, 1e3, 1e5, 1e6])
    @pytest.mark.parametrize("away", [0.0, 1.0, 30.0, 1e4, 1e12])
    def test_single_precision_is_enough_whatever_the_tails(self, freedom: float, away: float) -> None:
        prediction = torch.tensor([[[[0.0, 0.0, freedom - 2 if freedom > 50 else math.log(math.expm1(freedom - 2))]]]])
        loss = StudentT().loss(prediction, Batch(future=torch.full((1, 1, 1), away)))
        expected = -stats.t(freedom).logpdf(away / math.log(2)) + math.log(math.log(2))
        assert loss.item() == pytest.approx(expected, rel=2e-5, abs=2e-5)

    def test_many_degrees_of_freedom_are_a_normal_distribution(self) -> None:
        prediction, future = torch.randn(4, 6, 2, 3), torch.randn(4, 6, 2)
        prediction[..., 2] = 1e9
        expected = Normal().loss(prediction[..., :2], Batch(future=future))
        torch.testing.assert_close(StudentT().loss(prediction, Batch(future=future)), expected, atol=1e-4, rtol=1e-4)

    def test_quantiles_are_those_of_scipy(self) -> None:
        prediction, levels = torch.randn(2, 3, 2, 3, dtype=torch.float64), (0.001, 0.1, 0.5, 0.975)
        location, scale, freedom = (part.numpy()[..., None] for part in StudentT().parameters(prediction))
        expected = stats.t(freedom, location, scale).ppf(levels)
        np.testing.assert_allclose(StudentT().quantiles(prediction, levels), expected, rtol=1e-8, atol=1e-8)

    def test_rescale_is_that_of_the_distribution(self) -> None:
        prediction, scale, shift = torch.randn(3, 5, 2, 3), torch.tensor([0.01, 1.0, 50.0])[:, None, None], 7.0
        ours = StudentT().parameters(StudentT().rescale(prediction, scale, torch.tensor(shift)))
        location, spread, freedom = StudentT().parameters(prediction)
        for got, expected in zip(ours, (location * scale + shift, spread * scale, freedom), strict=True):
            torch.testing.assert_close(got, expected, atol=2e-6, rtol=1e-5)

    def test_draws_follow_the_distribution(self) -> None:
        prediction = torch.tensor([1.5, -0.5, 0.0]).expand(1, 4000, 1, 3)
        expected = stats.t(2 + math.log(2), 1.5, math.log1p(math.exp(-0.5)))
        assert stats.kstest(StudentT().sample(prediction).flatten().numpy(), expected.cdf).pvalue > 0.001

    def test_it_learns_scale_and_tails(self) -> None:
        future = torch.from_numpy(stats.t(4, 3, 2).rvs(2000, random_state=0)).float()[None, :, None]
        numbers = torch.zeros(3, requires_grad=True)
        optimizer = torch.optim.LBFGS([numbers], max_iter=100, line_search_fn="strong_wolfe")

        def loss() -> Tensor:
            optimizer.zero_grad()
            value = StudentT().loss(numbers.expand(1, 2000, 1, 3), Batch(future=future))
            value.backward()
            return value

        optimizer.step(loss)
        location, scale, freedom = (part.item() for part in StudentT().parameters(numbers))
        assert (freedom, location, scale) == pytest.approx(stats.t.fit(future.numpy().ravel()), rel=0.02)
