"""`tsformer tune`: what is printed and written, and that `fit --config` takes it."""

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

WINDOW = ("--horizon", "6", "--max-steps", "4", "--train.eval-every", "2")


@pytest.fixture
def tune(tsformer):
    """A line over the monthly table."""

    def line(*words, model="linear"):
        return tsformer("tune", "--model", model, "--data", "csv", "--path", tsformer.air, *WINDOW, *words)

    return line


def test_what_is_found_is_a_file_that_fit_takes(tune, tsformer):
    code, out, err = tune("--trials", "3", "--out", "best.toml", "--transform", "log")
    assert code == 0, err
    assert out == "best.toml\n"
    text = Path("best.toml").read_text()
    best = tomllib.loads(text)
    assert text.startswith("# found by tsformer tune")
    assert "chosen there, it is too good there: the test part tells" in text.splitlines()[1]
    assert [each["name"] for each in best["transform"]] == ["log"]
    assert "# tuned" in next(line for line in text.splitlines() if line.startswith("variant"))
    assert best["window"]["horizon"] == 6
    assert "trial 3/3: mase" in err
    assert "seasonal_naive" in err
    assert "warning: the validation part holds 2 forecast(s) that do not overlap" in err
    assert "warning: the best trial of linear does not beat seasonal_naive" in err
    code, out, err = tsformer("fit", "--config", "best.toml", "--json", "--quiet")
    assert code == 0, err
    run = json.loads((Path(json.loads(out)["run"]) / "config.json").read_text())["settings"]
    assert (run["train"]["lr"], run["window"]["lookback"]) == (best["train"]["lr"], best["window"]["lookback"])


def test_json_is_one_object(tune):
    words = ("--trials", "2", "--only", "--search", "train.lr=1e-3:1e-1", "--search", "model.variant", "--json")
    code, out, err = tune(*words, "--quiet")
    assert code == 0, err
    found = json.loads(out)
    assert found["space"] == {"model.variant": "dlinear,nlinear,rlinear", "train.lr": "0.001:0.1:log"}
    assert (found["metric"], found["naive"]["name"], found["counts"]["complete"]) == ("mase", "seasonal_naive", 2)
    best = min(found["trials"], key=lambda trial: trial["score"])
    assert found["best"] == {"trial": best["number"], "score": best["score"], "options": best["options"]}
    assert found["settings"]["train"]["lr"] == best["options"]["train.lr"]
    assert all(line.startswith("warning: ") for line in err.splitlines())


def test_what_is_given_is_not_searched_unless_it_is_named(tune, monkeypatch):
    monkeypatch.setenv("TSFORMER_OPT__TRAIN__WEIGHT_DECAY", "0.1")
    given = ("--lr", "0.01", "--lookback", "24", "--fix", "train.loss", "--trials", "1", "--json", "--quiet")
    space = json.loads(tune(*given)[1])["space"]
    assert set(space) == {"model.variant", "train.batch_size"}
    named = json.loads(tune(*given, "--search", "train.lr=0.001:0.1")[1])
    assert set(named["space"]) == {"model.variant", "train.batch_size", "train.lr"}
    assert named["trials"][0]["options"]["train.lr"] == 0.01
    assert named["settings"]["train"]["weight_decay"] == 0.1


def test_a_study_goes_on(tune):
    _, first, _ = tune("--trials", "2", "--study", "s", "--json", "--quiet")
    code, second, err = tune("--trials", "3", "--study", "s", "--json")
    assert code == 0
    assert "2 trials are in the study already" in err
    assert json.loads(second)["trials"][:2] == json.loads(first)["trials"]
    code, _, err = tune("--trials", "3", "--study", "s", "--lr", "0.1", "--quiet")
    assert code == 2
    assert "holds a study with other model or training options, search space" in err


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("--search", "train.lr=0:1"), 2, "--search train.lr: input should be greater than 0 (got '0')"),
        (("--search", "model.kernel=5,13", "--fix", "model.variant"), 2, "kernel 5 needs variant dlinear"),
        (("--only",), 2, "--only needs --search"),
        (("--search", "=3"), 2, "an option and its space are wanted"),
        (("--trials", "0"), 2, "--trials"),
        (("--timeout", "-1"), 2, "--timeout must be a number of seconds above 0"),
        (("--study", "s", "--out", "s"), 2, "--out"),
        (("--lookback", "1000"), 3, "lookback 1000"),
    ],
)
def test_one_line_says_what_is_wrong(tune, tsformer, words, code, why):
    if "s" in words:
        Path("s").write_text("")
    found, out, err = tune(*words, "--trials", "1") if "--trials" not in words else tune(*words)
    assert (found, out) == (code, "")
    assert why in err.splitlines()[-1]
    assert err.count("error:") == 1


def test_without_optuna_it_says_what_to_install(tune, tsformer, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    code, _, err = tune("--trials", "1")
    assert code == 7
    assert "pip install 'tsformer[tune]'" in tsformer.one_line(err)


def test_only_forecasts_are_tuned(tsformer):
    code, _, err = tsformer(
        "tune",
        "--model",
        "transformer",
        "--data",
        "text",
        "--path",
        "reviews",
        "--text",
        "review",
        "--label",
        "sentiment",
    )
    assert code == 2
    assert "tune is of forecasts, and the task is classify" in tsformer.one_line(err)


def test_plugins_show_what_is_searched(tsformer):
    _, out, _ = tsformer("plugins", "show", "ridge")
    assert "tune searches standard,last,none" in out
    options = json.loads(tsformer("plugins", "show", "ridge", "--json")[1])["plugins"][0]["options"]
    assert {option["name"]: option["search"] for option in options} == {
        "normalise": "standard,last,none",
        "penalty": None,
    }


def begun(folder, *words):
    command = [sys.executable, "-m", "tsformer", "tune", "--model", "linear", "--data", "csv", "--path"]
    air = Path(__file__).parent.parent / "datasets" / "air_passengers.csv"
    line = [*command, str(air), "--horizon", "6", "--max-steps", "400", "--train.eval-every", "10", *words]
    return subprocess.Popen(line, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_trials(file, count):
    until = time.monotonic() + 120
    while time.monotonic() < until:
        if file.is_file() and file.read_bytes().count(b"\n") > count:
            return
        time.sleep(0.05)
    raise AssertionError("no trials were finished")


@pytest.mark.slow
def test_a_killed_study_goes_on_as_if_nothing_had_been(tmp_path):
    words = ("--trials", "8", "--study", "s", "--json", "--quiet")
    for count in (2, 4):
        process = begun(tmp_path, *words)
        wait_for_trials(tmp_path / "s", count)
        second = begun(tmp_path, *words)
        assert "in use by another process" in second.communicate()[1]
        assert second.returncode == 2
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    out, err = begun(tmp_path, *words).communicate()
    whole, _ = begun(tmp_path, *words[:2], "--study", "t", "--json", "--quiet").communicate()
    assert out, err
    resumed, uninterrupted = ([{**t, "seconds": 0} for t in json.loads(text)["trials"]] for text in (out, whole))
    assert resumed == uninterrupted
    assert len(resumed) == 8


@pytest.mark.slow
def test_a_signal_keeps_finished_trials_and_prints_the_best(tmp_path):
    process = begun(tmp_path, "--trials", "500", "--study", "s", "--out", "best.toml")
    wait_for_trials(tmp_path / "s", 2)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == "best.toml\n"
    assert "stopping: finished trials are kept" in err
    assert tomllib.loads((tmp_path / "best.toml").read_text())["model"]["name"] == "linear"
