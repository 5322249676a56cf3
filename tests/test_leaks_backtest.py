"""A backtest leaks nothing: garbage from an origin on changes no forecast of that origin or an earlier one."""

from dataclasses import replace

import numpy as np
import pytest
from leaks import HORIZON, PEEKING_TRANSFORM, settings_for, spoiled, world

from tsformer import fitting, register, registry
from tsformer.data.selection import selected
from tsformer.evaluation.backtest import backtest
from tsformer.evaluation.origins import rolling_plan
from tsformer.evaluation.protocols import follows, ltsf
from tsformer.predictive import Ask
from tsformer.registry import Kind

ORIGINS = 3


def forecasts_of(made, most):
    """Of every entry the bytes of all forecasts of the first `most` origins."""
    found = {}
    for name, entry in made.entries.items():
        for number, (block, said) in enumerate(zip(made.plan.blocks, entry.forecasts, strict=True)):
            early = block.number < most
            found[name, number, "points"] = said.point[early].tobytes()
            if said.quantiles is not None:
                found[name, number, "quantiles"] = said.quantiles[early].tobytes()
    return found


def origins_of(plan, panel, number):
    """The row of an origin in each series; the end of one that has not got it."""
    rows = panel.lengths.copy()
    for block in plan.blocks:
        here = block.number == number
        rows[block.series[here]] = block.origins[here]
    return rows


def assert_no_leak(candidates, panel, plan_of, ask=None, intervals=None, **garbage):
    """For each origin: what is forecast up to it stays what it was, whatever comes from it on."""
    plan = plan_of(panel)
    made = backtest(candidates, panel, plan, ask=ask, intervals=intervals)
    for entry in made.entries.values():
        assert not entry.failures
    for number in range(made.origins):
        rows = origins_of(plan, panel, number)
        later = spoiled(panel, rows, **{"known": HORIZON, "gaps": False, **garbage})
        again = backtest(candidates, later, plan_of(later), ask=ask, intervals=intervals)
        assert forecasts_of(again, number + 1) == forecasts_of(made, number + 1), number
        # were nothing read there, this would say nothing
        assert again.entries["last_value"].score.overall["mae"] != made.entries["last_value"].score.overall["mae"]


def rolling(refit="never", step=HORIZON):
    return lambda panel: rolling_plan(panel, HORIZON, ORIGINS, step, refit, seen=14)


@pytest.mark.parametrize("refit", ["never", "every", 2])
def test_rolling_origins(refit):
    candidates = {"linear": settings_for("linear"), "ridge": settings_for("ridge", ["log"])}
    assert_no_leak(candidates, world(texts=False), rolling(refit))


def test_covariates_texts_masks_and_gaps():
    assert_no_leak({"a": settings_for("tcn_transformer", steps=3)}, world(), rolling(2))


@pytest.mark.parametrize("name", list(registry.entries(Kind.TRANSFORM)))
def test_transforms(name):
    panel = world((70, 56, 61), texts=False, covariates=False, targets=1)
    assert_no_leak({"ridge": settings_for("ridge", [name])}, panel, rolling(step=2))


def test_intervals():
    train = {"output": "normal"}
    candidates = {"returns": settings_for("linear", ["log_return"], train=train), "a": settings_for(train=train)}
    assert_no_leak(candidates, world(texts=False), rolling(), Ask(levels=(80.0,), samples=20))


@pytest.mark.parametrize("intervals", ["conformal", "adaptive"])
def test_conformal_intervals(intervals):
    """Of series that end together: what is known of one at a moment is known of all."""
    candidates = {"a": settings_for("linear"), "b": settings_for("ridge", ["log_return"])}
    ask = Ask(levels=(50.0, 80.0))
    assert_no_leak(candidates, world((80, 80), texts=False, covariates=False), rolling(step=1), ask, intervals)
    fitted = fitting.fit(settings_for("linear"), world((80, 80), texts=False, covariates=False)).fitted
    assert_no_leak({"run": fitted}, world((80, 80), texts=False, covariates=False), rolling(), ask, intervals)


def test_garbage_outside_a_domain():
    """Then each origin has a pass of its own; sums in batches of another size may differ in their last digits."""
    panel = world(texts=False, covariates=False, gap=False)
    plan = rolling()(panel)
    settings = {"a": settings_for("ridge", ["log"])}
    one = backtest(settings, panel, plan)
    other = backtest(settings, spoiled(panel, origins_of(plan, panel, ORIGINS - 1), sign=-1), plan)
    for before, after in zip(one.entries["a"].forecasts, other.entries["a"].forecasts, strict=True):
        np.testing.assert_allclose(after.point, before.point, rtol=1e-5)


def test_a_fitted_model_on_series_that_it_does_not_know():
    """At each origin their transforms are fitted on the rows before it."""
    panel = world(texts=False)
    fitted = fitting.learn(settings_for("linear"), selected(panel, np.array([True, False, False]))).fitted
    assert_no_leak({"run": fitted}, panel, rolling())


def test_a_column_that_is_empty_in_the_training_rows_of_a_series():
    panel = world(texts=False)
    values = panel.values.copy()
    values[panel.rows(1)][:60, 2] = np.nan  # a past covariate, until shortly before the first origin
    assert_no_leak({"a": settings_for("linear")}, replace(panel, values=values), rolling())


def test_ltsf():
    panel = world(texts=False, covariates=False, masked=False, gap=False)
    plan = ltsf(panel, HORIZON)
    made = backtest({"a": settings_for("linear")}, panel, plan)
    later = spoiled(panel, plan.before)
    again = backtest({"a": settings_for("linear")}, later, ltsf(later, HORIZON))
    assert forecasts_of(again, 1) == forecasts_of(made, 1)
    assert again.plan.scale.tobytes() == plan.scale.tobytes()


def test_rows_of_a_test_file():
    panel = world(texts=False)
    before = panel.lengths - HORIZON
    assert_no_leak({"a": settings_for("linear")}, panel, lambda rows: follows(rows, before, HORIZON))


def test_a_leak_is_caught(own_registry):
    register("peeking", PEEKING_TRANSFORM)
    panel = world(texts=False, masked=False, gap=False, covariates=False)
    with pytest.raises(AssertionError):
        assert_no_leak({"a": settings_for("linear", ["peeking"])}, panel, rolling())


@pytest.mark.slow
@pytest.mark.parametrize("refit", ["never", "every"])
@pytest.mark.parametrize("transform", [None, "log_return", "boxcox", "seasonal_difference"])
@pytest.mark.parametrize("covariates", [False, True])
@pytest.mark.parametrize("model", ["linear", "ridge", "lstm", "tcn", "tcn_transformer", "transformer"])
def test_models(model, covariates, transform, refit):
    settings = settings_for(model, [transform] if transform else [])
    # garbage that is not so large that forecasts from it fail: halves of a batch differ from it in their last digits
    assert_no_leak({"a": settings}, world(texts=False, covariates=covariates), rolling(refit), size=100)
