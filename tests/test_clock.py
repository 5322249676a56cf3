"""Formats of times: what is read, and that it is written again to the letter. The referee is `datetime`."""

import datetime as dt

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsformer.data.clock import as_written, check_format, in_any_zone, is_own_format, names_offset, show, write_times
from tsformer.data.stamps import UnreadableTimeError, read_written
from tsformer.errors import UsageError

UTC = dt.UTC
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def half_day(time):
    return f"{(time.hour + 11) % 12 + 1}", "AM" if time.hour < 12 else "PM"


WRITERS = {
    "%Y-%m-%d": (lambda t: f"{t:%Y-%m-%d}", "D"),
    "%-m/%-d/%Y": (lambda t: f"{t.month}/{t.day}/{t.year}", "D"),
    "%d.%m.%y": (lambda t: f"{t:%d.%m.%y}", "D"),
    "%d%^b%Y": (lambda t: f"{t.day:02}{MONTHS[t.month - 1].upper()}{t.year}", "D"),
    "%b %-d, %Y": (lambda t: f"{MONTHS[t.month - 1]} {t.day}, {t.year}", "D"),
    "%a, %-d %b %Y": (lambda t: f"{t:%a}, {t.day} {MONTHS[t.month - 1]} {t.year}", "D"),
    "%-m/%-d/%Y %-I:%M %p": (lambda t: f"{t.month}/{t.day}/{t.year} {half_day(t)[0]}:{t:%M} {half_day(t)[1]}", "min"),
    "%d/%m/%Y %I:%M:%S %P": (lambda t: f"{t:%d/%m/%Y} {half_day(t)[0]:>02}:{t:%M:%S} {half_day(t)[1].lower()}", "s"),
    "%Y/%-m/%-d %-H:%M": (lambda t: f"{t.year}/{t.month}/{t.day} {t.hour}:{t:%M}", "min"),
    "%d/%m/%Y %H.%M.%S": (lambda t: f"{t:%d/%m/%Y %H.%M.%S}", "s"),
    "%Y%m%d%H%M": (lambda t: f"{t:%Y%m%d%H%M}", "min"),
    "%Y%m%dT%H%M%SZ": (lambda t: f"{t:%Y%m%dT%H%M%S}Z", "s"),
    "%Y-%m-%dT%H:%M:%S.%3f+05:30": (lambda t: f"{t:%Y-%m-%dT%H:%M:%S}.{t.microsecond // 1000:03}+05:30", "ms"),
    "%Y-%m-%d %H:%M:%S,%f": (lambda t: f"{t:%Y-%m-%d %H:%M:%S},{t.microsecond:06}", "us"),
    "%Y Q%q": (lambda t: f"{t.year} Q{(t.month + 2) // 3}", "Q"),
    "%qQ%y": (lambda t: f"{(t.month + 2) // 3}Q{t:%y}", "Q"),
    "%G W%V": (lambda t: "{} W{:02}".format(*t.isocalendar()[:2]), "W"),
    "%GW%-V": (lambda t: "{}W{}".format(*t.isocalendar()[:2]), "W"),
    "%Y %j": (lambda t: f"{t.year} {t.timetuple().tm_yday:03}", "D"),
    "%YM%m": (lambda t: f"{t.year}M{t.month:02}", "M"),
    "%s": (lambda t: f"{int((t - dt.datetime(1970, 1, 1)).total_seconds())}", "s"),
    "%s%3f": (lambda t: f"{(t - dt.datetime(1970, 1, 1)) // dt.timedelta(milliseconds=1)}", "ms"),
    "%s%f000": (lambda t: f"{(t - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)}000", "us"),
    "%E": (lambda t: f"{t.toordinal() - dt.date(1899, 12, 30).toordinal()}", "D"),
}


def floored(time, unit):
    """The first moment of the day, minute, quarter ... that a time is in."""
    match unit:
        case "us":
            return time
        case "ms":
            return time.replace(microsecond=time.microsecond // 1000 * 1000)
        case "s":
            return time.replace(microsecond=0)
        case "min":
            return time.replace(second=0, microsecond=0)
    day = dt.datetime(time.year, time.month, time.day)
    match unit:
        case "Q":
            return day.replace(month=(time.month - 1) // 3 * 3 + 1, day=1)
        case "M":
            return day.replace(day=1)
        case "W":
            return dt.datetime.fromisocalendar(*time.isocalendar()[:2], 1)
    return day


@pytest.mark.parametrize("time_format", ["%d.%m.%y", "%d-%b-%y", "%qQ%y"])
def test_a_hundred_years_have_two_digits(time_format):
    days = pd.date_range("1950-01-01", "2049-12-31", freq="QS" if "q" in time_format else "D")
    cells = pd.Series(write_times(days, time_format))
    assert list(read_written(cells, time_format)) == list(days)


@pytest.mark.parametrize("time_format", WRITERS)
@settings(max_examples=25, deadline=None)
@given(times=st.lists(st.datetimes(dt.datetime(1970, 1, 2), dt.datetime(2049, 12, 31)), min_size=1, max_size=8))
def test_what_is_read_is_written_again(time_format, times):
    write, unit = WRITERS[time_format]
    cells = [write(time) for time in times]
    read = read_written(pd.Series(cells), time_format)
    expected = [floored(time, unit) for time in times]
    assert list(read.tz_localize(None)) == expected
    assert list(write_times(read, time_format)) == cells
    check_format(time_format)


@pytest.mark.parametrize("time_format", WRITERS)
def test_the_writing_of_a_column_is_found(time_format):
    write, _ = WRITERS[time_format]
    cells = pd.Series([write(dt.datetime(2001, 1, 1) + i * dt.timedelta(hours=31, seconds=7)) for i in range(400)])
    plain = time_format.replace("%-", "%").replace("%^", "%").replace("%P", "%p").replace("%3f", "%f")
    if "%s" not in time_format:
        assert as_written(cells, plain) == time_format
    assert as_written(cells, time_format) == time_format


@pytest.mark.parametrize(
    ("cells", "time_format", "expected"),
    [
        (["01/31/1988 24:00", "12/31/1988 24:00"], "%m/%d/%Y %H:%M", ["1988-02-01", "1989-01-01"]),
        (["202002282400", "202002282300"], "%Y%m%d%H%M", ["2020-02-29", "2020-02-28 23:00"]),
        (["2010 1 1 24"], "%Y %m %d %H", ["2010-01-02"]),
        (
            ["2024-01-01 00:00:00", "2024-01-01 00:00:00.5"],
            "%Y-%m-%d %H:%M:%S.%f",
            ["2024-01-01", "2024-01-01 00:00:00.5"],
        ),
        (["1/2/2024 3:00 p.m."], "%m/%d/%Y %I:%M %p", ["2024-01-02 15:00"]),
        (["1600000000.5", "1600000000"], "%s.%f", ["2020-09-13 12:26:40.5", "2020-09-13 12:26:40"]),
        (["1500-01-01"], "%Y-%m-%d", ["1500-01-01"]),
    ],
)
def test_what_is_read_otherwise_than_written(cells, time_format, expected):
    read = read_written(pd.Series(cells), time_format)
    assert list(read.tz_localize(None)) == list(pd.to_datetime(expected, format="ISO8601"))


def test_offsets_that_differ_are_read_as_moments():
    cells = pd.Series(["2024-03-31T01:00:00+01:00", "2024-03-31T03:00:00+02:00", "2024-03-31T02:00:00Z"])
    times = read_written(cells, "%Y-%m-%dT%H:%M:%S+01:00")
    assert str(times.tz) == "UTC"
    assert list(times.hour) == [0, 1, 2]
    assert in_any_zone("%Y-%m-%dT%H:%M:%S+01:00") == "%Y-%m-%dT%H:%M:%S%:z"
    assert in_any_zone("%H:%M +0100") == "%H:%M %z"
    berlin = write_times(times.tz_convert("Europe/Berlin"), "%Y-%m-%dT%H:%M:%S%:z")
    assert list(berlin) == ["2024-03-31T01:00:00+01:00", "2024-03-31T03:00:00+02:00", "2024-03-31T04:00:00+02:00"]
    assert read_written(pd.Series(berlin), "%Y-%m-%dT%H:%M:%S%:z").equals(times)
    assert str(read_written(cells[:1], "%Y-%m-%dT%H:%M:%S%:z").tz) == "UTC+01:00"


@pytest.mark.parametrize(
    ("cells", "time_format", "row", "why"),
    [
        (["2024-01-01", "2024-02-30"], "%Y-%m-%d", 1, "is not a date of the calendar"),
        (["2024-01-01", "x", "y"], "%Y-%m-%d", 1, "is not written as '%Y-%m-%d'"),
        (["2024-01-01 00:00", "2024-01-01 24:30"], "%Y-%m-%d %H:%M", 1, "is not a date of the calendar"),
        (["2024-01-01", ""], "%Y-%m-%d", 1, "is empty"),
        (["11022024", "1022024"], "%d%m%Y", 1, "lacks a digit of '%d%m%Y'"),
        (["2024-01-01 00:00+01:00", "2024-01-01 00:00"], "%Y-%m-%d %H:%M+01:00", 1, "is not written as"),
        (["2024 Q5"], "%Y Q%q", 0, "is not written as"),
        (["1600000000", "-5"], "%s", 1, "is not written as '%s'"),
        (["1600000000123456000", "1600000000123456789"], "%s%f000", 1, "is finer than a microsecond"),
    ],
)
def test_the_first_cell_that_is_no_time(cells, time_format, row, why):
    with pytest.raises(UnreadableTimeError) as error:
        read_written(pd.Series(cells), time_format)
    assert (error.value.row, why in error.value.why) == (row, True)


@pytest.mark.parametrize("wrong", ["%Q", "mixed", "ISO8601", "%m/%d", "", "%H:%M"])
def test_what_is_no_format(wrong):
    with pytest.raises(UsageError, match=r"--data\.time-format"):
        check_format(wrong)


def test_year_first_formats_are_known_by_themselves():
    own = ["%Y", "%Y-%m", "%Y/%-m/%-d", "%Y-%m-%dT%H:%M:%S.%3f%:z", "%Y.%m.%d %H:%M", "%Y-%m-%d %H:%M:%SZ"]
    assert all(is_own_format(time_format) for time_format in own)
    assert not any(is_own_format(time_format) for time_format in ("%d/%m/%Y", "%Y-%d-%m", "%Y%m%d", "%Y Q%q"))
    assert names_offset("%Y-%m-%dT%H:%MZ")
    assert names_offset("%s%3f")
    assert not names_offset("%d-%m-%Y")


def test_a_time_is_shown_as_short_as_it_can_be():
    assert show(pd.Timestamp("2024-01-01")) == "2024-01-01"
    assert show(pd.Timestamp("2024-01-01 05:00:03", tz="UTC")) == "2024-01-01 05:00:03+0000"
    assert show(3) == "3"
