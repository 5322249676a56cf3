"""Learning without labels, from the command line, on data of every kind."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tsformer.cli.app import main

SMALL = ("--model.d-model", "8", "--model.n-heads", "2", "--model.d-ff", "8", "--max-steps", "3", "--quiet")
DATA = {
    "csv": ("--data", "csv", "--path", "air_passengers"),
    "sine": ("--data", "sine", "--data.points", "300"),
    "text": ("--data", "text", "--path", "reviews", "--text", "review", "--label", "sentiment"),
    "series": ("--data", "series", "--path", "seattle_weather", "--id", "weather", "--time", "date"),
    "series and texts": ("--data", "series", "--path", "both.csv", "--id", "who", "--text", "said"),
    "csv and texts": ("--data", "csv", "--path", "daily.csv", "--data.text", "said"),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with tables of numbers and texts, and a run of each kind of data."""
    folder = tmp_path_factory.mktemp("pretrain")
    generator = np.random.default_rng(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        said = [["good", "bad day", ""][i % 3] for i in range(120)]
        values = generator.normal(size=120)
        pd.DataFrame({"who": np.repeat(np.arange(30), 4), "x": values, "said": said}).to_csv("both.csv", index=False)
        days = pd.date_range("2020-01-01", periods=120).strftime("%Y-%m-%d")
        pd.DataFrame({"ds": days, "y": values, "said": said}).to_csv("daily.csv", index=False)
        for name, data in DATA.items():
            with pytest.raises(SystemExit) as caught:
                main(["fit", "--task", "pretrain", "--model", "transformer", *data, *SMALL, "--out", name])
            assert caught.value.code == 0, name
    return folder


@pytest.fixture
def there(tsformer, home, monkeypatch):
    """The command line, in that folder."""
    monkeypatch.chdir(home)
    return tsformer


def document(out):
    """JSON without NaN."""

    def refuse(name):
        raise AssertionError(name)

    return json.loads(out, parse_constant=refuse)


@pytest.mark.parametrize("name", DATA)
def test_what_a_run_says(there, name):
    manifest = document((Path(name) / "manifest.json").read_text())
    assert manifest["status"] == "complete"
    assert document((Path(name) / "config.json").read_text())["task"] == "pretrain"
    kind = "cross_entropy" if name == "text" else "mse"
    assert set(manifest["metrics"]) == {"test", "baselines"}
    assert set(manifest["metrics"]["test"]) == {kind, "examples"}
    assert manifest["metrics"]["test"][kind] > 0
    assert {file.suffix for file in Path(name).iterdir()} == {".json", ".jsonl", ".safetensors"}
    assert (Path(name) / "vocabulary.json").exists() == ("text" in name)


@pytest.mark.parametrize("name", DATA)
def test_a_pretrained_run_predicts_nothing(there, name):
    for words in (
        [],
        ["--json"],
        ["--input", "no such file"],
        ["--plot", "x.png"],
        ["--horizon", "2"],
        ["--beam", "2"],
    ):
        code, out, err = there("predict", name, *words)
        assert (code, out) == (2, "")
        assert "fit a model with --init-from and this run" in there.one_line(err)
        assert not Path("x.png").exists()


@pytest.mark.parametrize("name", DATA)
def test_again_from_a_run(there, tmp_path, name):
    code, out, err = there("fit", "--config", name, "--out", tmp_path / "again", "--quiet", "--json")
    assert code == 0, err
    assert (tmp_path / "again/model.safetensors").read_bytes() == (Path(name) / "model.safetensors").read_bytes()
    found = document(out)
    assert set(found) == {
        "schema", "task", "run", "model", "data", "examples", "lookback", "padding", "seconds", "steps", "parameters",
        "test", "baselines",
    }  # fmt: skip
    assert (found["padding"] is None) == (name.startswith(("csv", "sine")))


@pytest.mark.parametrize("name", DATA)
def test_dry_run(there, name):
    words = ("--task", "pretrain", "--model", "transformer", *DATA[name], *SMALL, "--dry-run")
    code, out, _ = there("fit", *words)
    assert code == 0
    assert "pretrain" in out
    code, out, _ = there("fit", *words, "--json")
    found = document(out)
    counts = found["windows" if name.startswith(("csv", "sine")) else "examples"]
    assert (code, found["task"]) == (0, "pretrain")
    assert counts["test"] == document((Path(name) / "manifest.json").read_text())["metrics"]["test"]["examples"]


@pytest.mark.parametrize(
    ("name", "model", "task"),
    [
        ("csv", "transformer", ()),
        ("text", "transformer", ()),
        ("series and texts", "transformer", ("--task", "pretrain")),
        ("csv and texts", "transformer", ()),
    ],
)
def test_what_was_learned_goes_over(there, tmp_path, name, model, task):
    words = ("--init-from", name, "--freeze", "--out", tmp_path / "run", "--model.d-model", "8", "--model.n-heads", "2")
    code, _, err = there("fit", "--model", model, *task, *DATA[name], "--model.d-ff", "8", "--max-steps", "2", *words)
    assert code == 0, err
    assert "loaded" in err


def test_a_run_that_moved_goes_over_too(there, tmp_path):
    moved = shutil.copytree("text", tmp_path / "moved")
    words = ("--init-from", moved, "--out", tmp_path / "run")
    code, _, err = there("fit", "--model", "transformer", *DATA["text"], *SMALL, *words)
    assert code == 0, err


def test_there_is_no_picture_of_a_fit(there, tmp_path):
    words = ("--plot", tmp_path / "p.png", "--dry-run")
    code, _, err = there("fit", "--task", "pretrain", "--model", "transformer", *DATA["sine"], *SMALL, *words)
    assert code == 2
    assert "no picture of a fit whose task is pretrain" in there.one_line(err)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--model", "ridge"), "ridge"),
        (("--model", "transformer", "--train.loss", "mae"), "loss mae"),
        (("--model", "transformer", "--train.output", "normal"), "output normal"),
        (("--model", "transformer", "--model.decoder", "autoregressive"), "decoder autoregressive"),
        (("--model", "transformer", "--train.label-smoothing", "0.1"), "label_smoothing"),
    ],
)
def test_what_nothing_reads_is_refused(there, words, said):
    code, _, err = there("fit", "--task", "pretrain", *DATA["sine"], *words, "--dry-run")
    assert code == 2
    assert said in there.one_line(err)
