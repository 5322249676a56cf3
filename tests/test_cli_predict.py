"""`tsformer predict` as a user types it: from a run and new rows to a table."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tsformer import load


def test_predict_looks_like_the_input(tsformer):
    tsformer.fit_air("--horizon", "12")
    code, out, _ = tsformer("predict", "--input", tsformer.air, "--output", "f.csv", "--plot", "f.png")
    assert (code, out) == (0, "")
    table = pd.read_csv("f.csv")
    assert list(table.columns) == ["month", "passengers"]
    assert table["month"].tolist() == [f"1961-{m:02}-01" for m in range(1, 13)]
    assert table["passengers"].between(50, 1000).all()
    assert Path("f.png").read_bytes().startswith(b"\x89PNG")


def test_predict_without_input_uses_the_runs_own_data(tsformer):
    tsformer.fit_air()
    own, given = tsformer("predict", "latest")[1], tsformer("predict", "--input", tsformer.air)[1]
    assert own == given != ""


def test_predict_reads_stdin_and_columns_by_name(tsformer, monkeypatch):
    tsformer.fit_air()
    plain = tsformer("predict", "--input", tsformer.air)[1]
    frame = pd.read_csv(tsformer.air)
    frame["more"] = 1.0
    text = frame[["more", "passengers", "month"]].to_csv(index=False)
    done = subprocess.run(
        [sys.executable, "-m", "tsformer", "predict", "--input", "-"], input=text, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == plain
    assert "more" in done.stderr


def test_predict_json(tsformer):
    tsformer.fit_air()
    code, out, _ = tsformer("predict", "--json", "--horizon", "2")
    document = json.loads(out)
    assert code == 0
    assert document["horizon"] == 2
    assert [row["month"] for row in document["forecast"]] == ["1961-01-01", "1961-02-01"]


def test_a_prefix_of_the_history_gets_its_own_dates(tsformer):
    tsformer.fit_air("--horizon", "12")
    pd.read_csv(tsformer.air).iloc[:100].to_csv("part.csv", index=False)
    out = tsformer("predict", "--input", "part.csv")[1]
    assert out.splitlines()[1].startswith("1957-05-01,")


def test_a_sine_run_takes_a_csv(tsformer):
    tsformer("fit", "--model", "transformer", "--data", "sine", *tsformer.fast)
    pd.DataFrame({"t": np.arange(100) / 60, "value": np.sin(np.arange(100) / 9)}).to_csv("in.csv", index=False)
    code, out, err = tsformer("predict", "--input", "in.csv")
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0] == "t,value"
    assert float(lines[1].split(",")[0]) == pytest.approx(100 / 60)
    assert len(lines) == 31


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--input", ""], "--input is empty"),
        (["--output", ""], "--output is empty"),
        (["--plot", ""], "--plot is empty"),
        ([""], "RUN is empty"),
    ],
)
def test_an_empty_place_is_refused(tsformer, words, said):
    tsformer("fit", "--model", "last_value", "--data", "csv", "--path", tsformer.air)
    code, out, err = tsformer("predict", *words)
    assert (code, out) == (2, "")
    assert said in tsformer.one_line(err)


def test_beyond_the_horizon(tsformer):
    tsformer.fit_air()
    code, _, err = tsformer("predict", "--horizon", "20")
    assert code == 2
    assert "--model.decoder autoregressive" in tsformer.one_line(err)
    tsformer.fit_air("--model.decoder", "autoregressive")
    code, out, _ = tsformer("predict", "--horizon", "20")
    assert code == 0
    assert out.splitlines()[-1].startswith("1962-08-01,")
    # the first steps are the same, whatever the horizon
    short = pd.read_csv(pd.io.common.StringIO(tsformer("predict", "--horizon", "5")[1]))
    long = pd.read_csv(pd.io.common.StringIO(out))
    np.testing.assert_allclose(short["passengers"], long["passengers"][:5], rtol=1e-5)


@pytest.mark.parametrize("name", ["ds", "t"])
def test_a_time_column_of_whole_numbers_survives_the_run_folder(tsformer, name):
    pd.DataFrame({name: np.arange(120), "[/]": np.sin(np.arange(120.0)), "b$": np.arange(120) % 7}).to_csv(
        "d.csv", index=False
    )
    code, out, err = tsformer("fit", "--model", "transformer", "--data", "csv", "--path", "d.csv", *tsformer.fast)
    assert code == 0, err
    assert "[/]: transformer" in err
    code, out, err = tsformer("predict")
    assert code == 0, err
    assert out.splitlines()[0] == f"{name},[/],b$"
    assert out.splitlines()[1].startswith("120,")


def test_a_second_column_of_dates_does_not_confuse_a_run(tsformer):
    days = pd.date_range("2024-01-01", periods=120)
    table = pd.DataFrame({"ds": days, "y": np.arange(120.0)})
    table.to_csv("d.csv", index=False)
    assert tsformer("fit", "--model", "transformer", "--data", "csv", "--path", "d.csv", *tsformer.fast)[0] == 0
    table.assign(date=days).to_csv("d.csv", index=False)
    code, out, err = tsformer("predict")
    assert code == 0, err
    assert out.splitlines()[1].startswith("2024-04-30,")


def test_the_data_of_a_run_are_found_from_any_folder_and_read_by_name(tsformer, monkeypatch):
    steps = np.arange(120)
    table = pd.DataFrame(
        {"ds": pd.date_range("2024-01-01", periods=120), "a": 100 + steps % 7, "b": -1.0 * (steps % 5)}
    )
    table.to_csv("d.csv", index=False)
    words = ("--path", "d.csv", "--horizon", "5", "--lookback", "14", *tsformer.fast)
    code, out, err = tsformer("fit", "--model", "transformer", "--data", "csv", *words)
    assert code == 0, err
    for word in ("2 targets (a, b)", "a: transformer", "b: last_value", "all 2: transformer"):
        assert word in err
    run = Path(out.strip()).resolve()
    before = tsformer("predict", run)[1]
    table[["ds", "b", "a"]].assign(c=1.0).to_csv("d.csv", index=False)
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    code, out, err = tsformer("predict", run)
    assert (code, out) == (0, before), err
    loaded = load(run).predict()
    assert [line.split(",")[1:] for line in before.splitlines()[1:]] == [
        [repr(float(a)), repr(float(b))] for a, b in zip(loaded["a"], loaded["b"], strict=True)
    ]
    table.rename(columns={"b": "bb"}).to_csv("../d.csv", index=False)
    code, _, err = tsformer("predict", run)
    assert code == 3
    assert "'b'" in tsformer.one_line(err)
    table.assign(ds=pd.date_range("2024-01-01", periods=120, freq="h")).to_csv("../d.csv", index=False)
    code, _, err = tsformer("predict", run)
    assert code == 3
    assert "frequency is h" in tsformer.one_line(err)
    Path("../d.csv").unlink()
    code, _, err = tsformer("predict", run)
    assert code == 3
    assert "--input" in tsformer.one_line(err)


def hours(step="h", rows=200, start="2024-01-01"):
    times = pd.date_range(start, periods=rows, freq=step)
    return pd.DataFrame({"ds": times, "y": np.sin(np.arange(rows) / 4) + 3})


@pytest.mark.parametrize(
    ("fitted", "given"), [("h", "D"), ("h", "30min"), ("D", "MS"), ("D", "h"), ("MS", "D"), ("B", "D"), ("W", "D")]
)
def test_rows_at_another_frequency_are_refused_with_both(tsformer, fitted, given):
    hours(fitted).to_csv("a.csv", index=False)
    hours(given).to_csv("b.csv", index=False)
    words = ("--horizon", "3", "--lookback", "6")
    code, _, err = tsformer("fit", "--model", "last_value", "--data", "csv", "--path", "a.csv", *words)
    assert code == 0, err
    code, out, err = tsformer("predict", "--input", "b.csv")
    assert (code, out) == (3, "")
    line = tsformer.one_line(err)
    assert f" {given}" in line
    assert f"fitted on {fitted}" in line


def test_history_and_forecast_in_a_parquet_file(tsformer):
    table = hours()
    table.to_parquet("a.parquet")
    words = ("--missing", "mask", "--horizon", "5", "--lookback", "24", "--out", "run")
    code, _, err = tsformer("fit", "--model", "last_value", "--data", "csv", "--path", "a.parquet", *words)
    assert code == 0, err
    table.loc[[3, 198], "y"] = np.nan
    table.to_parquet("b.parquet")
    code, out, err = tsformer("predict", "run", "--input", "b.parquet", "--append", "--output", "c.parquet")
    assert (code, out) == (0, ""), err
    made = pd.read_parquet("c.parquet")
    assert list(made.columns) == ["ds", "y", "kind"]
    assert made["ds"].tolist() == list(pd.date_range("2024-01-01", periods=205, freq="h"))
    assert made["kind"].tolist() == ["history"] * 200 + ["forecast"] * 5
    np.testing.assert_array_equal(made["y"][:200], table["y"])
    np.testing.assert_allclose(made["y"][200:], table["y"].iloc[-1], rtol=1e-6)
    document = json.loads(tsformer("predict", "run", "--input", "b.parquet", "--append", "--json")[1])
    assert document["forecast"][3] == {"ds": "2024-01-01T03:00:00", "y": None, "kind": "history"}


def test_parquet_without_pyarrow_is_refused_before_the_run_is_read(tsformer, monkeypatch):
    tsformer("fit", "--model", "last_value", "--data", "csv", "--path", tsformer.air)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pyarrow" else find(name))
    code, out, err = tsformer("predict", "--output", "f.parquet")
    assert (code, out) == (2, "")
    assert "pip install 'tsformer[parquet]'" in tsformer.one_line(err)


def test_stdin_cannot_be_both(tsformer):
    code, _, err = tsformer("predict", "--input", "-", "--future", "-")
    assert code == 2
    assert "stdin can be only one of them" in tsformer.one_line(err)


def test_a_missing_column_and_what_it_may_be(tsformer):
    tsformer("fit", "--model", "last_value", "--data", "csv", "--path", tsformer.air)
    pd.read_csv(tsformer.air).rename(columns={"passengers": "passenger"}).to_csv("d.csv", index=False)
    code, _, err = tsformer("predict", "--input", "d.csv")
    assert code == 3
    assert "'passengers'" in tsformer.one_line(err)
    assert "did you mean 'passenger'" in err


@pytest.mark.parametrize("flag", ["--input", "--future"])
def test_a_table_that_is_read_is_not_written_over(tsformer, flag, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("ds,y\n2024-01-01,1\n")
    code, _, err = tsformer("predict", str(tmp_path), flag, str(table), "--output", str(table))
    assert code == 2
    assert f"--output and {flag} are both {table}" in tsformer.one_line(err)
    assert table.read_text().endswith("01,1\n")


def test_tables_of_other_kinds_are_not_written(tsformer, tmp_path):
    code, _, err = tsformer("predict", str(tmp_path), "--output", str(tmp_path / "x.xlsx"))
    assert (code, list(tmp_path.iterdir())) == (2, [])
    assert ".csv, .csv.gz or .parquet, not .xlsx" in tsformer.one_line(err)


def test_parquet_holds_dates(tsformer, tmp_path):
    pytest.importorskip("pyarrow")
    tsformer.fit_air("--horizon", "3")
    assert tsformer("predict", "--input", tsformer.air, "--output", "f.parquet")[0] == 0
    months = pd.read_parquet("f.parquet")["month"]
    assert months.dtype.kind == "M"
    assert months.tolist() == pd.date_range("1961-01-01", periods=3, freq="MS").tolist()


def test_hours_that_come_twice_are_told_of(tsformer):
    hours = pd.date_range("2023-10-18", "2023-10-28 22:00", freq="h", tz="Europe/Berlin").tz_localize(None)
    pd.DataFrame({"t": hours.strftime("%Y-%m-%d %H:%M"), "y": np.arange(len(hours)) % 24.0}).to_csv(
        "h.csv", index=False
    )
    line = "fit --model last_value --data csv --path h.csv --tz Europe/Berlin --horizon 8 --out run"
    assert tsformer(*line.split())[0] == 0
    code, out, err = tsformer("predict", "run", "--output", "-")
    assert (code, out.count("2023-10-29 02:00")) == (0, 2)
    assert "the hour that comes twice when clocks in Europe/Berlin go back" in tsformer.one_line(err)
