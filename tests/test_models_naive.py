"""last_value, seasonal_naive, drift: against arithmetic by hand, and against the baselines in the user's own units."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tsformer_plugins.models.drift import Drift, DriftConfig
from tsformer_plugins.models.last_value import LastValue, LastValueConfig
from tsformer_plugins.models.seasonal_naive import SeasonalNaive, SeasonalNaiveConfig

import tsformer as api
from tsformer import fitting
from tsformer.cli.console import cautions
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.windows import Batch
from tsformer.evaluation.baselines import BASELINES
from tsformer.forecast import forecast
from tsformer.plugin import Problem
from tsformer.preparation import origin_rows

NAIVE = {
    "last_value": (LastValue, LastValueConfig()),
    "seasonal_naive": (SeasonalNaive, SeasonalNaiveConfig()),
    "drift": (Drift, DriftConfig()),
}


def predict(name, past, season=1, horizon=4):
    """Of one target; None is a step without a value, with garbage behind the mask."""
    values = torch.tensor([[[float("nan") if value is None else float(value)] for value in past]])
    mask = ~values.isnan()
    build, config = NAIVE[name]
    module = build(config, Problem(lookback=len(past), horizon=horizon, targets=1, season=season))
    return module(Batch(past=values, past_mask=mask))[0, :, 0, 0].tolist()


@pytest.mark.parametrize(
    ("name", "past", "season", "forecast"),
    [
        ("last_value", [1, 2, 5], 1, [5, 5, 5, 5]),
        ("last_value", [None, 5, None], 1, [5, 5, 5, 5]),
        ("last_value", [None, None], 1, [0, 0, 0, 0]),
        ("seasonal_naive", [1, 2, 3], 3, [1, 2, 3, 1]),
        ("seasonal_naive", [9, 1, 2, 3], 3, [1, 2, 3, 1]),
        ("seasonal_naive", [7, 1, 2, 8, None, 3], 3, [8, 1, 3, 8]),  # from the season before
        ("seasonal_naive", [None, None, 2, 8, None, 3], 3, [8, 3, 3, 8]),  # from nowhere: the last value
        ("seasonal_naive", [None] * 5, 3, [0, 0, 0, 0]),
        ("seasonal_naive", [4, 6], 1, [6, 6, 6, 6]),
        ("drift", [1, 9, 5], 1, [7, 9, 11, 13]),  # (5 - 1) / 2 a step
        ("drift", [None, 1, 9, 5], 1, [7, 9, 11, 13]),
        ("drift", [1, 5, None], 1, [13, 17, 21, 25]),  # the masked step counts, too
        ("drift", [None, 5], 1, [5, 5, 5, 5]),
        ("drift", [5], 1, [5, 5, 5, 5]),
        ("drift", [None, None], 1, [0, 0, 0, 0]),
    ],
)
def test_by_hand(name, past, season, forecast):
    assert predict(name, past, season) == pytest.approx(forecast)


@pytest.mark.parametrize("name", NAIVE)
def test_targets_are_told_apart_and_covariates_ignored(name):
    past = torch.arange(18.0).view(1, 6, 3) ** 2
    mask = torch.ones_like(past, dtype=torch.bool)
    mask[0, -1, 0] = False
    build, config = NAIVE[name]
    problem = Problem(lookback=6, horizon=3, targets=2, past_covariates=1, season=2)
    both = build(config, problem)(Batch(past=past, past_mask=mask))
    assert both.shape == (1, 3, 2, 1)
    one = replace(problem, targets=1, past_covariates=0)
    for target in range(2):
        part = slice(target, target + 1)
        alone = build(config, one)(Batch(past=past[..., part], past_mask=mask[..., part]))
        assert torch.equal(both[:, :, part], alone)


def settings(model, scale="standard", transforms=(), **window):
    values = {"model": {"name": model}, "scale": {"name": scale}, "transform": list(transforms), "window": window}
    return resolve([Layer(values)], needs_data=False)


@pytest.mark.parametrize("scale", ["standard", "none"])
@pytest.mark.parametrize("name", ["last_value", "seasonal_naive"])
def test_in_the_users_units_they_are_the_baselines(make_panel, name, scale):
    generator = np.random.default_rng(0)
    panel = make_panel([generator.normal(1000, 50, (rows, 2)).cumsum(0) for rows in (90, 120, 70)])
    result = fitting.fit(settings(name, scale, lookback=14, horizon=5, season=7), panel)
    series, origin = result.prepared.test.series.numpy(), origin_rows(result.prepared)
    expected = BASELINES[name](panel, series, origin, 5, 7)
    np.testing.assert_allclose(result.forecast, expected, rtol=2e-6)
    assert result.test.overall["mase"] == pytest.approx(result.baselines[name].overall["mase"], rel=1e-4)


def test_drift_in_the_users_units(make_panel):
    panel = make_panel([np.random.default_rng(0).normal(1000, 50, (90, 2)).cumsum(0)])
    result = fitting.fit(settings("drift", lookback=14, horizon=5, season=7), panel)
    origin = origin_rows(result.prepared)
    last, first = panel.values[origin - 1], panel.values[origin - 14]
    expected = last[:, None] + np.arange(1, 6)[None, :, None] * ((last - first) / 13)[:, None]
    np.testing.assert_allclose(result.forecast, expected, rtol=2e-6)


def test_after_log_return_the_last_value_is_the_last_growth(make_panel):
    panel = make_panel([1.5 ** np.arange(60.0) % 7 + 1])
    result = fitting.fit(settings("last_value", "none", ["log_return"], lookback=4, horizon=3, season=1), panel)
    origin = origin_rows(result.prepared)
    growth = panel.values[origin - 1] / panel.values[origin - 2]
    expected = panel.values[origin - 1][:, None] * growth[:, None] ** np.arange(1, 4)[None, :, None]
    np.testing.assert_allclose(result.forecast, expected, rtol=1e-5)


@pytest.mark.parametrize("name", NAIVE)
def test_a_run_without_weights_is_saved_loaded_and_goes_on_beyond_its_horizon(make_panel, in_tmp, name):
    panel = make_panel([np.random.default_rng(0).normal(1000, 50, (90, 2)).cumsum(0)])
    fitted = api.Forecaster(name, horizon=5, lookback=14, season=7).fit(panel)
    again = api.load(fitted.save("run"))
    assert again.predict(panel).equals(fitted.predict())
    long = again.predict(panel, horizon=20)
    assert long[:5].equals(fitted.predict())
    direct = fitting.fit(settings(name, horizon=20, lookback=14, season=7), panel).fitted
    np.testing.assert_allclose(long[["y0", "y1"]], forecast(direct, panel).values[0], rtol=1e-6)
    manifest = json.loads(Path("run/manifest.json").read_text())
    assert (manifest["status"], manifest["steps"], manifest["best_step"]) == ("complete", 0, 0)
    (line,) = Path("run/metrics.jsonl").read_text().splitlines()
    assert json.loads(line)["step"] == 0
    assert json.loads(line)["learning_rate"] is None


SEASONS = np.tile(np.arange(7.0), 20)
WALK = np.random.default_rng(3).normal(size=140).cumsum()


@pytest.mark.parametrize(
    ("name", "values", "season", "better"),
    [
        ("last_value", SEASONS, 7, ["seasonal_naive"]),
        ("seasonal_naive", WALK, 7, ["last_value"]),
        ("drift", WALK, 1, ["last_value"]),  # not warned twice of the same forecast
        ("last_value", WALK, 1, []),
        ("seasonal_naive", WALK, 1, []),
    ],
)
def test_a_warning_when_another_naive_forecast_is_better(make_panel, name, values, season, better):
    result = fitting.fit(settings(name, horizon=5, lookback=14, season=season), make_panel([values]))
    said = [line for line in cautions(result) if "does not beat" in line]
    assert [line.split(" does not beat ")[1].split()[0] for line in said] == better


def test_the_command_line(tsformer):
    words = ("fit", "--data", "csv", "--path", "air_passengers", "--model")
    for name in NAIVE:
        code, out, err = tsformer(*words, name, "--json")
        assert code == 0, err
        document = json.loads(out)
        assert (document["steps"], document["parameters"]) == (0, 0)
        assert ("does not beat" in err) == (name != "seasonal_naive")
        code, out, err = tsformer("predict", document["run"], "--horizon", "30", "--output", "-")
        assert code == 0, err
        assert len(out.splitlines()) == 31
    code, _, err = tsformer(*words, "seasonal_naive", "--lookback", "8")
    assert code == 2
    (line,) = [line for line in err.splitlines() if line.startswith("error")]
    assert "season of 12 steps, but the lookback has 8: use --lookback 12 or more" in line
