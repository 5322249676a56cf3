"""Frequencies: inferred, checked and continued, against pandas as the referee."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsformer.data.frequency import check_steps, holidays, infer_frequency, next_times, normalise, season_of, show
from tsformer.errors import DataError, UsageError

FREQUENCIES = [
    *["s", "30s", "min", "15min", "7min", "90min", "h", "2h", "6h", "36h", "ms", "250us"],
    *["D", "2D", "10D", "W-MON", "W-SUN", "2W-THU", "MS", "ME", "2MS", "6MS", "6ME"],
    *["QS", "QS-FEB", "QS-MAR", "QE", "QE-JAN", "QE-FEB", "YS", "YS-APR", "YE", "YE-JUN", "5YS", "2YE-SEP"],
]
ZONES = [None, "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]


@settings(deadline=None, max_examples=400)
@given(
    frequency=st.sampled_from([*FREQUENCIES, "B"]),
    start=st.datetimes(min_value=pd.Timestamp("1901-01-01"), max_value=pd.Timestamp("2035-01-01")),
    minute=st.sampled_from([0, 12 * 60, 16 * 60 + 30]),
    periods=st.integers(3, 40),
)
def test_next_times_are_what_pandas_would_give(frequency, start, minute, periods):
    start = pd.Timestamp(start).normalize() + pd.Timedelta(minutes=minute)
    expected = pd.date_range(start, periods=periods + 1, freq=frequency).as_unit("us")
    found = next_times(expected[0], frequency, periods)
    assert found.equals(expected[1:])
    assert found.unit == "us"
    check_steps(expected, frequency)
    if frequency != "B":
        assert infer_frequency(expected) == frequency
    elif (np.diff(expected.day_of_week) < 0).any():
        assert infer_frequency(expected) == "B"


@settings(deadline=None, max_examples=200)
@given(
    frequency=st.sampled_from([f for f in FREQUENCIES if f not in ("ms", "250us")]),
    zone=st.sampled_from(ZONES),
    start=st.datetimes(min_value=pd.Timestamp("1990-01-01"), max_value=pd.Timestamp("2030-01-01")),
    periods=st.integers(3, 40),
)
def test_a_zone_keeps_the_wall_clock_for_days_and_the_length_for_hours(frequency, zone, start, periods):
    step_is_absolute = frequency[-1] in "snh"
    local = pd.date_range(pd.Timestamp(start).normalize() + pd.Timedelta(hours=9), periods=periods + 1, freq=frequency)
    if step_is_absolute:
        expected = local.tz_localize("UTC").tz_convert(zone) if zone else local
    else:
        expected = local.tz_localize(zone) if zone else local
    found = next_times(expected[0], frequency, periods)
    assert (found == expected[1:]).all()
    assert str(found.tz) == str(expected.tz)
    assert infer_frequency(expected) == frequency


def test_a_clock_time_that_summer_time_skips_is_still_that_day():
    times = next_times(pd.Timestamp("2024-03-29 02:30", tz="Europe/Berlin"), "D", 4)
    assert [t.strftime("%d %H:%M") for t in times] == ["30 02:30", "31 03:00", "01 02:30", "02 02:30"]
    assert infer_frequency(times) == "D"


def test_hours_go_on_through_the_hour_that_comes_twice():
    times = next_times(pd.Timestamp("2024-10-27 01:00", tz="Europe/Berlin"), "h", 3)
    assert [t.strftime("%H:%M%z") for t in times] == ["02:00+0200", "02:00+0100", "03:00+0100"]
    assert infer_frequency(times) == "h"


def test_a_day_of_24_hours_is_not_a_day_on_the_wall():
    times = pd.date_range("2024-03-29 12:00", periods=5, freq="24h", tz="UTC").tz_convert("Europe/Berlin")
    assert infer_frequency(times) == "24h"
    assert infer_frequency(times.tz_convert("UTC")) == "D"


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


def test_absent_weekdays_are_holidays():
    days = pd.bdate_range("2023-01-02", "2023-12-29")
    open_days = days.drop(pd.to_datetime(["2023-05-01", "2023-12-25", "2023-12-26"]))
    assert infer_frequency(open_days) == "B"
    assert holidays(open_days) == 3
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


def test_a_trading_day_on_a_weekend_is_named():
    days = pd.bdate_range("2023-01-02", "2023-12-29").union(pd.DatetimeIndex(["2023-11-12"]))
    with pytest.raises(DataError, match="1 fall on a weekend, the first 2023-11-12"):
        infer_frequency(days)


@pytest.mark.parametrize("frequency", ["h", "15min", "D", "W-MON", "MS", "ME", "QE", "YS", "2D", "s"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_gaps_say_where_and_how_much(frequency, zone):
    full = pd.date_range("2000-01-01 09:00", periods=40, freq=frequency, tz=zone)
    times = full.delete([10, 11, 30])
    with pytest.raises(DataError) as error:
        infer_frequency(times)
    message = str(error.value)
    assert message.startswith(f"3 step(s) of {frequency} missing in 2 gap(s): the first, 2 missing, between ")
    assert f"between {show(full[9])} and {show(full[12])}" in message
    assert f"the longest, 2 missing, after {show(full[9])}" in message
    assert "\n" not in message


def test_irregular_steps_are_counted():
    times = pd.to_datetime(["2024-01-01 00:00", "2024-01-01 00:05", "2024-01-01 00:10", "2024-01-01 00:17"])
    with pytest.raises(DataError, match=r"5 min \(2x\), 7 min \(1x\); the first that differs from 2024-01-01 00:10"):
        infer_frequency(times)


def test_another_time_of_day_is_named():
    times = pd.date_range("2024-01-01 16:00", periods=10, freq="D").to_series()
    times.iloc[4] -= pd.Timedelta(hours=3)
    with pytest.raises(DataError, match=r"1 row\(s\) at another time of day, the first 2024-01-05 13:00"):
        infer_frequency(pd.DatetimeIndex(times))


@pytest.mark.parametrize("zone", [None, "America/New_York"])
@pytest.mark.parametrize("periods", [10, 300])
def test_dates_with_an_odd_time_of_day_want_none(zone, periods):
    for days in (pd.date_range, pd.bdate_range):
        times = (days("2015-01-01", periods=periods) + pd.Timedelta(hours=16)).tz_localize(zone).to_series()
        times.iloc[[4, 7]] -= pd.Timedelta(hours=3)
        with pytest.raises(DataError, match=r"2 row\(s\) at another time of day.*: write the dates without the time"):
            infer_frequency(pd.DatetimeIndex(times))
        with pytest.raises(DataError, match="write the dates without the time of day"):
            check_steps(pd.DatetimeIndex(times), "D")


def test_times_that_are_not_dates_keep_their_time_of_day():
    times = pd.date_range("2024-01-01 09:00", periods=20, freq="36h").to_series()
    times.iloc[3] += pd.Timedelta(minutes=7)
    with pytest.raises(DataError, match="resampling"):
        infer_frequency(pd.DatetimeIndex(times))


@pytest.mark.parametrize(
    ("frequency", "days"), [("MS", 14), ("MS", 27), ("2MS", 6), ("QS", 14), ("YS", 165), ("BMS", 1), ("WOM-2TUE", 0)]
)
def test_months_on_another_day_are_refused_not_rounded(frequency, days):
    times = pd.date_range("2019-01-01", periods=8, freq=frequency) + pd.Timedelta(days=days)
    with pytest.raises(DataError, match=r"irregular: .* must be dated on the first or last day of a month$"):
        infer_frequency(times)
    for rows in (1, 2, 5):
        with pytest.raises(DataError, match=r"does not lie on MS: .* on the first day of a month"):
            check_steps(times[1 : 1 + rows], "MS")


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (["2024-01-01", "2024-01-02"], "2 row"),
        (["2024-01-01", "2024-01-02", "2024-01-02", "2024-01-03"], r"1 time\(s\) are repeated, the first 2024-01-02"),
        (["2024-01-02", "2024-01-01", "2024-01-03"], r"backwards 1 time\(s\), first from 2024-01-02 to 2024-01-01"),
        (["2024-01-02", None, "2024-01-03"], r"1 time\(s\) are missing, the first in row 1"),
    ],
)
def test_order_comes_first(times, message):
    with pytest.raises(DataError, match=message):
        infer_frequency(pd.DatetimeIndex(times))


@settings(deadline=None)
@given(start=st.integers(-(10**6), 10**6), step=st.integers(1, 10**4), periods=st.integers(3, 50))
def test_whole_numbers(start, step, periods):
    times = pd.Index(start + step * np.arange(periods))
    assert infer_frequency(times) == step
    assert isinstance(infer_frequency(times), int)
    assert list(next_times(int(times[-1]), step, 2)) == [times[-1] + step, times[-1] + 2 * step]


@settings(deadline=None)
@given(start=st.integers(-1000, 1000), step=st.integers(1, 1000), digits=st.integers(1, 6), periods=st.integers(3, 99))
def test_decimals_stay_short(start, step, digits, periods):
    numbers = [float(f"{start + step * i}e-{digits}") for i in range(periods + 3)]
    times = pd.Index(numbers[:periods])
    frequency = infer_frequency(times)
    assert frequency == float(f"{step}e-{digits}")
    assert list(next_times(times[-1], frequency, 3)) == numbers[periods:]


def test_a_sixtieth_keeps_its_digits():
    times = pd.Index(np.arange(1801) / 60)
    assert infer_frequency(times) == 1 / 60
    np.testing.assert_allclose(next_times(times[-1], 1 / 60, 30), np.arange(1801, 1831) / 60, rtol=1e-15)


def test_numbers_with_gaps_or_without_a_step():
    with pytest.raises(DataError, match=r"2 step\(s\) of 0.5 missing in 1 gap.*between 1.0 and 2.5"):
        infer_frequency(pd.Index([0.0, 0.5, 1.0, 2.5, 3.0]))
    with pytest.raises(DataError, match=r"1 step\(s\) of 1 missing in 1 gap"):
        infer_frequency(pd.Index([1, 2, 3, 5]))
    with pytest.raises(DataError, match="irregular"):
        infer_frequency(pd.Index([0.0, 1.0, 2.1, 3.3]))
    with pytest.raises(DataError, match="dates or numbers"):
        infer_frequency(pd.Index(["a", "b", "c"]))


@pytest.mark.parametrize(
    ("old", "own"),
    [
        *[("H", "h"), ("T", "min"), ("S", "s"), ("M", "ME"), ("Q", "QE"), ("Y", "YE"), ("A", "YE"), ("AS", "YS")],
        *[("A-JUN", "YE-JUN"), ("Q-MAR", "QE"), ("QS-OCT", "QS"), ("QS-NOV", "QS-FEB"), ("W", "W-SUN"), ("1D", "D")],
        *[("60min", "h"), ("90T", "90min"), ("3600s", "h"), ("24h", "24h"), ("YE-DEC", "YE"), ("2QS", "6MS")],
    ],
)
def test_old_spellings(old, own):
    assert normalise(old) == own
    assert normalise(own) == own
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pd.tseries.frequencies.to_offset(own)


@pytest.mark.parametrize(
    "wrong", ["", "x", "0D", "-1h", "W-XXX", "MS-MON", "D-MON", "h-JAN", "YS-MON", "1.5h", "B-MON"]
)
def test_what_is_no_frequency(wrong):
    with pytest.raises(UsageError, match="is not known"):
        normalise(wrong)


@pytest.mark.parametrize(
    ("frequency", "season"),
    [
        *[("h", 24), ("2h", 12), ("15min", 96), ("min", 1440), ("7min", 1), ("s", 3600), ("10s", 360), ("ms", 1)],
        *[("D", 7), ("2D", 1), ("B", 5), ("W-MON", 52), ("2W-MON", 26), ("MS", 12), ("ME", 12), ("6MS", 2), ("48h", 1)],
        *[("QS", 4), ("QE-JAN", 4), ("YS", 1), ("5YS", 1), (1, 1), (1 / 60, 1), (None, 1), ("H", 24), ("M", 12)],
    ],
)
def test_seasons(frequency, season):
    assert season_of(frequency) == season


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


def test_a_million_rows():
    times = pd.date_range("2000-01-01", periods=1_000_000, freq="min")
    assert infer_frequency(times) == "min"
