"""Quantiles of an output: never crossing, pinball loss against scikit-learn, tails, and the way back to units."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import mean_pinball_loss

from tsformer.data.windows import Batch
from tsformer.errors import PluginError, UsageError
from tsformer.nn.quantiles import Quantiles
from tsformer.settings import DEFAULT_QUANTILES, TrainConfig

OUTPUT = Quantiles(DEFAULT_QUANTILES)
RAW = st.floats(-1e4, 1e4, width=32)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@given(st.lists(RAW, min_size=9, max_size=9), st.floats(2**-10, 1e6, width=32), RAW)
def test_they_never_cross(raw, scale, shift):
    prediction = torch.tensor(raw)[None, None, None]
    ones = torch.ones(1, 1, 1)
    for some in (prediction, OUTPUT.rescale(prediction, scale * ones, shift * ones)):
        values = OUTPUT.values(some)
        assert values.isfinite().all()
        assert (values.diff(dim=-1) >= 0).all()
        assert torch.equal(values[..., 4], OUTPUT.point(some))
        between = OUTPUT.quantiles(some.double(), tuple(np.linspace(0.025, 0.975, 39)))
        assert (between.diff(dim=-1) >= 0).all()


def test_loss_is_scikit_learns_pinball_loss():
    prediction, future = torch.randn(4, 6, 2, 9), 3 * torch.randn(4, 6, 2)
    values = OUTPUT.values(prediction).numpy()
    expected = np.mean([
        mean_pinball_loss(future.numpy().ravel(), values[..., k].ravel(), alpha=level)
        for k, level in enumerate(DEFAULT_QUANTILES)
    ])  # fmt: skip
    assert OUTPUT.loss(prediction, Batch(future=future)).item() == pytest.approx(expected, rel=1e-5)


def test_equal_numbers_are_the_quantiles_of_a_normal_distribution():
    one = math.log(math.e - 1)  # whose softplus is 1
    values = OUTPUT.values(torch.tensor([5.0] + [one] * 8))
    np.testing.assert_allclose(values, stats.norm(5, 1).ppf(DEFAULT_QUANTILES), rtol=1e-5)


def test_rescale_is_that_of_every_quantile():
    prediction, shift = torch.randn(3, 5, 2, 9), torch.randn(3, 1, 2)
    scale = torch.tensor([0.01, 1.0, 50.0])[:, None, None].expand(3, 1, 2)
    got = OUTPUT.values(OUTPUT.rescale(prediction, scale, shift))
    torch.testing.assert_close(
        got, OUTPUT.values(prediction) * scale[..., None] + shift[..., None], atol=1e-5, rtol=1e-4
    )


def test_what_was_trained_comes_back_and_between_lies_a_line():
    output = Quantiles((0.1, 0.5, 0.9))
    prediction = torch.tensor([[[[0.0, 1.0, -1.0]]]], dtype=torch.float64)
    low, middle, high = output.values(prediction)[0, 0, 0].tolist()
    found = output.quantiles(prediction, (0.1, 0.2, 0.5, 0.6, 0.9))[0, 0, 0]
    expected = [low, low + (middle - low) / 4, middle, middle + (high - middle) / 4, high]
    assert found.tolist() == pytest.approx(expected)


def test_beyond_the_outermost_it_says_what_to_train():
    with pytest.raises(
        UsageError, match=r"from 0\.1 to 0\.9, and 0\.025, 0\.975 lies beyond.*--train\.quantiles 0\.025"
    ) as fault:
        Quantiles((0.1, 0.5, 0.9)).quantiles(torch.zeros(1, 1, 1, 3), (0.025, 0.5, 0.975))
    assert "\n" not in str(fault.value)


def test_draws_have_the_quantiles_and_tails_that_go_on():
    output, prediction = Quantiles((0.1, 0.25, 0.5, 0.75, 0.9)), torch.tensor([1.0, 0.3, -0.4, 0.8, -1.0])
    draws = output.sample(prediction.expand(1, 40000, 1, 5)).flatten().numpy()
    values = output.values(prediction).numpy()
    for level, value in zip(output.levels, values, strict=True):
        assert np.mean(draws <= value) == pytest.approx(level, abs=0.012)
    for beyond, slope in (
        (values[0] - draws[draws < values[0]], (values[1] - values[0]) / 0.15),
        (draws[draws > values[-1]] - values[-1], (values[-1] - values[-2]) / 0.15),
    ):
        assert stats.kstest(beyond, stats.expon(scale=0.1 * slope).cdf).pvalue > 0.001


def test_quantiles_on_one_side_only_say_nothing_of_the_other():
    output = Quantiles((0.5, 0.9))
    prediction = torch.zeros(1, 1, 1, 2)
    assert output.quantiles(prediction, (0.5, 0.9))[0, 0, 0, 0] == 0.0
    with pytest.raises(UsageError, match=r"paths are drawn from quantiles on both sides of 0\.5"):
        output.sample(prediction)
    median = Quantiles((0.5,))
    assert median.quantiles(torch.ones(1, 1, 1, 1), (0.5,)).item() == 1.0


@pytest.mark.parametrize("levels", [(0.1, 0.9), (0.5, 0.1), (0.0, 0.5), (0.5, 1.0), (0.5, 0.5)])
def test_other_levels_are_refused(levels):
    with pytest.raises(PluginError, match="need ascending probabilities in"):
        Quantiles(levels)


def test_levels_of_the_options_always_have_the_median():
    assert TrainConfig(output="quantiles", quantiles=(0.9, 0.1)).quantile_levels() == (0.1, 0.5, 0.9)
    assert TrainConfig(output="quantiles").quantile_levels() == DEFAULT_QUANTILES
    assert TrainConfig().quantile_levels() == ()
