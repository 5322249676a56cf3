"""Averages of forecasts: of what outputs say, and the weights that suit errors."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.stats import nbinom, norm

from tsformer import fitting
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.windows import Windows
from tsformer.ensemble import FORECASTS_FOR_EQUAL, independent, shrunk, simplex_weights
from tsformer.errors import PluginError
from tsformer.held_out import backcast
from tsformer.nn.averaging import averaged
from tsformer.nn.outputs import OUTPUTS, build_output

PROBABILITIES = (0.025, 0.1, 0.5, 0.9, 0.975)


def outputs():
    return [build_output(name, quantiles=PROBABILITIES if name == "quantiles" else ()) for name in OUTPUTS]


def drawn(output, members=3, spread=2.0):
    generator = torch.Generator().manual_seed(0)
    return [spread * torch.randn(2, 4, 3, output.outputs, generator=generator) for _ in range(members)]


WEIGHTS = torch.tensor([0.5, 0.3, 0.2])


@pytest.mark.parametrize("output", outputs(), ids=lambda output: output.name)
def test_the_point_is_the_mean_of_points(output):
    predictions = drawn(output)
    wanted = sum(weight * output.point(prediction) for weight, prediction in zip(WEIGHTS, predictions, strict=True))
    torch.testing.assert_close(output.point(averaged(output, predictions, WEIGHTS)), wanted)


@pytest.mark.parametrize("output", outputs(), ids=lambda output: output.name)
def test_of_equal_predictions_nothing_changes(output):
    (prediction,) = drawn(output, 1, spread=1.0)
    mean = averaged(output, [prediction] * 3, WEIGHTS)
    torch.testing.assert_close(mean, prediction, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(averaged(output, [prediction], torch.ones(1)), prediction, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["quantiles", "normal"])
def test_quantiles_are_averaged(name):
    output = build_output(name, quantiles=PROBABILITIES if name == "quantiles" else ())
    predictions = drawn(output)
    each = [output.quantiles(prediction, PROBABILITIES) for prediction in predictions]
    wanted = sum(weight * quantiles for weight, quantiles in zip(WEIGHTS, each, strict=True))
    found = output.quantiles(averaged(output, predictions, WEIGHTS), PROBABILITIES)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    assert bool((found.diff(dim=-1) >= 0).all())


def test_students_t():
    output = build_output("student_t")
    predictions = drawn(output)
    for prediction in predictions[1:]:
        prediction[..., 2] = predictions[0][..., 2]
    each = [output.quantiles(prediction, PROBABILITIES) for prediction in predictions]
    wanted = sum(weight * quantiles for weight, quantiles in zip(WEIGHTS, each, strict=True))
    found = averaged(output, predictions, WEIGHTS)
    torch.testing.assert_close(output.quantiles(found, PROBABILITIES), wanted, rtol=1e-3, atol=1e-3)
    heavy, light = (torch.tensor([[[[0.0, 0.0, raw]]]]) for raw in (np.log(np.expm1(2.0)), 40.0))
    freedom = output.parameters(averaged(output, [heavy, light], torch.tensor([0.5, 0.5])))[2]
    assert float(freedom) == pytest.approx(2 / (1 / 4 + 1 / 42), rel=1e-4)


def test_negative_binomial_has_the_mean_of_means_and_of_deviations():
    output = build_output("negative_binomial")
    predictions = [torch.tensor([[[[location, raw]]]]) for location, raw in ((9.0, -1.0), (30.0, 0.5))]
    found = averaged(output, predictions, torch.tensor([0.25, 0.75]))

    def moments(prediction):
        mean, dispersion = (float(part) for part in output.parameters(prediction))
        return nbinom.stats(1 / dispersion, 1 / (1 + dispersion * mean), moments="mv")

    (first, first_variance), (second, second_variance), (mean, variance) = map(moments, (*predictions, found))
    assert mean == pytest.approx(0.25 * first + 0.75 * second, rel=1e-5)
    assert variance**0.5 == pytest.approx(0.25 * first_variance**0.5 + 0.75 * second_variance**0.5, rel=1e-5)


def test_far_tails_stay_finite():
    output = build_output("normal")
    predictions = [torch.tensor([[[[0.0, raw]]]], requires_grad=True) for raw in (-200.0, -90.0, 50.0)]
    mean = averaged(output, predictions, WEIGHTS)
    mean.sum().backward()
    assert bool(torch.isfinite(mean).all())
    assert all(bool(torch.isfinite(prediction.grad).all()) for prediction in predictions)
    assert float(output.quantiles(mean.detach(), [0.9])) == pytest.approx(0.2 * 50 * norm.ppf(0.9), rel=1e-4)


def test_an_unknown_output():
    class Odd:
        name = "odd"

    with pytest.raises(PluginError, match="output odd cannot be averaged"):
        averaged(Odd(), drawn(build_output("normal")), WEIGHTS)


def least(products):
    """The same by another program: sequential quadratic programming on the simplex."""
    members = len(products)
    found = minimize(
        lambda w: w @ products @ w / np.trace(products),
        np.full(members, 1 / members),
        jac=lambda w: 2 * products @ w / np.trace(products),
        bounds=[(0, 1)] * members,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return found.x


@pytest.mark.parametrize("seed", range(6))
def test_weights_are_those_of_least_squares_on_the_simplex(seed):
    generator = np.random.default_rng(seed)
    shared, own = generator.normal(size=(50, 1)), generator.normal(size=(50, 4)) * generator.uniform(0.2, 3, 4)
    errors = 10.0 ** (seed - 3) * (shared + own)
    weights = simplex_weights(errors.T @ errors)
    assert weights.sum() == pytest.approx(1)
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights, least(errors.T @ errors), atol=2e-5)


def test_weights_of_special_errors():
    assert simplex_weights(np.diag([1.0, 3.0])).tolist() == pytest.approx([0.75, 0.25])
    assert simplex_weights(np.array([[1.0, 2.0], [2.0, 5.0]])).tolist() == pytest.approx([1, 0])
    assert simplex_weights(np.zeros((3, 3))).tolist() == pytest.approx([1 / 3] * 3)
    assert simplex_weights(np.diag([0.0, 1.0])).tolist() == pytest.approx([1, 0])


def test_few_forecasts_leave_weights_near_equal_ones():
    weights = np.array([1.0, 0.0])
    assert shrunk(weights, 2 * FORECASTS_FOR_EQUAL).tolist() == pytest.approx([0.75, 0.25])
    assert shrunk(weights, 1e9).tolist() == pytest.approx([1, 0], abs=1e-6)
    assert shrunk(weights, 0).tolist() == [0.5, 0.5]


def test_forecasts_that_do_not_overlap():
    def windows(origins, series, horizon):
        origins, series = torch.tensor(origins), torch.tensor(series)
        return Windows(torch.zeros(99, 1), torch.zeros_like(origins), origins, series, 5, horizon, 1)

    assert independent(windows([20, 24, 28], [0, 0, 0], 4)) == 3
    assert independent(windows([20, 21, 22, 23, 50], [0, 0, 0, 0, 1], 4)) == 1.75 + 1


def test_weights_of_an_ensemble_follow_from_its_validation_errors(make_panel):
    step = np.arange(300)
    noise = np.random.default_rng(0).normal(size=(300, 2))
    panel = make_panel([np.stack([np.sin(step / 4), 1e3 * np.cos(step / 4)], axis=1) + noise * [0.5, 500]])
    layer = {
        "model": {"name": "ensemble", "members": ["mean lookback=5", "last_value", "drift"], "weights": "validation"},
        "window": {"lookback": 24, "horizon": 4, "season": 12},
        "train": {"eval_windows": 10_000},
    }
    found = fitting.learn(resolve([Layer(layer)], needs_data=False), panel)
    module, prepared = found.fitted.module, found.prepared
    own = module.weights.clone()
    on_validation = type(prepared)(**{**vars(prepared), "test": prepared.validation})
    paths = []
    for place in range(3):
        module.keep([place])
        paths.append(backcast(found.fitted, on_validation))
    rows = prepared.validation.origins.numpy()[:, None] + np.arange(4)
    truth = panel.values[rows]
    errors = np.stack(paths) - truth
    each = [np.einsum("ibh,jbh->ij", errors[..., target], errors[..., target]) for target in range(2)]
    products = sum(product / np.trace(product) for product in each)
    forecasts = 1 + (len(truth) - 1) / 4
    share = forecasts / (forecasts + 3 * FORECASTS_FOR_EQUAL)
    wanted = share * least(products) + (1 - share) / 3
    np.testing.assert_allclose(own, wanted, atol=1e-4)
    assert found.history.evaluations[-1]["weights"] == pytest.approx(own.tolist(), abs=1e-5)


def test_named_weights(make_panel):
    panel = make_panel([np.sin(np.arange(120) / 4)])
    layer = {
        "model": {"name": "ensemble", "members": ["mean weight=3", "last_value", "drift weight=0.5"]},
        "window": {"lookback": 24, "horizon": 4, "season": 12},
    }
    found = fitting.learn(resolve([Layer(layer)], needs_data=False), panel)
    assert found.fitted.module.weights.tolist() == pytest.approx([3 / 4.5, 1 / 4.5, 0.5 / 4.5])
    assert found.history.steps == 0
