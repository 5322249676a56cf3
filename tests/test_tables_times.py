"""The time of each row: which columns it is made of, how they are read on the evidence of all rows, what is said."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import message

from tsformer.data.clock import write_times
from tsformer.data.table_options import TableOptions
from tsformer.errors import DataError, UsageError
from tsformer.tables.times import find_time, read_time

HOURS = pd.date_range("2024-01-25", periods=200, freq="h")
DAYS = pd.date_range("2023-12-20", periods=60)


def found(columns, taken=(), **options):
    frame = pd.DataFrame({**columns, "y": np.arange(len(next(iter(columns.values()))), dtype=float)})
    return find_time(frame, {"y", *taken}, TableOptions(**options), "table")


def said(column):
    return [str(note) for note in column.notes]


def same(times, expected):
    return list(times) == list(expected)


@pytest.mark.parametrize(
    "time_format",
    [
        "%Y-%m-%d",
        "%m/%d/%Y",
        "%d/%m/%Y",
        "%d.%m.%y",
        "%d-%b-%y",
        "%b %d, %Y",
        "%A, %d %B %Y",
        "%Y%m%d",
        "%d%b%Y",
        "%Y.%m.%d",
    ],
)
@pytest.mark.parametrize("clock", ["", " %H:%M", " %I:%M:%S %p", "T%H:%M:%S"])
def test_formats_are_found_and_written_again(time_format, clock):
    if clock and (time_format == "%Y%m%d" or (clock[0] == "T" and "%b" in time_format)):
        return
    expected = HOURS if clock else DAYS
    cells = list(expected.strftime(time_format + clock))
    column = found({"when": cells, "date": cells}, taken=["when"])
    assert (column.name, column.columns, column.time_format) == ("date", ("date",), time_format + clock)
    assert same(column.times, expected)
    assert list(write_times(pd.DatetimeIndex(column.times), time_format + clock)) == cells


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1998 Q1", "1998 Q2", "1998 Q3"], ["1998-01-01", "1998-04-01", "1998-07-01"]),
        (["1991 W06", "1991 W07", "1991 W08"], ["1991-02-04", "1991-02-11", "1991-02-18"]),
        (["2020M11", "2020M12", "2021M01"], ["2020-11-01", "2020-12-01", "2021-01-01"]),
        (["Nov-23", "Dec-23", "Jan-24"], ["2023-11-01", "2023-12-01", "2024-01-01"]),
        (["May 2020", "June 2020", "July 2020"], ["2020-05-01", "2020-06-01", "2020-07-01"]),
        ([201711, 201712, 201801], ["2017-11-01", "2017-12-01", "2018-01-01"]),
        (["2017010100", "2017010101", "2017010102"], ["2017-01-01 00:00", "2017-01-01 01:00", "2017-01-01 02:00"]),
        ([44197, 44198, 44199], ["2021-01-01", "2021-01-02", "2021-01-03"]),
        (["1.2.2024", "2.2.2024", "3.2.2024"], ["2024-02-01", "2024-02-02", "2024-02-03"]),
        (["2024年1月30日", "2024年1月31日", "2024年2月1日"], ["2024-01-30", "2024-01-31", "2024-02-01"]),
        (["16/Dec/2006:17:24:00", "16/Dec/2006:17:25:00"], ["2006-12-16 17:24", "2006-12-16 17:25"]),
        (
            [
                "01.01.2017 23:00 - 02.01.2017 00:00",
                "02.01.2017 00:00 - 02.01.2017 01:00",
                "31.01.2017 00:00 - 31.01.2017 01:00",
            ],
            ["2017-01-01 23:00", "2017-01-02", "2017-01-31"],
        ),
    ],
)
def test_other_ways_to_write_a_time(cells, expected):
    column = found({"date": cells})
    assert same(column.times, pd.to_datetime(expected, format="ISO8601"))
    if " - " not in str(cells[0]):
        assert list(write_times(pd.DatetimeIndex(column.times), column.time_format)) == [str(cell) for cell in cells]
        again = read_time(
            pd.DataFrame({"date": cells[-1:]}), ("date",), TableOptions(time_format=column.time_format), "t"
        )
        assert same(again.times, column.times[-1:])


@pytest.mark.parametrize(("size", "unit"), [(1, "seconds"), (10**3, "milli"), (10**6, "micro"), (10**9, "nano")])
@pytest.mark.parametrize("kind", [int, str])
def test_seconds_since_1970(size, unit, kind):
    cells = [kind(size * (1_577_836_800 + 3617 * i)) for i in range(60)]
    column = found({"timestamp": cells})
    expected = [dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=3617 * i) for i in range(60)]
    assert same(column.times, expected)
    assert list(write_times(pd.DatetimeIndex(column.times), column.time_format)) == list(map(str, cells))
    assert unit in said(column)[0]
    assert "since 1970 in UTC" in said(column)[0]


@pytest.mark.parametrize("dayfirst", [True, False])
@pytest.mark.parametrize("periods", [20 * 24, 5 * 24])
def test_the_order_of_day_and_month_is_decided_by_all_rows(dayfirst, periods):
    """Of the first days of a month every cell may be read in two ways, but only in one of them hours follow hours."""
    times = pd.date_range("2024-02-01", periods=periods, freq="h")
    order = "%d/%m/%Y %H:%M" if dayfirst else "%m/%d/%Y %H:%M"
    column = found({"date": times.strftime(order)})
    assert same(column.times, times)
    assert f"{'day' if dayfirst else 'month'} first" in said(column)[0]


@pytest.mark.parametrize("dayfirst", [True, False])
def test_weekdays_of_one_month_may_be_the_first_of_some_months(dayfirst):
    times = pd.date_range("2024-01-02", "2024-01-12", freq="B")
    cells = times.strftime("%d/%m/%Y" if dayfirst else "%m/%d/%Y")
    with pytest.raises(DataError, match="--dayfirst or --no-dayfirst says which"):
        found({"date": cells})
    assert same(found({"date": cells}, dayfirst=dayfirst).times, times)


def test_months_on_their_first_day_for_two_years():
    times = pd.date_range("2022-01-01", periods=24, freq="MS")
    assert same(found({"date": times.strftime("%d/%m/%Y")}).times, times)
    shuffled = times[np.random.default_rng(0).permutation(24)]
    assert same(found({"date": shuffled.strftime("%d/%m/%Y")}).times, shuffled)


@pytest.mark.parametrize(
    "cells", [["01/02/2024", "02/02/2024", "03/02/2024"], ["01/02/2024", "01/03/2024", "01/04/2024"]]
)
def test_an_order_that_no_row_tells_is_asked_for(cells):
    with pytest.raises(DataError) as error:
        found({"date": cells})
    assert "row 0: '01/02/2024' may be 2024-01-02 ('%m/%d/%Y') or 2024-02-01 ('%d/%m/%Y')" in message(error)
    assert "--dayfirst or --no-dayfirst says which" in message(error)
    assert (error.value.finding.kind, error.value.finding.column, dict(error.value.finding.options)) == (
        "dayfirst",
        "date",
        {},
    )
    assert found({"date": cells}, dayfirst=True).times[0] == pd.Timestamp("2024-02-01")
    assert found({"date": cells}, dayfirst=False).times[0] == pd.Timestamp("2024-01-02")
    assert found({"date": cells}, dayfirst=True).notes == ()


def test_an_order_that_no_cell_allows():
    with pytest.raises(DataError, match="--no-dayfirst goes with no date like '13/02/2024'"):
        found({"date": ["13/02/2024", "14/02/2024"]}, dayfirst=False)


def test_years_of_two_digits_that_could_be_days():
    times = pd.date_range("2011-01-01", periods=700)
    assert same(found({"date": times.strftime("%d/%m/%y")}).times, times)
    assert same(found({"date": times.strftime("%y-%m-%d")}).times, times)
    short = pd.date_range("2011-01-13", periods=15)
    assert same(found({"date": short.strftime("%d-%m-%y")}).times, short)


def test_a_date_that_cannot_be_read_is_not_passed_over():
    with pytest.raises(DataError, match="column 'Date', row 0: '01/02/2024' may be"):
        found(
            {"Date": ["01/02/2024", "02/02/2024", "03/02/2024"], "opened": ["2020-01-01", "2020-05-01", "2020-01-03"]}
        )
    with pytest.raises(
        DataError, match=r"column 'ds', row 2: 'soon' is not written like the first, '2024-01-01': correct"
    ):
        found({"ds": ["2024-01-01", "2024-01-02", "soon"]})


@pytest.mark.parametrize("blank", [None, "", np.nan])
def test_rows_without_a_time(blank):
    with pytest.raises(DataError, match=r"column 'date' has no time in 2 row\(s\), the first in row 1") as error:
        found({"date": ["2024-01-01", blank, "2024-01-03", blank, "2024-01-05"]})
    assert (error.value.finding.kind, error.value.finding.count) == ("no_time", 2)


def test_offsets_that_differ_are_kept_in_utc_or_in_a_zone():
    times = pd.date_range("2024-10-26 12:00", periods=48, freq="h", tz="Europe/Berlin")
    cells = [time.isoformat() for time in times]
    column = found({"time": cells})
    assert str(column.times.tz) == "UTC"
    assert same(column.times, times)
    assert said(column) == [
        "column 'time': offsets from UTC differ (+01:00, +02:00): times are kept in UTC (or in --tz)"
    ]
    later = read_time(pd.DataFrame({"time": cells[-2:]}), ("time",), TableOptions(time_format=column.time_format), "t")
    assert same(later.times, times[-2:])
    column = found({"time": cells}, tz="Europe/Berlin")
    assert (str(column.times.tz), column.notes) == ("Europe/Berlin", ())
    assert list(write_times(pd.DatetimeIndex(column.times), column.time_format)) == cells


def test_a_word_that_is_no_zone():
    with pytest.raises(UsageError, match="--tz 'Europe/Berln' is no time zone; did you mean 'Europe/Berlin'"):
        read_time(pd.DataFrame({"time": ["2024-01-01"]}), ("time",), TableOptions(tz="Europe/Berln"), "table")


def test_names_of_columns_that_are_no_times():
    columns = {"price": ["8,746.6", "8,111.4", "7,999.9"], "vol": ["1.38M", "610.66K", "2M"], "id": ["H1", "H2", "H3"]}
    column = found({**columns, "version": ["1.2.3", "1.2.4", "1.2.5"], "score": ["3-4", "1-2", "2-2"]})
    assert (column.name, column.columns, list(column.times)) == (None, (), [0, 1, 2])


def test_a_million_rows_of_ten_thousand_series():
    days = np.tile(pd.date_range("2024-01-01", periods=100).strftime("%Y-%m-%d").to_numpy(object), 10_000)
    frame = pd.DataFrame({"shop": np.repeat(np.arange(10_000), 100).astype(str), "date": days})
    frame["shop"] = frame["shop"].astype(object)
    column = find_time(frame, ("shop",), TableOptions(), "table")
    assert (len(column.times), column.times[99], column.times.nunique()) == (10**6, pd.Timestamp("2024-04-09"), 100)


PIECES = [
    "1",
    "01",
    "12",
    "13",
    "31",
    "99",
    "2024",
    "1900",
    "0",
    "24",
    "00",
    "Jan",
    "May",
    "August",
    "Q1",
    "W53",
    "Mon",
]
PIECES += ["-", "/", ".", ":", " ", ",", "T", "Z", "+01:00", "AM", " - ", "%", "%d", "é", "年", "1e300", "nan", "24:00"]


@settings(max_examples=100, deadline=None)
@given(
    cells=st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=7).map("".join), min_size=1, max_size=4),
    name=st.sampled_from(["date", "time", "year", "t", "when", "Unnamed: 0", "hour"]),
    more=st.sampled_from([{}, {"dayfirst": True}, {"tz": "Europe/Berlin"}, {"time_format": "%d/%m/%Y %H:%M"}]),
    given_name=st.booleans(),
)
def test_any_cells_are_times_or_one_line(cells, name, more, given_name):
    frame = pd.DataFrame({name: pd.Series(cells, dtype=object), "y": 1.0})
    options = TableOptions(**more)
    try:
        column = read_time(frame, (name,), options, "t") if given_name else find_time(frame, ("y",), options, "t")
    except DataError:
        return
    assert len(column.times) == len(frame)
    assert not column.times.isna().any()
    if column.time_format is not None and not more:
        written = write_times(pd.DatetimeIndex(column.times), column.time_format)
        again = pd.DataFrame({name: pd.Series(written, dtype=object)})
        read = read_time(again, (name,), TableOptions(time_format=column.time_format), "t")
        assert list(read.times) == list(column.times)


def test_years_of_two_digits():
    months = pd.date_range("1955-01-31", "1979-12-31", freq="ME")
    column = found({"date": months.strftime("%d/%m/%y")})
    assert same(column.times, months)
    assert "column 'date': years of two digits are 1955 to 1979" in said(column)
    ahead = pd.date_range(pd.Timestamp.now().normalize(), periods=30)
    assert same(found({"date": ahead.strftime("%d.%m.%y")}).times, ahead)
    old = pd.date_range("1935-01-31", "1961-12-31", freq="ME").strftime("%d/%m/%y")
    with pytest.raises(
        DataError, match=r"'31/12/49' is read as 2049-12-31.*four digits, or say --time-format"
    ) as error:
        found({"date": old})
    assert error.value.finding.kind == "century"
    assert found({"date": old}, time_format="%d/%m/%y").times[0] == pd.Timestamp("2035-01-31")


@pytest.mark.parametrize("name", ["date", "Datum", "day"])
def test_dates_in_digits_keep_their_zeros(name):
    days = pd.date_range("2024-01-01", periods=60)
    frame = pd.DataFrame({name: days.strftime("%d%m%Y"), "y": 1.0})
    column = read_time(frame, (name,), TableOptions(), "table")
    assert (list(column.times), column.time_format) == (list(days), "%d%m%Y")
    if name != "day":
        assert same(find_time(frame, ("y",), TableOptions(), "table").times, days)


def test_years_that_begin_in_one_year_and_end_in_the_next():
    for between in "/-":
        column = found({"season": [f"{year}{between}{(year + 1) % 100:02}" for year in range(1990, 2012)]})
        assert same(column.times, pd.date_range("1990-01-01", periods=22, freq="YS"))
        assert column.time_format == "%Y"
        assert "column 'season': of intervals (A - B) the start is the time, 1990 in the first" in said(column)
    months = pd.date_range("2000-01-01", periods=24, freq="MS")
    assert same(found({"month": months.strftime("%Y-%m")}).times, months)


@pytest.mark.parametrize("time_format", ["%G-%V", "%G/%V", "%G%V"])
@pytest.mark.parametrize("name", ["week", "year_week", "KW"])
@pytest.mark.parametrize("number", [False, True])
def test_a_year_and_a_number_in_a_column_of_weeks(time_format, name, number):
    if number and time_format != "%G%V":
        return
    mondays = pd.date_range("2024-01-01", periods=12, freq="7D")
    cells = mondays.strftime(time_format)
    frame = pd.DataFrame({name: cells.astype(int) if number else cells, "y": 1.0})
    column = read_time(frame, (name,), TableOptions(), "table")
    assert same(column.times, mondays)
    assert list(write_times(pd.DatetimeIndex(column.times), column.time_format)) == list(cells)
    assert any("2024-01-01" in note for note in said(column))
    assert same(read_time(frame, (name,), TableOptions(time_format=column.time_format), "table").times, mondays)


def test_hours_from_to_without_blanks():
    clock = [f"{hour:02}:00-{(hour + 1) % 24:02}:00" for hour in range(24)]
    hours = pd.date_range("2024-02-28", periods=72, freq="h")
    days = np.repeat(["28.02.2024", "29.02.2024", "01.03.2024"], 24)
    column = found({"MTU": [f"{day} {hour}" for day, hour in zip(days, clock * 3, strict=True)]})
    assert (list(column.times), column.time_format) == (list(hours), "%d.%m.%Y %H:%M")
    column = found({"Datum": days, "Zeit": clock * 3})
    assert (list(column.times), column.columns) == (list(hours), ("Datum", "Zeit"))
    offset = found({"time": hours.strftime("%Y-%m-%d %H:%M-01:00")})
    assert same(offset.times, hours.tz_localize("UTC-01:00"))


def test_days_at_the_start_of_months_do_not_make_weekdays_of_one():
    with pytest.raises(DataError, match="--dayfirst or --no-dayfirst says which"):
        found({"date": ["03/01/2024", "04/01/2024", "05/01/2024", "08/01/2024", "09/01/2024"]})


def test_a_column_of_dates_that_are_no_times_is_refused():
    decimals = [f"{year}.{month}" for year in (2000, 2001) for month in range(1, 13)]
    with pytest.raises(DataError, match=r"column 'date' is called like a time, but holds numbers.*--time") as error:
        found({"date": [float(cell) for cell in decimals]})
    assert error.value.finding.kind == "irregular_time"
