"""Features of the time: against plain Python, in the zone of the table, and what is refused."""

import math
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

from tsformer.data.calendar import CALENDAR, calendar_features, calendar_width, constant_features
from tsformer.data.panel import Schema
from tsformer.errors import UsageError

PLACES = {
    "minute": (lambda t: t.minute, 60),
    "hour": (lambda t: t.hour + t.minute / 60, 24),
    "dayofweek": (lambda t: t.weekday(), 7),
    "dayofmonth": (lambda t: t.day - 1, 31),
    "dayofyear": (lambda t: t.timetuple().tm_yday - 1, 366),
    "week": (lambda t: t.isocalendar()[1] - 1, 53),
    "month": (lambda t: t.month - 1, 12),
    "quarter": (lambda t: (t.month - 1) // 3, 4),
}


def schema(*calendar, holidays=None, zone=None):
    return Schema(("y",), "ds", calendar=calendar, holidays=holidays, zone=zone)


@pytest.mark.parametrize("name", PLACES)
def test_what_comes_round_as_sine_and_cosine(name):
    rng = np.random.default_rng(0)
    moments = [datetime(2019, 12, 28) + timedelta(minutes=int(m)) for m in np.sort(rng.integers(0, 2_000_000, 200))]
    found = calendar_features(pd.DatetimeIndex(moments), schema(name))
    place, length = PLACES[name]
    angles = [2 * math.pi * place(moment) / length for moment in moments]
    assert found.dtype == np.float32
    assert found.shape == (200, calendar_width(schema(name))) == (200, 2)
    np.testing.assert_allclose(found, [[math.sin(a), math.cos(a)] for a in angles], atol=1e-6)


def test_the_clock_on_the_wall_counts():
    zone = ZoneInfo("America/New_York")
    times = pd.date_range("2024-03-09", periods=72, freq="h", tz="America/New_York")  # over the change of clocks
    hours = [moment.astimezone(zone).hour for moment in times.tz_convert("UTC").to_pydatetime()]
    found = calendar_features(times, schema("hour", zone="America/New_York"))
    np.testing.assert_allclose(found[:, 0], np.sin(2 * np.pi * np.array(hours) / 24), atol=1e-6)
    assert hours[24:29] == [0, 1, 3, 4, 5]


def test_weekends_and_holidays_are_yes_or_no():
    days = pd.date_range("2023-12-22", "2024-01-03")
    found = calendar_features(days, schema("weekend", "holiday", holidays="DE"))
    closed = {date(2023, 12, 25), date(2023, 12, 26), date(2024, 1, 1)}
    assert found[:, 0].tolist() == [float(day.weekday() >= 5) for day in days]
    assert found[:, 1].tolist() == [float(day.date() in closed) for day in days]


def test_every_hour_of_a_holiday_is_one():
    hours = pd.date_range("2024-12-25", periods=48, freq="h", tz="Europe/Berlin")
    assert calendar_features(hours, schema("holiday", holidays="NYSE"))[:, 0].tolist() == [1.0] * 24 + [0.0] * 24


def test_several_stand_side_by_side_in_order():
    days = pd.date_range("2024-01-01", periods=400)
    both = calendar_features(days, schema("month", "weekend", "dayofweek"))
    parts = [calendar_features(days, schema(name)) for name in ("month", "weekend", "dayofweek")]
    assert np.array_equal(both, np.hstack(parts))
    assert calendar_width(schema("month", "weekend", "dayofweek")) == 5
    assert (np.abs(both) <= 1).all()


def test_none_have_no_width():
    assert calendar_features(pd.RangeIndex(5), schema()).shape == (5, 0)
    assert calendar_width(schema()) == 0


def test_what_says_nothing_is_found():
    days = pd.date_range("2024-01-01", periods=100, freq="B")
    assert constant_features(days, schema("hour", "dayofweek", "weekend", "month")) == ("hour", "weekend")
    assert constant_features(pd.RangeIndex(9), schema()) == ()


@pytest.mark.parametrize(
    ("calendar", "said"),
    [
        (("dayofwek",), "no feature 'dayofwek'; did you mean 'dayofweek'?"),
        (("moon",), "there are minute, hour"),
        (("holiday",), "--holidays DE or NYSE"),
    ],
)
def test_what_there_is_not(calendar, said):
    with pytest.raises(UsageError, match=said):
        calendar_width(schema(*calendar))
    assert "holiday" in CALENDAR


def test_numbers_have_no_calendar():
    with pytest.raises(UsageError, match="the times are numbers"):
        calendar_features(pd.Index([1.0, 2.0]), schema("month"))


def test_holidays_of_nowhere():
    with pytest.raises(UsageError, match="no country"):
        calendar_features(pd.date_range("2024-01-01", periods=3), schema("holiday", holidays="Atlantis"))
