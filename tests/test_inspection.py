"""What `inspect` finds in a table, and that its line takes the table as it is."""

import json
import shlex
from pathlib import Path

import pandas as pd
import pytest
from tsformer_plugins.data.csv import CsvConfig

from tsformer.cli.inspect import DATA, MODEL
from tsformer.cli.line_config import read_layers
from tsformer.errors import DataError
from tsformer.inspection import search
from tsformer.inspection.line import fit_line
from tsformer.report import inspection as report

DAYS = [str(day.date()) for day in pd.date_range("2024-01-01", periods=90)]


def write(lines, name="table.csv"):
    Path(name).write_text("\n".join(lines) + "\n")
    return name


def look(path, transform=None, **options):
    given = {"data__path": path, **options}
    layers = read_layers(config=None, model=MODEL, data=DATA, transform=transform, scale=None, options=given)
    return search.inspect(layers, path)


def daily(cells):
    return ["date,y", *(f"{day},{cell}" for day, cell in zip(DAYS, cells, strict=False))]


def numbers(**odd):
    """Ninety numbers, with other cells in the places `at_3`."""
    return [odd.get(f"at_{i}", str(10 + i % 7)) for i in range(90)]


def test_a_plain_table_is_ready(in_tmp):
    found = look(write(daily(numbers())))
    assert found.verdict == "ready"
    assert found.command == "tsformer fit --model tcn_transformer --data csv --path table.csv"
    summary = found.summary
    assert (summary.rows, [(c.name, c.role, c.missing) for c in summary.columns]) == (
        90,
        [("date", "time", 0), ("y", "target", 0)],
    )
    assert (summary.columns[1].least, summary.columns[1].greatest) == (10, 16)
    assert summary.time == {
        "name": "date",
        "format": "%Y-%m-%d",
        "zone": None,
        "frequency": "D",
        "first": "2024-01-01",
        "last": "2024-03-30",
        "steps": [],
    }
    assert summary.series["rows"] == {"shortest": 90, "median": 90, "longest": 90}


def test_every_fault_is_found_at_once_and_settled(in_tmp):
    lines = daily(numbers(at_5="", at_17=""))
    del lines[40]
    lines.append(lines[-1])
    found = look(write(lines))
    faults = [finding.kind for finding in found.findings if finding.level == "fault"]
    assert faults == ["duplicates", "gaps"]  # what settles gaps settles missing values, too
    assert any(finding.kind == "missing" for finding in found.findings)
    assert found.verdict == "ready with these options"
    assert found.options == {"data.duplicates": "first", "data.gaps": "fill", "data.missing": "mask"}
    assert set(shlex.split(found.command)[8:]) == {"--duplicates", "first", "--gaps", "fill", "--missing", "mask"}
    assert found.summary.columns[1].missing == 2


def test_steps_are_counted_where_they_are_not_regular(in_tmp):
    lines = daily(numbers())
    del lines[40], lines[60]
    found = look(write(lines))
    assert found.summary.time["steps"] == [["1 d", 85], ["2 d", 2]]
    assert "steps 1 d (85x), 2 d (2x)" in "\n".join(report.lines(found))


def test_steps_of_several_series_do_not_reach_from_one_to_the_next(in_tmp):
    rows = [f"{day},{name},{i % 7}" for name in "ab" for i, day in enumerate(DAYS) if (name, i) != ("a", 30)]
    found = look(write(["date,shop,y", *rows]))
    assert found.summary.time["steps"] == [["1 d", 176], ["2 d", 1]]
    assert found.summary.series["ids"] == ["a", "b"]


def test_a_report_is_cut_where_it_would_be_long(in_tmp):
    names = [f"y{i}" for i in range(50)]
    lines = [",".join(["date", *names]), *(f"{day}," + ",".join(["1", "2"] * 25) for day in DAYS)]
    lines[3] = lines[3].replace("1,2", "5,6")
    shown = report.lines(look(write(lines)))
    assert len(shown) < 60
    assert any(line.startswith("... and 31 more: 31 target") for line in shown)


def test_what_the_user_gives_is_kept_and_in_the_line(in_tmp):
    found = look(write(daily(numbers(at_5=""))), data__missing="linear", window__horizon="3")
    assert found.verdict == "ready"
    assert found.command.endswith("--path table.csv --missing linear --horizon 3")
    assert found.summary.window["horizon"] == 3


def test_a_sentinel_is_doubted_and_the_line_takes_it_as_missing(in_tmp):
    odd = {f"at_{i}": "-200" for i in range(20, 32)}
    found = look(write(daily(numbers(**odd))))
    (doubt,) = (finding for finding in found.findings if finding.level == "doubt")
    assert (doubt.kind, doubt.count) == ("sentinel", 12)
    assert found.options == {"data.sentinel": [-200.0], "data.missing": "mask"}
    assert "--sentinel=-200" in found.command


def test_ambiguous_days_are_for_the_user(in_tmp):
    pairs = ["03/05", "05/03", "01/02", "02/01", "07/04", "04/07", "09/08", "08/09", "11/10", "10/11"]
    found = look(write(["date,y", *(f"{pair}/2024,{len(pair)}" for pair in pairs)]))
    assert found.verdict == "needs your decision"
    assert found.command is None
    assert "--dayfirst" in str(found.fault)
    found.require_table()


@pytest.mark.parametrize("content", ['{"a": 1}', "words\nof\nsome kind\n", "date,y\n"])
def test_no_table_of_series(in_tmp, content):
    Path("x.csv").write_text(content)
    found = look("x.csv")
    assert (found.verdict, found.command) == ("no table of series", None)
    with pytest.raises(DataError):
        found.require_table()


def test_a_file_is_read_once_as_long_as_it_is_read_in_one_way(in_tmp, monkeypatch):
    lines = daily(numbers(at_5=""))
    del lines[40]
    readings = []
    real = search.read_file
    monkeypatch.setattr(search, "read_file", lambda *a, **k: readings.append(1) or real(*a, **k))
    assert len(look(write(lines)).options) == 2
    assert len(readings) == 1


def test_a_transform_that_cannot_be_is_for_the_user(in_tmp):
    found = look(write(daily(numbers(at_4="-3"))), transform=["log"])
    assert found.verdict == "needs your decision"
    assert "line 6" in str(found.fault) or "2024-01-05" in str(found.fault)


def test_the_object_is_plain_json(in_tmp):
    document = look(write(daily(numbers(at_5="")))).to_json()
    assert json.loads(json.dumps(document)) == document
    assert document["options"] == {"data.missing": "mask"}


OPTIONS = {
    "data.target": ["a, b", 'say "x"', "-c", "it's"],
    "data.na": ["--", "n a"],
    "data.sentinel": [-200.0, -9.99, 1e20],
    "data.dayfirst": False,
    "data.header": 3,
    "data.sep": ";",
    "window.short": "skip",
}


def test_a_line_says_what_it_is_made_of(tsformer):
    line = fit_line("my file.csv", MODEL, CsvConfig, OPTIONS, ["asinh"])
    words = shlex.split(line)
    code, out, err = tsformer("config", "show", *words[2:], "--json")
    assert code == 0, err
    settings = json.loads(out)["settings"]
    given = {name: settings[name.split(".")[0]][name.split(".")[1]] for name in OPTIONS}
    assert given == OPTIONS
    assert settings["data"]["path"] == "my file.csv"
    assert [transform["name"] for transform in settings["transform"]] == ["asinh"]
