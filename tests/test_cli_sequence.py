"""Texts and their answers, from the command line."""

import csv
import json
from pathlib import Path

import pandas as pd
import pytest

from tsformer.cli.app import main

SMALL = ("--model.d-model", "8", "--model.n-heads", "2", "--model.d-ff", "8", "--max-steps", "4", "--quiet")
PAIRS = ("--data", "pairs", "--path", "pairs.tsv", "--source", "score", "--target", "answer")
METRICS = {"sequence_accuracy", "token_accuracy", "edit_distance", "mean_length", "true_length", "examples"}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with pairs and a run of them; the texts are in a column that is called as ours."""
    folder = tmp_path_factory.mktemp("sequence")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        letters = "abcdef"
        texts = [
            f"{letters[i % 6]} {letters[i // 6]} {letters[(i * 5) % 6]}"[: 1 + 2 * (i % 3)] + f" n{i}"
            for i in range(36)
        ]
        rows = [(text, " ".join(reversed(text.split()))) for text in texts]
        pd.DataFrame(rows, columns=["score", "answer"]).to_csv("pairs.tsv", sep="\t", index=False)
        with pytest.raises(SystemExit) as caught:
            main(["fit", "--model", "transformer", *PAIRS, *SMALL, "--out", "run"])
        assert caught.value.code == 0
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


@pytest.mark.parametrize("model", ["transformer", "tcn_transformer", "lstm", "tcn"])
def test_fit_json(there, tmp_path, model):
    small = ("--model.d-model", "8", "--model.decoder-layers", "1", "--max-steps", "2", "--quiet")
    code, out, err = there("fit", "--model", model, *PAIRS, *small, "--json", "--out", tmp_path / "run")
    assert code == 0, err
    found = document(out)
    assert set(found) == {
        "schema", "task", "run", "model", "data", "examples", "lookback", "padding", "seconds", "steps", "parameters",
        "test", "baselines",
    }  # fmt: skip
    assert (found["task"], found["model"]) == ("sequence", model)
    assert set(found["test"]) == METRICS
    assert {name: set(each) for name, each in found["baselines"].items()} == {"copy": METRICS, "most_frequent": METRICS}
    assert found["test"]["examples"] == found["examples"]["test"]
    code, out, err = there("predict", tmp_path / "run", "--quiet", "--beam", "2")
    assert code == 0, err
    assert len(out.splitlines()) == 37


def test_files_of_a_run(there):
    assert {file.name for file in Path("run").iterdir()} == {
        "config.json",
        "transforms.json",
        "vocabulary.json",
        "model.safetensors",
        "metrics.jsonl",
        "manifest.json",
    }
    record = document(Path("run/metrics.jsonl").read_text().splitlines()[-1])
    assert {"step", "train_loss", "validation_loss", "validation_token_accuracy", "truth"} <= set(record)


def test_predict(there):
    code, out, _ = there("predict", "run", "--quiet")
    rows = list(csv.reader(out.splitlines()))
    assert code == 0
    assert rows[0] == ["score", "answer", "score_"]
    assert [row[0] for row in rows[1:]] == list(pd.read_csv("pairs.tsv", sep="\t")["score"])
    assert all(float(row[2]) <= 0 for row in rows[1:])


def test_predict_json(there):
    for beam in (None, 3):
        code, out, _ = there("predict", "run", "--json", "--quiet", *(["--beam", beam] if beam else []))
        found = document(out)
        assert code == 0
        assert set(found) == {"schema", "task", "run", "beam", "output", "answers"}
        assert (found["task"], found["beam"]) == ("sequence", beam or 1)
        assert all(set(row) == {"score", "answer", "score_"} for row in found["answers"])


def test_new_texts_with_and_without_answers(there, tmp_path):
    whole = there("predict", "run", "--quiet")[1].splitlines()
    texts = list(pd.read_csv("pairs.tsv", sep="\t")["score"])
    (tmp_path / "one.txt").write_text(f"{texts[5]}\n\nnever heard\n")
    code, out, err = there("predict", "run", "--input", tmp_path / "one.txt", "--quiet")
    assert code == 0, err
    rows, expected = list(csv.reader(out.splitlines())), next(csv.reader([whole[6]]))
    assert rows[1][:2] == expected[:2]
    assert float(rows[1][2]) == pytest.approx(float(expected[2]), abs=1e-4)
    assert [row[0] for row in rows[2:]] == ["", "never heard"]


@pytest.mark.parametrize("words", [("--plot", "x.png"), ("--horizon", "3"), ("--plot", "x.png", "--horizon", "3")])
def test_options_of_other_tasks_are_refused(there, words):
    code, out, err = there("predict", "run", *words)
    assert (code, out) == (2, "")
    assert f"{words[0]} " in there.one_line(err)
    assert "sequence" in err


@pytest.mark.parametrize("dry", [["--dry-run"], []])
def test_there_is_no_picture_of_a_fit(there, tmp_path, dry):
    words = ("--plot", tmp_path / "p.png", "--out", tmp_path / "run", *dry)
    code, out, err = there("fit", "--model", "transformer", *PAIRS, *SMALL, *words)
    assert (code, out) == (2, "")
    assert "no picture of a fit whose task is sequence" in there.one_line(err)
    assert not list(tmp_path.iterdir())


def test_a_beam_needs_a_candidate(there):
    code, _, err = there("predict", "run", "--beam", "0")
    assert code == 2
    assert "--beam" in there.one_line(err)


def test_dry_run(there):
    code, out, _ = there("fit", "--model", "transformer", *PAIRS, *SMALL, "--dry-run")
    assert code == 0
    assert "sequence" in out
    assert "tokens in the vocabulary" in out
    code, out, _ = there("fit", "--model", "transformer", *PAIRS, *SMALL, "--dry-run", "--json")
    found = document(out)
    assert (code, found["task"], found["classes"]) == (0, "sequence", 0)
    assert sum(found["examples"].values()) == 36


def test_fit_again_from_a_run(there, tmp_path):
    code, _, err = there("fit", "--config", "run", "--out", tmp_path / "again", "--quiet")
    assert code == 0, err
    for name in ("model.safetensors", "vocabulary.json"):
        assert (tmp_path / "again" / name).read_bytes() == Path("run", name).read_bytes(), name


def test_options_of_classes_are_refused(there):
    code, _, err = there("fit", "--model", "transformer", *PAIRS, *SMALL, "--model.pooling", "max", "--dry-run")
    assert code == 2
    assert "pooling max is for classify" in there.one_line(err)
