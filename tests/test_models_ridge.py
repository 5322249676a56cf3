"""ridge: against scikit-learn on the same rows, and what makes it safe."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression, Ridge
from tsformer_plugins.models import ridge

import tsformer
from tsformer.data.windows import cut_windows
from tsformer.errors import PluginError, UsageError
from tsformer.plugin import Problem

PROBLEM = Problem(lookback=8, horizon=3, targets=2, past_covariates=1)


def windows(rows=120, problem=PROBLEM, seed=0):
    """Two series of waves with noise, one far louder than the other."""
    generator = np.random.default_rng(seed)
    wave = np.sin(np.arange(rows)[:, None] / 3 + np.arange(problem.channels))
    noise = generator.normal(0, 0.3, (2, rows, problem.channels))
    values = np.concatenate([wave + noise[0], 5 * (wave + noise[1]) + 2])
    return cut_windows(
        torch.from_numpy(values).float(),
        np.array([0, rows, 2 * rows]),
        np.full(2, problem.lookback),
        np.full(2, rows),
        lookback=problem.lookback,
        horizon=problem.horizon,
        targets=problem.targets,
    )


def fitted(train, validation, problem=PROBLEM, **options):
    module = ridge.Ridge(ridge.RidgeConfig(**options), problem)
    ridge.fit(module, train, validation)
    return module


def table(some, level):
    """The rows that the regression sees, by numpy: inputs, outputs, weights, and what undoes the level."""
    batch = some.batch()
    past, future = batch.past.double().numpy(), batch.future.double().numpy()
    shift, scale = 0 * past[:, :1], 1 + 0 * past[:, :1]
    if level == "last":
        shift = past[:, -1:]
    elif level == "standard":
        shift, scale = past.mean(1, keepdims=True), np.sqrt(past.var(1, keepdims=True) + 1e-5)
    past, targets = (past - shift) / scale, future.shape[-1]
    own, covariates = past[..., :targets], past[..., targets:]
    x = [np.concatenate([own[:, :, i], *np.moveaxis(covariates, 2, 0)], axis=1) for i in range(targets)]
    shift, scale = shift[..., :targets], scale[..., :targets]
    y = np.moveaxis((future - shift) / scale, 2, 0).reshape(-1, future.shape[1])
    return np.concatenate(x), y, np.moveaxis(scale[:, 0] ** 2, 1, 0).ravel(), (scale, shift)


@pytest.mark.parametrize("level", ["standard", "last", "none"])
@pytest.mark.parametrize("penalty", [0.0, 0.01, 1.0])
def test_weights_are_those_of_scikit_learn(level, penalty, monkeypatch):
    monkeypatch.setattr(ridge, "NUMBERS_AT_ONCE", 500)  # several chunks
    problem = replace(PROBLEM, past_covariates=0) if penalty == 0.0 else PROBLEM
    train = windows(problem=problem)
    module = fitted(train, train, problem, normalise=level, penalty=penalty)
    x, y, weight, (scale, shift) = table(train, level)
    centred = x - np.average(x, axis=0, weights=weight)
    variance = np.average(centred**2, axis=0, weights=weight).mean()
    theirs = Ridge(alpha=penalty * variance * weight.sum()) if penalty else LinearRegression()
    theirs.fit(x, y, sample_weight=weight)
    if (level, penalty) != ("standard", 0.0):  # where inputs add up to 0, weights are not unique
        np.testing.assert_allclose(module.weight.numpy(), theirs.coef_, atol=2e-5)
        np.testing.assert_allclose(module.bias.numpy(), theirs.intercept_, atol=2e-5)
    assert module.weight.abs().max() < 2
    prediction = np.moveaxis(theirs.predict(x).reshape(problem.targets, len(train), -1), 0, 2) * scale + shift
    np.testing.assert_allclose(module(train.batch())[..., 0].numpy(), prediction, atol=1e-4)


def squared_error(module, some):
    batch = some.batch()
    return float((module(batch)[..., 0] - batch.future).square().mean())


def test_the_penalty_is_the_best_on_validation():
    train, validation = windows(40), windows(200, seed=1)
    chosen = fitted(train, validation)
    errors = {p: squared_error(fitted(train, validation, penalty=p), validation) for p in ridge.PENALTIES}
    assert float(chosen.penalty) == pytest.approx(min(errors, key=errors.get))
    assert ridge.PENALTIES[0] < float(chosen.penalty) < ridge.PENALTIES[-1]
    assert squared_error(chosen, validation) == pytest.approx(min(errors.values()), rel=1e-6)


def test_more_inputs_than_windows():
    problem = Problem(lookback=60, horizon=3, targets=1)
    train, validation = windows(70, problem), windows(200, problem, seed=1)
    assert len(train) == 16
    for penalty in (0.0, 1e-9, None):
        module = fitted(train, validation, problem, penalty=penalty)
        assert module.weight.isfinite().all()
        assert module.weight.abs().max() < 2
    # without a penalty, what numpy's smallest solution is
    x, y, _, _ = table(train, "last")
    smallest = np.linalg.pinv(x - x.mean(0)) @ (y - y.mean(0))
    np.testing.assert_allclose(fitted(train, train, problem, penalty=0.0).weight.numpy(), smallest.T, atol=1e-5)


def test_constant_series_are_forecast_as_they_are():
    problem = Problem(lookback=8, horizon=3, targets=1)
    train = replace(windows(40, problem), values=torch.full((80, 1), 3.5))
    module = fitted(train, train, problem)
    assert torch.equal(module(train.batch()), torch.full((60, 3, 1, 1), 3.5))


def test_a_window_without_its_whole_future_is_left_out():
    train = windows()
    whole = fitted(train, train, penalty=0.1)

    class Holes:
        """The same windows, and before them some with a hole in the future of every target."""

        def batches(self, size):
            spoilt = train.batch(torch.arange(5))
            mask = spoilt.future_mask.clone()
            mask[:, 1] = False
            yield replace(spoilt, future=torch.where(mask, spoilt.future, torch.nan), future_mask=mask)
            yield from train.batches(size)

    again = fitted(Holes(), train, penalty=0.1)
    assert torch.allclose(again.weight, whole.weight, atol=1e-7)


def test_what_it_refuses():
    with pytest.raises(UsageError, match="points only"):
        ridge.Ridge(ridge.RidgeConfig(), replace(PROBLEM, output="normal", outputs=2))
    with pytest.raises(PluginError, match="'ridge' takes neither future nor static covariates"):
        ridge.Ridge(ridge.RidgeConfig(), replace(PROBLEM, future_covariates=1))


def test_a_run_knows_its_steps_and_parameters_and_the_horizon_is_fixed(make_panel, in_tmp):
    panel = make_panel([np.sin(np.arange(200.0) / 3) + np.random.default_rng(0).normal(0, 0.1, 200)])
    forecaster = tsformer.Forecaster("ridge", horizon=4, lookback=10).fit(panel)
    assert forecaster.metrics_["test"]["mae"] < 0.5 * forecaster.metrics_["baselines"]["last_value"]["mae"]
    (record,) = forecaster.history_.evaluations
    assert record["step"] == 0
    assert 0 < record["train_loss"] < 0.1
    assert 0 < record["validation_loss"] < 0.1
    again = tsformer.load(forecaster.save("run"))
    assert again.predict(panel).equals(forecaster.predict())
    with pytest.raises(UsageError, match="cannot predict 5"):
        again.predict(panel, horizon=5)
    assert sum(p.numel() for p in again.fitted_.module.parameters()) == 4 * 10 + 4
