"""`tsformer inspect` on the command line."""

import io
import json
import re
import shlex
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_a_report_ends_with_the_line(tsformer):
    code, out, err = tsformer("inspect", tsformer.air)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("file ")
    assert lines[0].endswith("144 rows, 2 columns")
    assert "verdict: ready" in lines
    assert lines[-1] == f"tsformer fit --model tcn_transformer --data csv --path {shlex.quote(str(tsformer.air))}"


def test_the_line_and_its_forecast(tsformer):
    """Days first, decimal commas, no Sundays, a marker, lines above the header: all are undone, and done again."""
    file = ROOT / "datasets" / "kiosks.csv"
    code, out, _ = tsformer("inspect", file)
    assert code == 0
    words = shlex.split(out.splitlines()[-1])
    code, _, err = tsformer(*words[1:], *tsformer.fast, "--horizon", "3", "--out", "run", "--quiet")
    assert code == 0, err
    code, out, err = tsformer("predict", "run", "--quiet")
    assert code == 0, err
    rows = [line.split(",") for line in out.splitlines()]
    assert rows[0][:2] == ["kiosk", "day"]
    assert [row[:2] for row in rows[1:4]] == [["Harbour", f"0{day}/02/2024"] for day in (1, 2, 3)]
    assert len(rows) == 10


def test_json_has_the_documented_keys(tsformer):
    _, out, _ = tsformer("inspect", tsformer.air, "--json")
    document = json.loads(out)
    assert document["schema"] == 1
    section = (ROOT / "docs" / "tables.md").read_text().partition("### `--json`")[2].partition("\n## ")[0]
    documented = {
        key for keys in re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE) for key in re.findall(r"`(\w+)`", keys)
    }
    assert set(document) == documented
    inner = set(re.findall(r"`(\w+)`", section))
    for name in ("time", "series", "window"):
        assert set(document[name]) <= inner
    assert all(set(column) <= inner for column in document["columns"])


def test_stdin(tsformer, monkeypatch):
    content = tsformer.air.read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    code, out, _ = tsformer("inspect", "-")
    assert code == 0
    assert out.splitlines()[-1].endswith("--data csv --path -")


def test_options_of_the_line_are_kept(tsformer):
    code, out, _ = tsformer("inspect", tsformer.air, "--model", "ridge", "--horizon", "6", "--transform", "log")
    assert code == 0
    assert out.splitlines()[-1].startswith("tsformer fit --model ridge --data csv --path ")
    assert out.splitlines()[-1].endswith(" --transform log --horizon 6")


def test_a_switch_may_be_denied(tsformer):
    Path("x.csv").write_text("date,y\n" + "".join(f"0{1 + i}/01/2024,{i}\n" for i in range(9)))
    days = {}
    for flag in ("--dayfirst", "--no-dayfirst"):
        code, out, _ = tsformer("inspect", "x.csv", flag, "--json")
        assert code == 0
        days[flag] = json.loads(out)["time"]["last"]
    assert days == {"--dayfirst": "2024-01-09", "--no-dayfirst": "2024-09-01"}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["inspect"], 2, "FILE"),
        (["inspect", ""], 2, "FILE is empty"),
        (["inspect", "nowhere.csv"], 3, "no file nowhere.csv"),
        (["inspect", "air_passengers", "--missing", "guess"], 2, "--data.missing"),
        (["inspect", "air_passengers", "--model", "transfomer"], 5, "did you mean 'transformer'"),
        (["inspct", "air_passengers"], 2, "inspect"),
    ],
)
def test_errors_are_one_line(tsformer, words, code, said):
    ended, _, err = tsformer(*words)
    assert ended == code
    assert said in tsformer.one_line(err)


def test_json_of_what_is_no_table(tsformer):
    Path("x.json").write_text('{"a": [1, 2]}')
    code, out, err = tsformer("inspect", "x.json", "--json")
    assert code == 3
    document = json.loads(out)
    assert (document["verdict"], document["command"]) == ("no table of series", None)
    assert json.loads(err)["error"]["kind"] == "data"
