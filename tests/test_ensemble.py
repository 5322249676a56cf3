"""Ensembles: members that are trained as they would be alone, own lookbacks, one run, one forecast."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from tsformer import Forecaster, dry_run, fitting, load, registry
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.split import Split
from tsformer.data.windows import Batch
from tsformer.ensemble import narrowed
from tsformer.errors import DataError, DivergedError, PluginError, UsageError
from tsformer.forecast import forecast
from tsformer.held_out import backcast
from tsformer.joint import seed_of
from tsformer.plugin import ModelPlugin
from tsformer.predictive import Ask

TRAIN = {"max_steps": 8, "eval_every": 4}
WINDOW = {"lookback": 24, "horizon": 6, "season": 12}
NETWORK = "tcn_transformer d_model=8 n_heads=2 d_ff=16 encoder_layers=1 tcn_layers=1"
NETWORK_OPTIONS = {"d_model": 8, "n_heads": 2, "d_ff": 16, "encoder_layers": 1, "tcn_layers": 1}


def settings_of(*members, train=None, window=None, weights="equal"):
    values = {
        "model": {"name": "ensemble", "members": members, "weights": weights},
        "window": {**WINDOW, **(window or {})},
        "train": {**TRAIN, **(train or {})},
    }
    return resolve([Layer(values)], needs_data=False)


def alone(name, train=None, window=None, **options):
    values = {
        "model": {"name": name, **options},
        "window": {**WINDOW, **(window or {})},
        "train": {**TRAIN, **(train or {})},
    }
    return resolve([Layer(values)], needs_data=False)


def wave(rows=180, seed=0):
    step = np.arange(rows)
    noise = np.random.default_rng(seed).normal(size=rows)
    return 100 + 10 * np.sin(2 * np.pi * step / 12) + 0.1 * step + noise


@pytest.fixture
def panel(make_panel):
    return make_panel([np.stack([wave(), 3 * wave(seed=1)], axis=1)])


def test_members_are_to_the_bit_what_they_are_alone(panel):
    lines = ("ridge", f"{NETWORK} train.loss=mae train.lr=0.01", "linear train.seed=7 train.max_steps=12")
    whole = fitting.fit(settings_of(*lines, train={"seed": 3}), panel)
    each = [
        fitting.fit(alone("ridge"), panel),
        fitting.fit(
            alone("tcn_transformer", {"loss": "mae", "lr": 0.01, "seed": seed_of(3, 2)}, **NETWORK_OPTIONS), panel
        ),
        fitting.fit(alone("linear", {"seed": 7, "max_steps": 12}), panel),
    ]
    for member, single in zip(whole.fitted.module.members, each, strict=True):
        own, theirs = member.state_dict(), single.fitted.module.state_dict()
        assert own.keys() == theirs.keys()
        assert all(torch.equal(own[name], theirs[name]) for name in own)
    mean = np.mean([single.forecast for single in each], axis=0)
    np.testing.assert_allclose(whole.forecast, mean, rtol=1e-6)
    assert whole.history.steps == 8 + 12
    assert whole.history.best_step == sum(single.history.best_step for single in each)
    ends = [record["validation_loss"] for record in each[1].history.evaluations]
    own = [record for record in whole.history.evaluations if record["member"] == "2 tcn_transformer"]
    assert [record["validation_loss"] for record in own] == ends
    assert whole.history.evaluations[-1]["member"] is None


def test_two_members_of_one_plugin_start_from_seeds_of_their_own(panel):
    fitted = fitting.learn(settings_of("linear", "linear"), panel).fitted
    first, second = (member.state_dict() for member in fitted.module.members)
    assert not all(torch.equal(first[name], second[name]) for name in first)


def test_own_lookbacks(panel):
    found = fitting.learn(settings_of("ridge lookback=12", "ridge"), panel)
    prepared, module = found.prepared, found.fitted.module
    ridge = registry.get(registry.Kind.MODEL, "ridge")
    windows = [replace(part, lookback=12) for part in (prepared.train, prepared.validation)]
    own = ridge.build(ridge.example, replace(prepared.problem, lookback=12))
    ridge.fit(own, *windows)
    assert torch.equal(own.weight, module.members[0].weight)
    batch, few = prepared.test.batch(), replace(prepared.test, lookback=12).batch()
    short = narrowed(batch, 12)
    assert torch.equal(short.past, few.past)
    assert torch.equal(short.past_mask, few.past_mask)
    assert torch.equal(short.future, few.future)
    assert narrowed(batch, 24) is batch
    mean = (own(few) + module.members[1](batch)) / 2
    torch.testing.assert_close(module(batch), mean)


def test_what_is_known_ahead_and_texts_are_narrowed():
    past = torch.arange(12.0).view(1, 6, 2)
    tokens = torch.arange(12).view(1, 6, 2)
    batch = Batch(past, past > 3, past_known=past + 1, future_known=past[:, :3], tokens=tokens, token_mask=tokens > 3)
    short = narrowed(batch, 2)
    assert short.past.flatten().tolist() == [8, 9, 10, 11]
    assert short.past_known.flatten().tolist() == [9, 10, 11, 12]
    assert short.tokens.flatten().tolist() == [8, 9, 10, 11]
    assert bool(short.token_mask.all())
    assert torch.equal(short.future_known, batch.future_known)


def test_lookbacks_of_the_whole_window_change_nothing(panel):
    plain = fitting.fit(settings_of("ridge", "linear"), panel)
    named = fitting.fit(settings_of("ridge lookback=24", "linear lookback=24"), panel)
    assert np.array_equal(plain.forecast, named.forecast)


def test_the_window_is_as_long_as_the_longest_member_wants(panel):
    wide = fitting.learn(settings_of("ridge lookback=40", "linear", window={"lookback": None}), panel).fitted
    assert wide.settings.window.lookback == wide.problem.lookback == 40
    assert [problem.lookback for problem in wide.module.problems] == [40, 40]
    usual = alone("ridge", window={"lookback": None})
    narrow = fitting.learn(settings_of("ridge lookback=2", "linear", window={"lookback": None}), panel).fitted
    assert narrow.problem.lookback == fitting.learn(usual, panel).fitted.problem.lookback
    with pytest.raises(
        UsageError, match=r"member 1 of the ensemble, model 'ridge' .*looks back 40 steps, and the window"
    ):
        fitting.learn(settings_of("ridge lookback=40", "linear"), panel)
    with pytest.raises(DataError, match=r"rows"):
        fitting.learn(settings_of("ridge lookback=4000", "linear", window={"lookback": None}), panel)


def test_a_run_of_it_gives_the_same_forecast(in_tmp):
    table = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=180), "y": wave()})
    options = {"members": ["ridge lookback=30", f"{NETWORK} train.loss=mae"], "weights": "validation"}
    fitted = Forecaster("ensemble", horizon=6, season=12, model_options=options, train_options=TRAIN).fit(table)
    again = load(fitted.save("run"))
    pd.testing.assert_frame_equal(again.predict(table), fitted.predict(), check_exact=True)
    weights = again.fitted_.module.weights
    assert torch.equal(weights, fitted.fitted_.module.weights)
    assert weights.tolist() != [0.5, 0.5]
    assert again.fitted_.settings.model.config.members == tuple(options["members"])


@pytest.mark.parametrize("output", ["quantiles", "normal", "student_t"])
def test_intervals(panel, output):
    members = (NETWORK, "ridge", "seasonal_naive")
    fitted = fitting.learn(settings_of(*members, train={"output": output}), panel).fitted
    made = forecast(fitted, panel, ask=Ask(levels=(80.0, 95.0)))
    assert (np.diff(made.quantiles, axis=-1) > 0).all()
    low, high = made.interval(80.0)
    assert ((low < made.values) & (made.values < high)).all()
    module = fitted.module
    each = []
    for place in range(3):
        module.keep([place])
        each.append(forecast(fitted, panel, ask=Ask(levels=(80.0, 95.0))).quantiles)
    if output != "student_t":  # whose degrees of freedom differ
        np.testing.assert_allclose(made.quantiles, np.mean(each, axis=0), rtol=1e-4)


def test_a_member_that_rolls_out_is_refused_with_intervals_only(panel):
    line = "transformer decoder=autoregressive d_model=8 n_heads=2 d_ff=16"
    with pytest.raises(UsageError, match=r"member 2 of the ensemble, model 'transformer'.*decoder=direct"):
        fitting.learn(settings_of("ridge", line, train={"output": "normal"}), panel)
    fitted = fitting.learn(settings_of("seasonal_naive", line), panel).fitted
    assert forecast(fitted, panel, 20).values.shape == (1, 20, 2)
    with pytest.raises(UsageError, match="cannot predict 20"):
        forecast(fitting.learn(settings_of("seasonal_naive", "ridge"), panel).fitted, panel, 20)


def test_rows_behind_the_validation_part_change_nothing(panel):
    split = Split(*(np.array([rows]) for rows in (126, 150, 180)))
    garbage = panel.values.copy()
    garbage[150:] = 1e6
    settings = settings_of("ridge", NETWORK, train={"output": "normal"}, weights="validation")
    first, second = (
        fitting.learn(settings, replace(panel, values=values), split=split) for values in (panel.values, garbage)
    )
    own, theirs = first.fitted.module.state_dict(), second.fitted.module.state_dict()
    assert all(torch.equal(own[name], theirs[name]) for name in own)
    assert [record["validation_loss"] for record in first.history.evaluations] == [
        record["validation_loss"] for record in second.history.evaluations
    ]


def test_progress_runs_over_all_members(panel):
    steps = []
    watch = fitting.Watch(step=lambda progress: steps.append((progress.step, progress.steps)))
    fitting.learn(settings_of("linear train.max_steps=4", "ridge", "linear"), panel, watch=watch)
    assert steps == [(step, 12) for step in range(1, 13)]


def test_what_was_interrupted_before_it_learned_has_no_weight(panel):
    steps = []
    watch = fitting.Watch(step=steps.append, interrupted=lambda: len(steps) >= 10)
    found = fitting.learn(settings_of("linear", NETWORK, "ridge", "linear"), panel, watch=watch)
    assert found.history.stopped == "interrupted"
    assert found.fitted.module.weights.tolist() == pytest.approx([0.5, 0, 0.5, 0])
    assert np.isfinite(backcast(found.fitted, found.prepared)).all()
    early = fitting.learn(settings_of("linear", NETWORK), panel, watch=fitting.Watch(interrupted=lambda: True))
    assert early.fitted.module.weights.tolist() == [0.5, 0.5]
    assert early.history.steps == 0


def test_a_member_that_diverges_is_named(panel):
    with pytest.raises(DivergedError, match=r"member 2 of the ensemble, model 'linear' .*diverged"):
        fitting.learn(settings_of("ridge", "linear train.lr=1e38 train.clip=1e38"), panel)


def fails(module, train, validation):
    raise RuntimeError("no luck")


def test_a_member_whose_fit_fails_is_named(panel, own_registry):
    drift = registry.get(registry.Kind.MODEL, "drift")
    registry.register("unlucky", replace(drift, fit=fails))
    with pytest.raises(PluginError, match=r"member 2 of the ensemble, model 'unlucky' .* fails in fit: RuntimeError"):
        fitting.learn(settings_of("ridge", "unlucky"), panel)


def test_a_plugin_must_build_what_it_says_it_is_made_of(panel, own_registry):
    drift, ensemble = (registry.get(registry.Kind.MODEL, name) for name in ("drift", "ensemble"))
    registry.register("liar", replace(ensemble, build=lambda config, problem: drift.build(drift.example, problem)))
    with pytest.raises(PluginError, match=r"model 'liar' .* build returns no Ensemble of it"):
        fitting.learn(alone("liar"), panel)


def test_training_options_that_do_not_go_with_the_output(panel):
    with pytest.raises(UsageError, match=r"^member 2 of the ensemble, model 'linear' .*: loss mae is for point forec"):
        fitting.learn(settings_of("ridge", "linear train.loss=mae", train={"output": "normal"}), panel)


def test_a_member_that_cannot_be_saved(panel):
    settings = settings_of("ridge", "gradient_boosting trees=5")
    assert not settings.model.persistent
    assert settings_of("ridge", "linear").model.persistent
    assert np.isfinite(fitting.fit(settings, panel).forecast).all()


def test_covariates_that_some_members_do_not_read(make_panel):
    values = np.stack([wave(), np.random.default_rng(0).normal(size=180)], axis=1)
    panel = make_panel([values], names=["y", "x"])
    panel = replace(panel, schema=replace(panel.schema, targets=("y",), future_covariates=("x",)))
    some = fitting.make_ready(settings_of("ridge", "seasonal_naive"), panel)
    assert [note for note in some.notes if "covariates" in note] == [
        "member 2 of the ensemble, model 'seasonal_naive' (built-in) reads no future covariates, others do"
    ]
    model = some.fitted.settings.model
    assert model.unread(some.fitted.problem) == []
    assert not model.steps_apart
    assert settings_of("linear", "tcn").model.steps_apart == all(
        registry.get(registry.Kind.MODEL, name).steps_apart for name in ("linear", "tcn")
    )
    none = fitting.make_ready(settings_of("drift", "seasonal_naive"), panel)
    assert ["without effect: model 'ensemble' reads no future" in note for note in none.notes] == [True]


def test_a_training_option_that_a_member_does_not_read(panel):
    ready = fitting.make_ready(settings_of("ridge", "linear train.truth_end=0.5"), panel)
    assert [note for note in ready.notes if "truth_end" in note] == [
        "train.truth_end 0.5 without effect: model 'linear' feeds nothing back here"
    ]


def test_a_dry_run_counts_the_steps_of_all(panel):
    made = dry_run.dry_run(settings_of("ridge", "linear", "linear train.max_steps=5"), panel)
    assert made.steps == 8 + 5
    assert made.memory.activations > 0


def test_lookback_of_a_plugin(panel, own_registry):
    drift = registry.get(registry.Kind.MODEL, "drift")
    assert isinstance(drift, ModelPlugin)
    registry.register("two_seasons", replace(drift, lookback=lambda config, season: 4 * season))
    assert fitting.learn(alone("two_seasons", window={"lookback": None}), panel).fitted.problem.lookback == 48
    assert fitting.learn(alone("two_seasons"), panel).fitted.problem.lookback == 24
