"""Forecasts from many origins in one pass are those of panels that end there."""

from dataclasses import replace

import numpy as np
import pytest
from leaks import HORIZON, LOOKBACK, settings_for, world

from tsformer import fitting
from tsformer.data.selection import beginnings, selected
from tsformer.data.split import Split
from tsformer.errors import UsageError
from tsformer.evaluation.origins import rolling_plan
from tsformer.evaluation.outlook import outlooks, stretch_starts
from tsformer.forecast import forecast
from tsformer.predictive import Ask

ORIGINS = 4


def complete_ahead(panel):
    """The panel with a value of the future covariate in each row, as a table of what is known ahead has to have."""
    values = panel.values.copy()
    if panel.schema.future_covariates:
        values[:, -1] = np.where(np.isnan(values[:, -1]), 20.0, values[:, -1])
    return replace(panel, values=values)


def said_at(fitted, panel, block, horizon=HORIZON, ask=None):
    """Point and quantiles of all windows, NaN where there is no forecast, and the reasons."""
    point = np.full((len(block.series), horizon, len(panel.schema.targets)), np.nan)
    quantiles, reasons = None, []
    for outlook in outlooks(fitted, panel, block.series, block.origins, block.number, horizon, ask):
        if outlook.said is None:
            reasons.append(str(outlook.reason))
            continue
        point[outlook.index] = outlook.said.point
        if outlook.said.quantiles is not None:
            if quantiles is None:
                quantiles = np.full((*point.shape, outlook.said.quantiles.shape[-1]), np.nan)
            quantiles[outlook.index] = outlook.said.quantiles
    return point, quantiles, reasons


def assert_like_single_forecasts(fitted, panel, block, ask=None, rtol=1e-5):
    """Each window beside the forecast of a panel of its series alone, that ends at its origin."""
    point, quantiles, reasons = said_at(fitted, panel, block, ask=ask)
    assert not reasons
    assert np.isfinite(point).all()
    for window, (series, origin) in enumerate(zip(block.series, block.origins, strict=True)):
        whole = selected(panel, np.arange(len(panel.ids)) == series)
        past = beginnings(whole, np.array([origin]))
        single = forecast(fitted, past, HORIZON, whole if panel.schema.future_covariates else None, ask=ask)
        np.testing.assert_allclose(point[window], single.values[0], rtol=rtol)
        if ask is not None:
            np.testing.assert_allclose(quantiles[window], single.quantiles[0], rtol=rtol)
    return point


@pytest.fixture(scope="module")
def panel():
    return complete_ahead(world(texts=False))


@pytest.mark.parametrize(
    "transforms", [(), ("log_return",), ("difference",), ("log", "seasonal_difference"), ("boxcox",)]
)
def test_one_pass_is_as_many_forecasts(panel, transforms):
    """With masks, a gap, series of unequal ends, and covariates of all kinds."""
    (block,) = rolling_plan(panel, HORIZON, ORIGINS, 3, seen=LOOKBACK + 5).blocks
    fitted = fitting.learn(settings_for("linear", transforms), panel, split=block.split).fitted
    made = assert_like_single_forecasts(fitted, panel, block)
    assert len(np.unique(made.round(3))) > len(made)  # they are not all the same


def test_so_it_is_with_texts_and_a_network():
    panel = complete_ahead(world())
    (block,) = rolling_plan(panel, HORIZON, 2, 3, seen=LOOKBACK).blocks
    fitted = fitting.learn(settings_for("tcn_transformer"), panel, split=block.split).fitted
    assert_like_single_forecasts(fitted, panel, block, rtol=1e-4)


@pytest.mark.parametrize("transforms", [(), ("log_return",)])
def test_so_it_is_with_intervals(panel, transforms):
    (block,) = rolling_plan(panel, HORIZON, 2, 3, seen=LOOKBACK + 1).blocks
    settings = settings_for("linear", transforms, train={"output": "normal"})
    fitted = fitting.learn(settings, panel, split=block.split).fitted
    assert_like_single_forecasts(fitted, panel, block, Ask((80.0,), samples=50), rtol=1e-4)


def test_series_that_the_model_does_not_know_are_scaled_by_the_rows_before_each_origin(panel):
    (block,) = rolling_plan(panel, HORIZON, ORIGINS, 3, seen=LOOKBACK).blocks
    first = np.arange(len(panel.ids)) == 0
    split = Split(*(ends[first] for ends in (block.split.train, block.split.validation, block.split.lengths)))
    fitted = fitting.learn(settings_for("linear", ["log"]), selected(panel, first), split=split).fitted
    assert fitted.chain.unseen(panel) == ["s1", "s2"]
    assert_like_single_forecasts(fitted, panel, block)


def test_origins_that_a_transform_does_not_take_fail_alone(make_panel):
    values = np.random.default_rng(0).uniform(1, 2, (60, 1))
    values[45] = -1.0  # in sight of the last origins
    panel = make_panel([values, values + 3])
    plan = rolling_plan(panel, 4, 4, seen=12)
    (block,) = plan.blocks
    assert block.origins[block.series == 0].tolist() == [44, 48, 52, 56]
    fitted = fitting.learn(settings_for("linear", ["log"]), panel, split=block.split).fitted
    point, _, reasons = said_at(fitted, panel, block)
    bad = (block.series == 0) & (block.origins > 45)
    assert np.isnan(point[bad]).all()
    assert np.isfinite(point[~bad]).all()
    assert len(reasons) == 3
    assert all("not above 0" in reason or "not positive" in reason for reason in reasons), reasons
    alone = beginnings(selected(panel, np.array([True, False])), np.array([44]))
    np.testing.assert_allclose(point[0], forecast(fitted, alone).values[0], rtol=1e-6)


def test_too_few_rows_and_no_value_are_said(make_panel):
    values = np.random.default_rng(0).uniform(1, 2, (60, 1))
    values[44:56] = np.nan  # all that the last origin sees
    panel = make_panel([values], masked=True, breaks=np.array([40]))
    (block,) = rolling_plan(panel, 4, 4, seen=12).blocks  # origins 44, 48, 52, 56
    split = Split(*(np.array([rows]) for rows in (34, 40, 40)))
    fitted = fitting.learn(settings_for("linear"), panel, split=split).fitted
    point, _, reasons = said_at(fitted, panel, block)
    assert np.isnan(point).all(axis=(1, 2)).tolist() == [True, True, False, True]
    assert reasons == ["fewer than the 12 rows that the model looks back", "no value in the 12 rows before"]
    assert stretch_starts(panel, block.series, block.origins).tolist() == [40, 40, 40, 40]


def test_a_model_of_another_horizon(panel):
    (block,) = rolling_plan(panel, 2, 2, seen=LOOKBACK).blocks
    fitted = fitting.learn(settings_for("lstm"), panel, split=block.split).fitted  # of 4 steps, to the last row
    point, _, reasons = said_at(fitted, panel, block, horizon=2)
    assert not reasons
    for window in (0, len(point) - 1):
        whole = selected(panel, np.arange(3) == block.series[window])
        past = beginnings(whole, block.origins[window : window + 1])
        np.testing.assert_allclose(point[window], forecast(fitted, past, 2, whole).values[0], rtol=1e-5)
    ridge = fitting.learn(settings_for("ridge"), panel, split=block.split).fitted
    for model, steps, said in ((ridge, 2, "ahead of all 4 steps"), (ridge, 9, "cannot predict 9")):
        with pytest.raises(UsageError, match=said):
            list(outlooks(model, panel, block.series, block.origins, block.number, steps))
