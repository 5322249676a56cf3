"""Times in several columns: joined where they make one, and where they tell the same."""

import numpy as np
import pandas as pd
import pytest

from tsformer.data.clock import write_times
from tsformer.data.table_options import TableOptions
from tsformer.errors import DataError
from tsformer.tables.times import find_time, read_time

HOURS = pd.date_range("2024-01-25", periods=200, freq="h")
DAYS = pd.date_range("2023-12-20", periods=60)


def said(column):
    return [str(note) for note in column.notes]


def same(times, expected):
    return list(times) == list(expected)


@pytest.mark.parametrize(
    ("columns", "expected", "name"),
    [
        ({"year": DAYS.year, "month": DAYS.month, "day": DAYS.day}, DAYS, "time"),
        (
            {"No": range(200), "yr": HOURS.year, "mnth": HOURS.month, "date_of_month": HOURS.day, "hr": HOURS.hour},
            HOURS,
            "time",
        ),
        ({"Date": HOURS.strftime("%d/%m/%Y"), "Time": HOURS.strftime("%H.%M.%S")}, HOURS, "Date"),
        (
            {"Datum": HOURS.strftime("%d.%m.%Y"), "Zeit": [f"{t:%H:%M} - {(t.hour + 1) % 24:02}:00" for t in HOURS]},
            HOURS,
            "Datum",
        ),
        ({"dteday": HOURS.strftime("%d/%m/%y"), "season": 1, "hr": HOURS.hour}, HOURS, "dteday"),
        ({"date": HOURS.strftime("%Y%m%d"), "time": HOURS.strftime("%H%M%S")}, HOURS, "date"),
        (
            {"year": [2020, 2020, 2020], "quarter": [1, 2, 3]},
            pd.to_datetime(["2020-01-01", "2020-04-01", "2020-07-01"]),
            "time",
        ),
        (
            {"year": [2020, 2020, 2021], "month": ["Nov", "Dec", "Jan"]},
            pd.to_datetime(["2020-11-01", "2020-12-01", "2021-01-01"]),
            "time",
        ),
        (
            {"c1": [1958, 1958, 1959], "c2": [11, 12, 1]},
            pd.to_datetime(["1958-11-01", "1958-12-01", "1959-01-01"]),
            "time",
        ),
        (
            {"year": [2020, 2020, 2021], "doy": [365, 366, 1]},
            pd.to_datetime(["2020-12-30", "2020-12-31", "2021-01-01"]),
            "time",
        ),
        (
            {"year": [2020, 2020, 2021], "week": [52, 53, 1]},
            pd.to_datetime(["2020-12-21", "2020-12-28", "2021-01-04"]),
            "time",
        ),
    ],
)
def test_times_in_several_columns(columns, expected, name):
    frame = pd.DataFrame(columns)
    column = find_time(frame, (), TableOptions(), "table")
    assert same(column.times, expected)
    assert column.name == name
    assert column.columns == tuple(c for c in frame if c not in ("No", "season"))
    assert f"columns {', '.join(column.columns)} are one time together, called '{name}'" in said(column)
    assert list(pd.to_datetime(list(write_times(pd.DatetimeIndex(column.times), column.time_format)))) == list(expected)
    again = read_time(frame.tail(2), column.columns, TableOptions(time_format=column.read_format), "table")
    assert same(again.times, expected[-2:])
    assert same(read_time(frame, column.columns, TableOptions(), "table").times, expected)


def test_the_last_hour_of_a_day_may_be_24():
    frame = pd.DataFrame(
        {"Date": np.repeat(DAYS.strftime("%m/%d/%Y"), 24), "Time": [f"{h:02}:00" for h in range(1, 25)] * 60}
    )
    column = find_time(frame, (), TableOptions(), "table")
    assert same(column.times, pd.date_range(DAYS[0] + pd.Timedelta(hours=1), periods=24 * 60, freq="h"))
    assert any("24:00 is 00:00 of the next day" in note for note in said(column))
    frame["Time"] = list(range(1, 25)) * 60
    assert same(find_time(frame, (), TableOptions(), "table").times, column.times)


def test_a_time_of_day_that_never_changes_is_left_alone():
    column = find_time(pd.DataFrame({"Date": DAYS.strftime("%d/%m/%Y"), "Time": "16:00"}), (), TableOptions(), "table")
    assert (column.columns, column.time_format) == (("Date",), "%d/%m/%Y")


@pytest.mark.parametrize(
    ("columns", "taken"),
    [
        (
            {
                "Date_Time": HOURS.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "Date": (HOURS + pd.Timedelta(hours=11)).strftime("%Y-%m-%d"),
                "Time": (HOURS.hour + 11) % 24,
            },
            "Date_Time",
        ),
        ({"unix": DAYS.as_unit("s").asi8, "date": DAYS.strftime("%Y-%m-%d")}, "date"),
        (
            {
                "MapDate": DAYS.strftime("%Y%m%d").astype(int),
                "ValidStart": DAYS.strftime("%Y-%m-%d"),
                "ValidEnd": (DAYS + pd.Timedelta(days=6)).strftime("%Y-%m-%d"),
            },
            "MapDate",
        ),
        ({"start": DAYS.strftime("%Y-%m-%d"), "end": (DAYS + pd.Timedelta(days=1)).strftime("%Y-%m-%d")}, "start"),
    ],
)
def test_columns_that_tell_the_same_time(columns, taken):
    column = find_time(pd.DataFrame(columns), (), TableOptions(), "table")
    assert column.name == taken
    if taken != "MapDate":
        assert f"tell the same time: {taken} is taken (--time chooses)" in said(column)[-1]


def test_columns_of_different_times_are_asked_for():
    late = [5, 1, 3, 2, 8, 2] * 10
    columns = {
        "order_date": DAYS.strftime("%Y-%m-%d"),
        "ship_date": (DAYS + pd.to_timedelta(late, "D")).strftime("%Y-%m-%d"),
    }
    with pytest.raises(DataError, match=r"2 columns of times \(order_date, ship_date\): choose one, --time") as error:
        find_time(pd.DataFrame(columns), (), TableOptions(), "table")
    assert error.value.finding.options == {"data.time": ["order_date"]}
    assert find_time(pd.DataFrame(columns), ("order_date",), TableOptions(), "table").name == "ship_date"


@pytest.mark.parametrize(
    ("name", "letter", "frequency"),
    [("quarter", "Q", "QS"), ("quarter", "Q0", "QS"), ("month", "M", "MS"), ("week", "W", "W-MON")],
)
def test_a_letter_before_a_part_of_the_year(name, letter, frequency):
    times = pd.date_range("2019-01-07" if name == "week" else "2019-01-01", periods=30, freq=frequency)
    number = {"Q": times.quarter, "M": times.month, "W": times.isocalendar().week.to_numpy()}[letter[0]]
    cells = [f"{letter}{n}" if letter[0] == "Q" else f"{letter}{n:02}" for n in number]
    frame = pd.DataFrame({"year": times.isocalendar().year.to_numpy() if name == "week" else times.year, name: cells})
    column = find_time(frame, (), TableOptions(), "table")
    assert (list(column.times), column.columns) == (list(times), ("year", name))
    again = read_time(frame.tail(2), column.columns, TableOptions(time_format=column.read_format), "table")
    assert same(again.times, times[-2:])
