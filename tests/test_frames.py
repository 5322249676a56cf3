"""Tables in and out: every way in which a table can be wrong ends in one line that says where and what to do."""

import gzip
import io
import os
import stat
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsformer.data.frames import (
    forecast_frame,
    panel_from_frame,
    panel_with_schema,
    read_panel,
    read_table,
    write_table,
)
from tsformer.data.frequency import next_times
from tsformer.data.panel import Panel, Schema
from tsformer.errors import DataError, ResourceError, TsformerError, UsageError

DAYS = [f"2024-01-0{i}" for i in range(1, 8)]


def table(content, **options):
    return read_table(io.StringIO(content), **options)


def panel(content, **options):
    """A panel from CSV text; options of `read_table` and of `panel_from_frame` together."""
    reading = {name: options.pop(name) for name in ("sep", "decimal") if name in options}
    written = [options[name] for name in ("time", "id") if name in options]
    return panel_from_frame(table(content, text=written, **reading), **options)


def csv(times, name="date", values=None):
    cells = values or [str(i) for i in range(len(times))]
    return f"{name},y\n" + "".join(f"{time},{cell}\n" for time, cell in zip(times, cells, strict=True))


def message(error):
    text = str(error.value)
    assert "\n" not in text
    return text


# Files


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b\n", "has no rows, only the columns' names: a, b"),
        ("a,b\n\n,\n", "has no rows"),
        ("a,b,a\n1,2,3\n", "line 1 names 2 columns 'a' (columns 1, 3)"),
        ("a,b\n1,2\n1,2,3\n", "line 3 has 3 cell(s), the columns' names are 2"),
        ("a,b\n1,2\n1\n", "line 3 has 1 cell(s), the columns' names are 2"),
        ("a,b\n1,2\n\n3,4\n", "line 3 is blank, but rows follow it"),
        ("a;b\n1;2\n", "--data.sep ';'"),
        ("a\tb\n1\t2\n", "--data.sep '\\t'"),
        ("2024-01-01,1\n2024-01-02,2\n", "line 1 holds values, not names ('2024-01-01', ...)"),
        ('a,b\n1,"2\n3,4\n', "cannot be split into cells"),
        ('{"a": [1, 2]}\n', "JSON"),
        ("<!DOCTYPE html>\n<p>", "HTML"),
        ("a,b\n1,\0\n", "NUL character in line 2"),
        ("# made by x\na,b\n1,2\n", "remove the comments (#)"),
        ("title,,\na,b,c\n1,2,3\n", "2 columns without a name"),
    ],
)
def test_what_is_no_table(text, expected):
    with pytest.raises(DataError) as error:
        table(text)
    assert expected in message(error)


def test_lines_are_those_of_the_file():
    frame = table('\na,b\n1,"x\ny"\n2,z\n\n,\n\n')
    assert list(frame.index) == [3, 5]
    assert list(frame["b"]) == ["x\ny", "z"]


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30), st.sampled_from(".,"))
def test_numbers_are_exact(values, decimal):
    text = "a;b\n" + "".join(f"{value!r};x\n" for value in values).replace(".", decimal)
    assert list(table(text, sep=";", decimal=decimal)["a"].astype(float)) == values


def test_bytes_bom_gzip_and_encodings(tmp_path):
    plain = "\ufefftag,größe\n2024-01-01,1\n"
    for content, options in [
        (plain.encode(), {}),
        (gzip.compress(plain.encode()), {}),
        (plain[1:].encode("cp1252"), {"encoding": "cp1252"}),
        (plain.encode("utf-16"), {"encoding": "utf-16"}),
        (plain.replace("\n", "\r\n").encode(), {}),
        (plain.replace("\n", "\r").encode(), {}),
    ]:
        path = tmp_path / "table.data"
        path.write_bytes(content)
        assert list(read_table(path, **options).columns) == ["tag", "größe"]
        assert list(read_table(io.BytesIO(content), **options)["größe"]) == [1]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a,b\n1,2\n1,\xe4\n", "is not written in utf-8-sig at byte 10 (line 3)"),
        ("a,b\n1,2\n".encode("utf-16"), "--data.encoding utf-16"),
        (gzip.compress(b"a,b\n1,2\n" * 1000)[:-9], "damaged gzip"),
        (b"PK\x03\x04xxxx", "Excel"),
        (b"PAR1xxxx", "Parquet"),
    ],
)
def test_bytes_that_are_no_text(tmp_path, content, expected):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(DataError) as error:
        read_table(path)
    assert expected in message(error)
    assert str(path) in message(error)


def test_files_that_are_not_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prices.csv").write_text("a\n1\n")
    for path, expected in [
        ("prices.cvs", "there is prices.csv"),
        ("prices", "there is prices.csv"),
        ("nowhere/prices.csv", "there is no folder nowhere"),
        (".", "is a folder: name a file in it (there is prices.csv)"),
        ("zzz", "air_passengers"),
        ("a\0b", "no file"),
        ("x" * 5000, "no file"),
        ("~nobody-of-that-name/x", "no file"),
    ]:
        with pytest.raises(DataError) as error:
            read_table(path)
        assert expected in message(error)


def test_a_file_goes_before_a_data_set_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(read_table("air_passengers")) == 144
    (tmp_path / "air_passengers").write_text("a\n1\n")
    assert len(read_table("air_passengers")) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path):
    path = tmp_path / "secret.csv"
    path.write_text("a\n1\n")
    path.chmod(0)
    with pytest.raises(ResourceError, match="Permission"):
        read_table(path)


def test_stdin(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,2\n")))
    assert read_table("-").shape == (1, 2)


def test_stdin_that_cannot_be_read(monkeypatch):
    closed = io.TextIOWrapper(io.BytesIO(b""))
    closed.close()
    for stdin in (None, closed):
        monkeypatch.setattr(sys, "stdin", stdin)
        with pytest.raises(DataError) as error:
            read_table("-")
        assert "stdin cannot be read" in message(error)


@pytest.mark.parametrize(
    "options",
    [
        *({"sep": sep} for sep in ("ab", "", "1", "\n", '"')),
        *({"decimal": decimal} for decimal in (";", ",")),
        *({"encoding": encoding} for encoding in ("utf-9", "base64")),
    ],
)
def test_options_that_make_no_sense(options):
    with pytest.raises(UsageError, match=r"--data\."):
        table("a,b\n1,2\n", **options)


def test_tab_has_three_spellings():
    for sep in ("\t", r"\t", "tab"):
        assert list(table("a\tb\n1\t2\n", sep=sep).columns) == ["a", "b"]


# Times


@pytest.mark.parametrize(
    ("times", "time_format", "zone", "frequency"),
    [
        (["1991", "1992", "1993"], "%Y", None, "YS"),
        (["1991-01", "1991-02", "1991-03"], "%Y-%m", None, "MS"),
        (["1991-01-31", "1991-02-28", "1991-03-31"], "%Y-%m-%d", None, "ME"),
        (["1991/01/04", "1991/01/11", "1991/01/18"], "%Y/%m/%d", None, "W-FRI"),
        (["1991-01-01 16:00", "1991-01-02 16:00", "1991-01-03 16:00"], "%Y-%m-%d %H:%M", None, "D"),
        (["1991-01-01T00:00:00", "1991-01-01T00:00:30", "1991-01-01T00:01:00"], "%Y-%m-%dT%H:%M:%S", None, "30s"),
        (["1991-01-01 00:00:00", "1991-01-01 00:00:00.500000", "1991-01-01 00:00:01"], None, None, "500ms"),
        (["1991-01-01T00:00Z", "1991-01-01T01:00Z", "1991-01-01T02:00Z"], "%Y-%m-%dT%H:%MZ", "UTC", "h"),
        (["1991-01-01 00:00+01:00", "1991-01-01 01:00+01:00", "1991-01-01 02:00+01:00"], None, "UTC+01:00", "h"),
        (["1500-01-01", "1500-01-02", "1500-01-03"], "%Y-%m-%d", None, "D"),
        (["2024/9/30 0:00", "2024/9/30 12:00", "2024/10/1 0:00"], "%Y/%m/%d %H:%M", None, "12h"),
    ],
)
def test_times_that_begin_with_the_year(times, time_format, zone, frequency):
    name = "year" if len(times[0]) == 4 else "any"
    made = panel(csv(times, name))
    assert (made.schema.time, made.schema.frequency, made.schema.zone) == (name, frequency, zone)
    assert time_format is None or made.schema.time_format == time_format
    if ".5" not in times[1] and "/9/" not in times[0]:
        assert list(made.times.strftime(made.schema.time_format)) == times
    last = next_times(made.times[-1], frequency, 2)
    out = forecast_frame(made.schema, made.ids, [last], np.zeros((1, 2, 1)))
    again = panel(csv([*made.times[-1:].strftime(made.schema.time_format), *out[name]], name))
    assert again.schema == made.schema
    assert list(again.times[1:]) == list(last)


@pytest.mark.parametrize("digits", range(1, 7))
@pytest.mark.parametrize("start", ["%Y-%m-%d ", "%d.%m.%Y "])
def test_fractions_of_a_second_keep_their_digits(digits, start):
    step = 7 * 10 ** (6 - digits)
    times = pd.date_range("2024-01-01", periods=60, freq=f"{step}us")
    texts = list(times.strftime(start + "%H:%M:%S.%f").str.slice(0, -(6 - digits) or None))
    made = panel(csv(texts[:50]), **({} if start[1] == "Y" else {"time_format": start + "%H:%M:%S.%f"}))
    later = next_times(made.times[-1], made.schema.frequency, 10)
    out = forecast_frame(made.schema, made.ids, [later], np.zeros((1, 10, 1)))
    assert list(out["date"]) == texts[50:]
    again = panel_with_schema(table(csv(list(out["date"]))), Schema.from_json(made.schema.to_json()))
    assert again.times.equals(later)
    finer = (later + np.timedelta64(1, "us")).as_unit("us")
    out = forecast_frame(made.schema, made.ids, [finer], np.zeros((1, 10, 1)))
    assert panel_with_schema(table(csv(list(out["date"]))), made.schema).times.equals(finer), "values before looks"


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (["01/02/2024", "01/13/2024", "01/24/2024"], "line 2: '01/02/2024'|--data.time-format '%m/%d/%Y'"),
        (["01/02/2024", "13/02/2024", "24/02/2024"], "--data.time-format '%d/%m/%Y'"),
        (["01/02/2024", "02/02/2024", "03/02/2024"], "'%m/%d/%Y' or '%d/%m/%Y', whichever it is"),
        (["31.12.2023", "1.1.2024", "2.1.2024"], "--data.time-format '%d.%m.%Y'"),
        (["Jan 1 2000", "Feb 1 2000", "Mar 1 2000"], "--data.time-format '%b %d %Y'"),
        (["20200101", "20200102", "20200103"], "holds whole numbers like 20200101|'%Y%m%d'"),
        (["201701", "201702", "201703"], "'%Y%m'"),
        (["1998 Q1", "1998 Q2", "1998 Q3"], "write quarters as their first day"),
        (["1991 W06", "1991 W07", "1991 W08"], "write weeks as one of their days"),
        (["2024-01-01", "2024-01-02", "2024-02-30"], "line 4: '2024-02-30' is not a date of the calendar"),
        (["2024-01-01", "2024-01-02", "2024-01"], "line 4: '2024-01' is not written like the first"),
        (["2024-01-01", "", "2024-01-03"], "line 3: '' is empty"),
        (["2024-01-01", "n/a", "?"], "line 3: 'n/a' is not written like the first, '2024-01-01' (2 such rows)"),
        (["2024-03-31 00:00+01:00", "2024-03-31 01:00+01:00", "2024-03-31 03:00+02:00"], "convert the times to UTC"),
        (["week one", "week two", "week three"], "'week one' is not a date that begins with the year"),
        (["2024-01-01", "2024-01-02", "2024-01-02"], "repeats 1 time(s), the first 2024-01-02 in line 3 and line 4"),
        (["2024-01-01", "2024-01-02"], "2 row(s) are too few"),
        (["2024-01-01", "2024-01-02", "2024-01-04"], "column 'date': 1 step(s) of D missing"),
    ],
)
def test_times_that_are_refused(times, expected):
    with pytest.raises(DataError) as error:
        panel(csv(times))
    assert all(part in message(error) for part in expected.split("|"))
    assert "column 'date'" in message(error)


@pytest.mark.parametrize(
    ("times", "time_format", "first"),
    [
        (["01/02/2024", "02/02/2024", "03/02/2024"], "%d/%m/%Y", "2024-02-01"),
        (["01/02/2024", "01/03/2024", "01/04/2024"], "%m/%d/%Y", "2024-01-02"),
        (["01022024", "02022024", "03022024"], "%d%m%Y", "2024-02-01"),
        (["201701", "201702", "201703"], "%Y%m", "2017-01-01"),
        (["2024-02-01", "2024-03-01", "2024-04-01"], "%Y-%d-%m", "2024-01-02"),
    ],
)
def test_a_format_is_followed_to_the_letter(times, time_format, first):
    made = panel(csv(times), time_format=time_format)
    assert str(made.times[0].date()) == first
    assert made.schema.time_format == time_format
    assert list(forecast_frame(made.schema, made.ids, [made.times], np.zeros((1, 3, 1)))["date"]) == times
    again = panel_with_schema(table(csv(times)), made.schema)
    assert again.times.equals(made.times)


@pytest.mark.parametrize("wrong", ["%Q", "mixed", "ISO8601", "%m/%d", ""])
def test_what_is_no_format(wrong):
    with pytest.raises(UsageError, match="time-format"):
        panel(csv(["01/02/2024"] * 3), time_format=wrong)


def test_a_format_that_does_not_fit_says_which_cell():
    with pytest.raises(DataError) as error:
        panel(csv(["01/02/2024", "13/02/2024", "14/02/2024"]), time_format="%m/%d/%Y")
    assert "line 3: '13/02/2024' is not written as '%m/%d/%Y' (2 such rows)" in message(error)


def test_digits_that_a_spreadsheet_dropped_are_missed():
    frame = pd.DataFrame({"date": [1022024, 1032024, 1042024], "y": [1, 2, 3]})
    with pytest.raises(DataError, match=r"row 0: '1022024' lacks a digit of '%d%m%Y' \(3 such rows\)"):
        panel_from_frame(frame, time_format="%d%m%Y")
    with pytest.raises(DataError, match="no column of times written as '%d%m%Y': name the column with --time"):
        panel("when,y\n01022024,1\n02022024,2\n03022024,3\n", time_format="%d%m%Y")
    made = panel("when,y\n01022024,1\n02022024,2\n03022024,3\n", time_format="%d%m%Y", time="when")
    again = read_panel(io.StringIO("y,when\n4,04022024\n"), made.schema)
    assert (str(again.times[0].date()), again.values.tolist()) == ("2024-02-04", [[4.0]])


def test_the_column_of_times_is_found_or_asked_for():
    text = "opened,date,y\n" + "".join(f"2020-01-01,{day},1\n" for day in DAYS)
    assert panel(text).schema.time == "date"
    text = "made,sold,y\n" + "".join(f"{day},{day},1\n" for day in DAYS)
    with pytest.raises(DataError, match=r"2 columns of times \(made, sold\): choose one, --time made"):
        panel(text)
    assert panel(text, time="sold").schema.time == "sold"


def test_years_and_dates_go_before_counters():
    text = "year,index,date,y\n" + "".join(f"2024,{i},{day},1\n" for i, day in enumerate(DAYS))
    assert panel(text).schema.time == "date"
    assert panel("index,Year,y\n1,1990,2\n2,1991,2\n3,1992,3\n").schema.time_format == "%Y"


def test_counters():
    made = panel("t,y\n0.0,1\n0.5,2\n1.0,3\n")
    assert (made.schema.time, made.schema.frequency, made.schema.time_format) == ("t", 0.5, None)
    made = panel("step,y\n10,1\n20,2\n30,3\n")
    assert (made.schema.frequency, list(made.times)) == (10, [10, 20, 30])
    out = forecast_frame(made.schema, made.ids, [next_times(30, 10, 2)], np.ones((1, 2, 1)))
    assert list(out["step"]) == [40, 50]
    made = panel(",y\n1821,1\n1822,2\n1823,3\n")
    assert (made.schema.time, made.schema.frequency) == ("Unnamed: 0", 1)
    assert panel("T,y\n20.5,1\n20.1,2\n23.0,3\n").schema.targets == ("T", "y"), "a temperature, no counter"
    with pytest.raises(DataError, match=r"column 'x' has 1 cell\(s\) that are not numbers, the first '' in line 3"):
        panel("x,y\n1,1\n,2\n3,4\n5,4\n", time="x")
    with pytest.raises(DataError, match=r"column 'x': 1 step\(s\) of 1 missing"):
        panel("x,y\n1,1\n2,2\n3,4\n5,4\n", time="x")


COUNT = list(range(60))
YEARS = list(range(1949, 2009))
IRREGULAR = [1, 2, 4, 9, 3, 5] * 10


def numbered(name, values, more=""):
    """A table with whole numbers in one column, perhaps another before it, and values."""
    head, *cells = more.split(",")
    rows = [f"{cells[i] + ',' if head else ''}{value},{i % 7}" for i, value in enumerate(values)]
    return "\n".join([f"{head + ',' if head else ''}{name},y", *rows])


@pytest.mark.parametrize(
    "name", ["ds", "date", "Date", "time", "timestamp", "year", "YEAR", "Date_Time", "fiscal_year"]
)
@pytest.mark.parametrize("kind", [int, float, str])
def test_years_in_a_column_called_like_a_time(name, kind):
    frame = pd.DataFrame({name: pd.Series(YEARS).map(kind), "y": COUNT})
    for made in (panel(numbered(name, YEARS)), panel_from_frame(frame)):
        assert (made.schema.time, made.schema.targets, made.schema.frequency) == (name, ("y",), "YS")
        assert made.schema.time_format == "%Y"
    assert panel_with_schema(frame.tail(3), made.schema).times[0].year == 2006


@pytest.mark.parametrize(
    "name",
    ["ds", "date", "time", "Timestamp", "year", "t", "step", "index", "day", "month", "week_number", "time (ms)"],
)
def test_counters_in_a_column_called_like_a_time(name):
    frame = pd.DataFrame({name: COUNT, "y": COUNT})
    for made in (panel(numbered(name, COUNT)), panel_from_frame(frame), panel_from_frame(frame[::-1])):
        assert (made.schema.time, made.schema.targets, made.schema.frequency) == (name, ("y",), 1)
    later = pd.DataFrame({name: range(1000, 1004), "y": 1.0})
    assert list(panel_with_schema(later, made.schema).times) == [1000, 1001, 1002, 1003], "no years all of a sudden"


@pytest.mark.parametrize("name", ["ds", "date", "Time", "timestamp", "year", "t", "index", "month"])
def test_irregular_numbers_in_a_column_called_like_a_time_are_no_target(name):
    text = numbered(name, IRREGULAR)
    with pytest.raises(DataError) as error:
        panel(text)
    assert f"column '{name}'" in message(error)
    assert "(1, then 2 in line 3): name the time with --time, or the targets with --target" in message(error)
    assert panel(text, targets=["y"]).schema.time is None
    assert panel(text, targets=[name]).schema.targets == (name,)


def test_rising_fractions_in_a_column_called_like_a_time_are_no_target():
    with pytest.raises(DataError, match=r"column 'time' .* without a regular step \(1949\."):
        panel(numbered("time", [1949.0, 1949.083, 1949.167, 1949.25, 1949.333]))


@pytest.mark.parametrize("size", [1, 10**3, 10**6, 10**9])
@pytest.mark.parametrize("name", ["unix", "timestamp", "ts", "time", "ds", "open_time", "unix_timestamp"])
@pytest.mark.parametrize("step", [3600, 3617])
def test_seconds_since_1970_are_no_target(name, step, size):
    values = [size * (1_577_836_800 + i * step + (i == 40)) for i in COUNT]
    with pytest.raises(DataError) as error:
        panel(numbered(name, values))
    assert f"column '{name}' seems to hold" in message(error)
    assert "convert them to dates" in message(error)
    assert "--target" in message(error)
    assert panel(numbered(name, values[:40]), targets=["y"]).schema.frequency == step * size
    assert panel(numbered(name, values[:40]), time=name).schema.frequency == step * size
    days = ",".join(["date", *map(str, pd.date_range("2020-01-01", periods=60).strftime("%Y-%m-%d"))])
    made = panel(numbered(name, values, days)) if name != "ds" else panel(numbered(name, values, days), time="date")
    assert made.schema.targets == ("y",)
    assert f"ignored columns that tell the time again (--target takes them): {name}" in made.notes


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("day_ahead_price", [50, 52, 51, 47, 60] * 12),
        ("travel_time", [20, 21, 20, 21, 20, 22] * 10),
        ("time_spent", [5] * 60),
        ("year_built", [1980, 1999, 1999, 1950, 2001, 2010] * 10),
        ("is_day_time", [0, 1] * 30),
    ],
)
def test_measurements_whose_name_contains_a_word_of_time(name, values):
    made = panel(numbered(name, values))
    assert (made.schema.time, made.schema.targets) == (None, (name, "y"))
    assert made.notes[-1] == f"forecast like any other, though called like times: {name} (--target chooses)"
    made = panel(numbered(name, [value + 0.25 * (i % 3) for i, value in enumerate(values)]))
    assert (made.schema.time, made.schema.targets, len(made.notes)) == (None, (name, "y"), 1)


def test_what_tells_the_time_again_beside_dates():
    days = pd.date_range("2020-01-01", periods=800)
    frame = pd.DataFrame({"date": days, "year": days.year, "month": days.month, "day": days.day, "y": 1.5})
    frame["t"], frame["T_out"], frame["index"] = range(800), [20, 21, 20, 22] * 200, [100, 101, 103, 102] * 200
    made = panel_from_frame(frame)
    assert made.schema.targets == ("y", "T_out", "index")
    assert made.notes == (
        "ignored columns that tell the time again (--target takes them): year, month, day, t",
        "forecast like any other, though called like times: index (--target chooses)",
    )
    assert panel_from_frame(frame, targets=["month"]).schema.targets == ("month",)
    with pytest.raises(DataError, match="name one with --target"):
        panel_from_frame(frame[["date", "month"]])


def test_several_columns_of_numbers_called_like_times():
    with pytest.raises(DataError, match=r"2 columns of years \(ds, year\): choose one, --time ds"):
        panel_from_frame(pd.DataFrame({"ds": YEARS, "year": YEARS, "y": COUNT}))
    made = panel_from_frame(pd.DataFrame({"Unnamed: 0": COUNT, "index": COUNT, "ds": COUNT, "y": COUNT}))
    assert (made.schema.time, made.schema.targets) == ("ds", ("y",))
    made = panel_from_frame(pd.DataFrame({"T": [20, 21, 19, 25, 25, 24] * 10, "index": COUNT, "y": COUNT}))
    assert (made.schema.time, made.schema.targets) == ("index", ("T", "y"))


@pytest.mark.parametrize("by", ["shop", "t"])
def test_a_counter_that_starts_again_with_each_series(by):
    frame = pd.DataFrame({"shop": np.repeat(["a", "b"], 30), "t": COUNT[:30] * 2, "y": COUNT}).sort_values(
        by, kind="stable"
    )
    made = panel_from_frame(frame, id="shop")
    assert (made.schema.time, made.schema.targets, made.lengths.tolist()) == ("t", ("y",), [30, 30])


def test_without_times_rows_are_in_order():
    made = panel("a,b\n1,2\n3,4\n")
    assert (made.schema.time, made.schema.frequency, list(made.times)) == (None, None, [0, 1])
    assert made.notes == ("no column of times found: rows are taken in the order of the table",)
    assert list(forecast_frame(made.schema, made.ids, [made.times], np.zeros((1, 2, 2))).columns) == ["a", "b"]


def test_dates_in_several_columns_are_not_overlooked():
    with pytest.raises(DataError, match="spread over the columns year, month, day"):
        panel("year,month,day,y\n2000,1,1,5\n2000,1,2,6\n2000,1,3,6\n")
    rows = "".join(f"2024-01-01,{hour:02}:00,1\n" for hour in range(9))
    with pytest.raises(DataError, match="join the columns 'date' and 'clock'"):
        panel("date,clock,y\n" + rows)


def test_a_table_lying_on_its_side():
    with pytest.raises(DataError, match="each row is a time"):
        panel("name,2024-01-01,2024-01-02,2024-01-03\na,1,2,3\nb,1,2,3\n")


def test_newest_first_is_sorted_and_said():
    made = panel(csv(DAYS[::-1]))
    assert list(made.values[:, 0]) == [6, 5, 4, 3, 2, 1, 0]
    assert made.notes == ("rows were newest first: sorted by 'date'",)
    shuffled = [DAYS[i] for i in (0, 1, 4, 5, 2, 3, 6)]
    made = panel(csv(shuffled))
    assert list(made.values[:, 0]) == [0, 1, 4, 5, 2, 3, 6]
    assert made.notes == ("rows were not ascending in 1 place(s): sorted by 'date'",)
    assert panel(csv(DAYS)).notes == ()


def test_the_hour_that_comes_twice():
    hours = pd.date_range("2024-10-26 20:00", periods=20, freq="h", tz="Europe/Berlin").strftime("%Y-%m-%d %H:%M")
    with pytest.raises(DataError, match="when summer time ends; write the times in UTC"):
        panel(csv(list(hours)))


# Values


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "", "3"], "1 missing value(s), the first in line 3"),
        (["NA", "null", "3"], "2 missing value(s), the first in line 2"),
        (["1", "2", "inf"], "1 infinite value(s), the first in line 4"),
        (["1", "--", "3"], "1 cell(s) that are not numbers, the first '--' in line 3"),
        (["1", "2", "."], "the first '.' in line 4"),
        (['"1,234"', "5", "6"], "the first '1,234' in line 2: take thousands separators"),
        (['"1,234"', '"2,345"', '"3,456"'], "3 cell(s) that are not numbers"),
        (["5%", "6%", "7%"], "the first '5%'"),
        (["1.5K", "2M", "3"], "the first '1.5K'"),
        (['"1,5"', '"2,25"', '"3,5"'], "--data.decimal ','"),
        (["1_000", "2", "3"], "the first '1_000'"),
    ],
)
def test_cells_that_are_no_values(cells, expected):
    with pytest.raises(DataError) as error:
        panel(csv(DAYS[:3], values=cells))
    assert expected in message(error)
    assert "column 'y'" in message(error)


def test_a_gap_in_one_column_names_those_without():
    with pytest.raises(DataError, match=r"column 'b' has 1 missing.*--target a,c"):
        panel("date,a,b,c\n2024-01-01,1,2,3\n2024-01-02,1,,3\n2024-01-03,1,2,3\n")


def test_what_is_not_a_number_is_ignored_and_said():
    made = panel(
        ",date,a,word,yes,none,stamp\n0,2024-01-01,1,x,True,,20200101\n1,2024-01-02,2,y,False,,20200102\n"
        "2,2024-01-03,3,z,True,,20200103\n"
    )
    assert made.schema.targets == ("a",)
    assert made.notes == (
        "ignored columns that are not numbers: word, yes",
        "ignored columns without a value: none",
        "ignored columns without a name: Unnamed: 0",
        "ignored columns of dates: stamp",
    )
    with pytest.raises(DataError, match="no column of numbers"):
        panel("date,word\n2024-01-01,x\n2024-01-02,y\n2024-01-03,z\n")


def test_named_targets_must_be_numbers():
    text = "date,a,word\n2024-01-01,1,x\n2024-01-02,2,y\n2024-01-03,3,4\n"
    assert panel(text, targets=["a"]).notes == ()
    with pytest.raises(DataError, match=r"column 'word' has 2 cell.* the first 'x' in line 2"):
        panel(text, targets=["word"])
    with pytest.raises(DataError, match=r"no column 'A'.*did you mean 'a'"):
        panel(text, targets=["A"])
    with pytest.raises(UsageError, match="named twice"):
        panel(text, targets=["a", "a"])
    with pytest.raises(UsageError, match="named twice"):
        panel(text, time="date", targets=["date"])


def test_constant_columns_are_fine():
    assert panel(csv(DAYS, values=["5"] * 7)).values.tolist() == [[5.0]] * 7


def test_decimal_commas():
    made = panel("date;y\n2024-01-01;1,5\n2024-01-02;2\n2024-01-03;-3,25\n", sep=";", decimal=",")
    assert made.values.ravel().tolist() == [1.5, 2.0, -3.25]
    with pytest.raises(DataError, match="the first '--' in line 3"):
        panel("date;y\n2024-01-01;1,5\n2024-01-02;--\n2024-01-03;-3,25\n", sep=";", decimal=",")


# Series


def long(series, name="shop"):
    return f"{name},date,y\n" + "".join(f"{key},{day},{value}\n" for key, day, value in series)


def test_series_in_order_of_appearance():
    rows = [("b", day, i) for i, day in enumerate(DAYS)] + [("a", day, 10 + i) for i, day in enumerate(DAYS[2:6])]
    mixed = panel(long([rows[i] for i in (0, 7, 1, 2, 8, 9, 3, 4, 5, 10, 6)]), id="shop")
    assert mixed.ids == ("b", "a")
    assert mixed.offsets.tolist() == [0, 7, 11]
    assert mixed.values.ravel().tolist() == [0, 1, 2, 3, 4, 5, 6, 10, 11, 12, 13]
    assert mixed.notes == ()
    assert mixed.schema == Schema(("y",), "date", "shop", frequency="D", time_format="%Y-%m-%d")


def test_ids_are_text_as_written():
    rows = [(key, day, 1) for key in ("007", "NA", "7") for day in DAYS[:3]]
    made = panel(long(rows), id="shop")
    assert made.ids == ("007", "NA", "7")
    out = forecast_frame(made.schema, made.ids, [made.times[:2]] * 3, np.arange(6.0).reshape(3, 2, 1))
    assert list(out["shop"]) == ["007", "007", "NA", "NA", "7", "7"]
    assert list(out.columns) == ["shop", "date", "y"]
    assert list(out["y"]) == [0, 1, 2, 3, 4, 5]
    with pytest.raises(DataError, match=r"'shop' names no series in 1 row\(s\), the first in line 3"):
        panel(long([("a", DAYS[0], 1), ("", DAYS[1], 1), ("a", DAYS[2], 1)]), id="shop")


def test_a_long_table_asks_for_its_id():
    rows = [(key, day, 1) for key in ("a", "b") for day in DAYS]
    with pytest.raises(DataError, match=r"line 2 and line 9: does 'shop' tell the series apart\? --id shop"):
        panel(long(rows))
    pairs = "x,z,date,y\n" + "".join(f"{x},{z},{day},1\n" for x in "ab" for z in "cd" for day in DAYS)
    with pytest.raises(DataError, match="join 'x' and 'z' into one"):
        panel(pairs)
    with pytest.raises(DataError, match=r"in series 'a'.*join 'x' and 'z' into one"):
        panel(pairs, id="x")


def test_one_frequency_for_all():
    rows = [("a", day, 1) for day in DAYS] + [("b", f"2024-0{i}-01", 1) for i in range(1, 5)]
    with pytest.raises(DataError, match="series 'b': frequency is MS, series 'a' has D"):
        panel(long(rows), id="shop")
    rows = [("a", day, 1) for day in DAYS] + [("b", day, 1) for day in (*DAYS[:3], DAYS[4])]
    with pytest.raises(DataError, match=r"series 'b': 1 step\(s\) of D missing"):
        panel(long(rows), id="shop")


def test_weekdays_hold_for_a_series_too_short_to_show_them():
    days = [str(day.date()) for day in pd.bdate_range("2024-01-01", periods=20)]
    made = panel(long([("short", day, 1) for day in days[:3]] + [("long", day, 1) for day in days]), id="shop")
    assert made.schema.frequency == "B"


# DataFrames


def test_frames_made_in_python():
    stamps = pd.date_range("2024-01-01", periods=5, freq="h", tz="Europe/Berlin")
    made = panel_from_frame(pd.DataFrame({"unique_id": 1, "ds": stamps, "y": range(5)}), id="unique_id", targets=["y"])
    assert (made.ids, made.schema.zone, made.schema.frequency) == (("1",), "Europe/Berlin", "h")
    assert made.schema.time_format is None
    out = forecast_frame(made.schema, made.ids, [next_times(made.times[-1], "h", 2)], np.zeros((1, 2, 1)))
    assert list(out["ds"]) == list(stamps[-1] + pd.to_timedelta([1, 2], unit="h"))
    for index in (stamps.tz_localize(None), pd.period_range("2024-01", periods=5, freq="M", name="month")):
        made = panel_from_frame(pd.DataFrame({"y": range(5)}, index=index))
        assert made.schema.time == (index.name or "time")
        assert made.schema.frequency == ("MS" if index.name else "h")
    dates = [day.date() for day in pd.date_range("2024-01-01", periods=5)]
    assert panel_from_frame(pd.DataFrame({"when": dates, "y": range(5)})).schema.frequency == "D"


def test_types_of_columns_in_python():
    days = pd.date_range("2024-01-01", periods=3)
    made = panel_from_frame(
        pd.DataFrame(
            {
                "ds": days,
                "nullable": pd.array([1, 2, 3], dtype="Int64"),
                "single": np.array([0.5, 1.5, 2.5], dtype=np.float32),
                "objects": pd.Series([1, 2.5, 3], dtype=object),
                "flags": [True, False, True],
                "lists": [[1], [2], [3]],
                "spans": pd.to_timedelta([1, 2, 3], unit="D"),
                "complex": np.array([1j, 2j, 3j]),
                7: [1, 2, 3],
            }
        )
    )
    assert made.schema.targets == ("nullable", "single", "objects", "7")
    assert made.notes == ("ignored columns that are not numbers: flags, lists, spans, complex",)
    with pytest.raises(DataError, match=r"'y' has 1 missing value.*in row 1"):
        panel_from_frame(pd.DataFrame({"ds": days, "y": pd.array([1, None, 3], dtype="Int64")}))


def test_an_index_of_dates_and_a_column_of_its_name():
    days = pd.date_range("2024-01-01", periods=5)
    with pytest.raises(DataError, match="the index and a column are both called 'y'"):
        panel_from_frame(pd.DataFrame({"y": range(5)}, index=days.rename("y")))
    frame = pd.DataFrame({"time": [3.5, 1, 2, 9, 4], "date": [3, 1, 2, 9, 4.5]}, index=days)
    made = panel_from_frame(frame)
    assert (made.schema.time, made.schema.targets) == ("ds", ("time", "date"))
    assert panel_with_schema(frame, made.schema).times.equals(made.times)
    out = forecast_frame(made.schema, made.ids, [next_times(made.times[-1], "D", 2)], np.zeros((1, 2, 2)))
    assert list(out.columns) == ["ds", "time", "date"]
    both = pd.DataFrame({"date": days, "y": range(5)}).set_index("date", drop=False)
    assert panel_from_frame(both).schema.targets == ("y",)


def test_an_index_of_times_that_are_not_dates():
    frame = pd.DataFrame({"y": range(60)}, index=pd.Index(YEARS, name="year"))
    with pytest.raises(DataError, match=r"index 'year' is no DatetimeIndex: reset_index\(\)"):
        panel_from_frame(frame)
    assert panel_from_frame(frame.reset_index()).schema.frequency == "YS"


def test_rows_are_counted_where_labels_repeat():
    part = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=3), "y": [1.0, 2, 3]})
    with pytest.raises(DataError, match="2024-01-01 in row 0 and row 3"):
        panel_from_frame(pd.concat([part, part]))
    later = part.assign(ds=part["ds"] + pd.Timedelta(days=3), y=[1, np.nan, 3])
    with pytest.raises(DataError, match="first in row 4"):
        panel_from_frame(pd.concat([part, later]))


def test_numbers_too_large_to_compute_with():
    days = pd.date_range("2024-01-01", periods=3)
    for values in ([1, 2e100, -3e300], [1.0, -1e101, 1e300]):
        made = pd.DataFrame({"ds": days, "y": values})
        expected = r"'y' has 2 value\(s\) beyond 1e\+100, too large .* in row 1: bring the column to a sensible unit"
        with pytest.raises(DataError, match=expected):
            panel_from_frame(made)
        with pytest.raises(DataError, match=expected):
            panel_with_schema(made, Schema(("y",), "ds", frequency="D"))
    with pytest.raises(DataError, match=r"'y' has 1 infinite value\(s\), the first in row 2"):
        panel_from_frame(pd.DataFrame({"ds": days, "y": pd.Series([1, 2, 10**400], dtype=object)}))
    assert panel_from_frame(pd.DataFrame({"ds": days, "y": [0, -1e100, 1e100]})).values.min() == -1e100


def test_frames_that_are_refused():
    days = pd.date_range("2024-01-01", periods=3)
    with pytest.raises(DataError, match="several columns called y"):
        panel_from_frame(pd.DataFrame([[1, 2]], columns=["y", "y"]))
    with pytest.raises(DataError, match="MultiIndex"):
        panel_from_frame(pd.DataFrame({"y": [1, 2]}, index=pd.MultiIndex.from_tuples([(1, 2), (1, 3)])))
    with pytest.raises(DataError, match=r"has 3 row\(s\) but no column"):
        panel_from_frame(pd.DataFrame(index=days))
    with pytest.raises(DataError, match="no rows"):
        panel_from_frame(pd.DataFrame({"ds": days[:0], "y": []}))
    with pytest.raises(DataError, match=r"'ds' has no time in 1 row\(s\), the first in row 2"):
        panel_from_frame(pd.DataFrame({"ds": [*days[:2], pd.NaT], "y": [1, 2, 3]}))
    with pytest.raises(DataError, match="finer than a microsecond"):
        panel_from_frame(pd.DataFrame({"ds": days.as_unit("ns") + pd.Timedelta(1, "ns"), "y": [1, 2, 3]}))


# New rows of a known table


@pytest.fixture
def known():
    return panel("date,a,b\n" + "".join(f"{day},1,2\n" for day in DAYS)).schema


def test_columns_are_taken_by_name(known):
    made = panel_with_schema(table("b,c,a,date\n2,9,1,2025-01-01\n4,9,3,2025-01-02\n"), known)
    assert made.values.tolist() == [[1, 2], [3, 4]]
    assert made.schema == known
    assert made.notes == ("ignored columns that the model does not know: c",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("date,a,B\n2025-01-01,1,2\n", "no column 'b': did you mean 'B'?"),
        ("day,a,b\n2025-01-01,1,2\n", "no column 'date'"),
        ("date,a,b\n2025-01-01,1,2\n2025-02-01,1,2\n2025-03-01,1,2\n", "frequency is MS, the model was fitted on D"),
        ("date,a,b\n2025-01-01,1,2\n2025-01-03,1,2\n", "1 step(s) of D missing"),
        ("date,a,b\n01/02/2025,1,2\n", "'%m/%d/%Y' or '%d/%m/%Y'"),
        ("date,a,b\n1,1,2\n2,1,2\n", "does not hold the kind of times"),
        ("date,a,b\n2025-01-01 00:00Z,1,2\n", "is in zone UTC, the model was fitted on local times"),
        ("date,a,b\n2025-01-01,1,\n", "column 'b' has 1 missing value(s), the first in line 2"),
        ("date,a,b\n2025-01-01,1,--\n", "the first '--' in line 2"),
    ],
)
def test_new_rows_that_do_not_go_with_the_schema(known, text, expected):
    with pytest.raises(DataError) as error:
        panel_with_schema(table(text), known)
    assert expected in message(error)


def test_one_new_row_is_enough(known):
    assert panel_with_schema(table("date,a,b\n2025/01/01,1,2\n"), known).times[0] == pd.Timestamp("2025-01-01")


def test_new_rows_are_brought_to_the_zone(known):
    schema = panel(csv([f"2024-01-01 0{i}:00+01:00" for i in range(3)])).schema
    made = panel_with_schema(table(csv(["2024-06-01 08:00Z"])), schema)
    assert made.times[0].hour == 9
    assert made.notes == ("times were converted from zone UTC to UTC+01:00",)


def test_years_and_numbers_again():
    for text in ("year,y\n1990,1\n1991,2\n1992,3\n", "t,y\n0,1\n1,2\n2,3\n", "a,y\n1,2\n2,3\n4,5\n"):
        made = panel(text)
        again = panel_with_schema(table(text), Schema.from_json(made.schema.to_json()))
        assert again.schema == made.schema
        assert again.times.equals(made.times)


# Out


def test_what_is_written_reads_the_same(tmp_path):
    frame = pd.DataFrame({"date": DAYS[:2], "y": [0.1 + 0.2, 1e-300]})
    for name in ("out.csv", "out.csv.gz"):
        write_table(frame, tmp_path / name)
        assert list(read_table(tmp_path / name)["y"]) == list(frame["y"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "out.csv.gz"]


def test_stdout(capsys):
    write_table(pd.DataFrame({"y": [0.1 + 0.2]}), "-")
    assert capsys.readouterr().out == "y\n0.30000000000000004\n"


def test_places_that_cannot_be_written(tmp_path):
    frame = pd.DataFrame({"y": [1.0]})
    for place in (tmp_path / "no" / "out.csv", tmp_path, "a\0b", "x" * 5000, "~nobody-of-that-name/x"):
        with pytest.raises(ResourceError) as error:
            write_table(frame, place)
        assert "cannot be written" in message(error)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "out.csv"
    path.write_text("old\n")

    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ResourceError, match="No space left"):
        write_table(pd.DataFrame({"y": [1.0]}), path)
    assert path.read_text() == "old\n"
    assert len(list(tmp_path.iterdir())) == 1


def test_links_and_devices_are_written_to_not_replaced(tmp_path):
    (tmp_path / "real.csv").write_text("old\n")
    (tmp_path / "link.csv").symlink_to("real.csv")
    write_table(pd.DataFrame({"y": [1]}), tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "y\n1\n"
    write_table(pd.DataFrame({"y": [1]}), os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


# Panels made by hand


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"offsets": np.array([0])}, "no series"),
        ({"offsets": np.array([0, 2, 2, 4])}, "a series without rows"),
        ({"offsets": np.array([0, 3, 2, 4])}, "ascend from 0"),
        ({"offsets": np.array([1, 4])}, "ascend from 0"),
        ({"offsets": np.array([0.0, 4.0])}, "must be int64"),
        ({"offsets": np.array([0, 2, 4], dtype=np.int32)}, "must be int64"),
        ({"offsets": np.array([0, 3])}, "does not fit together"),
        ({"values": np.zeros(4)}, r"must be \[rows, columns\]"),
        ({"ids": ("a", "a")}, "the id 'a' twice"),
        ({"ids": ("a",)}, r"1 ids for 2 series"),
        ({"schema": Schema((), past_covariates=("y",))}, "no target"),
        ({"schema": Schema(("y",), past_covariates=("y",)), "values": np.zeros((4, 2))}, "the column 'y' twice"),
        ({"schema": Schema(("y",), time="y")}, "the column 'y' twice"),
    ],
)
def test_panels_that_do_not_fit_together(changed, expected):
    parts = {
        "values": np.zeros((4, 1)),
        "offsets": np.array([0, 2, 4]),
        "times": pd.Index([0, 1, 0, 1]),
        "ids": ("a", "b"),
        "schema": Schema(("y",)),
    }
    assert Panel(**parts).lengths.tolist() == [2, 2]
    with pytest.raises(ValueError, match=expected) as error:
        Panel(**{**parts, **changed})
    message(error)


# Anything at all

CELLS = st.one_of(
    st.sampled_from(
        ["", "1", "2.5", "-3", "1e5", "nan", "inf", "x", "--", "1,2", "2024-01-01", "2024-01-02", "2024-13-01"]
    ),
    st.sampled_from(
        ["01/02/2024", "201701", "1999", "2000", "True", "2024-01-01T00:00Z", "2024-01-01 00:00+25:00", '"', " "]
    ),
    st.text(max_size=6),
)
NAMES = st.one_of(st.sampled_from(["date", "ds", "t", "year", "month", "y", "", "id", "time"]), st.text(max_size=4))


@settings(deadline=None, max_examples=400)
@given(
    names=st.lists(NAMES, max_size=4),
    rows=st.lists(st.lists(CELLS, min_size=1, max_size=4), max_size=6),
    sep=st.sampled_from([",", ";", "\t"]),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    options=st.fixed_dictionaries(
        {},
        optional={
            "time": NAMES,
            "id": NAMES,
            "targets": st.lists(NAMES, max_size=2),
            "time_format": st.just("%m/%d/%Y"),
        },
    ),
)
def test_any_text_is_a_panel_or_one_line(names, rows, sep, end, options):
    check_anything(end.join(sep.join(row) for row in [names, *rows]), options)


@settings(deadline=None, max_examples=300)
@given(
    start=st.dates(min_value=pd.Timestamp("1900-01-01").date(), max_value=pd.Timestamp("2200-01-01").date()),
    frequency=st.sampled_from(["D", "MS", "W-MON", "h", "B"]),
    values=st.lists(st.floats(-1e100, 1e100), min_size=8, max_size=20),
    series=st.integers(1, 2),
    bad=st.lists(st.tuples(st.integers(0, 19), st.integers(0, 2), CELLS), max_size=1),
    seed=st.integers(0, 99),
)
def test_a_good_table_in_any_order_with_a_bad_cell(start, frequency, values, series, bad, seed):
    times = pd.date_range(start, periods=20, freq=frequency)
    rows = [
        [str(i % series), times[i // series].strftime("%Y-%m-%d %H:%M"), repr(value)] for i, value in enumerate(values)
    ]
    np.random.default_rng(seed).shuffle(rows)
    for at, column, cell in bad:
        rows[at % len(rows)][column] = cell
    frame = pd.DataFrame(rows, columns=["id", "date", "y"])
    made = check_anything(frame.to_csv(index=False), {"id": "id", "targets": ["y"]})
    if not bad and len(values) // series >= 6:
        assert isinstance(made, Panel)
        assert made.schema.frequency == frequency or frequency == "B"
        for name, own in zip(made.ids, range(len(made.ids)), strict=True):
            assert made.values[made.rows(own), 0].tolist() == values[int(name) :: series]


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=60), st.sampled_from(["utf-8-sig", "utf-16", "cp1252", "gb18030"]))
def test_any_bytes_are_a_panel_or_one_line(content, encoding):
    check_anything(io.BytesIO(content), {}, encoding=encoding)


def check_anything(source, options, **reading):
    try:
        source = io.StringIO(source) if isinstance(source, str) else source
        made = panel_from_frame(
            read_table(source, text=[v for v in options.values() if isinstance(v, str)], **reading), **options
        )
    except TsformerError as error:
        made, said = None, str(error)
    else:
        said = "a panel"
        assert isinstance(made, Panel)
        assert np.isfinite(made.values).all()
        for series in range(len(made.ids)):
            times = made.times[made.rows(series)]
            assert times.is_monotonic_increasing
            assert times.is_unique
    assert said.splitlines() == [said]
    return made
