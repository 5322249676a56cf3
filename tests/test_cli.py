"""The command line as a user types it: outputs, exit codes, one line for each error."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tsformer import load
from tsformer.cli.app import main

FAST = ["--max-steps", "3", "--model.d-model", "16", "--model.d-ff", "16"]
AIR = Path(__file__).parent.parent / "datasets" / "air_passengers.csv"


@pytest.fixture
def tsformer(capsys, in_tmp, own_registry):
    """Run a command line in this process: its exit code, stdout and stderr."""

    def run(*words):
        with pytest.raises(SystemExit) as caught:
            main([str(word) for word in words])
        out, err = capsys.readouterr()
        return caught.value.code, out, err

    return run


def fit_air(tsformer, *words):
    code, out, err = tsformer("fit", "--model", "tcn_transformer", "--data", "csv", "--path", AIR, *FAST, *words)
    assert code == 0, err
    return out, err


def one_line(err):
    lines = err.strip().splitlines()
    assert len(lines) == 1, err
    assert "Traceback" not in err
    return lines[0]


# --- what works ---


def test_fit_prints_the_run_on_stdout_and_the_score_on_stderr(tsformer):
    code, out, err = tsformer("fit", "--model", "tcn_transformer", "--data", "sine", *FAST)
    assert code == 0
    folder = Path(out.strip())
    assert folder.parent.name == "runs"
    assert re.fullmatch(r"\d{8}-\d{6}-tcn_transformer-sine-[0-9a-f]{4}", folder.name)
    assert (folder / "manifest.json").is_file()
    assert (folder / "forecast.png").read_bytes().startswith(b"\x89PNG")
    for word in ("tcn_transformer", "last_value", "seasonal_naive", "MASE", "332 windows of 30 steps"):
        assert word in err


def test_fit_json(tsformer):
    out, _ = fit_air(tsformer, "--horizon", "12", "--json")
    document = json.loads(out)
    keys = {"mae", "rmse", "mase", "smape", "windows"}
    assert document["schema"] == 1
    assert document["task"] == "forecast"
    assert Path(document["run"]).is_dir()
    assert (document["model"], document["data"], document["season"]) == ("tcn_transformer", "csv", 12)
    assert document["steps"] == 3
    assert document["parameters"] > 0
    assert document["seconds"] > 0
    assert set(document["test"]) == set(document["by_target"]["passengers"]) == keys
    assert document["test"]["windows"] == 30 - 12 + 1
    assert {name: set(values) for name, values in document["baselines"].items()} == {
        "last_value": keys,
        "seasonal_naive": keys,
    }
    assert document["baselines"]["seasonal_naive"]["mase"] == pytest.approx(1.551, abs=0.001)


def test_without_a_calendar_the_season_is_one(tsformer):
    _, out, _ = tsformer("fit", "--model", "tcn_transformer", "--data", "sine", "--json", *FAST)
    document = json.loads(out)
    assert document["season"] == 1
    assert document["baselines"]["seasonal_naive"] == document["baselines"]["last_value"]
    _, out, err = tsformer("fit", "--model", "tcn_transformer", "--data", "sine", "--season", "60", "--json", *FAST)
    document = json.loads(out)
    assert document["season"] == 60
    assert document["baselines"]["seasonal_naive"]["mae"] == pytest.approx(0, abs=1e-9)
    assert document["test"]["mase"] is None  # a scale of zero
    assert "warning: tcn_transformer does not beat seasonal_naive on the test part: MAE" in err
    assert "MASE is undefined" in err


def test_predict_looks_like_the_input(tsformer):
    fit_air(tsformer, "--horizon", "12")
    code, out, _ = tsformer("predict", "--input", AIR, "--output", "f.csv", "--plot", "f.png")
    assert (code, out) == (0, "")
    table = pd.read_csv("f.csv")
    assert list(table.columns) == ["month", "passengers"]
    assert table["month"].tolist() == [f"1961-{m:02}-01" for m in range(1, 13)]
    assert table["passengers"].between(50, 1000).all()
    assert Path("f.png").read_bytes().startswith(b"\x89PNG")


def test_predict_without_input_uses_the_runs_own_data(tsformer):
    fit_air(tsformer)
    own, given = tsformer("predict", "latest")[1], tsformer("predict", "--input", AIR)[1]
    assert own == given != ""


def test_predict_reads_stdin_and_columns_by_name(tsformer, monkeypatch):
    fit_air(tsformer)
    plain = tsformer("predict", "--input", AIR)[1]
    frame = pd.read_csv(AIR)
    frame["more"] = 1.0
    text = frame[["more", "passengers", "month"]].to_csv(index=False)
    done = subprocess.run(
        [sys.executable, "-m", "tsformer", "predict", "--input", "-"], input=text, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == plain
    assert "more" in done.stderr


def test_predict_json(tsformer):
    fit_air(tsformer)
    code, out, _ = tsformer("predict", "--json", "--horizon", "2")
    document = json.loads(out)
    assert code == 0
    assert document["horizon"] == 2
    assert [row["month"] for row in document["forecast"]] == ["1961-01-01", "1961-02-01"]


def test_a_prefix_of_the_history_gets_its_own_dates(tsformer):
    fit_air(tsformer, "--horizon", "12")
    pd.read_csv(AIR).iloc[:100].to_csv("part.csv", index=False)
    out = tsformer("predict", "--input", "part.csv")[1]
    assert out.splitlines()[1].startswith("1957-05-01,")


def test_a_sine_run_takes_a_csv(tsformer):
    tsformer("fit", "--model", "transformer", "--data", "sine", *FAST)
    pd.DataFrame({"t": np.arange(100) / 60, "value": np.sin(np.arange(100) / 9)}).to_csv("in.csv", index=False)
    code, out, err = tsformer("predict", "--input", "in.csv")
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0] == "t,value"
    assert float(lines[1].split(",")[0]) == pytest.approx(100 / 60)
    assert len(lines) == 31


def test_beyond_the_horizon(tsformer):
    fit_air(tsformer)
    code, _, err = tsformer("predict", "--horizon", "20")
    assert code == 2
    assert "--model.decoder autoregressive" in one_line(err)
    fit_air(tsformer, "--model.decoder", "autoregressive")
    code, out, _ = tsformer("predict", "--horizon", "20")
    assert code == 0
    assert out.splitlines()[-1].startswith("1962-08-01,")
    # the first steps are the same, whatever the horizon
    short = pd.read_csv(pd.io.common.StringIO(tsformer("predict", "--horizon", "5")[1]))
    long = pd.read_csv(pd.io.common.StringIO(out))
    np.testing.assert_allclose(short["passengers"], long["passengers"][:5], rtol=1e-5)


def test_config_from_an_earlier_run(tsformer):
    out, _ = fit_air(tsformer, "--horizon", "6", "--seed", "5")
    first = Path(out.strip())
    _, out, _ = tsformer("fit", "--config", first, "--json")
    again = Path(json.loads(out)["run"])
    assert (first / "model.safetensors").read_bytes() == (again / "model.safetensors").read_bytes()
    _, out, _ = tsformer("fit", "--config", first, "--seed", "6", "--out", "mine", "--quiet")
    assert out.strip() == "mine"
    assert Path("mine/model.safetensors").read_bytes() != (again / "model.safetensors").read_bytes()


def test_underscores_and_equals_signs(tsformer):
    code, _, err = tsformer(
        "fit", "--model=transformer", "--data=sine", "--model.d_model=16", "--max_steps", "2", "--quiet"
    )
    assert code == 0, err


LOCAL = """
import torch
from torch import nn
from tsformer import Config, Field, ModelPlugin

class Options(Config):
    width: int = Field(8, gt=0, description="width of the hidden layer", flag="--width")

class Net(nn.Module):
    def __init__(self, options, problem):
        super().__init__()
        self.problem = problem
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(problem.lookback * problem.channels, options.width),
                                 nn.Tanh(), nn.Linear(options.width, problem.horizon * problem.targets))

    def forward(self, batch, truth=0.0):
        past = torch.where(batch.past_mask, batch.past, 0.0)
        return self.net(past).view(-1, self.problem.horizon, self.problem.targets, 1)

plugin = ModelPlugin(config=Options, build=Net, example=Options())
"""


def test_a_local_model(tsformer):
    Path("my_model.py").write_text(LOCAL)
    words = ("--model", "my_model", "--data", "sine", "--width", "4", "--max-steps", "3")
    code, _, err = tsformer("fit", "--plugin", "my_model.py", *words)
    assert code == 0, err
    assert tsformer("predict", "--plugin=my_model.py")[0] == 0
    code, out, _ = tsformer("--plugin", "my_model.py", "plugins", "show", "my_model")
    assert code == 0
    assert "--model.width, --width  INTEGER, default 8" in out


def test_a_run_of_a_local_model_names_the_file(tsformer, monkeypatch):
    from tsformer import registry

    Path("my_model.py").write_text(LOCAL)
    tsformer("fit", "--plugin", "my_model.py", "--model", "my_model", "--data", "sine", "--max-steps", "2")
    monkeypatch.setattr(registry, "_added", {})
    code, _, err = tsformer("predict")
    assert code == 5
    assert "file my_model.py" in one_line(err)


def test_a_broken_plugin_breaks_only_itself(tsformer):
    Path("broken.py").write_text("import nothing_of_that_name\n")
    code, out, err = tsformer("plugins", "list", "--plugin", "broken.py")
    assert code == 0
    assert "tcn_transformer" in out
    assert "broken.py" in one_line(err)
    code, _, err = tsformer("fit", "--plugin", "broken.py", "--model", "transformer", "--data", "sine", *FAST)
    assert code == 0
    code, _, err = tsformer("fit", "--plugin", "broken.py", "--model", "broken", "--data", "sine")
    assert code == 5
    assert "ModuleNotFoundError" in one_line(err)


def test_plugins_list_and_show(tsformer):
    code, out, _ = tsformer("plugins", "list", "--json")
    rows = {(row["kind"], row["name"]) for row in json.loads(out)["plugins"]}
    assert code == 0
    assert {("model", "transformer"), ("data", "csv"), ("transform", "log_return")} <= rows
    for _, name in rows:
        code, out, _ = tsformer("plugins", "show", name, "--json")
        for plugin in json.loads(out)["plugins"]:
            assert plugin["about"]
            assert all(option["description"] and option["type"] for option in plugin["options"])
    out = tsformer("plugins", "show", "csv")[1]
    assert "--data.path, --path  TEXT, required" in out


def test_help_has_the_options_of_exactly_these_plugins(tsformer, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    code, out, _ = tsformer("fit", "--model", "tcn_transformer", "--data", "csv", "--help")
    assert code == 0
    for word in ("Model tcn_transformer", "Data csv", "Window", "Training"):
        assert re.search(rf"─ {word} ─", out), word
    for word in ("--model.tcn-layers", "--data.time-format", "--path", "--train.lr", "(default: 64)"):
        assert word in out
    for word in ("--model.decoder-queries", "--data.period", "--data.noise"):
        assert word not in out


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", [["--help"], ["fit", "--help"], ["predict", "--help"], ["plugins", "list"]])
def test_help_imports_nothing_heavy(words):
    code = (
        "import sys\nfrom tsformer.cli.app import main\ntry:\n    main(" + repr(words) + ")\nexcept SystemExit as e:\n"
        "    assert e.code == 0\n"
        "print('heavy:', {m for m in ('torch', 'pandas', 'sklearn', 'numpy') if m in sys.modules})"
    )
    done = run_python(code)
    assert done.stdout.endswith("heavy: set()\n"), done.stdout[-300:] + done.stderr


# --- what goes wrong ---


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["fit", "--model", "transfomer", "--data", "sine"], 5, "did you mean 'transformer'"),
        (["fit", "--model", "transformer", "--data", "sin"], 5, "did you mean 'sine'"),
        (["fit", "--model", "transformer"], 2, "no data: give --data"),
        (["fit", "--model", "transformer", "--data", "csv"], 2, "--data.path is required"),
        (["fit", "--model", "transformer", "--data", "sine", "--model.d-modle", "3"], 2, "--model.d-model"),
        (["fit", "--model", "transformer", "--data", "sine", "--lr", "fast"], 2, "--train.lr"),
        (["fit", "--model", "transformer", "--data", "csv", "--path", "air_pasengers"], 3, "air_passengers"),
        (["fit", "--model", "transformer", "--data", "sine", "--data.points", "50"], 3, "50 rows"),
        (["fit", "--model", "transformer", "--data", "sine", "--transform", "log"], 3, "not positive"),
        (["fit", "--model", "transformer", "--data", "sine", "--device", "cuda:7"], 7, "device 'cuda:7' is not there"),
        (["fit", "--plugin", "nowhere.py", "--model", "x", "--data", "sine"], 5, "no plugin file 'nowhere.py'"),
        (["fit", "--config", "nowhere.toml"], 2, "no configuration file"),
        (["fit", "--model", "transformer", "--data", "sine", "--plot", "x.txt"], 2, "must end in"),
        (["predict"], 4, "no complete run"),
        (["predict", "runs/none"], 4, "no run folder 'runs/none'"),
        (["predict", "~nobody-here/x"], 4, "no run folder"),
        (["predict", "x" * 5000], 4, "no run folder"),
        (["fit", "--config", "~nobody-here/x"], 2, "no configuration file"),
        (["fit", "--config", "x" * 5000], 2, "cannot be read"),
        (["fit", "--model", "transformer", "--data", "sine", "--horizon", "1" + "0" * 30], 2, "--window.horizon"),
        (["fit", "--model", "transformer", "--data", "sine", "--model.d-model", "1" + "0" * 12], 2, "--model.d-model"),
        (["fit", "--model", "transformer", "--data", "sine", "--device", "tpu"], 2, "--train.device"),
        (["plugins", "show", "csw"], 5, "did you mean 'csv'"),
        (["fitt"], 2, "fit"),
    ],
    ids=lambda value: " ".join(value)[-40:] if isinstance(value, list) else None,
)
def test_errors_are_one_line_with_the_right_code(tsformer, words, code, said):
    got, out, err = tsformer(*words)
    assert (got, out) == (code, ""), err
    assert said in one_line(err)
    assert one_line(err).startswith("error: ")
    assert not Path("runs").exists()  # nothing is left behind


def test_all_faults_of_the_options_at_once(tsformer):
    code, _, err = tsformer(
        "fit", "--model", "transformer", "--data", "sine", "--lr", "x", "--model.dropout", "2", "--data.points", "0"
    )
    assert code == 2
    assert [line.split(":")[1].strip() for line in err.strip().splitlines()] == [
        "--model.dropout",
        "--data.points",
        "--train.lr",
    ]


def test_errors_as_json(tsformer):
    code, out, err = tsformer("predict", "nowhere", "--json")
    assert (code, out) == (4, "")
    assert json.loads(err)["error"]["exit_code"] == 4
    assert json.loads(err)["error"]["kind"] == "run"


def test_divergence_is_exit_6(tsformer):
    code, _, err = tsformer(
        "fit", "--model", "transformer", "--data", "sine", "--lr", "1e30", "--max-steps", "200", "--train.clip", "1e30"
    )
    assert code == 6
    assert "--train.lr" in err.strip().splitlines()[-1]


FAULTS = {
    "raises": ("past = torch", "raise KeyError('boom')\n        past = torch", "KeyError: 'boom' (odd.py, line 17)"),
    "one step": ("return self.net(past)", "return self.net(past)[:, :1]", "(2, 1, 1, 1), not (2, 30, 1, 1)"),
    "no outputs": ("targets, 1)", "targets)", "(2, 30, 1), not (2, 30, 1, 1)"),
    "nothing": ("return self.net", "self.net", "NoneType"),
    "not finite": ("return self.net", "return torch.nan * self.net", "not finite"),
    "exits": ("past = torch", "raise SystemExit(0)\n        past = torch", "SystemExit"),
    "cannot be saved": (
        "    def forward",
        "    def get_extra_state(self):\n        return {}\n\n    def forward",
        "state",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_model_that_breaks_its_contract_is_named_before_anything_is_written(tsformer, fault):
    old, new, said = FAULTS[fault]
    text = LOCAL.replace(old, new)
    if fault == "one step":
        text = text.replace("[:, :1].view(-1, self.problem.horizon, self.problem.targets, 1)", "[:, :1, None, None]")
    Path("odd.py").write_text(text)
    code, out, err = tsformer("fit", "--plugin", "odd.py", "--model", "odd", "--data", "sine", "--quiet")
    assert (code, out) == (5, ""), err
    assert "model 'odd' (file odd.py)" in one_line(err)
    assert said in one_line(err)
    assert not Path("runs").exists()


def test_a_fault_after_the_first_step_names_the_place(tsformer, monkeypatch):
    late = "self.n = getattr(self, 'n', 0) + 1\n        1 / (self.n < 5)\n        past = torch"
    Path("late.py").write_text(LOCAL.replace("past = torch", late))
    code, _, err = tsformer("fit", "--plugin", "late.py", "--model", "late", "--data", "sine", "--quiet")
    assert code == 5
    assert "model 'late' (file late.py) fails in training: ZeroDivisionError" in one_line(err)
    assert "(late.py, line 18)" in one_line(err)
    assert "Traceback" not in err
    monkeypatch.setenv("TSFORMER_DEBUG", "1")
    code, _, err = tsformer("fit", "--plugin", "late.py", "--model", "late", "--data", "sine", "--quiet")
    assert code == 5
    assert "Traceback" in err
    assert err.strip().splitlines()[-1].startswith("error: ")


@pytest.mark.parametrize(
    "late",
    [
        "if self.training: raise SystemExit(0)",
        "if self.training: return self.net(past).view(-1, 30, 1, 1)[:, :1]",
        "self.n = getattr(self, 'n', 0) + 1\n        if self.n > 5: return self.net(past).view(-1, 30, 1, 1)[:, :1]",
    ],
)
def test_a_contract_that_is_broken_later_is_said_too(tsformer, late):
    Path("late.py").write_text(LOCAL.replace("        return self.net", f"        {late}\n        return self.net"))
    words = ("--plugin", "late.py", "--model", "late", "--data", "sine", "--quiet", "--max-steps", "3")
    code, out, err = tsformer("fit", *words)
    assert (code, out) == (5, ""), err
    assert "model 'late' (file late.py) fails in" in one_line(err)


@pytest.mark.parametrize("name", ["ds", "t"])
def test_a_time_column_of_whole_numbers_survives_the_run_folder(tsformer, name):
    pd.DataFrame({name: np.arange(120), "[/]": np.sin(np.arange(120.0)), "b$": 1.0}).to_csv("d.csv", index=False)
    code, out, err = tsformer("fit", "--model", "transformer", "--data", "csv", "--path", "d.csv", *FAST)
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
    assert tsformer("fit", "--model", "transformer", "--data", "csv", "--path", "d.csv", *FAST)[0] == 0
    table.assign(date=days).to_csv("d.csv", index=False)
    code, out, err = tsformer("predict")
    assert code == 0, err
    assert out.splitlines()[1].startswith("2024-04-30,")


def test_what_a_plugin_prints_does_not_reach_stdout(tsformer):
    Path("loud.py").write_text("print('import')\n" + LOCAL.replace("past = torch", "print('go')\n        past = torch"))
    words = ("--plugin", "loud.py", "--model", "loud", "--data", "sine", "--max-steps", "2", "--json")
    code, out, err = tsformer("fit", *words)
    assert code == 0, err
    json.loads(out)
    assert "import" in err
    assert json.loads(tsformer("predict", "--plugin", "loud.py", "--json")[1])["horizon"] == 30
    assert json.loads(tsformer("plugins", "list", "--plugin", "loud.py", "--json")[1])["plugins"]


@pytest.mark.parametrize("flag", ["--out", "--lr", "--model", "--help"])
def test_a_flag_that_is_taken_is_refused(tsformer, flag):
    Path("taken.py").write_text(LOCAL.replace("--width", flag))
    code, _, err = tsformer("fit", "--plugin", "taken.py", "--model", "taken", "--data", "sine")
    assert code == 5
    assert flag in one_line(err)


def test_a_model_that_cannot_be_saved_leaves_its_score_only(tsformer):
    Path("brief.py").write_text(LOCAL.replace("example=Options()", "example=Options(), persistent=False"))
    words = ("--plugin", "brief.py", "--model", "brief", "--data", "sine", "--max-steps", "2")
    code, out, _ = tsformer("fit", *words)
    assert code == 0
    assert not (Path(out.strip()) / "model.safetensors").exists()
    code, _, err = tsformer("predict", "--plugin", "brief.py")
    assert code == 4
    assert "cannot be saved" in one_line(err)


def test_the_data_of_a_run_are_found_from_any_folder_and_read_by_name(tsformer, monkeypatch):
    steps = np.arange(120)
    table = pd.DataFrame(
        {"ds": pd.date_range("2024-01-01", periods=120), "a": 100 + steps % 7, "b": -1.0 * (steps % 5)}
    )
    table.to_csv("d.csv", index=False)
    words = ("--path", "d.csv", "--horizon", "5", "--lookback", "14", *FAST)
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
    assert "'b'" in one_line(err)
    table.assign(ds=pd.date_range("2024-01-01", periods=120, freq="h")).to_csv("../d.csv", index=False)
    code, _, err = tsformer("predict", run)
    assert code == 3
    assert "frequency is h" in one_line(err)
    Path("../d.csv").unlink()
    code, _, err = tsformer("predict", run)
    assert code == 3
    assert "--input" in one_line(err)


def test_a_picture_that_cannot_be_drawn_costs_nothing_else(tsformer, monkeypatch):
    from tsformer.report import plots

    def fail(result, file):
        raise ValueError("no ink")

    monkeypatch.setattr(plots, "plot_test", fail)
    code, out, err = tsformer("fit", "--model", "transformer", "--data", "sine", *FAST)
    assert code == 0
    assert Path(out.strip(), "manifest.json").exists()
    assert "warning: no picture" in err
    assert "no ink" in err


def test_stdout_that_takes_nothing(tsformer):
    fit_air(tsformer)
    for redirection, code in ((">/dev/full", "7"), (">&-", "7")):
        shell = f"{sys.executable} -m tsformer predict {redirection}; echo $? >&2"
        done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
        *lines, got = done.stderr.strip().splitlines()
        assert got == code, done.stderr
        assert len([line for line in lines if line.startswith("error:")]) == 1, done.stderr
        assert "Traceback" not in done.stderr


def start(*words):
    return subprocess.Popen(
        [sys.executable, "-m", "tsformer", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_training_and_keeps_the_best_weights(tsformer, number, code):
    words = ["--max-steps", "100000", "--train.patience", "100000", "--train.eval-every", "5", "--model.d-model", "16"]
    process = start("fit", "--model", "tcn_transformer", "--data", "sine", "--out", "run", *words)
    metrics = Path("run/metrics.jsonl")
    deadline = time.monotonic() + 120
    while not (metrics.exists() and metrics.read_text().count("\n") >= 2) and time.monotonic() < deadline:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.1)
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == code, err
    assert out.strip() == "run"
    assert json.loads(Path("run/manifest.json").read_text())["status"] == "interrupted"
    assert tsformer("predict", "run")[0] == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_before_training_ends_the_process_at_once(tsformer, number, code):
    Path("slow.py").write_text("import pathlib, time\npathlib.Path('ready').touch()\ntime.sleep(100)\n")
    process = start("fit", "--plugin", "slow.py", "--model", "transformer", "--data", "sine")
    deadline = time.monotonic() + 120
    while not Path("ready").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, "")
    assert one_line(err) == f"stopped by {number.name}"
    assert not Path("runs").exists()


def test_a_killed_fit_is_visibly_incomplete(tsformer):
    process = start("fit", "--model", "transformer", "--data", "sine", "--out", "run", "--max-steps", "100000")
    deadline = time.monotonic() + 120
    while not Path("run/config.json").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()
    process.communicate()
    code, _, err = tsformer("predict", "run")
    assert code == 4
    assert "not a complete run" in one_line(err)


def test_a_broken_pipe_is_silent(tsformer):
    fit_air(tsformer)
    shell = f"{sys.executable} -m tsformer predict | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, env={**os.environ})
    assert done.stdout.strip() == "141"
    assert done.stderr == ""
