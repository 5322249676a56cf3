"""Frequencies: inferred, checked and continued, against pandas as the referee."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsformer.data.frequency import check_steps, infer_frequency, next_times
from tsformer.errors import DataError

WEEKDAYS = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]
MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
ENOUGH = 20
"""Rows that tell any two frequencies apart: the first of a month is not a weekday every time."""


@st.composite
def frequencies(draw, shortest="us"):
    """A frequency of pandas: any unit, anchor and multiple."""
    kinds = ["us", "ms", "s", "min", "h", "D", "B", "W", "month", "half", "week", "quarter", "year"]
    kind = draw(st.sampled_from(kinds[kinds.index(shortest) :]))
    times = draw(st.integers(1, {"quarter": 5, "year": 5, "month": 24, "week": 3, "half": 9}.get(kind, 100)))
    weekday, month = draw(st.sampled_from(WEEKDAYS)), draw(st.sampled_from(MONTHS))
    name = {
        "W": f"W-{weekday}",
        "month": draw(st.sampled_from(["MS", "ME", "BMS", "BME"])),
        "half": draw(st.sampled_from(["SMS", "SME"])) + f"-{draw(st.integers(2, 27))}",
        "week": f"WOM-{draw(st.integers(1, 4))}{weekday}",
        "quarter": draw(st.sampled_from(["QS", "QE", "BQS", "BQE"])) + f"-{month}",
        "year": draw(st.sampled_from(["YS", "YE", "BYS", "BYE"])) + f"-{month}",
    }.get(kind, kind)
    return f"{times}{name}"


STARTS = st.datetimes(min_value=pd.Timestamp("1700-01-01"), max_value=pd.Timestamp("2060-01-01")).map(
    lambda start: pd.Timestamp(start).normalize()
)
CLOCKS = st.sampled_from([0, 0, 12 * 60, 16 * 60 + 30, 23 * 60 + 59]).map(lambda minutes: pd.Timedelta(minutes=minutes))


@settings(max_examples=250)
@given(frequency=frequencies(), start=STARTS, clock=CLOCKS, periods=st.integers(1, 40))
def test_next_times_are_what_pandas_would_give(frequency, start, clock, periods):
    expected = (pd.date_range(start, periods=periods + 1, freq=frequency) + clock).as_unit("us")
    for known in (expected[0], expected[:1]):
        found = next_times(known, frequency, periods)
        assert found.equals(expected[1:])
        assert found.unit == "us"
    check_steps(expected, frequency)


@settings(max_examples=250)
@given(frequency=frequencies(), start=STARTS, clock=CLOCKS, more=st.integers(0, 30))
def test_the_frequency_that_is_inferred_goes_on_like_the_one_that_made_the_times(frequency, start, clock, more):
    times = (pd.date_range(start, periods=ENOUGH + more + 12, freq=frequency) + clock).as_unit("us")
    known, later = times[:-12], times[-12:]
    inferred = infer_frequency(known)
    assert next_times(known, inferred, 12).equals(later), inferred
    check_steps(times, inferred)
    check_steps(times[:1], inferred)


@settings(max_examples=250)
@given(frequency=frequencies(), start=STARTS, clock=CLOCKS, row=st.integers(1, 8))
def test_a_row_that_is_dropped_or_out_of_step_is_noticed(frequency, start, clock, row):
    times = (pd.date_range(start, periods=ENOUGH, freq=frequency) + clock).as_unit("us")
    if frequency == "1B":
        check_steps(times.delete(row), frequency)
    else:
        with pytest.raises(DataError, match=r"^1 step\(s\) of .* missing in 1 gap"):
            check_steps(times.delete(row), frequency)
    step = times[row + 1] - times[row]
    # Months may begin late on a weekday, and end early, where there are holidays.
    days = -1 if "BMS" in frequency or "BQS" in frequency or "BYS" in frequency else 1
    shift = pd.Timedelta(days=days) if step >= pd.Timedelta(days=1) else step / 2
    moved = times.to_series().reset_index(drop=True)
    moved[row] = (moved[row] + shift).round("us")
    if moved[row] != times[row]:
        with pytest.raises(DataError) as error:
            check_steps(pd.DatetimeIndex(moved), frequency)
        assert "\n" not in str(error.value)


def test_leap_days_and_month_ends():
    assert list(next_times(pd.Timestamp("2023-12-31"), "ME", 3)) == list(
        pd.to_datetime(["2024-01-31", "2024-02-29", "2024-03-31"])
    )
    assert list(next_times(pd.Timestamp("2020-02-29"), "YE-FEB", 1)) == [pd.Timestamp("2021-02-28")]


@pytest.mark.parametrize("year", [1000, 1500, 2900])
def test_years_beyond_nanoseconds(year):
    times = pd.DatetimeIndex(np.array([f"{year + i}-01-01" for i in range(4)], dtype="datetime64[us]"))
    assert infer_frequency(times) == "YS"
    assert next_times(times[-1], "YS", 1)[0].year == year + 4


@pytest.mark.parametrize("frequency", ["h", "D", "B", "W-FRI", "MS", "ME", "QE", "YS", "YE", "999999999D"])
@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
def test_dates_end_with_the_year_9999(frequency, zone):
    # 9997 begins on a Wednesday; days are counted by numpy, for pandas 2.2 does it in nanoseconds
    day = {"B": "9996-12-27", "W-FRI": "9996-12-27", "MS": "9997-01-01", "YS": "9997-01-01"}.get(
        frequency, "9996-12-31"
    )
    last = pd.Timestamp(np.datetime64(day, "us"), tz=zone)
    if "9D" not in frequency:
        assert next_times(last, frequency, 2)[-1].year in (9996, 9997, 9998, 9999)
    with pytest.raises(DataError, match=rf"30000000 step\(s\) of {frequency} .* beyond the year 9999"):
        next_times(last, frequency, 30_000_000)
    if frequency == "YE":
        assert next_times(last, frequency, 3)[-1].year == 9999
        with pytest.raises(DataError, match="beyond the year 9999"):
            next_times(last, frequency, 4)


def test_absent_weekdays_are_holidays():
    days = pd.bdate_range("2023-01-02", "2023-12-29")
    open_days = days.drop(pd.to_datetime(["2023-05-01", "2023-12-25", "2023-12-26"]))
    assert infer_frequency(open_days) == "B"
    assert infer_frequency(open_days + pd.Timedelta(hours=16)) == "B"
    assert infer_frequency(days[:5]) == "D", "a week from Monday to Friday does not show what weekends are"
    check_steps(days[:3], "B")


def test_a_long_closure_is_a_gap():
    days = pd.bdate_range("2023-01-02", "2023-12-29")
    check_steps(days[(days < "2023-06-05") | (days > "2023-06-16")], "B")
    with pytest.raises(DataError, match=r"11 weekday\(s\) missing in 1 gap\(s\).*2023-06-02 and 2023-06-20"):
        infer_frequency(days[(days < "2023-06-05") | (days > "2023-06-19")])


def test_weekdays_that_are_mostly_absent_are_gaps():
    days = pd.bdate_range("2023-01-02", "2023-12-29")
    with pytest.raises(DataError, match=r"weekday\(s\) missing"):
        infer_frequency(days[np.arange(len(days)) // 5 % 2 == 0])


def test_nanoseconds_are_refused():
    times = pd.date_range("2024-01-01", periods=5, freq="100ns")
    for check in (infer_frequency, lambda times: check_steps(times, "us"), lambda times: next_times(times[1], "us", 1)):
        with pytest.raises(DataError, match=r"2024-01-01 00:00:00\.000000100.*: round"):
            check(times)
    assert infer_frequency(pd.date_range("2024-01-01", periods=5, freq="1000ns")) == "us"


def test_times_must_fit_the_frequency_they_are_said_to_have():
    with pytest.raises(DataError, match="2024-01-06 does not lie on B"):
        check_steps(pd.date_range("2024-01-05", periods=3), "B")
    with pytest.raises(DataError, match="does not lie on frequency MS"):
        next_times(pd.Timestamp("2024-01-06"), "MS", 1)
    with pytest.raises(DataError, match="number"):
        next_times(3.0, "MS", 1)
    with pytest.raises(DataError, match="date"):
        next_times(pd.Timestamp("2024-01-06"), 1.0, 1)
    with pytest.raises(DataError, match="do not go with"):
        check_steps(pd.Index([1, 2, 3]), "D")
    check_steps(pd.DatetimeIndex(["2024-01-01"]), "MS")


def test_a_million_rows():
    times = pd.date_range("2000-01-01", periods=1_000_000, freq="min")
    assert infer_frequency(times) == "min"
