"""Conformal intervals: exact order statistics, MAPIE as the oracle, coverage, and nothing of what is not yet known."""

import json
from dataclasses import replace

import numpy as np
import pytest
import safetensors.numpy
from mapie.regression import SplitConformalRegressor
from sklearn.linear_model import LinearRegression

from tsformer import fitting
from tsformer import run as runs
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.errors import RunError, UsageError
from tsformer.evaluation.adaptive import RATE, rank
from tsformer.evaluation.conformal import Calibration, fewest_windows, series_scale
from tsformer.forecast import forecast
from tsformer.predictive import Ask
from tsformer.run_files import fingerprint


def calibration(errors, horizon_step=1.0, **fields):
    """Errors `[windows, horizon, targets]`, a step apart."""
    errors = np.asarray(errors, dtype=np.float64)
    begins = np.arange(len(errors), dtype=np.float64)
    known = begins[:, None] + horizon_step * np.arange(errors.shape[1])
    return Calibration(errors, begins, known, {"": np.ones(errors.shape[2])}, **fields)


def ends(found, point, levels, **options):
    return found.intervals(point, levels, np.ones((len(point), point.shape[2])), **options)


def test_the_order_statistic_by_hand():
    errors = np.array([3.0, -1, 2, -5, 4, 7, -6, 9, 8]).reshape(9, 1, 1)  # sizes 1 to 9 without 10
    found = ends(calibration(errors), np.full((1, 1, 1), 100.0), (50.0, 80.0, 90.0))
    # ceil(10 x .5) = 5, ceil(10 x .8) = 8, ceil(10 x .9) = 9: of 1, 2, 3, 4, 5, 6, 7, 8, 9
    assert found[0, 0, 0].tolist() == [91, 92, 95, 105, 108, 109]


@pytest.mark.parametrize(("level", "least"), [(80, 4), (90, 9), (95, 19), (99, 99), (50, 1), (99.5, 199)])
def test_too_few_errors_are_refused(level, least):
    assert fewest_windows(level) == least
    rng = np.random.default_rng(0)
    point = np.zeros((1, 1, 1))
    enough = ends(calibration(rng.normal(size=(least, 1, 1))), point, (level,))
    assert np.isfinite(enough).all()
    if least > 1:
        with pytest.raises(UsageError, match=f"of {least} forecasts .* there are {least - 1}"):
            ends(calibration(rng.normal(size=(least - 1, 1, 1))), point, (level,))


def test_missing_errors_are_not_counted():
    errors = np.arange(1.0, 21.0).reshape(20, 1, 1)
    errors[::2] = np.nan
    with pytest.raises(UsageError, match=r"of 19 forecasts .* there are 10"):
        ends(calibration(errors), np.zeros((1, 1, 1)), (95,))
    assert ends(calibration(errors), np.zeros((1, 1, 1)), (90,))[0, 0, 0].tolist() == [-20, 20]


def test_it_is_that_of_mapie():
    """One step, one target, a fitted regression: the same calibration errors give the same ends."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 3))
    y = x @ [1.0, -2.0, 0.5] + rng.standard_t(4, size=300)
    model = LinearRegression().fit(x[:100], y[:100])
    levels = (80.0, 90.0, 95.0)
    theirs = SplitConformalRegressor(model, confidence_level=[level / 100 for level in levels], prefit=True)
    theirs.conformalize(x[100:200], y[100:200])
    point, expected = theirs.predict_interval(x[200:])
    found = ends(
        calibration((y[100:200] - model.predict(x[100:200])).reshape(100, 1, 1)), point.reshape(-1, 1, 1), levels
    )
    for place, level in enumerate(levels):
        index = len(levels) - 1 - place
        np.testing.assert_allclose(found[:, 0, 0, index], expected[:, 0, place], rtol=1e-9, err_msg=str(level))
        np.testing.assert_allclose(found[:, 0, 0, -1 - index], expected[:, 1, place], rtol=1e-9)


def test_coverage_of_exchangeable_errors_at_every_step():
    """At least what is asked for, and little more, as the theorem says: 1 - alpha to 1 - alpha + 1 / (n + 1)."""
    rng = np.random.default_rng(2)
    spread = np.arange(1.0, 6.0)[:, None]  # which grows with the horizon
    covered = []
    for _ in range(300):
        found = ends(calibration(spread * rng.standard_t(3, size=(99, 5, 1))), np.zeros((20, 5, 1)), (80, 95))
        truth = spread * rng.standard_t(3, size=(20, 5, 1))
        covered.append([(found[..., i] <= truth) & (truth <= found[..., -1 - i]) for i in (1, 0)])
    share = np.mean(covered, axis=(0, 2, 4))  # [levels, horizon]
    np.testing.assert_allclose(share[0], 0.80, atol=0.02)
    np.testing.assert_allclose(share[1], 0.95, atol=0.015)


@pytest.mark.parametrize(
    ("size", "split", "adaptive"),
    [
        (np.ones(260), (0.77, 0.83), (0.77, 0.83)),
        (np.linspace(1, 4, 260), (0.5, 0.7), (0.77, 0.83)),
        (np.where(np.arange(260) < 180, 1, 3), (0.3, 0.5), (0.75, 0.83)),
    ],
)
def test_the_adaptive_kind_holds_its_coverage_while_errors_grow(size, split, adaptive):
    """Of a hundred targets, each of them by itself; where nothing drifts it is hardly wider."""
    errors = size[:, None, None] * np.random.default_rng(3).normal(size=(260, 1, 100))
    hits, widths = {True: [], False: []}, {True: [], False: []}
    for stop in range(200, 260, 10):
        found = calibration(errors[:stop])
        for kind in hits:
            radius = found.radius(80, adaptive=kind)[0]
            hits[kind].append(np.abs(errors[stop, 0]) <= radius)
            widths[kind].append(radius)
    assert split[0] < np.mean(hits[False]) < split[1]
    assert adaptive[0] < np.mean(hits[True]) < adaptive[1]
    if size[0] == size[-1]:
        assert np.mean(widths[True]) < 1.05 * np.mean(widths[False])


def test_the_adaptive_kind_of_forecasts_that_overlap():
    """Of random walks: what lies ahead of one forecast lies ahead of the next ones, too, and is not known yet."""
    walk = np.cumsum(np.random.default_rng(6).normal(size=(310, 1, 100)), axis=0)
    errors = np.concatenate([walk[step : 300 + step] - walk[:300] for step in range(1, 7)], axis=1)
    found, hits, widths = calibration(errors), {True: [], False: []}, {True: [], False: []}
    for stop in (230, 260, 290):
        for kind in hits:
            interval = ends(found, np.zeros((1, 6, 100)), (80,), adaptive=kind, at=float(stop))[0]
            hits[kind].append((interval[..., 0] <= errors[stop]) & (errors[stop] <= interval[..., 1]))
            widths[kind].append(interval[..., 1] - interval[..., 0])
    for kind in hits:
        np.testing.assert_allclose(np.mean(hits[kind], axis=(0, 2)), 0.8, atol=0.07)
    assert abs(np.mean(widths[True]) / np.mean(widths[False]) - 1) < 0.05


def followed_one_by_one(errors, alpha, least, delay):
    """Equation 2 of Gibbs & Candes (2021) for one step of the horizon, whose error is known `delay` forecasts later."""
    aimed, missed, told = alpha, {}, 0
    for now in range(len(errors) + 1):
        last = now == len(errors)
        while told < now and (last or told + delay < now):
            if told in missed:
                rate = RATE * alpha / (min(told, delay) + 1)
                aimed = min(max(aimed + rate * (alpha - missed[told]), 0), 1)
            told += 1
        known = np.sort(errors[: max(0, now - delay)])
        if not last and len(known) >= least:
            missed[now] = float(errors[now] > known[rank(np.array(len(known)), np.array(aimed)) - 1])
    return aimed


@pytest.mark.parametrize("level", [80, 95])
def test_the_adaptive_kind_is_that_of_its_paper(level):
    rng = np.random.default_rng(7)
    errors = np.linspace(1, 3, 120)[:, None, None] * rng.normal(size=(120, 3, 1))
    found = calibration(errors)
    radius = found.radius(level, adaptive=True)
    for step in range(3):
        size = np.abs(errors[:, step, 0])
        aimed = followed_one_by_one(size, 1 - level / 100, fewest_windows(level), step)
        assert aimed < 1 - level / 100
        assert radius[step, 0] == np.sort(size)[rank(np.array(120), np.array(aimed)) - 1]
    assert not np.array_equal(radius, found.radius(level))


def test_forecasts_of_one_moment_count_as_one():
    """Of many series that are all missed at once no more is learned than of few."""
    errors = np.random.default_rng(8).normal(size=(60, 1, 1)) * np.linspace(1, 3, 60)[:, None, None]
    aimed = []
    for series in (4, 40):
        begins = np.repeat(np.arange(60.0), series)
        found = Calibration(np.repeat(errors, series, axis=0), begins, begins[:, None], {"": np.ones(1)})
        aimed.append(float(found._standing.aimed_at(0.2, 40)[0, 0]))
    assert 0.02 < aimed[0] < 0.15
    assert aimed[1] == pytest.approx(aimed[0], abs=0.02)


@pytest.mark.parametrize("hole", [0.0, 0.2])
def test_one_pass_over_all_moments_says_what_each_moment_says_by_itself(hole):
    rng = np.random.default_rng(0)
    begins = np.repeat(np.arange(60.0), 2)
    errors = rng.normal(size=(120, 5, 2)) * np.linspace(1, 3, 120)[:, None, None]
    errors[rng.random(errors.shape) < hole] = np.nan
    found = Calibration(errors, begins, begins[:, None] + np.arange(5), {"": np.ones(2)})
    point, scale = np.zeros((1, 5, 2)), np.ones((1, 2))
    for at in range(30, 60):
        together = found.intervals(point, (80.0,), scale, adaptive=True, at=at)
        np.testing.assert_array_equal(together, found._until(at).intervals(point, (80.0,), scale, adaptive=True))
        assert (together != found.intervals(point, (80.0,), scale, at=at)).any()


def test_what_is_not_yet_known_is_not_looked_at():
    """Of windows that overlap: at an origin the later steps of the last ones are still to come."""
    rng = np.random.default_rng(4)
    errors = rng.normal(size=(60, 4, 1))
    point = np.zeros((1, 4, 1))
    for adaptive in (False, True):
        before = ends(calibration(errors), point, (80,), adaptive=adaptive, at=40.0)
        spoiled = errors.copy()
        for window in range(60):
            for step in range(4):
                if window + step >= 40:
                    spoiled[window, step] = 1e9
        after = ends(calibration(spoiled), point, (80,), adaptive=adaptive, at=40.0)
        np.testing.assert_array_equal(after, before)
        assert not np.array_equal(ends(calibration(spoiled), point, (80,), adaptive=adaptive), before)


def test_relative_intervals_are_ratios():
    errors = np.log(np.linspace(1.01, 1.2, 20)).reshape(20, 1, 1)
    found = calibration(errors, relative=True)
    truth = np.full((1, 1, 1), 130.0)
    assert found.errors_of(np.full((1, 1, 1), 100.0), truth, np.ones((1, 1)))[0, 0, 0] == pytest.approx(np.log(1.3))
    low, high = ends(found, np.full((1, 1, 1), 50.0), (95,))[0, 0, 0]
    assert (low, high) == (pytest.approx(50 / 1.2), pytest.approx(50 * 1.2))


def test_a_longer_horizon_than_that_of_the_errors_is_refused():
    found = calibration(np.ones((20, 3, 1)))
    assert ends(found, np.zeros((1, 2, 1)), (80,)).shape == (1, 2, 1, 2)
    with pytest.raises(UsageError, match="reach 3 steps ahead"):
        ends(found, np.zeros((1, 4, 1)), (80,))


def test_scales_are_finite_and_positive_always(make_panel):
    series = [np.arange(20.0), np.full(20, 7.0), np.zeros(20), [5.0], np.tile([1.0, 2, 3], 7), np.full(4, np.nan)]
    panel = make_panel(series, masked=True)
    scale = series_scale(panel, panel.lengths, 3)
    assert scale[:, 0].tolist() == [3, 7, 1, 5, pytest.approx(26 / 20), 1]


def test_bytes_bring_it_back():
    found = calibration(np.random.default_rng(5).normal(size=(30, 3, 2)), relative=True)
    again = Calibration.from_bytes(found.to_bytes(), 3, 2)
    np.testing.assert_array_equal(again.errors, found.errors)
    assert again.relative
    assert again.scales.keys() == found.scales.keys()
    for horizon, targets in ((2, 2), (3, 1)):
        with pytest.raises(ValueError, match="of another problem"):
            Calibration.from_bytes(found.to_bytes(), horizon, targets)
    with pytest.raises(ValueError, match="no errors"):
        Calibration.from_bytes(b"no", 3, 2)
    arrays = safetensors.numpy.load(found.to_bytes())
    about = {"about": json.dumps({"series": [""], "relative": False})}
    for change, said in (
        ({"begins": arrays["begins"][::-1].copy()}, "out of order"),
        ({"scales": np.zeros((1, 2))}, "on no scale"),
        ({"errors": arrays["errors"].astype(np.float32)}, "of another problem"),
        ({"begins": np.array(1.0)}, "of another problem"),
    ):
        with pytest.raises(ValueError, match=said):
            Calibration.from_bytes(safetensors.numpy.save({**arrays, **change}, about), 3, 2)
    for lacking in (None, {"about": "[]"}, {"about": json.dumps({"series": 3, "relative": False})}):
        with pytest.raises(ValueError, match="no errors"):
            Calibration.from_bytes(safetensors.numpy.save(arrays, lacking), 3, 2)


def settings_for(model="last_value", **values):
    return resolve(
        [Layer({"model": {"name": model}, "window": {"lookback": 8, "horizon": 4}, **values})], needs_data=False
    )


def prices(make_panel, rows=160, sizes=(1.0, 300.0)):
    rng = np.random.default_rng(9)
    return make_panel([size * np.exp(np.cumsum(0.02 * rng.standard_normal(rows))) for size in sizes])


def test_errors_of_a_fit_are_those_of_validation_and_test_windows(make_panel):
    panel = prices(make_panel)
    result = fitting.fit(settings_for(), panel)
    found, split = result.fitted.calibration, result.prepared.split
    expected = []
    for series in range(2):
        values = panel.values[panel.rows(series), 0]
        for origin in range(split.train[series], 160 - 3):
            if split.validation[series] - 4 < origin < split.validation[series]:
                continue  # neither in the one part nor in the other
            error = (values[origin : origin + 4] - values[origin - 1]) / found.scales[f"s{series}"]
            expected.append((origin, *error))
    np.testing.assert_allclose(
        np.sort(found.errors[..., 0], axis=0), np.sort(np.array(expected)[:, 1:], axis=0), rtol=1e-4, atol=1e-5
    )
    assert (np.diff(found.begins) >= 0).all()
    assert (np.diff(found.known, axis=1) == found.known[0, 1] - found.known[0, 0]).all()
    np.testing.assert_array_equal(found.known[:, 0], found.begins)


def test_later_rows_change_their_own_errors_only(make_panel):
    panel = prices(make_panel)
    before = fitting.fit(settings_for("ridge"), panel).fitted.calibration
    values = panel.values.copy()
    values[panel.rows(0).stop - 2 : panel.rows(0).stop] *= 2
    after = fitting.fit(settings_for("ridge"), replace(panel, values=values)).fitted.calibration
    assert after.scales == before.scales
    differs = (after.errors != before.errors)[..., 0]
    last = before.known.max()
    assert differs.any()
    assert not differs[before.known < last - (before.known[0, 1] - before.known[0, 0])].any()
    # the window whose lookback holds the first of them is not there, for its horizon would end behind the rows
    assert differs.sum() == 2 + 1  # both steps of the last window, and the last step of the one before


@pytest.mark.parametrize("transform", ["log", "log_return"])
def test_prices_have_bands_by_ratios(make_panel, transform):
    panel = prices(make_panel)
    fitted = fitting.fit(settings_for("ridge", transform=[{"name": transform}]), panel).fitted
    assert fitted.calibration.relative
    made = forecast(fitted, panel, 3, ask=Ask((80.0, 95.0)))
    low, high = made.interval(95)
    assert (low > 0).all()
    np.testing.assert_allclose((high / made.values)[0], (high / made.values)[1])  # of whatever price
    np.testing.assert_allclose(made.values / low, high / made.values)
    plain = fitting.fit(settings_for("ridge"), panel).fitted
    assert not plain.calibration.relative


def test_a_new_series_has_the_scale_of_its_own_rows(make_panel):
    panel = prices(make_panel)
    fitted = fitting.fit(settings_for(), panel).fitted
    new = replace(panel, ids=("a", "s1"), values=panel.values * 50)
    scale = fitted.calibration.scale_of(new, 7)
    np.testing.assert_array_equal(scale[0], series_scale(new, new.lengths, 7)[0])
    np.testing.assert_array_equal(scale[1], fitted.calibration.scales["s1"])
    low, high = forecast(fitted, new, 2, ask=Ask((80.0,))).interval(80)
    assert (high - low)[0, 0, 0] > 20 * (fitted.calibration.scales["s0"] * fitted.calibration.radius(80)[0])[0]


def test_a_run_keeps_them_and_refuses_others(make_panel, tmp_path):
    panel = prices(make_panel)
    writer = runs.Writer(tmp_path / "run")
    result = fitting.fit(settings_for("ridge"), panel, watch=fitting.Watch(start=writer.start))
    writer.finish(result.fitted, result.summary())
    again, _ = runs.load(tmp_path / "run")
    ask = Ask((80.0, 95.0))
    for kind in ("conformal", "adaptive"):
        np.testing.assert_array_equal(
            forecast(again, panel, ask=ask, intervals=kind).quantiles,
            forecast(result.fitted, panel, ask=ask, intervals=kind).quantiles,
        )
    name, manifest = tmp_path / "run" / "calibration.safetensors", tmp_path / "run" / "manifest.json"
    content, document = name.read_bytes(), json.loads(manifest.read_text())
    name.write_bytes(content[:-1] + b"x")
    with pytest.raises(RunError, match="is damaged: its sha256"):
        runs.load(tmp_path / "run")
    other = replace(again.calibration, errors=again.calibration.errors[:, :2], known=again.calibration.known[:, :2])
    name.write_bytes(other.to_bytes())
    document["files"][name.name] = fingerprint(other.to_bytes())
    manifest.write_text(json.dumps(document))
    with pytest.raises(RunError, match="is not that of a run: the errors of forecasts are those of another problem"):
        runs.load(tmp_path / "run")
    del document["files"][name.name]  # as earlier versions leave it
    manifest.write_text(json.dumps(document))
    older, _ = runs.load(tmp_path / "run")
    assert older.calibration is None
    with pytest.raises(UsageError, match=r"fit again, or with --train.output normal"):
        forecast(older, panel, ask=ask)


def test_errors_follow_from_the_seed(make_panel):
    panel, settings = prices(make_panel), settings_for("linear", train={"max_steps": 5, "output": "normal"})
    one, other = (fitting.fit(settings, panel).fitted.calibration for _ in range(2))
    assert one.to_bytes() == other.to_bytes()
