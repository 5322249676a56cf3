"""`tsformer backtest`: several models on one line, each with options of its own, and what is printed and written."""

import json

import numpy as np
import pandas as pd
import pytest

from tsformer.cli import aliases
from tsformer.errors import UsageError


@pytest.fixture
def table(in_tmp):
    """Two series of 80 days with a season of 7."""
    days = pd.date_range("2024-01-01", periods=80).strftime("%Y-%m-%d")
    rng = np.random.default_rng(0)
    parts = [
        pd.DataFrame(
            {"shop": shop, "day": days, "sold": level + 3 * np.sin(np.arange(80) * 0.9) + rng.normal(0, 0.5, 80)}
        )
        for shop, level in (("a", 20), ("b", 50))
    ]
    pd.concat(parts).to_csv(in_tmp / "t.csv", index=False)
    return "t.csv"


@pytest.fixture
def backtest(tsformer, table):
    """A line over the table, with small windows."""

    def line(*words):
        return tsformer(
            "backtest", "--data", "csv", "--path", table, "--horizon", "4", "--lookback", "12", "--origins", "3", *words
        )

    return line


def test_a_leaderboard_on_stdout_and_every_forecast_in_a_table(backtest, in_tmp):
    code, out, err = backtest("--model", "ridge", "--model", "b=ridge", "--b.lookback", "21", "--output", "f.csv")
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0].startswith("model,mase,smape,")
    assert {line.split(",")[0] for line in lines[1:]} >= {"ridge", "b", "last_value", "seasonal_naive"}
    assert "note: 3 origins, 4 rows apart, horizon 4, fitted once, before the first" in err
    assert "less MASE than seasonal_naive" in err
    assert "forecasts in f.csv" in err
    table = pd.read_csv("f.csv")
    assert list(table.columns) == ["shop", "origin", "day", "step", "model", "y", "forecast"]
    own = table[(table.model == "b") & (table.shop == "a")]
    assert own.origin.iloc[[0, 4, 8]].tolist() == ["2024-03-08", "2024-03-12", "2024-03-16"]
    assert own.day.iloc[-1] == "2024-03-20"
    assert own.step.tolist() == [1, 2, 3, 4] * 3
    whole = pd.read_csv("t.csv").merge(own, on=["shop", "day"])
    np.testing.assert_allclose(whole.sold, whole.y)


def test_json_is_one_object(backtest):
    code, out, _ = backtest(
        "--model", "ridge", "--json", "--levels", "50", "--refit", "2", "--quiet", "--metric", "mae"
    )
    found = json.loads(out)
    assert code == 0
    assert (found["schema"], found["series"], found["horizon"], found["origins"], found["fits"]) == (1, 2, 4, 3, 2)
    assert found["metric"] == "mae"
    assert found["levels"] == [50.0]
    first = found["leaderboard"][0]
    assert first["fits"] == 2
    assert 0 <= first["coverage_50"] <= 1
    assert first["wql"] > 0
    assert len(found["by_origin"]["ridge"]) == 3
    assert found["failures"] == []


def test_it_goes_on_where_it_was(backtest, in_tmp):
    first = backtest("--model", "ridge", "--out", "kept")
    assert first[0] == 0, first[2]
    again = backtest("--model", "ridge", "--out", "kept")
    assert again[1].split(",")[:5] == first[1].split(",")[:5]
    code, _, err = backtest("--model", "ridge", "--out", "kept", "--step", "2")
    assert code == 2
    assert "'kept' holds a backtest with other origins" in err


def test_a_run_is_not_fitted_again(backtest, tsformer, table):
    fit = ("fit", "--data", "csv", "--path", table, "--model", "ridge", "--horizon", "4", "--lookback", "12")
    assert tsformer(*fit, "--out", "done")[0] == 0
    code, out, err = backtest("--run", "done", "--run", "again=done", "--model", "mean", "--json")
    assert code == 0, err
    rows = {row["model"]: row for row in json.loads(out)["leaderboard"]}
    assert (rows["done"]["fits"], rows["mean"]["fits"]) == (0, 1)
    assert rows["done"]["mase"] == rows["again"]["mase"]
    code, out, _ = tsformer("backtest", "--run", "done", "--origins", "3", "--json", "--quiet")  # its own data
    assert json.loads(out)["leaderboard"][0]["mase"] == rows["done"]["mase"] or code == 0
    code, _, err = backtest("--run", "done", "--run", "done")
    assert code == 2
    assert "two models are called 'done'" in err


def test_runs_alone_are_measured_on_the_rows_that_the_line_names(tsformer, table):
    fit = f"fit --model ridge --data csv --path {table} --id shop --horizon 4 --lookback 12 --out run --quiet"
    assert tsformer(*fit.split())[0] == 0
    other = pd.read_csv(table).assign(sold=lambda rows: rows["sold"] * 1000)
    other.to_csv("other.csv", index=False)
    found = {}
    for name in ("t", "other"):
        line = f"backtest --run run --data csv --path {name}.csv --id shop --origins 2 --horizon 3 --json"
        code, out, err = tsformer(*line.split())
        assert code == 0, err
        found[name] = json.loads(out)
        assert found[name]["horizon"] == 3
    errors = {name: {row["model"]: row["mae"] for row in each["leaderboard"]} for name, each in found.items()}
    assert errors["other"]["last_value"] == pytest.approx(1000 * errors["t"]["last_value"])
    assert errors["other"]["run"] > 100 * errors["t"]["run"]
    code, out, err = tsformer("backtest", "--run", "run", "--data", "csv", "--path", "none.csv")
    assert (code, out) == (3, "")
    for words in (["--max-steps", "5"], ["--transform", "log"]):
        code, _, err = tsformer("backtest", "--run", "run", *words)
        assert code == 2
        assert "runs are not fitted again" in tsformer.one_line(err)


def test_a_model_that_fails_is_named_and_the_code_says_so(backtest, tsformer, in_tmp):
    broken = tsformer.local_model.replace(
        "past = ", "raise ValueError('no answer') if len(batch.past) > 5 else 0; past = "
    )
    (in_tmp / "broken.py").write_text(broken)
    words = ("--plugin", "broken.py", "--model", "broken", "--max-steps", "2")
    code, out, err = backtest(*words, "--model", "ridge", "--quiet")
    assert code == 5
    assert "ridge," in out
    assert "warning: broken has no forecast of 6 window(s) at origins 1, 2, 3: model 'broken'" in err
    code, out, err = backtest(*words)
    assert (code, out) == (5, "")
    assert "error: broken: model 'broken'" in err


def test_a_lookback_that_leaves_nothing_to_learn_from(backtest):
    code, _, err = backtest("--model", "ridge", "--model", "long=ridge", "--long.lookback", "70")
    assert code == 3
    assert "a window of 70 + 4 rows to learn from need" in err


def test_options_for_one_of_several_models(backtest):
    words = ("--model", "a=tcn_transformer", "--model", "b=tcn_transformer", "--max-steps", "2", "--model.d-model", "8")
    words = (
        *words,
        "--model.d-ff",
        "8",
        "--a.train.lr",
        "0.01",
        "--b.transform",
        "log",
        "--b.scale",
        "none",
        "--refit",
    )
    code, out, err = backtest(*words, "never", "--a.output", "normal", "--levels", "50", "--json")
    assert code == 0, err
    assert {row["model"] for row in json.loads(out)["leaderboard"]} >= {"a", "b"}


class TestAliases:
    """What a line says of its models."""

    def settings(self, *words, **more):
        options, _ = aliases.added(words)
        return aliases.settings_of(**aliases.pre_read(words, options), needs_data=False, **more)

    def test_each_has_its_own(self):
        found = self.settings(
            *("--model", "a=tcn", "--model", "b=tcn", "--model", "ridge", "--lookback", "30", "--transform", "log"),
            *("--a.d-model=5", "--b.lookback", "60", "--b.lr", "0.1", "--a.transform", "asinh"),
            *("--a.transform.asinh.scale", "3", "--b.train.max-steps", "7", "--b.output", "normal"),
            *("--b.short", "pad", "--ridge.scale", "none"),
        )
        assert list(found) == ["a", "b", "ridge"]
        assert [each.window.lookback for each in found.values()] == [30, 60, 30]
        assert found["a"].model.config.d_model == 5
        assert found["b"].model.config.d_model != 5
        assert (found["b"].train.lr, found["b"].train.max_steps, found["b"].train.output) == (0.1, 7, "normal")
        assert found["a"].train.lr == 1e-3
        assert found["b"].window.short == "pad"
        assert [[chosen.name for chosen in each.transforms] for each in found.values()] == [["asinh"], ["log"], ["log"]]
        assert found["a"].transforms[0].config.scale == 3
        assert found["ridge"].scale is None

    def test_a_file_serves_the_models_of_its_plugin(self, in_tmp):
        (in_tmp / "c.toml").write_text('model = {name = "tcn", d_model = 9}\n[window]\nlookback = 40\n')
        found = self.settings("--config", "c.toml", "--model", "a=tcn", "--model", "ridge")
        assert found["a"].model.config.d_model == 9
        assert found["ridge"].window.lookback == 40
        assert list(self.settings("--config", "c.toml")) == ["tcn"]

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("--model", "tcn", "--model", "tcn"), "two models are called 'tcn'; give them names: --model first=tcn"),
            (("--model", "train=tcn"), "'train' stands for other options"),
            (("--model", "A=tcn"), "a name has small letters"),
            (("--model", "=tcn"), "give the name of a plugin, or name=plugin"),
            (("--model", "one=tcn", "--onn.d-model", "3"), "no model is called 'onn'; did you mean 'one'"),
            (("--model", "tcn", "--model", "ridge", "--model.d-model", "3"), "--model.d-model is no option of ridge"),
            (("--model", "tcm"), "did you mean 'tcn'"),
            (("--model", "a=tcn", "--a.d-model", "x"), "--a.d-model: input should be a valid integer"),
        ],
    )
    def test_faults(self, words, said):
        with pytest.raises(Exception, match=said) as caught:
            self.settings(*words)
        assert caught.value.exit_code in (2, 5)

    def test_all_faults_at_once(self):
        with pytest.raises(UsageError) as caught:
            self.settings(
                *("--model", "a=tcn", "--model", "b=tcn", "--a.d-model", "x", "--b.train.lr", "y", "--lookback", "z"),
            )
        lines = str(caught.value).splitlines()
        assert len(lines) == 3
        assert sum("--window.lookback" in line for line in lines) == 1

    def test_help_shows_the_options_of_each(self, tsformer):
        code, out, _ = tsformer("backtest", "--model", "a=tcn", "--model", "ridge", "--help")
        assert code == 0
        assert "--a.d-model" in out
        assert "--ridge.normalise" in out
        assert "--origins" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "nothing to measure: name models"),
        (("--model", "ridge", "--refit", "often"), "--refit must be never, every, or a number of origins"),
        (("--model", "ridge", "--protocol", "ltsf"), "--origins: --protocol says where the origins are"),
        (("--model", "ridge", "--split", "1,2,3"), "--split is of a protocol"),
        (("--model", "ridge", "--output", "-"), "stdout is for the leaderboard"),
        (("--model", "ridge", "--intervals", "conformal"), "has no effect without --levels"),
        (("--model", "ridge", "--levels", "120"), "--levels are in percent"),
        (("--model", "ridge", "--metric", "mass"), "did you mean 'mase'"),
        (("--model", "ridge", "--output", "f.xlsx"), "tables are written as"),
    ],
)
def test_lines_that_are_refused(backtest, tsformer, words, said):
    code, _, err = backtest(*words)
    assert code == 2
    assert said in err
