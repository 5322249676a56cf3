"""ridge: against scikit-learn on the same rows, and what makes it safe."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LinearRegression, Ridge
from tsformer_plugins.models import ridge

import tsformer
from tsformer.data.windows import cut_windows
from tsformer.errors import UsageError
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


def test_missing_outputs_leave_the_other_steps_as_they_are():
    """Moments of a step are those of the windows in which it is real, by pandas' pairwise covariances."""
    problem = replace(PROBLEM, targets=1)
    generator = np.random.default_rng(2)
    train = windows(problem=problem)
    mask = torch.from_numpy(generator.uniform(size=train.values.shape) > 0.3)
    mask[:, 1:] = True
    holes = replace(train, mask=mask)
    module = fitted(holes, holes, problem, penalty=0.01, normalise="none")
    batch = holes.batch()
    assert 0.2 < float((~batch.future_mask).float().mean()) < 0.4
    some = batch.future_mask.any(1)[:, 0]
    past = torch.where(batch.past_mask, batch.past, torch.nan)[some].numpy()
    x = pd.concat([pd.DataFrame(row).ffill().fillna(0.0).T.stack() for row in past], axis=1).T.to_numpy()
    y = torch.where(batch.future_mask, batch.future, torch.nan)[some, :, 0].numpy()
    centred = x - x.mean(0)
    gram = centred.T @ centred / len(x)
    gram += 0.01 * np.trace(gram) / len(gram) * np.eye(len(gram))
    for step in range(problem.horizon):
        real = ~np.isnan(y[:, step])
        covariance = np.cov(x[real], y[real, step], rowvar=False, ddof=0)[-1, :-1]
        weight = np.linalg.solve(gram, covariance)
        np.testing.assert_allclose(module.weight[step].numpy(), weight, atol=1e-5)
        assert float(module.bias[step]) == pytest.approx(y[real, step].mean() - weight @ x[real].mean(0), abs=1e-5)


def test_a_window_of_whose_future_nothing_is_there_is_left_out():
    train = windows()
    whole = fitted(train, train, penalty=0.1)

    class Holes:
        """The same windows, and before them some without a future."""

        def batches(self, size):
            spoilt = train.batch(torch.arange(5))
            mask = torch.zeros_like(spoilt.future_mask)
            yield replace(spoilt, future=torch.full_like(spoilt.future, torch.nan), future_mask=mask)
            yield from train.batches(size)

    again = fitted(Holes(), train, penalty=0.1)
    assert torch.allclose(again.weight, whole.weight, atol=1e-7)


def test_covariates_are_inputs_of_scikit_learns_regression():
    """A step depends on what is known of it: y_t = 2 k_t + noise, and the series' own sign."""
    problem = Problem(lookback=6, horizon=3, targets=1, future_covariates=1, static_cardinalities=(3,))
    generator = np.random.default_rng(4)
    rows = 150
    known = generator.normal(size=(2 * rows, 1))
    sign = np.repeat([1.0, -1.0], rows)[:, None]
    values = np.concatenate([2 * known + sign + generator.normal(0, 0.1, (2 * rows, 1)), known], axis=1)
    train = cut_windows(
        torch.from_numpy(values).float(),
        np.array([0, rows, 2 * rows]),
        np.full(2, 6),
        np.full(2, rows),
        lookback=6,
        horizon=3,
        targets=1,
        known=1,
        static_codes=torch.tensor([[1], [2]]),
    )
    module = fitted(train, train, problem, penalty=1e-3, normalise="none")
    batch = train.batch()
    codes = np.eye(2)[batch.static_codes[:, 0].numpy() - 1]
    x = np.concatenate([batch.past[..., 0], batch.past_known[..., 0], batch.future_known[..., 0], codes], axis=1)
    variance = x.var(0).mean()
    theirs = Ridge(alpha=1e-3 * variance * len(x)).fit(x, batch.future[..., 0].numpy())
    np.testing.assert_allclose(module.weight.numpy(), theirs.coef_, atol=2e-5)
    np.testing.assert_allclose(module.weight[:, 12:15].numpy(), 2 * np.eye(3), atol=0.05)
    assert squared_error(module, train) < 0.02


def test_what_it_refuses():
    with pytest.raises(UsageError, match="'ridge' reads no texts"):
        ridge.Ridge(ridge.RidgeConfig(), replace(PROBLEM, vocabulary=9, text_length=2))


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
