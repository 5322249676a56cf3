"""Series that are too short: refused, left out or padded; and stretches between gaps that are."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.split import long_enough, shortest, split_by_time
from tsformer.errors import DataError
from tsformer.fitting import make_ready
from tsformer.preparation import complete, prepare

NAN = np.nan


def settings(transforms=(), model="last_value", **window):
    shape = {"lookback": 6, "horizon": 4, "season": 1, **window}
    values = {"model": {"name": model}, "transform": list(transforms), "window": shape}
    return resolve([Layer(values)], needs_data=False)


def test_few_are_refused_and_skip_settles_it(make_panel):
    panel = make_panel([np.arange(80.0), np.arange(80.0), np.arange(12.0)])
    with pytest.raises(DataError, match=r"series 's2' has 12 rows.*or --short pad, or leave .* \(--short skip\)") as e:
        prepare(settings(), panel)
    assert (e.value.finding.kind, e.value.finding.count) == ("short", 1)
    assert e.value.finding.options == {"window.short": "skip"}


def test_many_are_padded_where_that_is_enough(make_panel):
    for rows, options in ((17, {"window.short": "pad"}), (12, {})):
        with pytest.raises(DataError) as error:
            prepare(settings(), make_panel([np.arange(rows)]))
        assert error.value.finding.options == options
    assert prepare(settings(short="pad"), make_panel([np.arange(17.0)])).train.origins.tolist() == [1, 2, 3, 4]


def test_skip_leaves_them_out_and_says_so(make_panel):
    series = [np.arange(80.0), np.arange(12.0), np.arange(5.0) * 100, np.arange(90.0)]
    panel = make_panel(series)
    prepared = prepare(settings(short="skip"), panel)
    alone = prepare(settings(), make_panel([series[0], series[3]]))
    assert prepared.panel.ids == ("s0", "s3")
    assert prepared.notes == ("left out 2 of 4 series (s1, s2), which are too short",)
    assert prepared.test.batch().future.equal(alone.test.batch().future)
    assert set(prepared.chain.states) == {"s0", "s3"}
    assert prepared.notes[0] in make_ready(settings(short="skip"), panel).notes


@pytest.mark.parametrize("short", ["skip", "pad"])
def test_where_all_are_too_short_nothing_is_left(make_panel, short):
    with pytest.raises(DataError, match=r"'s0' has 9 rows.*2 of 2 series are too short"):
        prepare(settings(short=short), make_panel([np.arange(9.0), np.arange(8.0)]))


def test_long_enough_for_all_needs_no_policy(make_panel):
    panel = make_panel([np.arange(80.0), np.arange(90.0)])
    for short in ("skip", "pad"):
        prepared = prepare(settings(short=short), panel)
        assert prepared.panel is panel
        assert prepared.notes == ()
        assert prepared.train.origins.equal(prepare(settings(), panel).train.origins)


def test_pad_fills_up_what_windows_see(make_panel):
    panel = make_panel([np.arange(80.0), np.arange(100.0, 117.0), np.arange(9.0)])
    prepared = prepare(settings(short="pad", lookback=20), panel)
    assert prepared.panel.ids == ("s0", "s1")
    assert prepared.notes == (
        "left out 1 of 3 series (s2), which are too short",
        "padded what windows see of 1 of 3 series (s1), which are short",
    )
    of_short = prepared.train.series == 1
    batch = prepared.train.batch()
    real = batch.past_mask[of_short, :, 0].sum(1).tolist()
    assert real == [1, 2, 3, 4]
    assert prepared.train.batch().past_mask[~of_short].all()
    values = prepared.data.tensor()[80:]
    assert batch.past[of_short][2, -3:].equal(values[:3])
    assert not batch.past[of_short][2, :-3].any()
    assert batch.future[of_short][2].equal(values[3:7])
    assert prepared.test.origins[prepared.test.series == 1].tolist() == [92, 93]


@given(
    lengths=st.lists(st.integers(1, 80), min_size=1, max_size=5),
    lookback=st.integers(1, 9),
    horizon=st.integers(1, 5),
    lost=st.integers(0, 3),
)
def test_what_stays_is_what_the_split_takes(lengths, lookback, horizon, lost):
    rows = np.array(lengths)
    for short, least in (("skip", lookback), ("pad", 1)):
        stay, fewest = long_enough(rows, horizon, lookback, lost, short)
        enough = [n for n in lengths if _splits(n, horizon, least, lost)]
        assert rows[stay].tolist() == enough
        if enough:
            split = split_by_time(rows[stay], horizon, lookback, lost, fewest=fewest[stay])
            assert (split.train >= fewest[stay] + lost + horizon).all()
            assert (fewest[stay][rows[stay] >= 2 * shortest(lookback + lost, horizon)] == lookback).all()


def _splits(rows, horizon, lookback, lost):
    try:
        split_by_time(np.array([rows]), horizon, lookback, lost)
    except DataError:
        return False
    return True


def test_the_policy_is_kept_when_the_window_is_completed(make_panel):
    chosen = complete(settings(short="skip", lookback=None, horizon=None), make_panel([np.arange(80.0)]))
    assert chosen.window.short == "skip"
    assert chosen.window.lookback is not None


def test_windows_are_chosen_to_fit_into_a_stretch(make_panel):
    panel = make_panel([np.arange(1000.0)], breaks=np.arange(60, 1000, 60))
    window = complete(settings(lookback=None, horizon=None, season=None), panel).window
    assert window.lookback + window.horizon <= 60 * 7 // 20 + 1
    assert len(prepare(settings(lookback=window.lookback, horizon=window.horizon), panel).test)


def test_what_comes_after_the_last_gap_is_enough_to_predict_from(make_panel):
    for transforms, lookback in ((), 15), (("log_return",), 14):
        window = {"lookback": None, "horizon": None, "season": None}
        panel = make_panel([np.arange(1.0, 1001.0)], breaks=np.array([600, 985]))
        assert complete(settings(transforms, **window), panel).window.lookback == lookback


def test_no_window_fits_between_gaps(make_panel):
    panel = make_panel([np.arange(100.0)], breaks=np.arange(8, 100, 8))
    with pytest.raises(DataError, match=r"no training window: none has 6 \+ 4 rows .* longest stretch has 8") as error:
        prepare(settings(), panel)
    assert error.value.finding.options == {"window.lookback": 3, "window.horizon": 2}
    assert len(prepare(settings(lookback=3, horizon=2), panel).train)


def test_a_series_without_windows_is_told_and_spoils_nothing(make_panel):
    values = [np.random.default_rng(seed).normal(size=100) for seed in range(2)]
    values[1][75:] = NAN
    panel = make_panel(values, masked=True, breaks=np.arange(108, 172, 8))
    prepared = prepare(settings(), panel)
    assert prepared.notes == (
        "no training window in 1 of 2 series (s1), for gaps or missing values",
        "no test window in 1 of 2 series (s1), for gaps or missing values",
    )
    assert set(prepared.test.series.tolist()) == {0}
    assert 1 in prepared.validation.series.tolist()


def test_nothing_true_in_the_test_part(make_panel):
    panel = make_panel([np.where(np.arange(100) < 80, 1.0, NAN)], masked=True)
    with pytest.raises(DataError, match=r"no test window: none has .* with a target to predict; use"):
        prepare(settings(), panel)


@pytest.mark.parametrize("transforms", [(), ("log_return",), ("seasonal_difference",)])
def test_true_futures_come_back_where_values_and_time_are_missing(make_panel, transforms):
    rng = np.random.default_rng(0)
    series = [np.exp(rng.normal(size=(120, 2))), np.exp(rng.normal(size=(90, 2)))]
    for values in series:
        values[rng.random(values.shape) < 0.03] = NAN
    panel = make_panel(series, masked=True, breaks=np.array([40, 100, 150]))
    prepared = prepare(settings(transforms, season=3), panel)
    lost, compared = prepared.chain.lost, 0
    for part in (prepared.train, prepared.validation, prepared.test):
        of, batch = part.series.numpy(), part.batch()
        at = panel.offsets[of] + part.origins.numpy() - prepared.data.offsets[of] + lost
        for row in at:
            assert not set(panel.breaks) & set(range(row - 6 - lost + 1, row + 4))
        back = prepared.chain.inverse(batch.future.double().numpy(), prepared.data, of, part.origins.numpy())
        assert np.isfinite(back).all()
        rows = panel.values[at[:, None] + np.arange(-max(1, lost), 4)]
        whole = np.isfinite(rows).all(axis=(1, 2))  # the anchors, too
        np.testing.assert_allclose(back[whole], rows[whole, -4:], rtol=1e-4)
        compared += int(whole.sum())
    assert compared > 20


def test_covariates_of_calendar_and_series_reach_the_windows(make_panel):
    import pandas as pd

    rng = np.random.default_rng(0)
    panel = make_panel([rng.normal(size=(80, 3)), rng.normal(size=(90, 3))])
    schema = replace(
        panel.schema,
        targets=("y",),
        past_covariates=("p",),
        future_covariates=("f",),
        static_covariates=("size", "region"),
        calendar=("dayofweek", "weekend"),
    )
    static = pd.DataFrame({"size": [1.0, 3.0], "region": ["north", "south"]})
    prepared = prepare(settings(model="transformer"), replace(panel, schema=schema, static=static))
    problem, batch = prepared.problem, prepared.train.batch()
    assert (problem.targets, problem.past_covariates, problem.future_covariates) == (1, 1, 4)
    assert (problem.static_covariates, problem.static_cardinalities) == (1, (3,))
    assert batch.future_known.shape[1:] == (4, 4)
    first = panel.times[6:10]  # Tuesday, 2020-01-07, and what follows
    angle = 2 * np.pi * first.day_of_week.to_numpy() / 7
    np.testing.assert_allclose(batch.future_known[0, :, 1], np.sin(angle), atol=1e-6)
    np.testing.assert_allclose(batch.future_known[0, :, 2], np.cos(angle), atol=1e-6)
    assert batch.future_known[0, :, 3].tolist() == (first.day_of_week >= 5).astype(float).tolist()
    assert batch.static[prepared.train.series == 1].unique().tolist() == [1.0]
    assert batch.static_codes[:, 0].tolist() == (1 + prepared.train.series).tolist()


@pytest.mark.parametrize(("short", "lookback"), [("error", 1), ("skip", 24), ("pad", 24)])
def test_series_that_are_left_out_do_not_decide_the_window(make_panel, short, lookback):
    panel = make_panel([np.arange(700.0), np.arange(11.0), np.arange(11.0)])
    settings = resolve(
        [Layer({"model": {"name": "ridge"}, "window": {"short": short, "horizon": 6}})], needs_data=False
    )
    assert complete(settings, panel).window.lookback == lookback
