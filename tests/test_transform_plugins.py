"""The transforms: exact inverses for all of them and for chains, scikit-learn and hand arithmetic as oracles."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import MinMaxScaler, PowerTransformer, RobustScaler, StandardScaler

import tsformer
from tsformer import Forecaster, registry
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.panel import Panel, Schema
from tsformer.data.transforms import Chain, Link
from tsformer.errors import DataError, InvalidValuesError, UsageError
from tsformer.preparation import build_chain, prepare
from tsformer.registry import Kind

NAMES = list(registry.entries(Kind.TRANSFORM))


def built(name, **options):
    plugin = registry.get(Kind.TRANSFORM, name)
    return plugin.build(plugin.config(**options) if options else plugin.example)


def takes_any_value(name):
    try:
        built(name).fit(rows := np.linspace(-1.0, 1.0, 20)[:, None])
        built(name).forward(rows, built(name).fit(rows))
    except InvalidValuesError:
        return False
    return True


NEEDS_POSITIVE = [name for name in NAMES if not takes_any_value(name)]
OTHERS = [name for name in NAMES if name not in NEEDS_POSITIVE]


def chain_of(*names, columns=1):
    return Chain([Link(name, built(name), (0, columns)) for name in names])


def panel_of(series, targets):
    """A panel of series `[time, channels]` whose last channels are covariates."""
    channels = series[0].shape[1]
    return Panel(
        values=np.ascontiguousarray(np.concatenate(series)),
        offsets=np.cumsum([0, *map(len, series)]).astype(np.int64),
        times=pd.Index(np.concatenate([np.arange(len(values)) for values in series])),
        ids=tuple(f"s{i}" for i in range(len(series))),
        schema=Schema(
            targets=tuple(f"y{i}" for i in range(targets)),
            past_covariates=tuple(f"x{i}" for i in range(channels - targets)),
            id="id",
        ),
    )


def assert_exact(chain, panel, train, draw_origin, tolerance=1e-9):
    """True futures, transformed, come back; from random origins, for paths that hold the targets only."""
    chain.fit(panel, train)
    data = chain.forward(panel)
    targets = len(panel.schema.targets)
    for series, length in enumerate(panel.lengths):
        first = data.offsets[series]
        origin, horizon = draw_origin(max(1, chain.lost), int(length))
        start = first + origin - chain.lost
        path = data.values[None, start : start + horizon, :targets]
        back = chain.inverse(path, data, np.array([series]), np.array([start]))
        rows = panel.values[panel.rows(series)][:, :targets]
        error = np.abs(back[0] - rows[origin : origin + horizon])
        assert (error <= tolerance * np.abs(rows).max(axis=0)).all(), (error, chain.to_json())


@st.composite
def panels(draw, positive):
    """One to three series of random lengths, units, offsets, spreads and kinds of randomness; two targets of three."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    series = []
    for _ in range(draw(st.integers(1, 3))):
        shape = draw(st.integers(20, 60)), 3
        kind = draw(st.sampled_from(["normal", "uniform", "lognormal", "standard_cauchy", "standard_exponential"]))
        values = getattr(random, kind)(size=shape)
        if draw(st.booleans()):
            values = np.cumsum(values, axis=0)
        values = values * 10.0 ** draw(st.integers(-3, 3)) + draw(st.sampled_from([0.0, 5.0, -300.0]))
        values *= 10.0 ** draw(st.integers(-9, 9))
        if positive:
            values = np.abs(values) + 1e-3 * np.abs(values).max() + 1e-9
        series.append(values)
    return panel_of(series, targets=2)


def origins(data):
    def draw(first, length):
        origin = data.draw(st.integers(first, length - 1))
        return origin, data.draw(st.integers(1, length - origin))

    return draw


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=25)
def test_the_inverse_is_exact(name, data):
    panel = data.draw(panels(positive=name in NEEDS_POSITIVE))
    train = np.array([data.draw(st.integers(8, int(length))) for length in panel.lengths])
    assert_exact(chain_of(name, columns=data.draw(st.integers(1, 3))), panel, train, origins(data))


@given(data=st.data())
@settings(max_examples=60)
def test_the_inverse_of_a_chain_is_exact(data):
    first = data.draw(st.lists(st.sampled_from(NEEDS_POSITIVE), max_size=1))
    names = first + data.draw(st.lists(st.sampled_from(OTHERS), min_size=2 - len(first), max_size=3 - len(first)))
    panel = data.draw(panels(positive=bool(first)))
    train = np.array([data.draw(st.integers(15, int(length))) for length in panel.lengths])
    assert_exact(chain_of(*names, columns=2), panel, train, origins(data))


EARLY_OUTLIERS = np.r_[np.random.default_rng(0).lognormal(0, 0.2, 28), 1e7, 2e7]
EXTREMES = {
    "constant": np.full(40, 7.0),
    "constant and negative": np.full(40, -7.0),
    "zeros": np.zeros(40),
    "constant but for rounding": 0.3 + np.tile([0.0, 5e-17], 20),
    "a huge offset": 1e9 + np.random.default_rng(0).normal(0, 0.1, 40),
    "a huge negative offset": -1e9 + np.random.default_rng(0).normal(0, 0.1, 40),
    "a tiny variance": 3 + 1e-12 * np.random.default_rng(0).normal(0, 1, 40),
    "almost nothing": 1e-300 * np.random.default_rng(0).uniform(1, 2, 40),
    "a tiny unit": 1e-20 * np.random.default_rng(0).lognormal(0, 1, 40),
    "a huge unit": 1e90 * np.random.default_rng(0).lognormal(0, 1, 40),
    "one outlier": np.r_[np.full(20, 0.01), 1e6, np.full(19, 0.01)],
    "one outlier below": np.r_[np.full(20, 1e6), 1.0, np.full(19, 1e6)],
    "mostly zero": np.r_[np.zeros(20), 1e6, np.zeros(19)],
    "an outlier after training": np.r_[np.random.default_rng(0).lognormal(0, 2, 30), np.full(10, 1e8)],
    "outliers in training, a larger one after": np.r_[EARLY_OUTLIERS, np.full(10, 5e15)],
    "a negative outlier after training": -np.r_[np.random.default_rng(0).lognormal(0, 2, 30), np.full(10, 1e8)],
    "heavy tails": np.random.default_rng(0).standard_cauchy(40) ** 3,
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", EXTREMES)
def test_extreme_values_come_back_without_a_warning(name, kind):
    values = EXTREMES[kind][:, None]
    if name in NEEDS_POSITIVE and not (values > 0).all():
        values = np.abs(values) + 1e-3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_exact(chain_of(name), panel_of([values], 1), np.array([30]), lambda first, last: (first, last - first))


def rows_of(*, positive, seed=0):
    random = np.random.default_rng(seed)
    rows = np.stack([random.lognormal(0, 0.7, 200), random.gamma(2, 50, 200), random.normal(9, 1, 200)], axis=1)
    return rows if positive else rows - np.array([1.0, 150.0, 9.0])


@pytest.mark.parametrize(
    ("name", "options", "scaler"),
    [
        ("standard", {}, StandardScaler()),
        ("minmax", {}, MinMaxScaler()),
        ("minmax", {"low": -1.0, "high": 3.0}, MinMaxScaler(feature_range=(-1, 3))),
        ("robust", {}, RobustScaler()),
        ("robust", {"low": 5.0, "high": 90.0}, RobustScaler(quantile_range=(5, 90))),
    ],
)
def test_scalers_are_scikit_learns(name, options, scaler):
    rows = rows_of(positive=False)
    scaler.fit(rows[:150])
    transform = built(name, **options)
    state = transform.fit(rows[:150])
    anchor = rows[-1:]
    np.testing.assert_allclose(transform.forward(rows, state), scaler.transform(rows), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(transform.inverse(rows, state, anchor), scaler.inverse_transform(rows), rtol=1e-10)
    assert registry.get(Kind.TRANSFORM, name).scaler


@pytest.mark.parametrize("name", ["minmax", "robust"])
def test_a_unit_does_not_matter_and_a_constant_channel_is_shifted(name):
    rows = np.stack([np.arange(20.0), np.arange(20.0) * 1e-20, np.full(20, 4.0)], axis=1)
    transform = built(name)
    changed = transform.forward(rows, state := transform.fit(rows))
    np.testing.assert_allclose(changed[:, 1], changed[:, 0], rtol=1e-12)
    assert (changed[:, 2] == 0).all()
    assert state["scale"][2] == 1


def test_robust_scales_a_channel_that_is_mostly_zero():
    rows = np.r_[np.zeros(90), np.full(10, 5e5)][:, None]
    transform = built("robust")
    np.testing.assert_allclose(transform.fit(rows)["scale"], rows.std())


@pytest.mark.parametrize(("name", "method"), [("boxcox", "box-cox"), ("yeo_johnson", "yeo-johnson")])
def test_powers_are_scikit_learns(name, method):
    rows = rows_of(positive=name == "boxcox")
    transform = built(name)
    state = transform.fit(rows)
    oracle = PowerTransformer(method).fit(rows)
    np.testing.assert_allclose(state["lambda"], oracle.lambdas_, atol=1e-6)
    changed = transform.forward(rows, state)
    wanted = oracle.transform(rows)
    np.testing.assert_allclose(StandardScaler().fit_transform(changed), wanted, atol=1e-6)
    # what lies within the rows comes back as scikit-learn brings it back
    moved = 0.9 * wanted
    back = transform.inverse(moved * changed.std(axis=0) + changed.mean(axis=0), state, rows[-1:])
    np.testing.assert_allclose(back, oracle.inverse_transform(moved), rtol=1e-5, atol=1e-6)


def test_yeo_johnson_is_scikit_learns_without_a_scaler():
    rows = rows_of(positive=False)
    state = built("yeo_johnson").fit(rows)
    wanted = PowerTransformer("yeo-johnson", standardize=False).fit_transform(rows)
    np.testing.assert_allclose(built("yeo_johnson").forward(rows, state), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "sample", "power"),
    [
        ("boxcox", "skewed to the right", -0.9),
        ("boxcox", "skewed to the left", 1.9),
        ("yeo_johnson", "skewed to the right", -0.9),
        ("yeo_johnson", "negative, skewed to the left", 2.9),
    ],
)
def test_every_forecast_has_an_inverse(name, sample, power):
    """Where scikit-learn gives NaN: the inverse is finite, ascends, and has no jump."""
    normal = np.random.default_rng(0).normal(0, 0.15, 400)
    p = 2 - power if "negative" in sample else power
    rows = (1 + p * normal).clip(0.05) ** (1 / p)
    rows = {"boxcox": rows, "yeo_johnson": rows - 1}[name]
    rows = (rows if name == "boxcox" or "negative" not in sample else -rows)[:, None]
    transform = built(name)
    state = transform.fit(rows)
    (lam,) = state["lambda"]
    assert lam == pytest.approx(power, abs=0.35)
    assert abs(lam - 1) > 0.2  # an end on one side
    path = np.linspace(-20, 20, 400_001)[:, None]
    oracle = PowerTransformer({"boxcox": "box-cox"}.get(name, "yeo-johnson"), standardize=False).fit(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isnan(oracle.inverse_transform(path)).any()
    back = transform.inverse(path, state, rows[-1:])
    assert np.isfinite(back).all()
    steps = np.diff(back[:, 0])
    assert (steps >= 0).all()
    assert steps.max() < 100 * np.ptp(rows) * 1e-4
    assert np.isfinite(transform.inverse(np.array([[-1e30], [1e30]]), state, rows[-1:])).all()


def test_box_cox_below_its_end_is_zero():
    transform = built("boxcox")
    state = {"lambda": [0.5], "log_mean": [0.0], "largest": [1.0]}
    path = np.array([[-3.0], [-2.0], [-1.0], [0.0], [2.0]])
    back = transform.inverse(path, state, np.ones((1, 1)))
    np.testing.assert_allclose(back[:, 0], [0, 0, 0.25, 1, 4], atol=1e-12)  # (1 + y / 2)^2


def test_box_cox_with_a_negative_power_follows_its_tangent():
    transform = built("boxcox")
    state = {"lambda": [-1.0], "log_mean": [0.0], "largest": [np.log(2.0)]}  # y = 1 - 1/u up to u = 2, slope 1/4
    path = np.array([[0.0], [0.5], [0.75], [1.0], [3.0]])
    back = transform.inverse(path, state, np.ones((1, 1)))
    np.testing.assert_allclose(back[:, 0], [1, 2, 3, 4, 12], rtol=1e-12)
    np.testing.assert_allclose(transform.forward(back, state), path, atol=1e-12)


@pytest.mark.parametrize(("name", "bounds"), [("boxcox", (-1, 2)), ("yeo_johnson", (-1, 3))])
@pytest.mark.parametrize("kind", EXTREMES)
def test_lambda_stays_sane(name, bounds, kind):
    rows = EXTREMES[kind][:, None]
    (lam,) = built(name).fit(rows if name == "yeo_johnson" else np.abs(rows) + 1e-3)["lambda"]
    assert bounds[0] <= lam <= bounds[1]


def test_a_search_without_a_maximum_changes_nothing(monkeypatch):
    def fit(self, rows):
        raise RuntimeError("The algorithm terminated without finding a valid bracket.")

    monkeypatch.setattr(PowerTransformer, "fit", fit)
    assert built("yeo_johnson").fit(rows_of(positive=False))["lambda"] == [1, 1, 1]


@pytest.mark.parametrize("order", [1, 2, 3])
def test_difference_is_numpys(order):
    rows = np.random.default_rng(0).normal(size=(30, 2))
    transform = built("difference", order=order)
    np.testing.assert_array_equal(transform.forward(rows, {}), np.diff(rows, n=order, axis=0))
    assert transform.lost_rows == order


@pytest.mark.parametrize(
    ("name", "options", "anchor", "path", "wanted"),
    [
        ("difference", {}, [10], [1, 2, -4], [11, 13, 9]),
        ("difference", {"order": 2}, [10, 12], [0, 1, 1], [14, 17, 21]),  # the last change was 2
        ("difference", {"order": 3}, [10, 11, 13], [0, 1], [16, 21]),  # changes 1, 2, then 3, 5
        ("seasonal_difference", {"period": 3}, [1, 2, 3], [1, 1, 1, 1, 1, 1, 5], [2, 3, 4, 3, 4, 5, 8]),
        ("seasonal_difference", {"period": 3}, [1, 2, 3], [10, 20], [11, 22]),
        ("seasonal_difference", {"period": 1}, [10], [1, 2, -4], [11, 13, 9]),
        ("log_return", {}, [100], [np.log(1.1), np.log(0.5)], [110, 55]),
        ("minmax", {"low": 0.0, "high": 2.0}, [7], [1, 3], [5.5, 16.5]),  # fitted on 0 to 11
        ("asinh", {"scale": 2.0}, [7], [np.arcsinh(3.0), -np.arcsinh(4.0)], [6, -8]),
    ],
)
def test_paths_by_hand(name, options, anchor, path, wanted):
    transform = built(name, **options)
    state = transform.fit(np.arange(12.0)[:, None])
    two = [np.array(values, dtype=float)[None, :, None] * np.ones((2, 1, 1)) for values in (path, anchor)]
    back = transform.inverse(two[0], state, two[1])
    np.testing.assert_allclose(back, np.array(wanted)[None, :, None] * np.ones((2, 1, 1)), rtol=1e-12)


def test_seasonal_difference_by_hand():
    rows = np.array([1.0, 2, 3, 5, 7, 9])[:, None]
    assert built("seasonal_difference", period=3).forward(rows, {})[:, 0].tolist() == [4, 5, 6]


def test_log_then_difference_is_log_return(make_panel):
    prices = np.exp(np.random.default_rng(0).normal(size=(40, 1)))
    chains = [chain_of("log", "difference"), chain_of("log_return")]
    panel, path = make_panel([prices]), np.array([[[0.1], [-0.2], [0.3]]])
    results = []
    for chain in chains:
        chain.fit(panel, np.array([30]))
        data = chain.forward(panel)
        results.append((data.values, chain.inverse(path, data, np.array([0]), np.array([20]))))
    np.testing.assert_allclose(results[0][0], results[1][0], atol=1e-12)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-12)


def test_differences_lose_no_digits_to_a_huge_offset():
    noise = np.random.default_rng(0).integers(-8, 9, (200, 1)) / 8.0  # exact beside 1e9 in float64
    transform = built("difference")
    changed = transform.forward(1e9 + noise, {})
    np.testing.assert_array_equal(changed, np.diff(noise, axis=0))
    np.testing.assert_array_equal(transform.inverse(changed, {}, 1e9 + noise[:1]), 1e9 + noise[1:])


def test_asinh_has_the_scale_of_its_channel():
    rows = np.array([[1.0, 0.0], [-3.0, 0.0]])
    transform = built("asinh")
    assert transform.fit(rows) == {"scale": [2, 1]}
    np.testing.assert_allclose(transform.forward(rows, transform.fit(rows))[:, 0], np.arcsinh([0.5, -1.5]))


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("log", [1.0, -2.0], r"transform 'log': 1 value\(s\) are not positive .*column 'price' .*row 2.*asinh"),
        ("boxcox", [1.0, 0.0], r"'boxcox': 1 value\(s\) are not positive .*column 'price' .*row 2.*yeo_johnson"),
        ("log_return", [1.0, -2.0], r"'log_return': 1 value\(s\) are not positive .*row 2.*difference"),
        ("difference", [1.0], r"1 rows are too few for the transform 'difference'"),
        ("seasonal_difference", [1.0, 2.0], r"2 rows are too few for the transform 'seasonal_difference'"),
    ],
)
def test_what_a_transform_cannot_take_is_named(make_panel, name, values, message):
    panel = make_panel([values], names=["price"])
    with pytest.raises(DataError, match=message):
        transformed(chain_of(name), panel)


def test_what_stands_before_a_transform_is_named_with_it(make_panel):
    panel = make_panel([[5.0, 7.0, 4.0, 9.0]], names=["price"])
    message = r"transform 'log' after 'difference': 1 value\(s\) are not positive .*column 'price' .*row 3 of"
    with pytest.raises(DataError, match=message):
        transformed(chain_of("difference", "log"), panel)


def transformed(chain, panel):
    """Fitted on all rows, and applied to them."""
    chain.fit(panel, panel.lengths)
    return chain.forward(panel)


def test_rows_that_transforms_lose_are_told_of(make_panel):
    with pytest.raises(DataError, match=r"lookback 20, 12 row\(s\) lost to transforms and horizon 2 need"):
        prepare(settings_of(12, "seasonal_difference", lookback=20, horizon=2), make_panel([np.arange(45.0)]))


def settings_of(season, *transforms, **window):
    values = {"model": {"name": "transformer"}, "transform": list(transforms), "window": {"season": season, **window}}
    return resolve([Layer(values)], needs_data=False)


def test_the_season_of_the_window_is_the_default_period():
    schema = Schema(targets=("y",))
    assert build_chain(settings_of(12, "seasonal_difference"), schema).lost == 12
    own = {"name": "seasonal_difference", "period": 7}
    assert build_chain(settings_of(12, own), schema).lost == 7
    with pytest.raises(UsageError, match=r"no season that is known.*--transform\.seasonal-difference\.period"):
        build_chain(settings_of(1, "seasonal_difference"), schema)


@pytest.mark.parametrize("name", ["minmax", "robust"])
def test_a_range_needs_two_ends(name):
    with pytest.raises(UsageError, match="low must be less than high"):
        settings_of(1, {"name": name, "low": 80.0, "high": 20.0})


@pytest.fixture(scope="module")
def air():
    path = tsformer.read("csv", path="air_passengers")
    return pd.DataFrame({"ds": path.times, "y": path.values[:, 0]})


CHAINS = [
    ["log", "seasonal_difference"],
    ["log", "difference"],
    ["boxcox", "difference"],
    ["seasonal_difference", "difference"],
    ["seasonal_difference", "standard"],
    ["log", "robust"],
]


@pytest.mark.parametrize("transforms", [*([name] for name in NAMES), *CHAINS], ids="+".join)
def test_forecasts_are_in_the_users_units(air, transforms, tmp_path):
    options = {"model_options": {"d_model": 16, "d_ff": 16}, "train_options": {"max_steps": 2}}
    forecaster = Forecaster("tcn_transformer", horizon=12, transforms=transforms, **options).fit(air)
    table = forecaster.predict()
    assert table["y"].between(50, 2000).all()  # the last year had 390 to 622
    forecaster.save(tmp_path / "run")
    pd.testing.assert_frame_equal(tsformer.load(tmp_path / "run").predict(air), table)
