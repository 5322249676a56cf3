"""Texts and series with labels, from the command line: fit, predict, and what goes wrong."""

import csv
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tsformer.cli.app import main

SMALL = ("--model.d-model", "8", "--model.n-heads", "2", "--model.d-ff", "8", "--max-steps", "4")
CLASSES = ("a,b", 'say "x"', "two\nlines", "[/b] $x^$")


def write_texts(file):
    """Labels that are no simple words, below columns that are called as ours."""
    generator = np.random.default_rng(0)
    rows = [
        (" ".join([*generator.choice(["the", "a", "film"], generator.integers(1, 6)), f"n{i}"]), CLASSES[i % 4])
        for i in range(40)
    ]
    pd.DataFrame(rows, columns=["probability", "probabilities"]).to_csv(file, index=False)


def write_series(file):
    """Series of unequal length with gaps, in a long table."""
    generator = np.random.default_rng(0)
    rows = []
    for i in range(30):
        for step in range(int(generator.integers(1, 9))):
            x = np.nan if generator.random() < 0.2 else generator.normal(5 + i % 2)
            rows.append(
                (f"{i:03}", step, "up" if i % 2 else "down", x, generator.normal(), ["good", "bad", ""][step % 3])
            )
    pd.DataFrame(rows, columns=["who", "step", "way", "x", "y", "said"]).to_csv(file, index=False)


def quietly(*words):
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in words])
    assert caught.value.code == 0


TEXTS = ("--data", "text", "--path", "texts.csv", "--text", "probability", "--label", "probabilities")
SERIES = ("--data", "series", "--path", "series.csv", "--id", "who", "--label", "way", "--channels", "x,y")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with texts, series, and a run of each."""
    folder = tmp_path_factory.mktemp("classify")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_texts("texts.csv")
        write_series("series.csv")
        quietly("fit", "--model", "transformer", *TEXTS, *SMALL, "--out", "of_texts", "--quiet")
        quietly("fit", "--model", "transformer", *SERIES, *SMALL, "--out", "of_series", "--quiet")
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


def test_files_of_a_run(there):
    names = {file.name for file in Path("of_texts").iterdir()}
    assert names == {
        "config.json",
        "transforms.json",
        "vocabulary.json",
        "model.safetensors",
        "metrics.jsonl",
        "manifest.json",
        "confusion.png",
        "confusion.csv",
        "report.csv",
    }
    records = [document(line) for line in Path("of_texts/metrics.jsonl").read_text().splitlines()]
    assert {"step", "train_loss", "validation_loss", "validation_f1", "validation_accuracy"} <= set(records[-1])
    with open("of_texts/report.csv", newline="") as file:
        assert [row["class"] for row in csv.DictReader(file)] == sorted(CLASSES)
    with open("of_texts/confusion.csv", newline="") as file:
        assert next(csv.reader(file))[1:] == sorted(CLASSES)


def test_predict_writes_a_table_that_is_read_as_it_was(there):
    code, out, err = there("predict", "of_texts", "--quiet")
    assert (code, err) == (0, "")
    rows = list(csv.reader(out.splitlines(keepends=True)))
    assert rows[0] == ["probability", "probabilities", "probability_"]
    assert [row[0] for row in rows[1:]] == list(pd.read_csv("texts.csv")["probability"])
    assert {row[1] for row in rows[1:]} <= set(CLASSES)
    assert all(0.25 <= float(row[2]) <= 1 for row in rows[1:])


def test_predict_json(there):
    code, out, _ = there("predict", "of_texts", "--json", "--quiet")
    found = document(out)
    assert code == 0
    assert set(found) == {"schema", "task", "run", "classes", "output", "answers"}
    assert (found["schema"], found["task"], found["classes"]) == (1, "classify", sorted(CLASSES))
    for row in found["answers"]:
        assert set(row) == {"probability", "probabilities", "probability_", "probabilities_"}
        assert isinstance(row["probabilities"], str)  # the label, in the user's column
        assert sum(row["probabilities_"].values()) == pytest.approx(1)
        assert row["probabilities_"][row["probabilities"]] == row["probability_"]


def test_fit_json(there, tmp_path):
    for data in (TEXTS, SERIES):
        code, out, _ = there("fit", "--model", "lstm", *data, "--model.d-model", "8", "--max-steps", "2", "--json",
                             "--out", tmp_path / data[1])  # fmt: skip
        found = document(out)
        assert code == 0
        assert set(found) == {
            "schema", "task", "run", "model", "data", "examples", "lookback", "padding", "seconds", "steps",
            "parameters", "test", "by_class", "confusion", "baselines",
        }  # fmt: skip
        assert (found["task"], found["model"], found["data"]) == ("classify", "lstm", data[1])
        assert set(found["examples"]) == {"train", "validation", "test"}
        assert set(found["test"]) == set(found["baselines"]["majority"]) == {
            "accuracy", "macro_f1", "log_loss", "examples",
        }  # fmt: skip
        assert np.sum(found["confusion"]) == found["test"]["examples"] == found["examples"]["test"]


def test_dry_run(there):
    before = sorted(Path().iterdir())
    for data, sizes in ((TEXTS, " tokens in the vocabulary, 4 classes"), (SERIES, "2 channels, 2 classes")):
        code, out, _ = there("fit", "--model", "transformer", *data, *SMALL, "--dry-run", "--quiet")
        assert code == 0
        assert sizes in out
        assert "examples" in out
        code, out, _ = there("fit", "--model", "transformer", *data, *SMALL, "--dry-run", "--json", "--quiet")
        found = document(out)
        assert found["task"] == "classify"
        assert {"channels", "vocabulary", "classes", "lookback", "examples", "memory", "steps"} <= set(found)
    assert sorted(Path().iterdir()) == before


def test_fit_again_from_a_run(there, tmp_path):
    code, _, err = there("fit", "--config", "of_texts", "--out", tmp_path / "again", "--quiet")
    assert code == 0, err
    for name in ("model.safetensors", "vocabulary.json", "transforms.json"):
        assert (tmp_path / "again" / name).read_bytes() == Path("of_texts", name).read_bytes(), name


def test_series_are_predicted_by_their_ids(there):
    code, out, _ = there("predict", "of_series", "--quiet")
    table = pd.read_csv(pd.io.common.StringIO(out), dtype={"who": str})
    assert code == 0
    assert table.columns.tolist() == ["who", "way", "probability"]
    assert table["who"].tolist() == [f"{i:03}" for i in range(30)]
    assert table["probability"].between(0.5, 1).all()


def test_new_series_without_labels(there, tmp_path):
    frame = pd.read_csv("series.csv", dtype={"who": str})
    whole = there("predict", "of_series", "--quiet")[1].splitlines()
    frame[frame["who"] == "007"].drop(columns="way").to_csv(tmp_path / "one.csv", index=False)
    code, out, err = there("predict", "of_series", "--input", tmp_path / "one.csv", "--quiet")
    assert code == 0, err
    (_, one), expected = out.splitlines(), next(line for line in whole if line.startswith("007"))
    assert one.rpartition(",")[0] == expected.rpartition(",")[0]
    assert float(one.rpartition(",")[2]) == pytest.approx(float(expected.rpartition(",")[2]), abs=1e-6)


def test_new_texts_as_lines(there, tmp_path):
    (tmp_path / "new.txt").write_text("the film\n\nnever heard of\n" + "a " * 5000 + "\n")
    code, out, err = there("predict", "of_texts", "--input", tmp_path / "new.txt", "--output", tmp_path / "out.csv")
    assert (code, out) == (0, "")
    assert "1 of 4 texts have more than" in err
    table = pd.read_csv(tmp_path / "out.csv", keep_default_na=False)
    assert table["probability"].tolist()[:3] == ["the film", "", "never heard of"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--plot", "x.png"), "--plot"),
        (("--horizon", "3"), "--horizon"),
        (("--beam", "2"), "--beam"),
        (("--plot", "x.png", "--horizon", "3", "--beam", "2"), "--plot and --horizon and --beam"),
    ],
)
def test_options_of_other_tasks_are_refused(there, words, said):
    code, out, err = there("predict", "of_texts", *words)
    assert (code, out) == (2, "")
    assert said in there.one_line(err)
    assert not Path("x.png").exists()


@pytest.mark.parametrize("words", [("--horizon", "4"), ("--season", "7"), ("--window.stride", "2")])
def test_a_window_without_meaning_is_refused(there, words):
    code, _, err = there("fit", "--model", "transformer", *TEXTS, *SMALL, *words, "--dry-run")
    assert code == 2
    assert "is for forecast and pretrain, and the task is classify" in there.one_line(err)


def test_rows_without_a_label_are_left_out(there, tmp_path):
    frame = pd.read_csv("texts.csv")
    frame.loc[::8, "probabilities"] = ""
    frame.to_csv(tmp_path / "some.csv", index=False)
    words = [tmp_path / "some.csv" if word == "texts.csv" else word for word in TEXTS]
    code, out, err = there("fit", "--model", "transformer", *words, *SMALL, "--out", tmp_path / "run", "--json")
    assert code == 0, err
    assert "5 row(s) without a label are left out" in err
    assert sum(document(out)["examples"].values()) == 35


def test_a_picture_that_cannot_be_written_is_a_warning(there, tmp_path, monkeypatch):
    from tsformer.report import results

    def fail(score, file):
        raise OSError(28, "No space left on device", str(file))

    monkeypatch.setattr(results, "plot_confusion", fail)
    code, _, err = there("fit", "--model", "transformer", *TEXTS, *SMALL, "--out", tmp_path / "run", "--quiet")
    assert code == 0
    assert f"warning: no picture {tmp_path / 'run' / 'confusion.png'}: " in err
    assert "No space left on device" in err
    assert (tmp_path / "run" / "manifest.json").exists()
    assert (tmp_path / "run" / "report.csv").exists()


def test_plot_writes_the_confusion_matrix(there, tmp_path):
    words = ("--out", tmp_path / "run", "--plot", tmp_path / "my.png", "--quiet")
    code, _, err = there("fit", "--model", "transformer", *TEXTS, *SMALL, *words)
    assert code == 0, err
    assert (tmp_path / "my.png").read_bytes().startswith(b"\x89PNG")


def test_a_lack_of_memory_names_what_would_help(there, monkeypatch):
    from tsformer import machine

    monkeypatch.setattr(machine, "available", lambda device: 1000)
    code, _, err = there("fit", "--model", "transformer", *TEXTS, "--model.d-model", "512", "--dry-run", "--quiet")
    line = there.one_line(err)
    assert code == 7
    for option in ("--model.d-model (512)", "--tokens.max-size", "--window.lookback"):
        assert option in line
    assert "horizon" not in line


def test_a_signal_keeps_a_complete_run(there, tmp_path):
    run = tmp_path / "run"
    words = ("--max-steps", "100000", "--train.patience", "100000", "--train.eval-every", "5", "--out", str(run))
    process = subprocess.Popen(
        [sys.executable, "-m", "tsformer", "fit", "--model", "lstm", *TEXTS, "--model.d-model", "8", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    metrics, deadline = run / "metrics.jsonl", time.monotonic() + 60
    while not (metrics.exists() and metrics.read_text().count("\n") >= 2) and time.monotonic() < deadline:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out.strip() == str(run)
    assert json.loads((run / "manifest.json").read_text())["status"] == "interrupted"
    code, out, err = there("predict", run)
    assert code == 0
    assert "was interrupted" in err
    assert len(list(csv.reader(out.splitlines(keepends=True)))) == 41
