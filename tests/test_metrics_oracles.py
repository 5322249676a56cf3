"""Metrics against scikit-learn and utilsforecast, and those that neither has against arithmetic by hand."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import mean_absolute_percentage_error, mean_pinball_loss
from utilsforecast import losses

from tsformer.evaluation.cautions import without_mape
from tsformer.evaluation.entries import Truth
from tsformer.evaluation.metrics import Errors, levels_of, overall_weighted_average, score
from tsformer.evaluation.plan import Block, Plan
from tsformer.evaluation.scales import seasonal_scale
from tsformer.predictive import Ask

LEVELS = (50.0, 80.0, 99.5)
ASK = Ask(LEVELS)
SEASON, ROWS, HORIZON = 4, 40, 6


@pytest.fixture
def made(make_panel):
    """Three series of which the last steps are forecast, one window each, with quantiles: panel, arguments of `score`,
    and the same as utilsforecast wants it: rows to score, and rows before."""
    rng = np.random.default_rng(0)
    values = [
        20 * (1 + i) + 5 * np.sin(np.pi * np.arange(ROWS) / 2) + rng.normal(size=ROWS) * (i + 1) for i in range(3)
    ]
    panel, before = make_panel(values), np.full(3, ROWS - HORIZON)
    truth = np.stack([each[-HORIZON:] for each in values])[..., None]
    quantiles = np.sort(truth[..., None] + rng.normal(size=(3, HORIZON, 1, 6)) * 3, axis=-1)
    arguments = {
        "forecast": truth + rng.normal(size=truth.shape) * 2,
        "truth": truth,
        "series": np.arange(3),
        "scale": seasonal_scale(panel, before, SEASON),
        "names": ["y"],
        "probabilities": ASK.probabilities,
        "quantiles": quantiles,
        "squared": seasonal_scale(panel, before, SEASON, squared=True),
    }
    table = pd.DataFrame({"unique_id": np.repeat(["s0", "s1", "s2"], HORIZON), "y": truth.reshape(-1)})
    table["model"] = arguments["forecast"].reshape(-1)
    for place, probability in enumerate(ASK.probabilities):
        table[f"model-q-{probability}"] = quantiles[..., place].reshape(-1)
    for level, (low, high) in zip(LEVELS, ((2, 3), (1, 4), (0, 5)), strict=True):
        name = f"{level:g}"
        table[f"model-lo-{name}"] = quantiles[..., low].reshape(-1)
        table[f"model-hi-{name}"] = quantiles[..., high].reshape(-1)
    past = pd.DataFrame({"unique_id": np.repeat(["s0", "s1", "s2"], ROWS - HORIZON)})
    past["y"] = np.concatenate([each[:-HORIZON] for each in values])
    return panel, arguments, table, past


def by_series(found):
    return found.sort_values("unique_id")["model"].to_numpy()


def test_points_are_those_of_utilsforecast(made):
    _, arguments, table, past = made
    errors = Errors(*(arguments[name] for name in ("scale", "names", "probabilities", "squared")))
    errors.add(*(arguments[name] for name in ("forecast", "truth", "series", "quantiles")))
    own, models = errors.by_series(), ["model"]
    expected = {
        "mae": losses.mae(table, models),
        "rmse": losses.rmse(table, models),
        "bias": losses.bias(table, models),
        "mase": losses.mase(table, models, seasonality=SEASON, train_df=past),
        "rmsse": losses.rmsse(table, models, seasonality=SEASON, train_df=past),
    }
    for name, found in expected.items():
        np.testing.assert_allclose([own[i][name] for i in range(3)], by_series(found), rtol=1e-10, err_msg=name)
    # there as a share, and from 0 to 1
    np.testing.assert_allclose([own[i]["mape"] for i in range(3)], 100 * by_series(losses.mape(table, models)))
    np.testing.assert_allclose([own[i]["smape"] for i in range(3)], 200 * by_series(losses.smape(table, models)))
    overall = errors.score().overall
    for name in ("mase", "rmsse"):
        assert overall[name] == pytest.approx(by_series(expected[name]).mean())


def test_quantiles_are_those_of_scikit_learn_and_utilsforecast(made):
    _, arguments, table, _ = made
    found = score(**arguments).overall
    truth, quantiles = arguments["truth"].reshape(-1), arguments["quantiles"].reshape(-1, 6)
    pinball = [mean_pinball_loss(truth, quantiles[:, i], alpha=p) for i, p in enumerate(ASK.probabilities)]
    assert found["pinball"] == pytest.approx(np.mean(pinball))
    assert found["crps"] == pytest.approx(2 * np.mean(pinball))
    assert found["wql"] == pytest.approx(2 * np.mean(pinball) / np.abs(truth).mean())
    columns = {"model": [f"model-q-{p}" for p in ASK.probabilities]}
    theirs = losses.mqloss(table, columns, quantiles=np.array(ASK.probabilities))
    assert found["pinball"] == pytest.approx(by_series(theirs).mean())
    one = score(
        **{**arguments, "forecast": arguments["forecast"][:1], "truth": arguments["truth"][:1]}
        | {"series": np.array([0]), "quantiles": arguments["quantiles"][:1]}
    ).overall
    theirs = losses.scaled_crps(table, columns, quantiles=np.array(ASK.probabilities))
    assert one["wql"] == pytest.approx(by_series(theirs)[0])
    for level in LEVELS:
        shares = by_series(losses.coverage(table, ["model"], level=f"{level:g}"))
        assert found[f"coverage_{level:g}"] == pytest.approx(shares.mean())
    assert levels_of(ASK.probabilities) == LEVELS
    assert found["mape"] == pytest.approx(
        100 * mean_absolute_percentage_error(truth, arguments["forecast"].reshape(-1))
    )


def test_msis_by_hand():
    """One series, scale 2, interval [10, 14] of 80 %: 2 / 0.2 for each unit outside, 1 below and 3 above."""
    truth = np.array([9.0, 12.0, 17.0, 14.0]).reshape(1, 4, 1)
    ends = np.broadcast_to([10.0, 14.0], (1, 4, 1, 2))
    found = score(truth, truth, np.array([0]), np.full((1, 1), 2.0), ["y"], (0.1, 0.9), ends).overall
    assert found["msis_80"] == pytest.approx((4 * 4 + 10 * 1 + 10 * 3) / 4 / 2)
    assert found["coverage_80"] == 0.5  # an end belongs to the interval
    assert found["width_80"] == 4.0


def test_owa_by_hand():
    own, naive = {"smape": 12.0, "mase": 1.5}, {"smape": 16.0, "mase": 1.2}
    assert overall_weighted_average(own, naive) == pytest.approx((0.75 + 1.25) / 2)
    for missing in ({"smape": None, "mase": 1.0}, {"smape": 0.0, "mase": 1.0}):
        assert overall_weighted_average(own, missing) is None


@pytest.mark.parametrize("size", [1, 7, 50])
def test_no_number_depends_on_batches(size):
    """With missing values, missing forecasts, quantiles of some windows only, and undefined scales."""
    rng = np.random.default_rng(0)
    truth, forecast = rng.normal(size=(50, 4, 2)), rng.normal(size=(50, 4, 2))
    truth[rng.random(truth.shape) < 0.2], forecast[rng.random(truth.shape) < 0.1] = np.nan, np.nan
    truth[0] = 0.0
    quantiles = np.sort(rng.normal(size=(50, 4, 2, 4)), axis=-1)
    quantiles[rng.random(50) < 0.3] = np.nan
    series, scale = rng.integers(0, 6, 50), rng.uniform(1, 2, size=(6, 2))
    scale[2] = np.nan
    probabilities = Ask((80.0, 95.0)).probabilities

    def added(size, order):
        errors = Errors(scale, ["a", "b"], probabilities, scale**2)
        for start in range(0, 50, size):
            some = order[start : start + size]
            errors.add(forecast[some], truth[some], series[some], quantiles[some])
        return errors

    parts, whole = added(size, rng.permutation(50)), added(50, np.arange(50))
    for found, expected in zip(
        (parts.score().overall, *parts.by_horizon(), *parts.by_series().values()),
        (whole.score().overall, *whole.by_horizon(), *whole.by_series().values()),
        strict=True,
    ):
        assert found == pytest.approx(expected, nan_ok=False)
    one, other = parts.score(), whole.score()
    assert (one.values, one.left_out, one.zeros) == (other.values, other.left_out, other.zeros)
    assert whole.by_series()[2]["mase"] is None
    assert whole.by_series()[2]["msis_80"] is None
    covered = ((truth >= quantiles[..., 1]) & (truth <= quantiles[..., 2]))[np.isfinite(truth + quantiles.sum(-1))]
    assert whole.score().overall["coverage_80"] == pytest.approx(covered.mean())


def test_what_is_undefined_is_none_and_told():
    """Zeros have no MAPE, no forecast has no error, quantiles that are not there have no coverage."""
    truth = np.array([0.0, 0.0, 4.0, 0.0]).reshape(1, 4, 1)
    ones, scale = np.ones((1, 4, 1)), np.full((1, 1), np.nan)
    found = score(ones, truth, np.array([0]), scale, ["y"], (0.1, 0.9), np.full((1, 4, 1, 2), np.nan))
    assert found.overall["mape"] == 75.0
    assert found.zeros == 3
    assert list(without_mape(found)) == ["MAPE leaves out 3 of 4 values, which are 0"]
    undefined = {name for name, value in found.overall.items() if value is None}
    assert undefined == {"mase", "rmsse", "pinball", "crps", "wql", "coverage_80", "width_80", "msis_80"}
    right = score(np.array([0.0, np.nan, 4.0, 1.0]).reshape(1, 4, 1), truth, np.array([0]), scale, ["y"])
    assert (right.overall["mape"], right.zeros, right.left_out) == (0.0, 2, 1)
    nothing = score(ones, np.zeros((1, 4, 1)), np.array([0]), scale, ["y"])
    assert nothing.overall["mape"] is None
    assert not list(without_mape(score(ones, ones, np.array([0]), scale, ["y"])))
    assert {value for name, value in score(ones * np.nan, ones, np.array([0]), scale, ["y"]).overall.items()} == {
        None,
        1,
    }


def test_a_score_of_standardised_values_is_free_of_units(make_panel):
    """MASE and RMSSE are the same as in the user's units."""
    panel = make_panel([np.random.default_rng(0).normal(size=30) * 50 + 7])
    block = Block(None, np.array([0]), np.array([24]), np.array([0]))
    found = []
    for scale in (None, np.array([[[7.0, 50.0]]])):
        truth = Truth(panel, Plan(6, (block,), np.array([24]), scale), 3)
        errors = Errors(truth.scale, ["y"], (), truth.squared)
        wanted = truth.of(block, np.array([0]))
        errors.add(*(truth.measured(each, block.series) for each in (wanted + 10, wanted)), block.series)
        found.append(errors.score().overall)
    assert found[0]["mae"] == pytest.approx(10)
    assert found[1]["mae"] == pytest.approx(10 / 50)
    for name in ("mase", "rmsse"):
        assert found[0][name] == pytest.approx(found[1][name])
