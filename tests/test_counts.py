"""Counts: the negative binomial against scipy, and data that are no counts."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from tsformer import fitting
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.counts import check_counts
from tsformer.data.windows import Batch
from tsformer.errors import DataError, UsageError
from tsformer.nn.counts import NegativeBinomial

OUTPUT = NegativeBinomial()


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def theirs(prediction):
    """scipy's distribution of a prediction, by number of successes and their probability."""
    mean, dispersion = (part.double().numpy() for part in OUTPUT.parameters(prediction.double()))
    return stats.nbinom(1 / dispersion, 1 / (1 + dispersion * mean))


def test_loss_is_scipys_likelihood_for_small_and_large_counts():
    prediction = torch.randn(200, 3, 1, 2) * torch.tensor([3.0, 2.0])
    prediction[50:100, ..., 0] += 1e5
    prediction[100:, ..., 1] -= 8.0  # next to a Poisson distribution
    future = torch.from_numpy(theirs(prediction).rvs(random_state=0)).float()
    expected = -theirs(prediction).logpmf(future.numpy()).mean()
    assert OUTPUT.loss(prediction, Batch(future=future)).item() == pytest.approx(expected, rel=1e-5)


def test_with_next_to_no_dispersion_it_is_a_poisson_distribution():
    prediction = torch.tensor([[[[3.0, -40.0]]]])
    mean = OUTPUT.point(prediction).item()
    for count in (0.0, 3.0, 9.0):
        loss = OUTPUT.loss(prediction, Batch(future=torch.full((1, 1, 1), count))).item()
        assert loss == pytest.approx(-stats.poisson(mean).logpmf(count), rel=1e-5)


def test_quantiles_are_scipys():
    prediction, levels = 4 * torch.randn(300, 4, 1, 2, dtype=torch.float64), (0.001, 0.025, 0.5, 0.9, 0.995)
    prediction[:100, ..., 0] += 300.0
    expected = theirs(prediction[..., None, :]).ppf(levels)
    assert np.array_equal(OUTPUT.quantiles(prediction, levels).numpy(), expected)


def test_mean_and_variance_of_draws():
    prediction = torch.tensor([5.0, -1.0]).expand(1, 40000, 1, 2)
    draws, expected = OUTPUT.sample(prediction), theirs(prediction[0, 0, 0])
    assert torch.equal(draws, draws.round())
    assert draws.mean().item() == pytest.approx(expected.mean(), rel=0.02)
    assert draws.var().item() == pytest.approx(expected.var(), rel=0.05)


def test_rescale_moves_the_mean_and_leaves_the_dispersion():
    prediction = torch.tensor([[[[2.0, 0.3]]]])
    mean, dispersion = OUTPUT.parameters(OUTPUT.rescale(prediction, torch.full((1, 1, 1), 50.0), torch.ones(1, 1, 1)))
    assert mean.item() == pytest.approx(101.0)
    assert dispersion.item() == pytest.approx(OUTPUT.parameters(prediction)[1].item())
    far_below = OUTPUT.rescale(prediction, torch.full((1, 1, 1), 50.0), torch.full((1, 1, 1), -300.0))
    assert OUTPUT.loss(far_below, Batch(future=torch.full((1, 1, 1), 4.0))).isfinite()


def settings(model="ridge", **sections):
    window = {"lookback": 14, "horizon": 4, "season": 7}
    train = {"output": "negative_binomial", "max_steps": 5}
    return resolve([Layer({"model": model, "window": window, "train": train, **sections})], needs_data=False)


SMALL = {"name": "transformer", "d_model": 8, "n_heads": 2, "d_ff": 8, "encoder_layers": 1}
MODELS = {
    "ridge": "ridge",
    "last_value": "last_value",
    "linear": {"name": "linear", "variant": "dlinear"},
    "not normalised": {**SMALL, "revin": False},
    "autoregressive": {**SMALL, "decoder": "autoregressive"},
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_large_counts_zeros_and_few_events_are_learned_from(make_panel, model):
    generator = np.random.default_rng(0)
    rare = np.where(generator.random(90) < 0.1, generator.poisson(2, 90), 0)
    panel = make_panel([generator.poisson(1e5, 90), np.zeros(90), rare])
    result = fitting.fit(settings(model), panel)
    assert np.isfinite(result.forecast).all()
    assert (result.forecast >= 0).all()
    assert all(math.isfinite(record["validation_loss"]) for record in result.history.evaluations)


def test_counts_stay_as_they_are_and_covariates_are_scaled(make_panel):
    values = np.stack([np.random.default_rng(0).poisson(9, 90), 1e4 + 100.0 * np.arange(90)], axis=1)
    panel = make_panel([values], names=("y", "x"))
    schema = panel.schema
    panel = type(panel)(
        panel.values, panel.offsets, panel.times, panel.ids,
        type(schema)(targets=("y",), past_covariates=("x",), time="ds", frequency="D"),
    )  # fmt: skip
    prepared = fitting.make_ready(settings(), panel).prepared
    assert np.array_equal(prepared.data.values[:, 0], values[:, 0])
    assert abs(prepared.data.values[:62, 1].mean()) < 0.5


@pytest.mark.parametrize(
    ("sections", "named"),
    [
        ({"scale": "robust"}, "--scale robust would"),
        ({"scale": "standard"}, "--scale standard would"),
        ({"transform": ["log", "difference"]}, "--transform log and --transform difference would"),
    ],
)
def test_what_would_change_counts_is_refused(sections, named):
    with pytest.raises(UsageError, match=f"distribution of the counts as they are, and {named} change them") as fault:
        settings(**sections)
    assert "\n" not in str(fault.value)


def test_a_saved_configuration_is_taken_again():
    once = settings()
    again = resolve([Layer(once.to_json(), "config.json")], needs_data=False)
    assert again.to_json() == once.to_json()
    assert settings(scale="none").scale is None


@pytest.mark.parametrize("value", [2.5, -1.0, 2.0**25])
def test_values_that_are_no_counts_are_named(make_panel, value):
    values = np.ones((20, 2))
    values[[4, 7], 1] = value
    panel = make_panel([np.ones((9, 2)), values])
    message = (
        r"series 's1': column 'y1' has 2 value\(s\) that are no whole numbers .* at 2020-01-05 \(row 5 of the series\)"
    )
    with pytest.raises(DataError, match=message) as fault:
        check_counts(panel)
    assert (fault.value.finding.column, fault.value.finding.count) == ("y1", 2)


def test_missing_counts_are_no_fault(make_panel):
    values = np.ones(20)
    values[3] = np.nan
    check_counts(make_panel([values], masked=True))
