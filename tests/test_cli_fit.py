"""`tsformer fit` as a user types it: what it prints and leaves, what goes wrong, and how it is stopped."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


def test_fit_prints_the_run_on_stdout_and_the_score_on_stderr(tsformer):
    code, out, err = tsformer("fit", "--model", "tcn_transformer", "--data", "sine", *tsformer.fast)
    assert code == 0
    folder = Path(out.strip())
    assert folder.parent.name == "runs"
    assert re.fullmatch(r"\d{8}-\d{6}-tcn_transformer-sine-[0-9a-f]{4}", folder.name)
    assert (folder / "manifest.json").is_file()
    assert (folder / "forecast.png").read_bytes().startswith(b"\x89PNG")
    for word in ("tcn_transformer", "last_value", "seasonal_naive", "MASE", "332 windows of 30 steps"):
        assert word in err


def test_fit_json(tsformer):
    out, _ = tsformer.fit_air("--horizon", "12", "--json")
    document = json.loads(out)
    keys = {"mae", "rmse", "mase", "smape", "mape", "rmsse", "bias", "windows"}
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
    _, out, _ = tsformer("fit", "--model", "tcn_transformer", "--data", "sine", "--json", *tsformer.fast)
    document = json.loads(out)
    assert document["season"] == 1
    assert document["baselines"]["seasonal_naive"] == document["baselines"]["last_value"]
    _, out, err = tsformer(
        "fit", "--model", "tcn_transformer", "--data", "sine", "--season", "60", "--json", *tsformer.fast
    )
    document = json.loads(out)
    assert document["season"] == 60
    assert document["baselines"]["seasonal_naive"]["mae"] == pytest.approx(0, abs=1e-9)
    assert document["test"]["mase"] is None  # a scale of zero
    assert "warning: tcn_transformer does not beat seasonal_naive on the test part: MAE" in err
    assert "MASE is undefined" in err


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


def test_divergence_is_exit_6(tsformer):
    code, _, err = tsformer(
        "fit", "--model", "transformer", "--data", "sine", "--lr", "1e30", "--max-steps", "200", "--train.clip", "1e30"
    )
    assert code == 6
    assert "--train.lr" in err.strip().splitlines()[-1]


FAULTS = {
    "raises": ("past = torch", "raise KeyError('boom')\n        past = torch", "KeyError: 'boom' (odd.py, line 18)"),
    "one step": ("return self.net(past)", "return self.net(past)[:, :1]", "(2, 1, 1, 1), not (2, 30, 1, 1)"),
    "no outputs": ("targets, self.problem.outputs)", "targets)", "(2, 30, 1), not (2, 30, 1, 1)"),
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
    text = tsformer.local_model.replace(old, new)
    if fault == "one step":
        text = text.replace(
            "[:, :1].view(-1, self.problem.horizon, self.problem.targets, self.problem.outputs)", "[:, :1, None, None]"
        )
    Path("odd.py").write_text(text)
    code, out, err = tsformer("fit", "--plugin", "odd.py", "--model", "odd", "--data", "sine", "--quiet")
    assert (code, out) == (5, ""), err
    assert "model 'odd' (file odd.py)" in tsformer.one_line(err)
    assert said in tsformer.one_line(err)
    assert not Path("runs").exists()


def test_a_fault_after_the_first_step_names_the_place(tsformer, monkeypatch):
    late = "self.n = getattr(self, 'n', 0) + 1\n        1 / (self.n < 5)\n        past = torch"
    Path("late.py").write_text(tsformer.local_model.replace("past = torch", late))
    code, _, err = tsformer("fit", "--plugin", "late.py", "--model", "late", "--data", "sine", "--quiet")
    assert code == 5
    assert "model 'late' (file late.py) fails in training: ZeroDivisionError" in tsformer.one_line(err)
    assert "(late.py, line 19)" in tsformer.one_line(err)
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
    Path("late.py").write_text(
        tsformer.local_model.replace("        return self.net", f"        {late}\n        return self.net")
    )
    words = ("--plugin", "late.py", "--model", "late", "--data", "sine", "--quiet", "--max-steps", "3")
    code, out, err = tsformer("fit", *words)
    assert (code, out) == (5, ""), err
    assert "model 'late' (file late.py) fails in" in tsformer.one_line(err)


def test_a_picture_that_cannot_be_drawn_costs_nothing_else(tsformer, monkeypatch):
    from tsformer.report import plots

    def fail(result, file):
        raise ValueError("no ink")

    monkeypatch.setattr(plots, "plot_test", fail)
    words = ("--model", "transformer", "--data", "sine", "--plot", "a\nb.png", *tsformer.fast)
    code, out, err = tsformer("fit", *words)
    assert code == 0
    assert Path(out.strip(), "manifest.json").exists()
    assert r"warning: no picture a\nb.png: ValueError: no ink" in err
    assert "no ink" in err


NAIVE = ("fit", "--model", "last_value", "--data", "sine", "--quiet")


@pytest.mark.parametrize("dry", [["--dry-run"], []], ids=["dry run", "fit"])
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--plugin", ""], 2, "--plugin is empty"),
        (["--out", ""], 2, "--out is empty"),
        (["--plot", ""], 2, "--plot is empty"),
        (["--out", "/proc/x/y"], 7, "--out /proc/x/y cannot be written: /proc takes no file"),
        (["--out", "file"], 7, "file takes no file (Not a directory)"),
        (["--out", "file/y/z"], 7, "--out file/y/z cannot be written"),
        (["--out", "x" * 300], 7, "File name too long"),
        (["--plot", "/proc/x/y.png"], 7, "--plot /proc/x/y.png cannot be written"),
        (["--plot", "file/y.png"], 7, "--plot file/y.png cannot be written"),
        (["--plot", "folder"], 7, "--plot folder is a folder"),
    ],
    ids=lambda value: " ".join(value)[:20] if isinstance(value, list) else None,
)
def test_places_are_looked_at_before_training(tsformer, monkeypatch, dry, words, code, said):
    from tsformer import sources

    def load_data(data):
        raise AssertionError("too late")

    monkeypatch.setattr(sources, "load_data", load_data)
    Path("file").touch()
    Path("folder").mkdir()
    got, out, err = tsformer(*NAIVE, *words, *dry)
    assert (got, out) == (code, "")
    assert said in tsformer.one_line(err)
    assert sorted(os.listdir()) == ["file", "folder"]


def test_a_folder_for_the_run_that_takes_no_file(tsformer):
    Path("runs").touch()
    code, _, err = tsformer(*NAIVE)
    assert code == 7
    assert "the folder runs cannot be written" in tsformer.one_line(err)


def test_places_that_can_be_written(tsformer):
    Path("empty").mkdir()
    Path("old.png").touch()
    for out, plot in (("empty", "old.png"), ("new/run", "new/run/more/p.png")):
        for dry in (["--dry-run"], []):
            code, _, err = tsformer(*NAIVE, "--out", out, "--plot", plot, *dry)
            assert code == 0, err
        assert Path(plot).read_bytes().startswith(b"\x89PNG")


def test_a_name_with_a_line_end_does_not_break_the_line(tsformer):
    code, _, err = tsformer("fit", "--model", "last_value", "--data", "csv", "--path", "a\nb/c\n.csv")
    assert code == 3
    assert r"no file a\nb/c\n.csv" in tsformer.one_line(err)


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
    assert tsformer.one_line(err) == f"stopped by {number.name}"
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
    assert "not a complete run" in tsformer.one_line(err)
