"""What a person is shown of a fit, and the files beside its run."""

import csv
import json
from pathlib import Path

import pandas as pd
import pytest

from tsformer import fitting, sources
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.sequences import Sequences, SequenceSchema
from tsformer.report import plots, results

SMALL = {"name": "transformer", "d_model": 8, "n_heads": 2, "d_ff": 8, "encoder_layers": 1}
NAMES = ("a,b", 'say "x"', "two\nlines", "[red]x[/red]", "数", "$x^$")


def settings(task, **data):
    values = {"model": SMALL, "task": task, "train": {"max_steps": 1}, **({"data": data} if data else {})}
    return resolve([Layer(values)], needs_data=bool(data))


@pytest.fixture(scope="module")
def made():
    """A result of each task; the classes have names that formats have to mind."""
    found = {}
    for task, data in (("sequence", {"name": "reversal", "pairs": 30}), ("forecast", {"name": "sine", "points": 200})):
        chosen = settings(task, **data)
        found[task] = fitting.fit(chosen, sources.load_data(chosen.data))
    texts = Sequences(
        SequenceSchema(text="text", label="label"),
        tuple(map(str, range(60))),
        texts=tuple(f"{'red ' * (i % 5)}word{i}" for i in range(60)),
        labels=tuple(NAMES[i % 6] for i in range(60)),
    )
    for task in ("classify", "pretrain"):
        found[task] = fitting.fit(settings(task), texts)
    return found


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("classify", ("macro-F1", "majority class", "[red]x[/red]", r"two\nlines", "precision", "padding: ")),
        ("sequence", ("edit distance", "a copy of the text", "padding: ")),
        ("pretrain", ("hidden steps", "how often each occurs", "cross-entropy", "padding: ")),
        ("forecast", ("MASE", "last_value")),
    ],
)
def test_what_is_printed(made, task, words, capsys):
    results.print_result(made[task])
    out, err = capsys.readouterr()
    assert out == ""
    for word in ("transformer", *words):
        assert word in err


def test_a_closed_stderr_costs_nothing(made, monkeypatch):
    class Closed:
        encoding = "utf-8"

        def write(self, text):
            raise BrokenPipeError

        flush = write

        def isatty(self):
            return False

    monkeypatch.setattr("sys.stderr", Closed())
    results.print_result(made["classify"])


def test_files(made):
    folder, plot = Path("run"), Path("elsewhere.png")
    tables = {folder / "confusion.csv", folder / "report.csv"}
    assert set(results.files_of(made["classify"], folder, plot)) == tables | {folder / "confusion.png", plot}
    assert set(results.files_of(made["classify"], folder, None)) == tables | {folder / "confusion.png"}
    assert set(results.files_of(made["forecast"], folder, plot)) == {folder / "forecast.png", plot}
    for task in ("sequence", "pretrain"):
        assert not results.files_of(made[task], folder, None)


def test_without_matplotlib_tables_are_left(made, monkeypatch):
    monkeypatch.setattr(plots, "available", lambda: False)
    assert set(results.files_of(made["classify"], Path("run"), None)) == {
        Path("run/confusion.csv"),
        Path("run/report.csv"),
    }


def test_what_the_files_hold(made, tmp_path):
    result = made["classify"]
    for file, write in results.files_of(result, tmp_path, tmp_path / "mine.svg").items():
        write(file)
    with (tmp_path / "confusion.csv").open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert head == ["truth", *sorted(NAMES)]
    assert [row[0] for row in rows] == sorted(NAMES)
    assert [[int(cell) for cell in row[1:]] for row in rows] == result.metrics()["confusion"]
    report = pd.read_csv(tmp_path / "report.csv", index_col="class", keep_default_na=True)
    for name, metrics in result.metrics()["by_class"].items():
        for key, value in metrics.items():
            found = report.loc[name, key]
            assert found == pytest.approx(value) if value is not None else pd.isna(found)
    assert (tmp_path / "confusion.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (tmp_path / "mine.svg").read_bytes()


@pytest.mark.parametrize("task", ["classify", "sequence", "pretrain", "forecast"])
def test_cautions_are_lines(made, task):
    for line in made[task].cautions():
        assert json.loads(json.dumps(line)) == line
        assert "transformer" in line or "MASE" in line
