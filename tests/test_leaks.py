"""Nothing leaks: garbage behind a cut-off changes nothing that was learned or chosen before it, to the bit."""

import numpy as np
import pytest
from leaks import (
    HORIZON,
    LOOKBACK,
    PEEKING_MODEL,
    PEEKING_TRANSFORM,
    changed,
    fit_traces,
    forecasts_at,
    settings_for,
    spoiled,
    without_test_part,
    world,
)

from tsformer import fitting, register, registry
from tsformer.data.selection import beginnings
from tsformer.preparation import prepare
from tsformer.registry import Kind
from tsformer.testing.suite import check

TRANSFORMS = list(registry.entries(Kind.TRANSFORM))
LEARNERS = ("linear", "ridge", "lstm", "tcn", "tcn_transformer", "transformer")
READERS = ("lstm", "tcn", "tcn_transformer", "transformer")
"""Of a text at each step."""
BEFORE_TEST = ("states", "words", "statics", "training windows")


def cut_of(settings, panel):
    """Where the test part of each series begins, and the training part ends."""
    split = prepare(settings, panel).split
    return split.validation, split.train


def assert_test_part_unseen(settings, panel, **garbage):
    """Garbage in the test part changes no trace of a fit, and no forecast made from its border."""
    cut, _ = cut_of(settings, panel)
    one, fitted, prepared = fit_traces(settings, panel)
    other, _, spoiled_data = fit_traces(settings, spoiled(panel, cut, **garbage))
    assert changed(one, other) == []
    kept = spoiled(panel, cut, known=HORIZON, **{**garbage, "gaps": False})
    _, fitted_with_known, prepared_with_known = fit_traces(settings, kept)
    before = forecasts_at(fitted, prepared, cut)
    assert forecasts_at(fitted_with_known, prepared_with_known, cut) == before
    assert not np.array_equal(spoiled_data.data.values, prepared.data.values, equal_nan=True)


def assert_later_rows_unseen(settings, panel, **garbage):
    """`learn` with a split that ends early gives what it gives of those rows alone, whatever follows."""
    cut = panel.lengths - 3 * HORIZON
    split = without_test_part(panel, cut)
    alone, _, _ = fit_traces(settings, beginnings(panel, cut), split)
    for rows in (panel, spoiled(panel, cut, **garbage)):
        assert changed(alone, fit_traces(settings, rows, split)[0]) == []


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    panel = world((72, 64, 68), texts=False, targets=1)
    assert_test_part_unseen(settings_for("ridge", [name]), panel)
    # neither what is outside a domain, nor what no float32 can hold, nor a gap
    assert_later_rows_unseen(settings_for("ridge", [name]), panel, sign=-1, size=1e60)


@pytest.mark.parametrize("scale", ["none", "robust", "minmax"])
def test_scalers(scale):
    assert_test_part_unseen(settings_for("linear", scale={"name": scale}), world(texts=False), size=100)


@pytest.mark.parametrize("model", ["tcn_transformer", "transformer"])
def test_covariates_texts_masks_and_gaps(model):
    """All kinds at once: past, future, static, calendar, text, missing values, a gap, unequal ends."""
    assert_test_part_unseen(settings_for(model), world())


@pytest.mark.slow
@pytest.mark.parametrize("transform", [None, "log_return", "seasonal_difference"])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("output", ["point", "quantiles", "normal", "student_t"])
@pytest.mark.parametrize("model", LEARNERS)
def test_models(model, output, full, transform):
    """With and without covariates, texts, missing values and a gap."""
    panel = world(covariates=full, masked=full, gap=full, texts=full and model in READERS)
    settings = settings_for(model, [transform] if transform else [], train={"output": output})
    assert_test_part_unseen(settings, panel)
    assert_later_rows_unseen(settings, panel, sign=-1)


def test_sampled_paths_and_scheduled_sampling():
    train = {"output": "normal", "truth_end": 0.0}
    settings = settings_for("transformer", ["log_return"], model_options={"decoder": "autoregressive"}, train=train)
    assert_test_part_unseen(settings, world(texts=False))


def test_padded_series():
    assert_test_part_unseen(settings_for("linear", short="pad"), world(lengths=(90, 24, 81), texts=False))


def test_series_that_are_left_out_are_not_looked_at():
    settings, panel = settings_for("linear", short="skip"), world(lengths=(90, 24, 81), texts=False)
    assert prepare(settings, panel).panel.ids == ("s0", "s2")
    one, other = (fit_traces(settings, rows)[0] for rows in (panel, spoiled(panel, [90, 0, 81])))
    assert changed(one, other) == []


def test_windows_that_the_user_leaves_open():
    """The number of rows of the table decides them, but neither values nor gaps after the cut-off of a split."""
    settings = settings_for("linear")
    open_window = settings.window.model_copy(update={"lookback": None, "horizon": None, "season": None})
    object.__setattr__(settings, "window", open_window)
    assert_later_rows_unseen(settings, world(lengths=(200, 70, 81), texts=False))


def test_garbage_in_the_validation_part_changes_nothing_but_the_choice():
    settings, panel = settings_for("tcn_transformer", train={"patience": 50}), world()
    _, trained = cut_of(settings, panel)
    one, other = (fit_traces(settings, rows)[0] for rows in (panel, spoiled(panel, trained)))
    found = changed(one, other)
    assert not set(found) & set(BEFORE_TEST)
    assert "validation windows" in found
    assert "evaluations" in found


def test_no_training_target_is_a_validation_or_test_row():
    prepared = prepare(settings_for("linear"), world())
    split, offsets = prepared.split, prepared.data.offsets
    for windows, first, stop in (
        (prepared.train, np.full_like(split.train, LOOKBACK), split.train),
        (prepared.validation, split.train, split.validation),
        (prepared.test, split.validation, split.lengths),
    ):
        origins = windows.origins.numpy() - offsets[windows.series.numpy()]
        assert (origins >= first[windows.series]).all()
        assert (origins + HORIZON <= stop[windows.series]).all()


def test_the_score_of_a_fit_sees_the_test_part():
    """The other way about: were nothing read there, the tests above would say nothing."""
    settings, panel = settings_for("linear"), world(texts=False)
    cut, _ = cut_of(settings, panel)
    one, other = (fitting.fit(settings, rows) for rows in (panel, spoiled(panel, cut)))
    assert one.test.overall["mae"] != other.test.overall["mae"]
    assert one.history.best_step == other.history.best_step


@pytest.mark.parametrize("leak", ["transform", "model"])
def test_a_leak_is_caught(own_registry, leak):
    """A transform and a model that look at later rows fail here, and in `plugins check`."""
    plugin = PEEKING_TRANSFORM if leak == "transform" else PEEKING_MODEL
    register("peeking", plugin)
    settings = settings_for("linear", ["peeking"]) if leak == "transform" else settings_for("peeking")
    panel = world(texts=False, masked=False, gap=False, covariates=False)
    cut, _ = cut_of(settings, panel)
    one, other = (fit_traces(settings, rows)[0] for rows in (panel, spoiled(panel, cut)))
    found = changed(one, other)
    assert "weights" in found
    assert ("training windows" in found) == (leak == "transform")
    assert ("check_causality" if leak == "transform" else "check_fit_hook") in check(plugin)
