"""A vocabulary that was damaged or made up: exit 4 and one line, never a traceback and never another answer."""

import hashlib
import json
import shutil

import pytest

from tsformer import fitting, sources
from tsformer import run as runs
from tsformer.config import resolve
from tsformer.config_layer import Layer

SMALL = {"name": "transformer", "d_model": 8, "n_heads": 2, "d_ff": 8, "encoder_layers": 1}
REVIEWS = {"name": "text", "path": "reviews", "text": "review", "label": "sentiment"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run of texts with two classes."""
    folder = tmp_path_factory.mktemp("vocabulary") / "run"
    settings = resolve([Layer({"model": SMALL, "task": "classify", "data": REVIEWS, "train": {"max_steps": 1}})])
    writer = runs.Writer(folder)
    result = fitting.fit(settings, sources.load_data(settings.data), watch=fitting.Watch(start=writer.start))
    writer.finish(result.fitted, result.summary())
    return folder


@pytest.fixture
def copied(made, tmp_path):
    """That run, to be damaged."""
    return shutil.copytree(made, tmp_path / "copy")


def rewritten(run, change):
    """Change vocabulary.json, and name its new sum in the manifest, as who means harm would."""
    file, manifest = run / "vocabulary.json", run / "manifest.json"
    content = change(file.read_text())
    file.write_text(content)
    listed = json.loads(manifest.read_text())
    sha = hashlib.sha256(content.encode()).hexdigest()
    listed["files"]["vocabulary.json"] = {"sha256": sha, "bytes": len(content.encode())}
    manifest.write_text(json.dumps(listed))


def edited(**changes):
    def change(text):
        words = json.loads(text)
        for key, edit in changes.items():
            words[key] = edit(words[key])
        return json.dumps(words)

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace("the", "teh"), "damaged"),
        (lambda text: text + " ", "damaged"),
        (lambda text: "", "damaged"),
    ],
)
def test_a_damaged_vocabulary(tsformer, copied, change, said):
    file = copied / "vocabulary.json"
    file.write_text(change(file.read_text()))
    code, out, err = tsformer("predict", copied, "--quiet")
    assert (code, out) == (4, "")
    assert said in tsformer.one_line(err)
    assert "vocabulary.json" in err


def test_a_missing_vocabulary(tsformer, copied):
    (copied / "vocabulary.json").unlink()
    code, _, err = tsformer("predict", copied, "--quiet")
    assert code == 4
    assert "vocabulary.json' is missing" in tsformer.one_line(err)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text[:-20], "cannot be read"),
        (lambda text: "[]", "not a JSON object"),
        (lambda text: "{}", "vocabulary of a run"),
        (edited(classes=lambda names: [names[0], names[0]]), "a class is there twice"),
        (edited(classes=lambda names: names[:1]), "1 classes"),
        (edited(classes=lambda names: 7), "not names"),
        (edited(tokenizer=lambda made: None), "0 tokens"),
        (edited(tokenizer=lambda made: {**made, "words": made["words"][:-1]}), "tokens"),
        (edited(tokenizer=lambda made: {**made, "words": [*made["words"][:-1], made["words"][4]]}), "twice"),
        (edited(tokenizer=lambda made: {**made, "kind": "words"}), "one of"),
        (edited(tokenizer=lambda made: {**made, "words": [1, 2, 3, 4, 5]}), "words only"),
    ],
)
def test_a_vocabulary_that_was_made_up(tsformer, copied, change, said):
    rewritten(copied, change)
    code, out, err = tsformer("predict", copied, "--quiet")
    assert (code, out) == (4, ""), err
    assert said in tsformer.one_line(err)


def test_a_manifest_that_names_no_vocabulary(tsformer, copied):
    manifest = json.loads((copied / "manifest.json").read_text())
    del manifest["files"]["vocabulary.json"]
    (copied / "manifest.json").write_text(json.dumps(manifest))
    code, _, err = tsformer("predict", copied, "--quiet")
    assert code == 4
    assert "0 tokens and 0 classes" in tsformer.one_line(err)
