"""`tsformer fit --dry-run`: everything is checked, and nothing is written."""

import json
import os
from pathlib import Path

import pytest

NAMED = ("fit", "--model", "transformer", "--data", "sine", "--dry-run")


def test_what_it_prints(tsformer):
    words = ("--data", "csv", "--path", tsformer.air, "--horizon", "6", "--transform", "log_return")
    code, out, err = tsformer("fit", "--model", "transformer", *words, "--dry-run")
    assert (code, err) == (0, "")
    lines = dict(line.strip().split("  ", 1) for line in out.splitlines())
    lines = {name: text.strip() for name, text in lines.items()}
    assert lines["data"] == "csv: 144 rows, 1 series, 1 target (passengers), 0 covariates"
    assert lines["frequency"] == "MS"
    assert lines["window"] == "lookback 24, horizon 6, season 12, stride 1"
    assert lines["windows"] == "70 train, 9 validation, 25 test"
    assert lines["steps"] == "500 at most, of 17 windows"
    assert lines["weights"].endswith("KiB")
    assert not os.listdir()


def test_json_and_the_fit_that_follows(tsformer):
    words = ("fit", "--model", "transformer", "--data", "sine", *tsformer.fast, "--out", "run", "--json")
    code, out, err = tsformer(*words, "--dry-run")
    assert (code, err) == (0, "")
    dry = json.loads(out)
    assert not os.listdir()
    fitted = json.loads(tsformer(*words)[1])
    assert dry["schema"] == fitted["schema"] == 1
    for name in ("task", "model", "data", "season", "steps", "parameters"):
        assert dry[name] == fitted[name], name
    assert dry["windows"]["test"] == fitted["test"]["windows"]
    problem = json.loads(Path("run/config.json").read_text())["problem"]
    assert (dry["lookback"], dry["horizon"]) == (problem["lookback"], problem["horizon"])
    memory = dry["memory"]
    assert memory["weights"] >= 4 * dry["parameters"]
    assert memory["peak"] > memory["process"] > 2**20


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--horizon", "1000"], 3, "rows"),
        (["--transform", "log"], 3, "not positive"),
        (["--lr", "x"], 2, "--train.lr"),
        (["--device", "cuda:7"], 7, "device 'cuda:7' is not there"),
        (["--plot", "x.txt"], 2, "must end in"),
        (["--out", "taken"], 2, "not an empty folder"),
        (["--model.d-model", "16384", "--model.encoder-layers", "128"], 7, "lower --model.d-model (16384)"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_a_fit_would_refuse(tsformer, words, code, said):
    Path("taken").mkdir()
    Path("taken/file").touch()
    got, out, err = tsformer(*NAMED, *words)
    assert (got, out) == (code, "")
    assert said in tsformer.one_line(err)
    assert os.listdir() == ["taken"]


def test_a_model_that_breaks_its_contract(tsformer):
    Path("odd.py").write_text(tsformer.local_model.replace("return self.net", "return torch.nan * self.net"))
    code, out, err = tsformer("fit", "--plugin", "odd.py", "--model", "odd", "--data", "sine", "--dry-run")
    assert (code, out) == (5, "")
    assert "not finite" in tsformer.one_line(err)


def test_too_little_memory_is_said_after_the_table(tsformer, monkeypatch):
    from tsformer import machine

    monkeypatch.setattr(machine, "available", lambda device: 10 * 2**20)
    code, out, err = tsformer(*NAMED, "--train.batch-size", "500")
    assert code == 7
    assert "activations" in out
    assert "lower --train.batch-size" in tsformer.one_line(err)


def test_an_absurd_size_ends_a_real_fit_too(tsformer):
    words = ("--model.d-model", "16384", "--model.encoder-layers", "128")
    code, out, err = tsformer("fit", "--model", "transformer", "--data", "sine", *words)
    assert (code, out) == (7, "")
    assert "lower --model.d-model (16384), --model.encoder-layers (128)" in tsformer.one_line(err)
    assert not os.listdir()
