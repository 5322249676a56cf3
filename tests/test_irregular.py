"""What is said of times that take no regular step: what, where, and what to do, in one line."""

import pandas as pd
import pytest

from tsformer.data.clock import show
from tsformer.data.frequency import check_steps, infer_frequency
from tsformer.errors import DataError


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


def test_local_hours_that_lack_one_each_spring_are_explained():
    local = pd.date_range("2022-01-01", "2023-12-31", freq="15min", tz="America/New_York").tz_localize(None)
    local = local[~local.duplicated(keep=False)]
    spring = local[(local > "2022-01-05") & (local < "2022-10-01")]
    with pytest.raises(
        DataError, match=r"4 step\(s\) of 15min missing in 1 gap.*02.*summer time.*write the times in UTC"
    ):
        infer_frequency(spring)
    with pytest.raises(DataError, match="add the missing rows"):
        infer_frequency(spring.delete(50))


@pytest.mark.parametrize(
    ("closed", "named"), [([6], "no row is a Sunday"), ([4, 5], "no row is a Friday or a Saturday")]
)
def test_weeks_of_other_days_are_refused_by_name(closed, named):
    days = pd.date_range("2023-01-01", "2023-06-30")
    with pytest.raises(DataError, match=rf"step\(s\) of D missing in 2\d gap.*; {named}: add"):
        infer_frequency(days[~days.day_of_week.isin(closed)])


def test_a_trading_day_on_a_weekend_is_named():
    days = pd.bdate_range("2023-01-02", "2023-12-29").union(pd.DatetimeIndex(["2023-11-12"]))
    with pytest.raises(DataError, match="1 fall on a weekend, the first 2023-11-12"):
        infer_frequency(days)


def test_irregular_steps_are_counted():
    times = pd.to_datetime(["2024-01-01 00:00", "2024-01-01 00:05", "2024-01-01 00:10", "2024-01-01 00:17"])
    with pytest.raises(DataError, match=r"5 min \(2x\), 7 min \(1x\); the first that differs from 2024-01-01 00:10"):
        infer_frequency(times)


def test_the_row_that_is_off_is_named():
    times = pd.date_range("2019-01-01", periods=24, freq="MS").to_series()
    times.iloc[7] += pd.Timedelta(days=3)
    with pytest.raises(
        DataError, match=r"irregular: 31 d .*; 2019-08-04 does not lie on MS: data by the month.* same day"
    ):
        infer_frequency(pd.DatetimeIndex(times))
    times = (pd.date_range("2019-01-31", periods=24, freq="ME")).to_series()
    times.iloc[7] -= pd.Timedelta(days=5)
    with pytest.raises(DataError, match=r"2019-08-26 does not lie on ME: data by the month"):
        infer_frequency(pd.DatetimeIndex(times))


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


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize(
    ("frequency", "date"), [("MS", "2024-03-15"), ("ME", "2024-03-30"), ("QS-FEB-15", "2024-02-14")]
)
def test_few_rows_that_are_not_where_the_frequency_has_them(rows, frequency, date):
    times = pd.DatetimeIndex([pd.Timestamp(date) + pd.DateOffset(months=3 * row) for row in range(rows)])
    with pytest.raises(DataError, match=f"{date} does not lie on {frequency}: data by the month.* need the same day"):
        check_steps(times, frequency)
