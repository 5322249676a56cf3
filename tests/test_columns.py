"""Which column of a table is the time, how times are written, and what is only called like one."""

import io

import numpy as np
import pandas as pd
import pytest
from tables import DAYS, csv, framed, message, panel, said, table

from tsformer.data.frames import (
    forecast_frame,
    panel_from_frame,
    panel_with_schema,
    read_panel,
)
from tsformer.data.frequency import next_times
from tsformer.data.panel import Schema
from tsformer.errors import DataError, UsageError


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
        (["2024/9/30 0:00", "2024/9/30 12:00", "2024/10/1 0:00"], "%Y/%-m/%-d %-H:%M", None, "12h"),
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
        (
            ["01/02/2024", "02/02/2024", "03/02/2024"],
            "('%m/%d/%Y') or 2024-02-01 ('%d/%m/%Y')|--dayfirst or --no-dayfirst",
        ),
        (["2024-01-01", "2024-01-02", "2024-02-30"], "line 4: '2024-02-30' is not a date of the calendar"),
        (["2024-01-01", "2024-01-02", "2024-01"], "line 4: '2024-01' is not written like the first"),
        (["2024-01-01", "", "2024-01-03"], "has no time in 1 row(s), the first in line 3"),
        (["2024-01-01", "soon", "later"], "line 3: 'soon' is not written like the first, '2024-01-01' (2 such rows)"),
        (["week one", "week two", "week three"], "line 2: 'week one' is no date that can be read|--time-format"),
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


@pytest.mark.parametrize("wrong", ["%Q", "mixed", "ISO8601", "%m/%d"])
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
        framed(frame, time_format="%d%m%Y")
    with pytest.raises(DataError, match="no column of times written as '%Y': name the column with --time"):
        panel("a,y\n1,1\n2,2\n3,3\n", time_format="%Y")
    made = panel("when,y\n01022024,1\n02022024,2\n03022024,3\n", time_format="%d%m%Y", time="when")
    again = read_panel(io.StringIO("y,when\n4,04022024\n"), made.schema)
    assert (str(again.times[0].date()), again.values.tolist()) == ("2024-02-04", [[4.0]])


def test_the_column_of_times_is_found_or_asked_for():
    text = "opened,date,y\n" + "".join(f"2020-01-01,{day},1\n" for day in DAYS)
    assert panel(text).schema.time == "date"
    text = "made,sold,y\n" + "".join(f"{day},2024-03-0{9 - i},1\n" for i, day in enumerate(DAYS))
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
    with pytest.raises(DataError, match=r"column 'x' has no time in 1 row\(s\), the first in line 3"):
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
    assert panel(text, target=["y"]).schema.time is None
    assert panel(text, target=[name]).schema.targets == (name,)


def test_rising_fractions_in_a_column_called_like_a_time_are_no_target():
    with pytest.raises(DataError, match=r"column 'time' .* without a regular step \(1949\."):
        panel(numbered("time", [1949.0, 1949.083, 1949.167, 1949.25, 1949.333]))


@pytest.mark.parametrize("size", [1, 10**3, 10**6, 10**9])
@pytest.mark.parametrize("name", ["unix", "timestamp", "ts", "time", "ds", "open_time", "unix_timestamp"])
@pytest.mark.parametrize("step", ["h", "3617s"])
def test_seconds_since_1970_are_times_in_utc(name, step, size):
    times = pd.date_range("2020-01-01", periods=60, freq=step, tz="UTC")
    cells = [size * int(time.timestamp()) for time in times]
    made = panel(numbered(name, cells[:40]))
    assert (made.schema.time, made.schema.zone, made.schema.frequency) == (name, "UTC", step)
    assert list(made.times) == list(times[:40])
    assert "since 1970 in UTC" in said(made)[0]
    later = next_times(made.times[-1], step, 20)
    assert list(forecast_frame(made.schema, made.ids, [later], np.zeros((1, 20, 1)))[name]) == list(
        map(str, cells[40:])
    )
    again = panel_with_schema(table(numbered(name, cells[40:])), made.schema)
    assert list(again.times) == list(times[40:])
    days = ",".join(["date", *map(str, times.strftime("%Y-%m-%d %H:%M:%S"))])
    made = panel(numbered(name, cells, days))
    assert (made.schema.time, made.schema.targets) == ("date", ("y",)), "what people can read goes first"
    assert any("tell the same time: date is taken" in note for note in said(made))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("day_ahead_price", [50, 52, 51, 47, 60] * 12),
        ("travel_time", [20, 21, 20, 21, 20, 22] * 10),
        ("time_spent", [5, 5, 6] * 20),
        ("year_built", [1980, 1999, 1999, 1950, 2001, 2010] * 10),
        ("is_day_time", [0, 1] * 30),
    ],
)
def test_measurements_whose_name_contains_a_word_of_time(name, values):
    made = panel(numbered(name, values))
    assert (made.schema.time, made.schema.targets) == (None, (name, "y"))
    assert said(made)[-1] == f"forecast like any other, though called like times: {name} (--target chooses)"
    made = panel(numbered(name, [value + 0.25 * (i % 3) for i, value in enumerate(values)]))
    assert (made.schema.time, made.schema.targets, len(made.notes)) == (None, (name, "y"), 1)


def test_what_tells_the_time_again_beside_dates():
    days = pd.date_range("2020-01-01", periods=800)
    frame = pd.DataFrame({"date": days, "year": days.year, "month": days.month, "day": days.day, "y": [1.5, 2.5] * 400})
    frame["t"], frame["T_out"], frame["index"] = range(800), [20, 21, 20, 22] * 200, [100, 101, 103, 102] * 200
    made = panel_from_frame(frame)
    assert made.schema.targets == ("y", "T_out", "index")
    assert said(made) == (
        "ignored columns that tell the time again (--target takes them): year, month, day, t",
        "forecast like any other, though called like times: index (--target chooses)",
    )
    assert framed(frame, target=["month"]).schema.targets == ("month",)
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
    made = framed(frame, id="shop")
    assert (made.schema.time, made.schema.targets, made.lengths.tolist()) == ("t", ("y",), [30, 30])


def test_without_times_rows_are_in_order():
    made = panel("a,b\n1,2\n3,4\n")
    assert (made.schema.time, made.schema.frequency, list(made.times)) == (None, None, [0, 1])
    assert said(made) == ("no column of times found: rows are taken in the order of the table",)
    assert list(forecast_frame(made.schema, made.ids, [made.times], np.zeros((1, 2, 2))).columns) == ["a", "b"]


def test_dates_in_several_columns_are_joined():
    made = panel("year,month,day,y\n2000,1,1,5\n2000,1,2,6\n2000,1,3,6\n")
    assert (made.schema.time, made.schema.targets, made.schema.frequency) == ("time", ("y",), "D")
    made = panel("date,clock,y\n" + "".join(f"2024-01-01,{hour:02}:00,{hour}\n" for hour in range(9)))
    assert (made.schema.time, made.schema.targets, made.schema.frequency) == ("date", ("y",), "h")


def test_newest_first_is_sorted_and_said():
    made = panel(csv(DAYS[::-1]))
    assert list(made.values[:, 0]) == [6, 5, 4, 3, 2, 1, 0]
    assert said(made) == ("rows were newest first: sorted by 'date'",)
    shuffled = [DAYS[i] for i in (0, 1, 4, 5, 2, 3, 6)]
    made = panel(csv(shuffled))
    assert list(made.values[:, 0]) == [0, 1, 4, 5, 2, 3, 6]
    assert said(made) == ("rows were not ascending in 1 place(s): sorted by 'date'",)
    assert panel(csv(DAYS)).notes == ()


def test_the_hour_that_comes_twice():
    times = pd.date_range("2024-10-26 20:00", periods=20, freq="h", tz="Europe/Berlin")
    hours = list(times.strftime("%Y-%m-%d %H:%M"))
    with pytest.raises(DataError, match="--tz Europe/Berlin") as error:
        panel(csv(hours))
    assert error.value.finding.options == {"data.tz": "Europe/Berlin"}
    made = panel(csv(hours), tz="Europe/Berlin")
    assert list(made.times) == list(times)
    assert made.schema.zone == "Europe/Berlin"
    again = panel_with_schema(table(csv(["2024-10-28 00:00", "2024-10-28 01:00"])), made.schema)
    assert list(again.times.tz_convert("UTC").hour) == [23, 0]
