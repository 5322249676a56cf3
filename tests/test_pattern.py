"""Which frequency is taken where several fit, and the rules of months that pandas has no name for."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tsformer.data.frequency import check_steps, infer_frequency, next_times
from tsformer.errors import DataError

WEEKDAYS = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]
CLOCKS = st.sampled_from([0, 0, 12 * 60, 16 * 60 + 30, 23 * 60 + 59]).map(lambda minutes: pd.Timedelta(minutes=minutes))


@pytest.mark.parametrize(
    ("dates", "frequency"),
    [
        (["2024-07-01", "2024-08-01", "2024-09-01"], "MS"),  # 31 days apart, too
        (["2024-07-15", "2024-08-15", "2024-09-15"], "MS-15"),
        (["2024-07-31", "2024-08-31", "2024-09-30"], "ME"),
        (["2024-04-01", "2024-05-01", "2024-07-01"], None),  # a gap
        (["2024-04-01", "2024-05-01", "2024-06-03"], "BMS"),  # 1 June was a Saturday
        (["2024-03-01", "2024-04-01", "2024-05-01"], "MS"),  # weekdays by chance
        (["2024-05-31", "2024-06-28", "2024-07-31"], "BME"),
        (["2024-01-01", "2024-04-01", "2024-07-01"], "QS"),
        (["2024-02-15", "2024-05-15", "2024-08-15"], "QS-FEB-15"),
        (["2018-01-01", "2018-04-02", "2018-07-02"], "BQS"),  # 13 weeks apart, too
        (["2021-12-31", "2022-12-30", "2023-12-29"], "BYE"),
        (["2022-03-15", "2023-03-15", "2024-03-15"], "YS-MAR-15"),
        (["2021-03-15", "2022-03-15", "2023-03-15"], "YS-MAR-15"),  # 365 days apart, too
        (["2020-02-29", "2021-02-28", "2022-02-28"], "YE-FEB"),
        (["2023-02-28", "2023-03-28", "2023-04-28"], "MS-28"),
        (["2023-01-30", "2023-02-28", "2023-03-30"], "MS-30"),
        (["2021-01-29", "2021-02-28", "2021-03-29"], "MS-29"),
        (["2024-01-01", "2024-01-15", "2024-02-01"], "SMS"),
        (["2024-01-15", "2024-01-31", "2024-02-15"], "SME"),
        (["2021-02-01", "2021-02-15", "2021-03-01"], "SMS"),  # 14 days apart, too
        (["1985-02-04", "1985-03-04", "1985-04-01"], "4W-MON"),  # the 1st and two 4ths, too
        (["2024-01-01", "2024-01-02", "2024-02-01"], None),  # days with a gap, not two a month
        (["2024-01-19", "2024-02-16", "2024-03-15"], "4W-FRI"),  # third Fridays, too
        (["2024-02-16", "2024-03-15", "2024-04-19"], "WOM-3FRI"),
        (["2024-03-29", "2024-04-26", "2024-05-31"], "LWOM-FRI"),
        (["2024-02-23", "2024-05-24", "2024-08-23"], "13W-FRI"),  # the last and fourth Fridays, too
        (["2024-01-26", "2024-02-23", "2024-04-26"], None),  # fourth Fridays with a gap
        (["2024-01-03", "2024-01-10", "2024-01-17"], "W-WED"),
        (["2024-01-05", "2024-01-08", "2024-01-09"], "B"),
        (["2024-01-08", "2024-01-09", "2024-01-10"], "D"),
        (["2024-01-05", "2024-01-08", "2024-01-11"], "3D"),
        (["2024-01-08", "2024-01-10", "2024-01-12", "2024-01-16"], "2B"),
    ],
)
@pytest.mark.parametrize("clock", ["", " 16:30"])
def test_of_few_rows_the_likeliest_frequency_is_taken(dates, frequency, clock):
    times = pd.DatetimeIndex([date + clock for date in dates])
    if frequency is None:
        with pytest.raises(DataError, match=r"^\d+ step\(s\) of .* missing in 1 gap"):
            infer_frequency(times)
    else:
        assert infer_frequency(times) == frequency


@settings(max_examples=200)
@given(
    months=st.integers(1, 24),
    day=st.integers(2, 30),
    start=st.integers(-3000, 1000),
    periods=st.integers(13, 30),
    clock=CLOCKS,
)
def test_a_day_of_the_month_is_the_last_where_there_is_no_such_day(months, day, start, periods, clock):
    origin = pd.Timestamp("1970-01-01") + pd.DateOffset(months=start)
    expected = [origin + pd.DateOffset(months=months * row, day=day) + clock for row in range(periods)]
    times = pd.DatetimeIndex(expected).as_unit("us")
    frequency = infer_frequency(times[:-5])
    assert next_times(times[-6], frequency, 5).equals(times[-5:])
    check_steps(times, frequency)


@settings(max_examples=100)
@given(weekday=st.integers(0, 6), months=st.integers(1, 3), start=st.integers(-3000, 1000), clock=CLOCKS)
def test_the_last_of_a_weekday(weekday, months, start, clock):
    origin = pd.Timestamp("1970-01-01") + pd.DateOffset(months=start)
    firsts = [origin + pd.DateOffset(months=months * row) for row in range(30)]
    last = pd.DatetimeIndex([first + pd.offsets.LastWeekOfMonth(weekday=weekday) for first in firsts]) + clock
    assume(np.ptp(np.diff(last[:-5].asi8)))  # else they are weeks as well
    frequency = infer_frequency(last[:-5])
    assert frequency == f"{months if months > 1 else ''}LWOM-{WEEKDAYS[weekday]}"
    assert (next_times(last[-6], frequency, 5) == last[-5:]).all()


def test_months_of_trading_days_begin_and_end_where_holidays_let_them():
    days = pd.bdate_range("2015-01-02", "2024-12-31")
    closed = days[((days.month == 1) & (days.day == 1)) | (days.strftime("%m-%d") == "05-01")]
    closed = closed.union(pd.DatetimeIndex(["2018-03-30", "2024-03-29"]))  # Good Fridays
    traded = days.difference(closed).to_series()
    first = pd.DatetimeIndex(traded.groupby(traded.dt.to_period("M")).first())
    last = pd.DatetimeIndex(traded.groupby(traded.dt.to_period("M")).last())
    assert infer_frequency(first) == "BMS"
    assert infer_frequency(last) == "BME"
    assert infer_frequency(last[2::3]) == "BQE"
    assert list(next_times(last[last < "2024-03-30"], "BME", 2)) == [
        pd.Timestamp("2024-04-30"),
        pd.Timestamp("2024-05-31"),
    ]
    check_steps(first[first.month == 1], "BYS")
    with pytest.raises(DataError, match=r"2024-01-17 does not lie on BMS"):
        check_steps(pd.DatetimeIndex(["2023-12-01", "2024-01-17"]), "BMS")
