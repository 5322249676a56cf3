"""Intervals and sample paths in the table of a forecast, on the command line, in Python and in the picture."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tsformer import Forecaster, fitting, load
from tsformer.calibration import calibrate
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.forecast_table import forecast_frame, paths_frame
from tsformer.data.panel import Schema
from tsformer.errors import DivergedError, UsageError
from tsformer.forecast import Forecast, forecast
from tsformer.predictive import Ask, Predictive

NORMAL = ("--train.output", "normal")


def fit(panel, **values):
    layer = {"model": {"name": "linear"}, "window": {"lookback": 8, "horizon": 4}, **values}
    layer["train"] = {"max_steps": 20, "output": "normal", **values.get("train", {})}
    return fitting.learn(resolve([Layer(layer)], needs_data=False), panel).fitted


def prices(make_panel, series=3, rows=90):
    rng = np.random.default_rng(2)
    return make_panel([100 * (i + 1) * np.exp(np.cumsum(0.02 * rng.standard_normal(rows))) for i in range(series)])


@pytest.mark.parametrize("transform", [[], [{"name": "log_return"}]])
def test_ends_enclose_each_other_and_come_with_the_table(make_panel, transform):
    panel = prices(make_panel)
    fitted = fit(panel, transform=transform)
    made = forecast(fitted, panel, 3, ask=Ask((80.0, 99.5), paths=5))
    assert made.quantiles.shape == (3, 3, 1, 4)
    assert (np.diff(made.quantiles, axis=-1) > 0).all()
    assert made.paths.shape == (3, 5, 3, 1)
    table = made.to_frame()
    assert list(table.columns) == ["id", "ds", "y0", "y0_lo_80", "y0_hi_80", "y0_lo_99.5", "y0_hi_99.5"]
    assert np.array_equal(table["y0_lo_99.5"], made.quantiles[..., 0, 0].ravel())
    assert (table["y0_lo_80"] < table["y0_hi_80"]).all()
    assert np.array_equal(table["y0"], forecast(fitted, panel, 3).to_frame()["y0"])
    history = made.with_history()
    assert list(history.columns) == [*table.columns, "kind"]
    assert history["y0_lo_80"].isna().equals(history["kind"] == "history")
    paths = made.to_paths_frame()
    assert list(paths.columns) == ["id", "ds", "sample", "y0"]
    assert len(paths) == 3 * 5 * 3
    one = paths[(paths["id"] == "s1") & (paths["sample"] == 4)]
    assert np.array_equal(one["y0"], made.paths[1, 3, :, 0])
    assert one["ds"].tolist() == table.loc[table["id"] == "s1", "ds"].tolist()


def test_a_series_has_the_same_intervals_alone_and_among_others(make_panel):
    from tsformer.data.selection import selected

    panel = prices(make_panel)
    fitted, ask = fit(panel, transform=[{"name": "log_return"}]), Ask((80.0,), paths=2, samples=100)
    together = forecast(fitted, panel, ask=ask)
    for series in range(3):
        alone = forecast(fitted, selected(panel, np.arange(3) == series), ask=ask)
        np.testing.assert_allclose(alone.quantiles[0], together.quantiles[series], rtol=1e-5)
        np.testing.assert_allclose(alone.paths[0], together.paths[series], rtol=1e-5)


def test_ends_that_are_not_finite_stop_no_other_series(make_panel, monkeypatch):
    panel = prices(make_panel)
    fitted = fit(panel)

    def wild(fitted, windows, *rest, **options):
        quantiles = np.zeros((len(windows), 4, 1, 2))
        quantiles[len(windows) - 2, 0, 0, 1] = np.inf
        return Predictive(np.zeros((len(windows), 4, 1)), quantiles)

    monkeypatch.setattr("tsformer.forecast.predictive", wild)
    with pytest.raises(DivergedError):  # of three, two and one series the last but one
        forecast(fitted, panel, ask=Ask((80.0,)))
    monkeypatch.setattr(
        "tsformer.forecast.predictive",
        lambda fitted, windows, *rest, **options: (
            wild(fitted, windows) if len(windows) == 3 else Predictive(np.zeros((2, 4, 1)), np.zeros((2, 4, 1, 2)))
        ),
    )
    made = forecast(fitted, panel, ask=Ask((80.0,)))
    assert made.history.ids == ("s0", "s2")
    assert made.notes[0].startswith("not forecast: 1 of 3 series (s1): the forecast of series 's1' is not finite")


def test_a_model_of_points_has_conformal_intervals(make_panel):
    panel = prices(make_panel, rows=200)
    layer = {"model": {"name": "last_value"}, "window": {"lookback": 8, "horizon": 4}}
    learned = fitting.learn(resolve([Layer(layer)], needs_data=False), panel)
    bare = replace(learned.fitted, calibration=None)
    with pytest.raises(UsageError, match="this run holds no errors from which intervals could be made"):
        forecast(bare, panel, ask=Ask((80.0,)))
    fitted = replace(bare, calibration=calibrate(bare, learned.prepared))
    made = forecast(fitted, panel, 3, ask=Ask((80.0, 95.0)))
    assert (np.diff(made.quantiles, axis=-1) > 0).all()
    lower, upper = made.interval(80.0)
    np.testing.assert_allclose(upper - made.values, made.values - lower)
    assert (np.diff(upper - lower, axis=1) > 0).all()  # the last value is the worse the further ahead
    assert ((upper - lower)[2] > (upper - lower)[0]).all()  # three times the price, three times the error
    for kind in ("conformal", "adaptive"):
        other = forecast(fitted, panel, 3, ask=Ask((80.0, 95.0)), intervals=kind)
        assert np.array_equal(other.quantiles, made.quantiles) == (kind == "conformal")
    assert list(made.to_frame().columns)[2:5] == ["y0", "y0_lo_80", "y0_hi_80"]


def test_names_that_are_taken_get_another_one():
    schema = Schema(targets=("y", "y_lo_80", "sample"), time="y_hi_80", id=None, frequency=1)
    ends = {80.0: (np.zeros((1, 2, 3)), np.ones((1, 2, 3)))}
    times = [pd.Index([1, 2])]
    table = forecast_frame(schema, [""], times, np.full((1, 2, 3), 0.5), intervals=ends)
    assert list(table.columns) == [
        *["y_hi_80", "y", "y_lo_80_", "y_hi_80_", "y_lo_80", "y_lo_80_lo_80", "y_lo_80_hi_80"],
        *["sample", "sample_lo_80", "sample_hi_80"],
    ]
    assert table["y_lo_80_"].tolist() == [0, 0]
    assert table["y_hi_80_"].tolist() == [1, 1]
    paths = paths_frame(schema, [""], times, np.zeros((1, 2, 2, 3)))
    assert list(paths.columns) == ["y_hi_80", "sample_", "y", "y_lo_80", "sample"]
    assert paths["sample_"].tolist() == [1, 1, 2, 2]
    assert paths["y_hi_80"].tolist() == [1, 2, 1, 2]


def test_paths_of_several_id_columns_and_of_a_table_without_any_column_but_targets():
    from tsformer.data.identity import join_id

    schema = Schema(targets=("y",), time=None, id="id", frequency=1, id_columns=("shop", "item"))
    ids = [join_id(("a", "b")), join_id(("a", "c"))]
    table = paths_frame(schema, ids, [], np.arange(12.0).reshape(2, 3, 2, 1))
    assert list(table.columns) == ["shop", "item", "sample", "y"]
    assert table["y"].tolist() == list(range(12))
    assert table["item"].tolist() == 6 * ["b"] + 6 * ["c"]
    bare = paths_frame(replace(schema, id=None, id_columns=()), [""], [], np.zeros((1, 2, 3, 1)))
    assert bare.to_dict("list") == {"sample": [1, 1, 1, 2, 2, 2], "y": [0.0] * 6}


def test_without_paths_there_is_no_table_of_them(make_panel):
    panel = make_panel([np.arange(9.0)])
    with pytest.raises(UsageError, match="no sample paths were asked for"):
        Forecast(np.zeros((1, 2, 1)), [panel.times[:2]], panel).to_paths_frame()


def test_predict_with_levels(tsformer):
    tsformer.fit_air("--horizon", "12", *NORMAL)
    words = ("--levels", "95,80", "--output", "f.csv", "--plot", "f.png", "--output-paths", "p.csv", "--paths", "20")
    code, out, err = tsformer("predict", *words)
    assert (code, out) == (0, ""), err
    assert "240 rows of sample paths in p.csv" in err
    table = pd.read_csv("f.csv")
    ends = ["passengers_lo_80", "passengers_hi_80", "passengers_lo_95", "passengers_hi_95"]
    assert list(table.columns) == ["month", "passengers", *ends]
    order = table[["passengers_lo_95", "passengers_lo_80", "passengers", "passengers_hi_80", "passengers_hi_95"]]
    assert (np.diff(order, axis=1) > 0).all()
    plain = pd.read_csv(pd.io.common.StringIO(tsformer("predict")[1]))
    assert plain.equals(table[["month", "passengers"]])
    paths = pd.read_csv("p.csv")
    assert list(paths.columns) == ["month", "sample", "passengers"]
    assert paths["sample"].nunique() == 20
    code, out, _ = tsformer("predict", "--levels", "80", "--json", "--append")
    document = json.loads(out)
    assert (document["levels"], document["intervals"]) == ([80.0], "native")
    assert document["forecast"][0]["passengers_lo_80"] is None
    assert document["forecast"][-1]["passengers_lo_80"] == table["passengers_lo_80"].iloc[-1]
    made = load(next(Path("runs").iterdir())).predict(levels=[80, 95])
    assert list(made.columns) == list(table.columns)
    np.testing.assert_array_equal(made[ends], table[ends])


def test_what_is_drawn_follows_from_the_seed(tsformer):
    tsformer.fit_air("--horizon", "12", *NORMAL, "--transform", "log_return")
    line = ("predict", "--levels", "80", "--samples", "50")
    first, again, other = (tsformer(*line, *more)[1] for more in ((), ("--seed", "0"), ("--seed", "1")))
    assert first == again != other
    narrow = pd.read_csv(pd.io.common.StringIO(first))
    width = narrow["passengers_hi_80"] - narrow["passengers_lo_80"]
    assert width.iloc[-1] > 1.5 * width.iloc[0]  # it grows with the path
    code, _, err = tsformer("predict", "--levels", "99.5", "--samples", "50")
    assert code == 2
    assert "too few paths for an interval of 99.5 %: at least 399" in err
    assert tsformer("predict", "--levels", "99.8", "--quiet")[0] == 0  # as many as it takes


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--levels 0", "in percent"),
        ("--levels 100", "in percent"),
        ("--levels 80,80", "names 80 twice"),
        ("--levels eighty", "in percent"),
        ("--levels 0.8", "in percent, from 1 to below 100, with commas between them: 80,95; not '0.8'"),
        ("--levels=", "in percent"),
        ("--levels 80 --intervals bootstrap", "--intervals must be one of native, conformal, adaptive"),
        ("--levels 80 --samples 0", "samples"),
        ("--levels 80 --seed -1", "seed"),
        ("--samples 9 --intervals native --seed 1", "--intervals and --samples and --seed have no effect without"),
        ("--paths 9", "say where the paths go, with --output-paths FILE"),
        ("--output-paths p.csv --samples 9", "--samples has no effect without --levels"),
        ("--output-paths p.csv --paths 0", "paths"),
        ("--output-paths -", "stdout is for the forecasts"),
        ("--output-paths=", "--output-paths is empty"),
        ("--output-paths p.xlsx", ".csv, .csv.gz or .parquet"),
        ("--output-paths p.csv --output ./p.csv", "--output and --output-paths are both p.csv"),
    ],
)
def test_what_is_asked_wrongly_is_said_before_the_run_is_read(tsformer, words, said):
    code, out, err = tsformer("predict", "no such run", *words.split())
    assert (code, out) == (2, "")
    assert said in tsformer.one_line(err)


def test_points_have_no_paths_and_a_classifier_has_no_levels(tsformer):
    tsformer("fit", "--model", "last_value", "--data", "csv", "--path", tsformer.air, "--horizon", "12")
    code, _, err = tsformer("predict", "--output-paths", "p.csv", "--quiet")
    assert code == 2
    assert "fit with --train.output normal or quantiles" in tsformer.one_line(err)
    code, _, err = tsformer("predict", "--levels", "80", "--intervals", "native", "--quiet")
    assert code == 2
    assert "take --intervals conformal" in tsformer.one_line(err)
    texts = "--data text --path reviews --text review --label sentiment"
    fit = f"fit --task classify --model lstm {texts} --max-steps 1 --out labels --quiet"
    code, _, err = tsformer(*fit.split())
    assert code == 0, err
    for words in ("--levels 80", "--output-paths p.csv"):
        code, _, err = tsformer("predict", "labels", *words.split())
        assert code == 2
        assert f"{words.split()[0]} has no meaning for a run whose task is classify" in tsformer.one_line(err)


def test_the_forecaster_gives_the_same_columns():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=150), "y": rng.normal(size=150)})
    options = {"train_options": {"output": "normal", "max_steps": 10}, "horizon": 3, "lookback": 10}
    forecaster = Forecaster("linear", **options).fit(table)
    made = forecaster.predict(levels=[95, 80])
    assert list(made.columns) == ["ds", "y", "y_lo_80", "y_hi_80", "y_lo_95", "y_hi_95"]
    assert list(forecaster.predict().columns) == ["ds", "y"]
    with pytest.raises(UsageError, match="in percent"):
        forecaster.predict(levels=[0.8])
    with pytest.raises(UsageError, match="--intervals must be one of"):
        forecaster.predict(levels=[80], intervals="best")


def test_bands_in_the_picture(make_panel, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    from tsformer.report import plots

    figures = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *args, **options: figures.append(figure))
    panel = prices(make_panel)
    fitted = fit(panel)
    made = forecast(fitted, panel, ask=Ask((50.0, 80.0, 90.0, 95.0)))
    plots.plot_forecast(panel, made, tmp_path / "f.png", "linear")
    axis = figures[0].axes[1]
    labels = [text.get_text() for text in figures[0].axes[0].get_legend().get_texts()]
    assert labels == ["history", "forecast", "80 %", "90 %", "95 %"]  # three shades can be told apart
    narrow, _, wide = axis.collections
    assert narrow.get_zorder() > wide.get_zorder()
    corners = wide.get_paths()[0].vertices[:, 1]
    assert corners.min() == pytest.approx(made.interval(95.0)[0][1].min())
    assert corners.max() == pytest.approx(made.interval(95.0)[1][1].max())
    result = fitting.fit(fitted.settings, panel)
    plots.plot_test(result, tmp_path / "f.png")
    assert [text.get_text() for text in figures[1].axes[0].get_legend().get_texts()][-2:] == ["80 %", "95 %"]
    # a last value that is missing leaves the rest of the bands there
    gap = panel.values.copy()
    gap[panel.rows(0).stop - 1] = np.nan
    masked = replace(panel, values=gap, masked=True)
    plots.plot_forecast(masked, replace(made, history=masked), tmp_path / "f.png", "linear")
    vertices = figures[2].axes[0].collections[0].get_paths()[0].vertices
    assert np.isfinite(vertices).all()
    assert len(np.unique(vertices[:, 0])) == 4
    assert re.match("linear: forecast of 4 steps", figures[2].get_suptitle())
