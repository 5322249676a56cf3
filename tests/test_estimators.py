"""The Python API: scikit-learn's manners, long and wide tables, the same runs as the command line."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import tsformer
from tsformer import Config, Field, Forecaster, ModelPlugin
from tsformer.cli.app import main
from tsformer.data.panel import Schema
from tsformer.errors import DataError, PluginError, UsageError

FAST = {"model_options": {"d_model": 16, "d_ff": 16}, "train_options": {"max_steps": 3}}


@pytest.fixture(scope="module")
def air():
    path = tsformer.read("csv", path="air_passengers")
    return pd.DataFrame({"ds": path.times, "y": path.values[:, 0]})


def test_fit_predict_on_a_single_series(air):
    forecaster = Forecaster(horizon=12, **FAST).fit(air)
    table = forecaster.predict()
    assert list(table.columns) == ["ds", "y"]
    assert table["ds"].tolist() == list(pd.date_range("1961-01-01", periods=12, freq="MS"))
    assert table["y"].between(50, 1000).all()
    assert forecaster.fitted_.problem.season == 12


def test_the_textbook_sine(in_tmp):
    panel = tsformer.read("sine")
    forecaster = Forecaster("transformer", **FAST).fit(panel)
    assert (forecaster.fitted_.problem.lookback, forecaster.fitted_.problem.horizon) == (60, 30)
    table = forecaster.predict()
    np.testing.assert_allclose(table["t"], 30 + np.arange(1, 31) / 60)


def test_log_returns_of_prices(in_tmp):
    panel = tsformer.read("csv", path="brent", target="price")
    forecaster = Forecaster("transformer", horizon=10, lookback=10, transforms=["log_return"], **FAST).fit(panel)
    table = forecaster.predict()
    assert table["date"].tolist()[:4] == ["2019-08-27", "2019-08-28", "2019-08-29", "2019-08-30"]
    assert table["date"].tolist()[4] == "2019-09-02"  # over the weekend
    assert table["price"].between(40, 80).all()


def long_table():
    rng = np.random.default_rng(0)
    days = pd.date_range("2024-01-01", periods=80, freq="D")
    parts = [
        pd.DataFrame({"unique_id": name, "ds": days[start:], "y": level + rng.normal(0, 1, 80 - start), "x": 1.0})
        for name, level, start in (("a", 10.0, 0), ("b", 1000.0, 15))
    ]
    return pd.concat(parts, ignore_index=True)


def test_a_long_table():
    table = long_table()
    forecaster = Forecaster(horizon=5, lookback=10, **FAST).fit(table)
    assert forecaster.fitted_.schema.targets == ("y",)
    forecast = forecaster.predict()
    assert list(forecast.columns) == ["unique_id", "ds", "y"]
    assert forecast["unique_id"].tolist() == ["a"] * 5 + ["b"] * 5
    assert forecast.loc[forecast["unique_id"] == "a", "y"].between(0, 20).all()
    assert forecast.loc[forecast["unique_id"] == "b", "y"].between(980, 1020).all()
    only_b = forecaster.predict(table[table["unique_id"] == "b"])
    np.testing.assert_allclose(only_b["y"], forecast["y"][5:], rtol=1e-5)
    stranger = table[table["unique_id"] == "b"].assign(unique_id="c", y=lambda t: t["y"] + 5000)
    with pytest.warns(UserWarning, match="new to the model: c"):
        assert forecaster.predict(stranger)["y"].between(5980, 6020).all()


def test_a_wide_table_with_its_dates_in_the_index():
    days = pd.date_range("2024-01-01", periods=80, freq="D", name="day")
    table = pd.DataFrame({"north": np.arange(80.0), "south": -np.arange(80.0)}, index=days)
    forecast = Forecaster(horizon=4, lookback=8, **FAST).fit(table).predict(table)
    assert forecast.columns.tolist()[-2:] == ["north", "south"]
    assert forecast.shape == (4, 3)


def test_names_can_be_chosen():
    table = long_table().rename(columns={"unique_id": "shop", "ds": "day", "y": "sales"})
    forecaster = Forecaster(horizon=5, lookback=10, id_column="shop", time_column="day", targets=["sales"], **FAST)
    assert forecaster.fit(table).predict().columns.tolist() == ["shop", "day", "sales"]
    with pytest.raises(DataError, match="shp"):
        Forecaster(horizon=5, id_column="shp", **FAST).fit(table)


def test_scikit_learns_manners():
    options = {"d_model": 32}
    forecaster = Forecaster("transformer", horizon=3, model_options=options)
    assert forecaster.get_params()["horizon"] == 3
    assert clone(forecaster).set_params(horizon=4).horizon == 4
    assert clone(forecaster).get_params() == forecaster.get_params()
    assert Forecaster("no such model").model == "no such model"  # nothing happens in __init__
    with pytest.raises(NotFittedError):
        forecaster.predict()


def test_what_predict_does_not_take(air):
    forecaster = Forecaster(horizon=12, transforms="log", targets="y", **FAST).fit(air)
    for data in ("x.csv", [1, 2], air["y"]):
        with pytest.raises(UsageError, match="predict takes a table of pandas, polars or pyarrow"):
            forecaster.predict(data)
    for horizon in ("3", 2.5, True, 0, 10**30):
        with pytest.raises(UsageError, match="whole number"):
            forecaster.predict(horizon=horizon)
    assert len(forecaster.predict(horizon=np.int64(3))) == 3
    other = tsformer.read("csv", path="seattle_weather", target="wind")
    with pytest.raises(DataError, match="needs the column 'y'"):
        forecaster.predict(other)
    with pytest.raises(UsageError, match="save takes the path"):
        forecaster.save(3)


def test_evaluate_is_the_score_beside_the_naive_forecasts(air):
    table = Forecaster(horizon=12, **FAST).fit(air).evaluate()
    assert table.index.tolist() == ["tcn_transformer", "last_value", "seasonal_naive"]
    assert table.loc["seasonal_naive", "mase"] == pytest.approx(1.551, abs=0.001)


def test_save_and_load(air, tmp_path):
    forecaster = Forecaster(horizon=12, transforms=["log"], **FAST).fit(air)
    loaded = tsformer.load(forecaster.save(tmp_path / "run"))
    pd.testing.assert_frame_equal(loaded.predict(air), forecaster.predict())
    pd.testing.assert_frame_equal(loaded.evaluate(), forecaster.evaluate())
    assert clone(loaded).get_params()["transforms"] == ["log"]
    pd.testing.assert_frame_equal(clone(loaded).fit(air).predict(), forecaster.predict())
    again = tsformer.load(loaded.save(tmp_path / "again"))
    pd.testing.assert_frame_equal(again.predict(air), forecaster.predict())
    with pytest.raises(UsageError, match="fitted on rows from Python"):
        loaded.predict()


def test_the_callers_random_state_is_left_alone(air):
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    Forecaster(horizon=12, **FAST).fit(air).predict()
    assert torch.equal(before[0], torch.random.get_rng_state())
    np.testing.assert_array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002


def test_the_future_does_not_reach_the_forecast(air):
    """Garbage in the test part changes neither transforms nor weights nor what is said of the rows before it."""
    spoilt = air.copy()
    spoilt.loc[114:, "y"] = 1e6
    first, second = (Forecaster(horizon=12, **FAST).fit(table) for table in (air, spoilt))
    assert first.fitted_.chain.to_json() == second.fitted_.chain.to_json()
    for name, tensor in first.fitted_.module.state_dict().items():
        assert torch.equal(tensor, second.fitted_.module.state_dict()[name]), name
    pd.testing.assert_frame_equal(first.predict(air[:114]), second.predict(air[:114]))


def test_registered_plugins_and_models_without_parameters(air, own_registry):
    class Options(Config):
        lag: int = Field(1, gt=0, description="how many steps back to look")

    class LastValue(torch.nn.Module):
        def __init__(self, config, problem):
            super().__init__()
            self.config, self.problem = config, problem

        def forward(self, batch, truth=0.0):
            last = batch.past[:, -self.config.lag, : self.problem.targets]
            return last[:, None, :, None].expand(-1, self.problem.horizon, -1, -1)

    tsformer.register("lag", ModelPlugin(config=Options, build=LastValue, example=Options()))
    forecaster = Forecaster("lag", horizon=12).fit(air)
    assert forecaster.predict()["y"].tolist() == pytest.approx([432.0] * 12)
    scores = forecaster.evaluate()
    assert scores.loc["lag", "mae"] == pytest.approx(scores.loc["last_value", "mae"], rel=1e-5)


def test_closed_forms_are_fitted_through_the_hook(air, own_registry):
    class Options(Config):
        pass

    class Mean(torch.nn.Module):
        def __init__(self, config, problem):
            super().__init__()
            self.problem = problem
            self.register_buffer("mean", torch.zeros(problem.targets))

        def forward(self, batch, truth=0.0):
            return self.mean[:, None].expand(len(batch.past), self.problem.horizon, -1, -1)

    def fit(module, train, validation):
        module.mean.copy_(train.batch().future.mean((0, 1)))

    tsformer.register("own_mean", ModelPlugin(config=Options, build=Mean, example=Options(), fit=fit))
    value = Forecaster("own_mean", horizon=12, lookback=24).fit(air).predict()["y"][0]
    by_hand = np.mean([air["y"][o : o + 12].mean() for o in range(24, 100 - 12 + 1)])
    assert value == pytest.approx(by_hand, rel=1e-5)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"model": "transfomer"}, PluginError, "did you mean"),
        ({"model_options": {"d_modl": 3}}, UsageError, "d-modl: unknown option; did you mean 'd_model'"),
        ({"horizon": 0}, UsageError, "--window.horizon"),
        ({"horizon": 100}, DataError, "rows in all"),
        ({"transforms": ["logg"]}, PluginError, "did you mean 'log'"),
        ({"transforms": 3}, UsageError, "wrong type"),
        ({"scale": None}, UsageError, "wrong type"),
        ({"train_options": 3}, UsageError, "wrong type"),
        ({"train_options": {"seed": 3}}, UsageError, "'seed' is no option here"),
        ({"model_options": {"name": "x"}}, UsageError, "'name' is no option here"),
        ({"targets": 3}, UsageError, "targets are names"),
    ],
)
def test_errors(air, options, error, said):
    with pytest.raises(error, match=said):
        Forecaster(**options).fit(air)


@pytest.mark.parametrize(("scale", "after"), [("standard", "standard"), ("none", "none")])
def test_the_default_scaler_gives_way_to_one_among_the_transforms(air, tmp_path, scale, after):
    forecaster = Forecaster("last_value", transforms="minmax", scale=scale).fit(air)
    assert forecaster.fitted_.settings.scale is None
    assert tsformer.load(forecaster.save(tmp_path / "run")).scale == after
    with pytest.raises(UsageError, match="--scale: no effect"):
        Forecaster("last_value", transforms="minmax", scale="robust").fit(air)


def long(names, rows=40):
    times = list(pd.date_range("2020-01-01", periods=rows)) * len(names)
    ids = pd.Series([name for name in names for _ in range(rows)], dtype=object)
    return pd.DataFrame({"unique_id": ids, "ds": times, "y": np.sin(np.arange(rows * len(names)))})


def test_ids_that_are_no_plain_text(tmp_path):
    """Tuples go on as they are; line ends do not break a message; what no file can hold is refused at once."""
    table = long([("a", 1), ("b", 2, 3)])
    forecaster = Forecaster("last_value", horizon=2, lookback=3).fit(table)
    assert forecaster.predict()["unique_id"].unique().tolist() == [("a", 1), ("b", 2, 3)]
    assert forecaster.predict(table)["unique_id"].unique().tolist() == [("a", 1), ("b", 2, 3)]
    tsformer.load(forecaster.save(tmp_path / "run")).predict(table)

    with pytest.raises(DataError) as caught:
        Forecaster("last_value", horizon=2, lookback=30).fit(long(["a\nb", "c"]))
    assert "\n" not in str(caught.value)
    assert r"are too short: 'a\nb', c" in str(caught.value)

    with pytest.raises(DataError, match=r"table has the series '\\ud800', which is no text that a file can hold"):
        Forecaster("last_value").fit(long(["a", "\ud800"]))
    with pytest.raises(DataError, match=r"table has the column 'y\\udfff', which is no text"):
        Forecaster("last_value").fit(
            long(["a"]).set_axis(pd.Index(["unique_id", "ds", "y\udfff"], dtype=object), axis=1)
        )


@pytest.mark.parametrize("name", [("load", 1), 7], ids=str)
def test_columns_whose_names_are_no_text(name):
    table = long(["a"]).drop(columns="unique_id").rename(columns={"y": name})
    forecaster = Forecaster("last_value", horizon=2, lookback=3, targets=[name]).fit(table)
    assert forecaster.predict().columns.tolist() == ["ds", str(name)]
    several = long(["a", "b"]).rename(columns={"unique_id": name})
    forecaster = Forecaster("last_value", horizon=2, lookback=3, id_column=name).fit(several)
    assert forecaster.predict(several)[str(name)].unique().tolist() == ["a", "b"]


TCN = {"model_options": {"d_model": 8, "n_layers": 2}, "train_options": {"max_steps": 3}}


def test_texts_beside_the_numbers(tmp_path):
    generator = np.random.default_rng(0)
    words = generator.choice(["up", "down"], 200)
    table = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=200), "y": generator.normal(size=200)})
    table["headline"] = words
    forecaster = Forecaster("tcn", horizon=2, lookback=10, text_column="headline", **TCN).fit(table)
    assert forecaster.fitted_.words.tokenizer.vocabulary.words[4:] == ("down", "up")
    loaded = tsformer.load(forecaster.save(tmp_path / "run"))
    assert loaded.text_column == "headline"
    pd.testing.assert_frame_equal(loaded.predict(table), forecaster.predict())
    other = table.assign(headline=np.where(words == "up", "down", "up"))
    assert not np.allclose(loaded.predict(other)["y"], forecaster.predict()["y"])
    with pytest.raises(DataError, match="headline"):
        loaded.predict(table.drop(columns="headline"))


def test_the_encoder_of_an_earlier_run(air, tmp_path):
    run = Forecaster("tcn", horizon=12, lookback=24, **TCN).fit(air).save(tmp_path / "run")
    with pytest.warns(UserWarning, match="loaded .* tensors of the encoder"):
        frozen = Forecaster("tcn", horizon=6, lookback=24, init_from=run, freeze=True, **TCN).fit(air)
    kept = tsformer.load(run).fitted_.module.encoder.state_dict()
    assert all(torch.equal(kept[name], value) for name, value in frozen.fitted_.module.encoder.state_dict().items())
    assert tsformer.load(frozen.save(tmp_path / "again")).freeze


# Tables of other libraries, covariates, policies


def shops():
    rows = 60
    frame = pd.DataFrame({"shop": np.repeat(["a", "b"], rows), "day": [*pd.date_range("2024-01-01", periods=rows)] * 2})
    promo = np.random.default_rng(0).integers(0, 2, 2 * rows)
    return frame.assign(promo=promo, sold=promo * 5.0 + np.arange(2 * rows) % 7)


KNOWN = {"id_column": "shop", "time_column": "day", "targets": "sold", "horizon": 3, "lookback": 7}


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_tables_of_other_libraries_give_the_same_forecast(library):
    module = pytest.importorskip(library)
    table = shops()
    given = module.from_pandas(table) if library == "polars" else module.Table.from_pandas(table)
    expected = Forecaster("last_value", **KNOWN).fit(table).predict()
    forecaster = Forecaster("last_value", **KNOWN).fit(given)
    for made in (forecaster.predict(), forecaster.predict(given)):
        assert type(made) is type(given)
        pd.testing.assert_frame_equal(made.to_pandas(), expected, check_dtype=False)
    assert isinstance(forecaster.predict(table), pd.DataFrame)
    with pytest.raises(UsageError, match="fit takes a table of pandas, polars or pyarrow"):
        Forecaster("last_value").fit({"y": [1, 2]})


def test_a_lazy_table_is_refused():
    polars = pytest.importorskip("polars")
    with pytest.raises(UsageError, match=r"call \.collect\(\)"):
        Forecaster("last_value", **KNOWN).fit(polars.from_pandas(shops()).lazy())


def test_what_is_known_ahead(tmp_path):
    table = shops()
    forecaster = Forecaster("ridge", future_covariates="promo", **KNOWN).fit(table)
    assert forecaster.fitted_.schema.future_covariates == ("promo",)
    days = pd.date_range("2024-03-01", periods=3)
    ahead = pd.DataFrame({"shop": np.repeat(["a", "b"], 3), "day": [*days] * 2, "promo": [0, 1, 0, 1, 1, 0]})
    made = forecaster.predict(future=ahead)
    assert made["day"].tolist() == [*days] * 2
    pd.testing.assert_frame_equal(forecaster.predict(future=ahead.assign(sold="x")), made)
    pd.testing.assert_frame_equal(forecaster.predict(table, future=ahead), made)
    other = forecaster.predict(future=ahead.assign(promo=1 - ahead["promo"]))
    assert not np.allclose(other["sold"], made["sold"])
    with pytest.warns(UserWarning, match=r"not forecast: 1 of 2 series \(a\): .* lacks 1 row\(s\), .* at 2024-03-02"):
        assert forecaster.predict(future=ahead.drop(index=1))["shop"].tolist() == ["b"] * 3
    with pytest.raises(DataError, match="2024-03-02"):
        forecaster.predict(future=ahead.drop(index=[1, 4]))
    loaded = tsformer.load(forecaster.save(tmp_path / "run"))
    assert loaded.future_covariates == ("promo",)
    np.testing.assert_allclose(loaded.predict(table, future=ahead)["sold"], made["sold"], rtol=1e-5)


def test_table_options():
    table = shops().drop(index=[5, 70])
    with pytest.raises(DataError, match="missing"):
        Forecaster("last_value", **KNOWN).fit(table)
    options = {"gaps": "fill", "missing": "ffill"}
    forecaster = Forecaster("last_value", table_options=options, **KNOWN).fit(table)
    assert forecaster.predict()["day"].tolist() == [*pd.date_range("2024-03-01", periods=3)] * 2
    assert len(forecaster.predict(table)) == 6
    with pytest.raises(UsageError, match="gap"):
        Forecaster("last_value", table_options={"gap": "fill"}, **KNOWN).fit(table)
    with pytest.raises(UsageError, match="'id' is none of table_options"):
        Forecaster("last_value", table_options={"id": "shop"}, **KNOWN).fit(table)


def test_policies_of_a_table_stay_with_the_run(tmp_path):
    days = pd.date_range("2024-01-01", periods=60)
    table = pd.DataFrame({"day": days, "sold": np.arange(60.0) % 7}).astype({"sold": object})
    table.loc[[7, 30], "sold"] = [None, "-999"]
    table = table.drop(index=40)
    table.to_csv(tmp_path / "shop.csv", index=False)
    options = {"missing": "mask", "gaps": "fill", "sentinel": [-999]}
    columns = {"time_column": "day", "targets": "sold", "horizon": 3, "lookback": 7}
    fitted = Forecaster("last_value", table_options=options, **columns).fit(table)
    read = Forecaster("last_value", **columns).fit(
        tsformer.read("csv", path=str(tmp_path / "shop.csv"), time="day", target="sold", **options)
    )
    for name, forecaster in (("frame", fitted), ("panel", read)):
        loaded = tsformer.load(forecaster.save(tmp_path / name))
        for made in (loaded.predict(table), forecaster.predict(table)):
            np.testing.assert_allclose(made["sold"], 3, rtol=1e-6)
        assert loaded.get_params()["table_options"]["gaps"] == "fill"
        with pytest.raises(SystemExit) as done:
            main(["predict", str(tmp_path / name), "--input", str(tmp_path / "shop.csv")])
        assert done.value.code == 0
    document = json.loads((tmp_path / "frame" / "config.json").read_text())
    del document["schema"]["policies"]  # as a run that was written before they were kept
    assert Schema.from_json(document["schema"]).policies == {}


def test_several_columns_of_ids_keep_their_types():
    table = shops().assign(shop=np.repeat([7, 8], 60), town="x")
    table = pd.concat([table, table.assign(town="y")], ignore_index=True)
    forecaster = Forecaster("last_value", **{**KNOWN, "id_column": ["town", "shop"]}).fit(table)
    made = forecaster.predict()
    assert list(made.columns) == ["town", "shop", "day", "sold"]
    assert made["shop"].tolist() == [7] * 3 + [8] * 3 + [7] * 3 + [8] * 3
    assert made["town"].tolist() == ["x"] * 6 + ["y"] * 6
