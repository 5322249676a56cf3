"""Tables at a terminal: what stands in them, on stderr, with names as they are."""

import re

import numpy as np
import pytest

from tsformer.evaluation.classes import class_score, majority
from tsformer.report.tables import MOST_CLASSES, PatientConsole, classes


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("FORCE_COLOR", raising=False)


def printed(capsys, names, labels, predicted, model="tcn"):
    """What is on stderr: the cells of each line."""
    labels = np.array(labels)
    score = class_score(labels, np.eye(len(names))[predicted], names)
    console = PatientConsole()
    for item in classes(console, model, score, majority(labels, labels, names)):
        console.print(item)
    out, err = capsys.readouterr()
    assert out == ""
    assert max(map(len, err.splitlines())) <= 80
    return [[cell.strip() for cell in re.split("[│┃]", line)[1:-1]] or line.strip() for line in err.splitlines()]


def test_score_report_and_confusion(capsys):
    lines = printed(capsys, ("a", "b", "c"), [0, 0, 0, 1], [0, 0, 1, 1])
    assert lines[0] == "test part: 4 examples of 3 classes"
    assert ["", "accuracy", "macro-F1", "log loss"] in lines
    assert ["tcn", "0.75", "0.7333", "9.011"] in lines  # a quarter of -log(2**-52)
    assert ["majority class", "0.75", "0.4286", "0.5623"] in lines
    assert ["a", "1", "0.6667", "0.8", "3"] in lines
    assert ["c", "-", "-", "-", "0"] in lines
    assert ["1", "a", "2", "1", "0"] in lines
    assert ["", "", "1", "2", "3"] in lines


def test_names_are_shown_as_they_are(capsys):
    names = ("[bold red]x[/] :smile:", "财经\x1b[31m\n", "long " * 100)
    lines = printed(capsys, names, [0, 1, 2], [0, 1, 2], model="[blink]m[/blink]\x07")
    first = [line[0] for line in lines if isinstance(line, list)]
    assert r"[blink]m[/blink]\x07" in first
    assert "[bold red]x[/] :smile:" in first
    assert r"财经\x1b[31m\n" in first
    assert "long long long long long long l…" in first
    assert ["long long long long long long l…", "1", "1", "1", "1"] in lines


@pytest.mark.parametrize(("count", "examples", "there"), [(12, 2000, True), (13, 2000, False), (12, 2_000_000, False)])
def test_a_confusion_matrix_that_has_no_room_is_left_out(capsys, count, examples, there):
    generator = np.random.default_rng(0)
    names = tuple(f"class {i}" for i in range(count))
    lines = printed(capsys, names, generator.integers(0, count, examples), generator.integers(0, count, examples))
    assert ("truth in rows, prediction in columns" in lines) == there
    assert "…" not in str(lines)


def test_of_many_classes_the_first_have_rows(capsys):
    count = MOST_CLASSES + 5
    lines = printed(capsys, tuple(f"class {i}" for i in range(count)), np.arange(count), np.arange(count))
    assert f"the first {MOST_CLASSES} of {count} classes" in lines
    assert sum(line[0].startswith("class ") for line in lines if isinstance(line, list)) == MOST_CLASSES
