"""From data to windows: whose rows are where, what is fitted on what, what is chosen for the user."""

import numpy as np
import pytest

from tsformer import Config, DataPlugin, register, sources
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.sequences import Sequences, SequenceSchema
from tsformer.errors import DataError, PluginError
from tsformer.fitting import make_ready
from tsformer.plugin import Task
from tsformer.preparation import complete, origin_rows, prepare


class NoOptions(Config):
    """None."""


def settings(transforms=(), scale="standard", **window):
    values = {"model": {"name": "transformer"}, "transform": list(transforms), "scale": {"name": scale}}
    return resolve([Layer({**values, "window": window})], needs_data=False)


@pytest.mark.parametrize(("transforms", "lost"), [((), 0), (("log_return",), 1)])
def test_where_the_windows_of_each_part_lie(make_panel, transforms, lost):
    panel = make_panel([np.exp(np.random.default_rng(0).normal(size=100)), np.full(60, 2.0)])
    prepared = prepare(settings(transforms, lookback=6, horizon=4, season=1), panel)
    starts = {"train": (6 + lost, 70, 42), "validation": (70, 80, 48), "test": (80, 100, 60)}
    for series, rows in ((0, 100), (1, 60)):
        for part, (first, *stops) in starts.items():
            windows = getattr(prepared, part)
            origins = windows.origins[windows.series == series].numpy() - prepared.data.offsets[series] + lost
            first = first if series == 0 or part == "train" else {"validation": 42, "test": 48}[part]
            assert origins.tolist() == list(range(first, stops[series] - 4 + 1)), (part, series, rows)


@pytest.mark.parametrize("transforms", [(), ("log_return",)])
def test_the_true_futures_come_back_as_the_users_rows(make_panel, transforms):
    panel = make_panel([np.exp(np.random.default_rng(s).normal(size=80)) for s in range(2)])
    prepared = prepare(settings(transforms, lookback=6, horizon=4, season=1), panel)
    test = prepared.test
    path = test.batch().future.double().numpy()
    back = prepared.chain.inverse(path, prepared.data, test.series.numpy(), test.origins.numpy())
    rows = origin_rows(prepared)
    np.testing.assert_allclose(back[:, :, 0], panel.values[rows[:, None] + np.arange(4), 0], rtol=1e-5)


def test_transforms_see_the_training_rows_and_nothing_else(make_panel):
    values = np.random.default_rng(0).normal(size=100)
    spoilt = values.copy()
    spoilt[70:] = 1e6  # validation and test
    chosen = settings(lookback=6, horizon=4, season=1)
    first, second = (prepare(chosen, make_panel([series])) for series in (values, spoilt))
    assert first.chain.to_json() == second.chain.to_json()
    assert first.train.batch().past.equal(second.train.batch().past)
    assert first.train.batch().future.equal(second.train.batch().future)


def test_stride_thins_the_training_windows_only(make_panel):
    panel = make_panel([np.arange(100.0)])
    one = prepare(settings(lookback=6, horizon=4, season=1), panel)
    three = prepare(settings(lookback=6, horizon=4, season=1, stride=3), panel)
    assert three.train.origins.tolist() == one.train.origins.tolist()[::3]
    assert three.test.origins.equal(one.test.origins)


def test_the_scaler_acts_on_covariates_and_they_are_told_apart(make_panel):
    from dataclasses import replace

    panel = make_panel([np.random.default_rng(0).normal(5, 3, (100, 3))])
    schema = replace(panel.schema, targets=("y",), past_covariates=("p",), future_covariates=("f",))
    prepared = prepare(settings(lookback=6, horizon=4, season=1), replace(panel, schema=schema))
    assert abs(prepared.data.values[:70].mean(0)).max() < 1e-12
    batch = prepared.train.batch()
    tensor = prepared.data.tensor()
    assert (prepared.problem.channels, batch.past.shape[-1], batch.past_known.shape[-1]) == (2, 2, 1)
    assert batch.past[0].equal(tensor[:6, :2])
    assert batch.past_known[0].equal(tensor[:6, 2:])
    assert batch.future_known[0].equal(tensor[6:10, 2:])
    assert batch.future[0].equal(tensor[6:10, :1])


@pytest.mark.parametrize(
    ("rows", "frequency", "given", "lookback", "horizon", "season"),
    [
        (144, "MS", {}, 24, 12, 12),
        (1000, "D", {}, 24, 7, 7),
        (1000, "h", {}, 168, 24, 24),
        (400, "h", {}, 116, 24, 24),
        (1000, "2h", {}, 84, 12, 12),
        (1000, "15min", {}, 192, 12, 96),
        (1000, "W-MON", {}, 104, 12, 52),
        (1000, "YS", {}, 24, 12, 1),
        (1000, "D", {"horizon": 30}, 60, 30, 7),
        (1000, "D", {"season": 20}, 40, 20, 20),
        (40, "D", {}, 10, 4, 7),
        (1000, "D", {"lookback": 5, "horizon": 3}, 5, 3, 7),
    ],
)
def test_windows_chosen_for_the_user(make_panel, rows, frequency, given, lookback, horizon, season):
    panel = make_panel([np.arange(float(rows))], frequency="D")
    from dataclasses import replace

    panel = replace(panel, schema=replace(panel.schema, frequency=frequency))
    chosen = complete(settings(**given), panel).window
    assert (chosen.lookback, chosen.horizon, chosen.season) == (lookback, horizon, season)


def test_the_data_plugin_recommends_and_the_user_decides():
    panel = sources.read("sine")
    chosen = complete(settings(), panel).window
    assert (chosen.lookback, chosen.horizon, chosen.season) == (60, 30, 1)
    chosen = complete(settings(lookback=7, horizon=8, season=9), panel).window
    assert (chosen.lookback, chosen.horizon, chosen.season) == (7, 8, 9)


def test_one_short_series_is_named_and_does_not_cut_the_windows_of_all(make_panel):
    panel = make_panel([np.arange(400.0), np.arange(400.0), np.arange(12.0)])
    window = complete(settings(), panel).window
    assert (window.lookback, window.horizon) == (24, 7)
    with pytest.raises(DataError, match=r"series 's2' has 12 rows.*1 of 3 series"):
        prepare(settings(lookback=24, horizon=7, season=7), panel)


def test_values_that_single_precision_cannot_hold(make_panel):
    panel = make_panel([np.linspace(1, 1e60, 100)])
    with pytest.raises(DataError, match="too large"):
        prepare(settings(scale="none", lookback=6, horizon=4, season=1), panel)


BAD_TRANSFORMS = {
    "in_place": ("values *= 0; return values", "return path"),
    "forward_scalar": ("return 3.0", "return path"),
    "forward_shape": ("return values[:, :1]", "return path"),
    "inverse_shape": ("return values * 1", "return path[:, :1]"),
    "state": ("return values * 1", "return path"),
    "raises": ("return 1 / 0", "return path"),
    "exits": ("raise SystemExit(0)", "return path"),
    "inverse_raises": ("return values * 1", "return 1 / 0"),
    "text": ("return values.astype(str)", "return path"),
}


@pytest.mark.parametrize("name", BAD_TRANSFORMS)
def test_a_transform_that_breaks_its_promise_is_refused(name, make_panel, tmp_path, own_registry):
    from tsformer import registry

    forward, inverse = BAD_TRANSFORMS[name]
    state = "rows" if name == "state" else "{}"
    (tmp_path / "bad.py").write_text(
        "from tsformer import Config, TransformPlugin\n"
        "class Options(Config):\n    pass\n"
        "class Bad:\n"
        "    pointwise, lost_rows = True, 0\n"
        f"    def fit(self, rows): return {state}\n"
        f"    def forward(self, values, state): {forward}\n"
        f"    def inverse(self, path, state, anchor): {inverse}\n"
        "plugin = TransformPlugin(config=Options, build=lambda config: Bad(), example=Options())\n"
    )
    registry.load_file(tmp_path / "bad.py")
    panel = make_panel([np.random.default_rng(0).normal(size=(100, 2))])
    before = panel.values.copy()

    def use():
        prepared = prepare(settings(["bad"], scale="none", lookback=6, horizon=4, season=1), panel)
        test = prepared.test
        path = np.zeros((len(test), 4, 2))
        prepared.chain.inverse(path, prepared.data, test.series.numpy(), test.origins.numpy())

    if name == "in_place":
        use()  # it may, with its own copy
    else:
        with pytest.raises(PluginError, match="transform 'bad'"):
            use()
    np.testing.assert_array_equal(panel.values, before)


def test_a_file_that_a_plugin_does_not_find_is_named(own_registry):
    def load(config):
        return open("nowhere.csv")

    register("own", DataPlugin(config=NoOptions, load=load, example=NoOptions()))
    with pytest.raises(DataError, match=r"no file .nowhere\.csv"):
        sources.read("own")


@pytest.mark.parametrize(
    ("task", "wanted"), [("forecast", "Panel"), ("classify", "Sequences"), ("sequence", "Sequences")]
)
def test_data_of_the_wrong_kind_are_the_plugins_fault(own_registry, make_panel, task, wanted):
    texts = Sequences(SequenceSchema(text="text"), ("1", "2"), texts=("one", "two"))
    panel = make_panel([np.arange(100.0)])
    given = texts if wanted == "Panel" else panel
    register("own", DataPlugin(config=NoOptions, load=lambda _: given, example=NoOptions(), tasks=set(Task)))
    chosen = resolve([Layer({"model": {"name": "transformer"}, "data": {"name": "own"}, "task": task})])
    with pytest.raises(PluginError, match=f"data 'own'.*: to {task} takes {wanted}, not {type(given).__name__}"):
        make_ready(chosen, sources.load_data(chosen.data))
    schema = panel.schema if wanted == "Panel" else texts.schema
    with pytest.raises(PluginError, match=f"data 'own'.* read {type(given).__name__}, .* fitted on {wanted}"):
        sources.read_rows(chosen, None, schema)
