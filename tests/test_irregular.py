"""What is said of times that take no regular step: what, where, and what to do, in one line."""

import numpy as np
import pandas as pd
import pytest

from tsformer.data.clock import show
from tsformer.data.frequency import check_steps, infer_frequency, next_times
from tsformer.data.irregular import step_histogram
from tsformer.errors import DataError


def fault(times):
    """What is said of times to programs."""
    with pytest.raises(DataError) as error:
        infer_frequency(pd.DatetimeIndex(times))
    assert error.value.finding.text == str(error.value)
    return error.value.finding


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
    local = local[local < "2023-10-01"]
    with pytest.raises(
        DataError, match=r"12 step\(s\) of 15min missing in 3 gap.*: the clock changes of America/New_York"
    ):
        infer_frequency(local)
    assert fault(local).options == {"data.tz": "America/New_York"}
    hours = pd.date_range("2022-01-01", periods=2000, freq="h").delete([50, 900, 1500])
    with pytest.raises(DataError, match="add the missing rows, or --gaps fill"):
        infer_frequency(hours)
    assert fault(hours).options == {"data.gaps": "fill", "data.missing": "mask"}


@pytest.mark.parametrize(
    ("closed", "frequency"), [([6], "C-MON-TUE-WED-THU-FRI-SAT"), ([4, 5], "C-MON-TUE-WED-THU-SUN"), ([0], None)]
)
def test_weekdays_on_which_a_shop_is_closed(closed, frequency):
    days = pd.date_range("2023-01-01", "2023-06-30")
    opened = days[~days.day_of_week.isin(closed)]
    assert infer_frequency(opened) == (frequency or "C-TUE-WED-THU-FRI-SAT-SUN")
    assert infer_frequency(opened.delete(range(50, 58))) == infer_frequency(opened), "a holiday is no gap"
    later = pd.date_range("2023-07-01", periods=30)
    later = later[~later.day_of_week.isin(closed)][:12]
    assert next_times(opened[-1], infer_frequency(opened), 12).equals(later)
    with pytest.raises(DataError, match=r"step\(s\) of D missing in \d+ gap.*; no row is a "):
        infer_frequency(opened.delete(range(0, len(opened), 8)))


def test_a_trading_day_on_a_weekend_is_named():
    days = pd.bdate_range("2023-01-02", "2023-12-29").union(pd.DatetimeIndex(["2023-11-12"]))
    found = fault(days)
    assert "1 fall on a weekend, the first 2023-11-12: --freq B --duplicates last" in found.text
    assert found.options == {"data.freq": "B", "data.duplicates": "last"}


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


def test_a_step_that_most_rows_nearly_take_is_proposed():
    rng = np.random.default_rng(0)
    full = pd.date_range("2024-01-01", periods=500, freq="5min")
    late = full + pd.to_timedelta(rng.integers(0, 40, 500) * (rng.random(500) < 0.3), unit="s")
    proposed = {"data.freq": "5min", "data.duplicates": "mean", "data.gaps": "fill", "data.missing": "mask"}
    assert fault(late.delete([7, 8, 200])).options == proposed
    every = full + pd.to_timedelta(rng.integers(0, 100, 500), unit="s")
    assert fault(every).options == proposed, "no two steps are the same, but all are near five minutes"
    anywhere = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.sort(rng.choice(10**7, 500, replace=False)), unit="s")
    assert fault(anywhere).options == {}
    months = pd.date_range("2019-01-01", periods=24, freq="MS").to_series()
    months.iloc[7] += pd.Timedelta(days=3)
    assert fault(months).options["data.freq"] == "MS"


@pytest.mark.parametrize(
    ("stretches", "options"),
    [
        ([(0, 300), (310, 700)], {"data.gaps": "fill", "data.missing": "mask"}),
        ([(0, 300), (2000, 2500)], {"data.gaps": "split"}),
        ([(k * 10, k * 10 + 3) for k in range(100)], {"data.gaps": "fill", "data.missing": "mask"}),
        ([(k * 1000, k * 1000 + 3) for k in range(100)], {"data.gaps": "split"}),
    ],
)
def test_gaps_are_filled_where_that_is_sensible(stretches, options):
    minutes = np.concatenate([np.arange(*stretch) for stretch in stretches])
    assert fault(pd.Timestamp("2024-01-01") + pd.to_timedelta(minutes, unit="min")).options == options


def test_steps_are_counted_in_words():
    times = pd.to_datetime(["2024-01-01 00:00", "2024-01-01 01:00", "2024-01-01 02:00", "2024-01-02 03:30"])
    assert step_histogram(times) == [("1 h", 2), ("1 d 1 h 30 min", 1)]
    assert step_histogram(pd.Index([0.0, 0.5, 1.5, 2.0])) == [("0.5", 2), ("1", 1)]


def test_days_that_begin_at_midnight_in_another_zone():
    days = pd.date_range("2024-01-01", periods=300, tz="Europe/Paris").tz_convert("UTC")
    finding = fault(days)
    assert finding.options == {"data.tz": "Europe/Berlin"}
    assert "--tz Europe/Berlin reads them as days" in finding.text
    assert infer_frequency(days.tz_convert("Europe/Berlin")) == "D"
