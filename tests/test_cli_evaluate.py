"""`tsformer evaluate`: the same scores as the fit's, parts of them, and rows that came later."""

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest


def table(rows, start="2020-01-01", series=("a", "b")):
    parts = []
    for place, name in enumerate(series):
        step = np.arange(rows)
        values = 50 + 10 * place + 8 * np.sin(2 * np.pi * step / 7) + np.random.default_rng(place).normal(size=rows)
        days = pd.date_range(start, periods=rows).astype(str)
        parts.append(pd.DataFrame({"shop": name, "day": days, "sold": values.round(3)}))
    return pd.concat(parts)


@pytest.fixture
def run(tsformer):
    table(140).to_csv("shops.csv", index=False)
    line = "fit --model ridge --data csv --path shops.csv --id shop --lookback 14 --horizon 7 --out run --json"
    code, out, err = tsformer(*line.split())
    assert code == 0, err
    return json.loads(out)


def scores(tsformer, *words):
    code, out, err = tsformer("evaluate", "run", *words)
    assert code == 0, err
    return pd.read_csv(io.StringIO(out)), err


def test_the_test_part_is_scored_as_it_was_by_the_fit(tsformer, run):
    found, _ = scores(tsformer, "--levels", "80,95")
    assert found["model"].tolist()[:3] == ["ridge", "last_value", "seasonal_naive"]
    by_model = found.set_index("model")
    for name in ("mae", "rmse", "mase", "smape", "mape", "rmsse", "bias", "windows"):
        assert by_model.loc["ridge", name] == pytest.approx(run["test"][name], rel=1e-6)
        assert by_model.loc["seasonal_naive", name] == pytest.approx(run["baselines"]["seasonal_naive"][name])
    naive, own = by_model.loc["seasonal_naive", "mase"], by_model.loc["ridge", "mase"]
    assert by_model.loc["ridge", "skill"] == pytest.approx(1 - own / naive)
    assert 0.6 < by_model.loc["ridge", "coverage_80"] <= 1
    assert by_model.loc["ridge", "width_95"] > by_model.loc["ridge", "width_80"]


def test_parts_average_to_the_whole(tsformer, run):
    whole = run["test"]
    steps, _ = scores(tsformer, "--by", "horizon")
    own = steps[steps["model"] == "ridge"]
    assert own["step"].tolist() == list(range(1, 8))
    assert own["mae"].mean() == pytest.approx(whole["mae"])
    assert own["bias"].mean() == pytest.approx(whole["bias"])
    series, _ = scores(tsformer, "--by", "series")
    own = series[series["model"] == "ridge"]
    assert own["shop"].tolist() == ["a", "b"]
    assert own["mase"].mean() == pytest.approx(whole["mase"])
    assert own["windows"].sum() == whole["windows"]
    targets, _ = scores(tsformer, "--by", "target")
    assert targets[targets["model"] == "ridge"]["target"].tolist() == ["sold"]


def test_columns_of_ids_stay_apart_and_beside_those_of_scores(tsformer):
    own = pd.concat([table(60).assign(mae=f"{size}/x") for size in (1, 2)]).rename(columns={"shop": "model"})
    own.to_csv("shops.csv", index=False)
    line = "fit --model last_value --data csv --path shops.csv --id model --id mae --lookback 14 --horizon 7 --out run"
    assert tsformer(*line.split())[0] == 0
    found, _ = scores(tsformer, "--by", "series")
    assert found.columns.tolist()[:4] == ["model", "model_", "mae_", "mae"]
    first = found[found["model"] == "last_value"]
    assert list(zip(first["model_"], first["mae_"], strict=True)) == [(m, f"{n}/x") for n in (1, 2) for m in "ab"]


def test_a_level_that_can_be_is_there_beside_one_that_cannot(tsformer, run):
    alone, _ = scores(tsformer, "--levels", "80")
    beside, err = scores(tsformer, "--levels", "80,99.99")
    for name in ("coverage_80", "width_80", "msis_80"):
        assert beside.loc[0, name] == alone.loc[0, name]
    assert beside.loc[0, ["coverage_99.99", "wql"]].isna().all()
    assert err.count("note: ridge: no interval of 99.99 % around 44 of 44 forecasts") == 1
    assert "no interval of 80 %" not in err


def test_zeros_have_no_mape_and_that_is_said(tsformer, run):
    later = table(80)
    later.loc[later["day"] == later["day"].max(), "sold"] = 0.0
    later.to_csv("later.csv", index=False)
    found, err = scores(tsformer, "--input", "later.csv")
    assert f"MAPE leaves out 2 of {14 * (80 - 14 - 7 + 1)} values, which are 0" in err
    assert np.isfinite(found.loc[0, "mape"])


def test_later_rows_and_every_forecast_of_them(tsformer, run):
    later = table(200).groupby("shop").tail(60)
    later.to_csv("later.csv", index=False)
    found, err = scores(tsformer, "--input", "later.csv", "--output", "forecasts.csv")
    assert "on which the run was fitted" not in err
    assert found.loc[0, "windows"] == 2 * (60 - 14 - 7 + 1)
    forecasts = pd.read_csv("forecasts.csv")
    own = forecasts[forecasts["model"] == "ridge"]
    assert len(own) == 7 * found.loc[0, "windows"]
    assert (own["y"] - own["forecast"]).abs().mean() == pytest.approx(found.loc[0, "mae"])
    code, again, _ = tsformer("evaluate", "run", "--input", "later.csv", "--json", "--quiet")
    assert code == 0
    assert json.loads(again)["scores"][0]["mae"] == pytest.approx(found.loc[0, "mae"])


def test_rows_of_the_fit_are_told(tsformer, run):
    _, err = scores(tsformer, "--input", "shops.csv")
    assert "forecasts are of times on which the run was fitted" in err


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (["--by", "day"], 2, "--by must be series, horizon or target"),
        (["--output", "-"], 2, "name a file for the forecasts"),
        (["--intervals", "conformal"], 2, "no effect without --levels"),
        (["--levels", "80", "--intervals", "native"], 2, "error: --intervals native needs a model that says how"),
        (["--input", "short.csv"], 3, "give more of them"),
        (["--input", "none.csv"], 3, "none.csv"),
        (["--levels", "99.99"], 0, "note: ridge: no interval of 99.99 % around 44 of 44 forecasts: an interval of"),
    ],
)
def test_what_cannot_be(tsformer, run, words, code, line):
    table(15).to_csv("short.csv", index=False)
    found, _, err = tsformer("evaluate", "run", *words)
    assert found == code
    assert "Traceback" not in err
    assert line in err


def test_a_classifier_is_refused(tsformer):
    words = "fit --model bag_of_words --data text --path reviews --text review --label sentiment --out labels"
    assert tsformer(*words.split())[0] == 0
    code, _, err = tsformer("evaluate", "labels")
    assert code == 2
    assert "the task of this run is classify" in tsformer.one_line(err)
    assert Path("labels/manifest.json").is_file()
