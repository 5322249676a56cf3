"""Whatever a file holds, reading it ends in a panel or in one line: never in another exception, never late."""

import datetime
import io
import shlex
import time

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tsformer.cli.app import main
from tsformer.cli.inspect import DATA, MODEL
from tsformer.cli.line_config import read_layers
from tsformer.data.frames import load_panel
from tsformer.errors import DataError, ResourceError
from tsformer.inspection.search import inspect
from tsformer.sources import read

SECONDS = 5  # for one small table

LAYOUTS = [
    "%Y-%m-%d",
    "%d/%m/%Y",
    "%m/%d/%y",
    "%Y%m%d",
    "%d.%m.%Y %H:%M",
    "%b %d, %Y",
    "%Y-%m-%dT%H:%M:%SZ",
    "%Y",
    "%s",
]
days = st.datetimes(datetime.datetime(1971, 1, 1), datetime.datetime(2030, 1, 1))
BLANKS = [".", "-", "--", "NA", "null", "?", "nan", "inf", "-200"]
NUMBERS = ["1,234", "1,234.5", "1.234,5", "93%", "1.38M", "(12)", "$5", "1e400", "-1e-320", "0x1F", "١٢"]
TIMES = ["24:00", "1998 Q1", "1991 W06", "00:00 - 01:00", "2016-02-30", "31/13/2012", "+01:00", "20240230"]
WORDS = ["", '"', 'a"b', "\0", "\ufeff", "é", "日期", "\u2028", "=1+1", "#", "TRUE", "9" * 400, "x" * 20_000]
odd = st.sampled_from([*BLANKS, *NUMBERS, *TIMES, *WORDS])
numbers = st.one_of(st.integers(-(10**6), 10**6), st.floats(allow_nan=False, width=32)).map(str)
cells = st.one_of(numbers, numbers, odd, st.text(max_size=6), days.map(lambda day: day.strftime("%Y-%m-%d")))


@st.composite
def regular(draw):
    """Rows of times in one of many writings beside numbers, with a few odd cells."""
    layout, start = draw(st.sampled_from(LAYOUTS)), draw(days)
    step = draw(st.sampled_from([1, 7, 30.4375, 365.25, 1 / 24, 1 / 96]))
    count = draw(st.integers(0, 60))
    stamps = [(start + datetime.timedelta(days=step * i)).strftime(layout) for i in range(count)]
    rows = [[stamp, str(i % 7), draw(numbers) if i < 5 else str(i)] for i, stamp in enumerate(stamps)]
    for _ in range(draw(st.integers(0, 4)) if rows else 0):
        draw(st.sampled_from(rows))[draw(st.integers(0, 2))] = draw(odd)
    return [draw(st.lists(st.sampled_from(["date", "y", "", "y.2", "a,b", "2020"]), min_size=3, max_size=3)), *rows]


ragged = st.lists(st.lists(cells, max_size=6), max_size=12)


@st.composite
def contents(draw):
    """The bytes of a table that may be cut, mended, or written in another encoding."""
    rows = draw(st.one_of(regular(), regular(), ragged))
    sep, end = draw(st.sampled_from([",", ";", "\t", "|", " "])), draw(st.sampled_from(["\n", "\r\n", "\r"]))
    text = end.join(sep.join(row) for row in rows)
    above = draw(st.sampled_from(["", "", "", "# about\n", "Category: all\n\n", '"', "a;b\n"]))
    content = (above + text).encode(draw(st.sampled_from(["utf-8", "utf-8", "utf-16", "cp1252", "cp949"])), "replace")
    at = draw(st.integers(0, len(content)))
    how = draw(st.sampled_from(["whole", "whole", "cut", "bytes", "gzip"]))
    if how == "gzip":
        return b"\x1f\x8b" + content
    middle = {"whole": b"", "cut": None, "bytes": draw(st.binary(max_size=5))}[how]
    return content[:at] if middle is None else content[:at] + middle + content[at:]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "table.csv"


patient = settings(deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@given(content=st.one_of(contents(), contents(), st.binary(max_size=300)))
@settings(patient, max_examples=120)
def test_reading_ends_in_a_panel_or_in_one_line(file, content):
    file.write_bytes(content)
    begun = time.process_time()
    said = ""
    try:
        assert len(read("csv", path=str(file)).values)
    except (DataError, ResourceError) as error:
        said = str(error)
        assert said.strip()
    assert "\n" not in said
    assert time.process_time() - begun < SECONDS


WRITTEN = {
    "%Y-%m-%d": "D",
    "%d/%m/%Y": "D",
    "%m/%d/%Y": "D",
    "%d.%m.%y": "D",
    "%m/%d/%y": "D",
    "%Y%m%d": "D",
    "%d%m%Y": "D",
    "%b %d, %Y": "D",
    "%d.%m.%Y %H:%M": "h",
    "%m/%d/%Y %I:%M %p": "h",
    "%Y-%m-%dT%H:%M:%SZ": "h",
    "%Y-%m-%d %H:%M:%S+02:00": "h",
    "%s": "h",
    "%Y": "Y",
}
STEPS = {"D": ["D", "7D", "MS"], "h": ["h", "15min", "D"], "Y": ["YS"]}


@st.composite
def known_tables(draw):
    """A table with a column of ids or none, and what is in it: times of UTC, or local ones, and values by series."""
    layout = draw(st.sampled_from(sorted(WRITTEN)))
    step = draw(st.sampled_from(STEPS[WRITTEN[layout]]))
    count, series = draw(st.integers(8, 40)), draw(st.sampled_from([1, 1, 2]))
    latest = {"MS": 2020, "YS": 1985}.get(step, 2024)
    start = draw(st.datetimes(datetime.datetime(1971, 1, 1), datetime.datetime(latest, 1, 1)))
    times = pd.date_range(pd.Timestamp(start).normalize(), freq=step, periods=count)
    offset = datetime.timedelta(hours=2) if "+02:00" in layout else datetime.timedelta(0)
    stamps = [str(int(t.timestamp())) if layout == "%s" else t.strftime(layout) for t in times]
    values = [[draw(st.integers(-(10**6), 10**6)) / 4 for _ in times] for _ in range(series)]
    sep, marks = draw(st.sampled_from([(",", "."), (";", ","), ("\t", ",."), (";", ",.")]))
    rows = [
        [*(["north", "south"][which : which + 1] if series > 1 else []), stamp, _written(value, marks)]
        for which in range(series)
        for stamp, value in zip(stamps, values[which], strict=True)
    ]
    names = [*(["site"] if series > 1 else []), draw(st.sampled_from(["date", "time"])), "y"]
    return "\n".join(sep.join(row) for row in [names, *rows]) + "\n", times - offset, values


def _written(value, marks):
    return f"{value:,.2f}".translate({ord("."): marks[0], ord(","): marks[1:]})


@given(known_tables())
@settings(patient, max_examples=100)
def test_what_is_read_is_what_was_written_or_refused(table):
    text, times, values = table
    try:
        panel = load_panel(io.StringIO(text))
    except DataError:
        return
    read_times = panel.times
    if isinstance(read_times, pd.DatetimeIndex) and read_times.tz is not None:
        read_times = read_times.tz_convert("UTC").tz_localize(None)
    assert list(read_times) == list(times) * len(values)
    assert panel.values[:, 0].tolist() == [value for series in values for value in series]


def inspected(path):
    layers = read_layers(
        config=None, model=MODEL, data=DATA, transform=None, scale=None, options={"data__path": str(path)}
    )
    return inspect(layers, str(path))


@given(content=contents())
@settings(patient, max_examples=60)
def test_inspecting_ends_in_a_verdict(file, content):
    file.write_bytes(content)
    begun = time.process_time()
    found = inspected(file)
    assert time.process_time() - begun < SECONDS
    if found.command is None:
        assert found.verdict in ("needs your decision", "no table of series")
        assert str(found.fault).strip()
    else:
        assert found.verdict.startswith("ready")
        assert found.summary.rows


@given(rows=regular())
@settings(patient, max_examples=12)
def test_the_line_of_inspect_works(file, rows):
    file.write_text("\n".join(",".join(row) for row in rows))
    command = inspected(file).command
    if command is not None:
        with pytest.raises(SystemExit) as caught:
            main([*shlex.split(command)[1:], "--dry-run", "--quiet"])
        assert caught.value.code in (0, None)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", 3),
        (b"date,y\n", 3),
        (b"\0\0\0", 3),
        (b'date,y\n2024-01-01,"1\n2024-01-02,2\n', 3),
        (b"\x1f\x8b not gzip", 3),
        (b"PK\x03\x04 not zip", 3),
        (b'{"a": 1}', 3),
        (b"word\nother\n", 3),
        ("".join(["date,y\n", *(f"2024-01-{day:02},{day}\n" for day in range(1, 32))]).encode(), 0),
    ],
)
def test_exit_codes_of_the_command_line(tsformer, content, code):
    from pathlib import Path

    Path("table.csv").write_bytes(content)
    ended, out, err = tsformer("inspect", "table.csv")
    assert ended == code, err
    if code:
        assert tsformer.one_line(err).startswith("error: ")
    else:
        assert out.splitlines()[-1].startswith("tsformer fit ")
