"""What is missing is hidden from every model: whatever stands behind a mask, loss, gradients and forecast stay."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.fitting import fit, make_ready
from tsformer.plugin import Task

NETWORK = {"d_model": 8, "n_heads": 2, "d_ff": 8, "encoder_layers": 1}
MODELS = {
    "transformer": NETWORK,
    "tcn_transformer": {"d_model": 8, "n_heads": 2, "d_ff": 8},
    "lstm": {},
    "tcn": {},
    "linear": {},
    "ridge": {},
    "last_value": {},
    "seasonal_naive": {},
    "drift": {},
}


def settings(model, transforms=(), **window):
    values = {"model": {"name": model, **MODELS[model]}, "transform": list(transforms), "train": {"max_steps": 2}}
    values["window"] = {"lookback": 12, "horizon": 4, "season": 4, **window}
    return resolve([Layer(values)], needs_data=False)


@pytest.fixture
def panel(make_panel):
    return holed(make_panel)


@pytest.fixture
def with_covariates(make_panel):
    """The same with every kind of covariate: past and future ones with holes of their own, static ones, a calendar."""
    bare = holed(make_panel)
    rng = np.random.default_rng(1)
    more = rng.normal(size=(len(bare.values), 2))
    more[rng.random(more.shape) < 0.25] = np.nan
    names = {"past_covariates": ("rain",), "future_covariates": ("promo",), "static_covariates": ("size", "region")}
    return replace(
        bare,
        values=np.hstack([bare.values, more]),
        schema=replace(bare.schema, **names, calendar=("dayofweek",)),
        static=pd.DataFrame({"size": [1.0, np.nan], "region": ["north", "south"]}),
    )


def holed(make_panel):
    """Two targets that lack different values, and a gap in time."""
    rng = np.random.default_rng(0)
    series = [np.sin(np.arange(rows) / 2)[:, None] + rng.normal(0, 0.1, (rows, 2)) + 3 for rows in (100, 80)]
    for values in series:
        values[rng.random(values.shape) < 0.25] = np.nan
    series[0][30:42, 0] = np.nan  # a whole lookback of one target
    return make_panel(series, masked=True, breaks=np.array([55]))


def outcome(module, objective, batch, truth):
    module.zero_grad()
    torch.manual_seed(0)
    prediction = module(batch, truth=truth)
    loss = objective.loss(prediction, batch)
    trained = [p for p in module.parameters() if p.requires_grad]
    if trained:
        loss.backward()
    return [prediction.detach(), loss.detach(), *(p.grad for p in trained if p.grad is not None)]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("behind", [float("nan"), 1e30])
@pytest.mark.parametrize("given", ["panel", "with_covariates"])
def test_nothing_behind_a_mask_matters(given, model, behind, request):
    ready = make_ready(settings(model), request.getfixturevalue(given))
    parts, module = ready.prepared.parts, ready.fitted.module.train()
    assert parts.problem.future_covariates == (3 if given == "with_covariates" else 0)  # two of the calendar
    windows = parts.train
    assert not windows.mask[:, 0].equal(windows.mask[:, 1])
    batch = windows.batch()
    assert (batch.past_mask[..., 0] != batch.past_mask[..., 1]).any()
    spoilt = replace(
        batch,
        past=torch.where(batch.past_mask, batch.past, behind),
        future=torch.where(batch.future_mask, batch.future, behind),
    )
    filled = replace(windows, values=torch.where(windows.mask, windows.values, behind)).batch()
    for truth in (0.0, 1.0):
        wanted = outcome(module, parts.objective, batch, truth)
        assert all(bool(torch.isfinite(each).all()) for each in wanted)
        for other in (spoilt, filled):
            found = outcome(module, parts.objective, other, truth)
            assert all(torch.equal(one, two) for one, two in zip(wanted, found, strict=True))


@pytest.mark.parametrize("model", MODELS)
def test_a_fit_with_missing_values_is_scored_on_real_ones(panel, model):
    result = fit(settings(model), panel)
    assert all(np.isfinite(value) for value in result.test.overall.values())
    assert np.isfinite(result.forecast).all()
    assert result.test.values < result.test.overall["windows"] * 4 * 2  # some true values are missing
    naive = result.baselines["last_value"]
    assert naive.overall["mae"] is not None


@pytest.mark.parametrize("transforms", [["log_return"], ["seasonal_difference", "difference"], ["boxcox", "robust"]])
def test_with_transforms_too(panel, transforms):
    result = fit(settings("ridge", transforms, season=12), panel)
    assert np.isfinite(result.forecast).all()
    naive = result.baselines["last_value"]
    assert result.test.overall["mae"] < 0.9 * naive.overall["mae"]


def test_what_is_missing_is_missing_in_the_score(make_panel):
    """A test part of which every second value is missing: the score is that of the others by hand."""
    values = np.arange(100.0)
    values[81::2] = np.nan
    result = fit(settings("last_value", season=1), make_panel([values], masked=True))
    truth = values[80:]
    errors = []
    for origin in range(80, 97):
        last = values[:origin][~np.isnan(values[:origin])][-1]
        errors += [abs(last - v) for v in values[origin : origin + 4] if not np.isnan(v)]
    assert np.isnan(truth).sum() == 10
    assert result.test.overall["mae"] == pytest.approx(np.mean(errors), rel=1e-5)
    assert result.baselines["last_value"].overall["mae"] == pytest.approx(np.mean(errors))


def test_a_naive_forecast_that_starts_after_a_gap_is_told(make_panel):
    panel = make_panel([np.random.default_rng(0).normal(size=100)], breaks=np.array([82]))
    result = fit(settings("last_value", lookback=3, horizon=2, season=6), panel)
    assert result.baselines["seasonal_naive"].left_out == 2 * 3  # origins 85, 86 and 87
    assert any("seasonal_naive has no value to repeat for 6 of 30 values" in line for line in result.cautions())


def test_pretraining_hides_real_values_only_and_learns_from_them(panel):
    chosen = replace(settings("transformer"), task=Task.PRETRAIN)
    ready = make_ready(chosen, panel)
    parts, module = ready.prepared.parts, ready.fitted.module
    batch = parts.validation.batch()
    assert not (batch.hidden & ~batch.past_mask.any(-1)).any()
    spoilt = replace(batch, past=torch.where(batch.past_mask, batch.past, float("nan")))
    wanted, found = (outcome(module, parts.objective, each, 0.0) for each in (batch, spoilt))
    assert torch.isfinite(wanted[1])
    assert all(torch.equal(one, two) for one, two in zip(wanted[1:], found[1:], strict=True))
