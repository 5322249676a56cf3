"""Time zones: dates and hours over changes of the clock, and zones that come back by their names.

The referee is `zoneinfo` with `datetime` arithmetic: `pd.date_range` in a zone raises where a time does not exist.
"""

import datetime as dt
import json
from zoneinfo import ZoneInfo

import dateutil.tz
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsformer.data.frames import forecast_frame, panel_from_frame, panel_with_schema
from tsformer.data.frequency import check_steps, infer_frequency, next_times
from tsformer.data.panel import Schema
from tsformer.data.wall import zone_name
from tsformer.errors import DataError

ZONES = [
    *["UTC", "Europe/Berlin", "Europe/Dublin", "America/New_York", "America/St_Johns", "America/Sao_Paulo"],
    *["America/Santiago", "America/Havana", "Africa/Cairo", "Africa/Casablanca", "Asia/Beirut", "Asia/Kathmandu"],
    *["Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia", "Pacific/Chatham", "Pacific/Kiritimati", "Etc/GMT+5"],
]
ABSOLUTE = ["s", "15min", "30min", "h", "6h", "24h"]
ON_THE_WALL = ["D", "2D", "W-SUN", "W-FRI", "B", "MS", "ME", "BMS", "BME", "QS-FEB", "YE", "SMS", "SME-10", "WOM-1SUN"]
UTC = dt.UTC


def take_place(wall, zone):
    """When a time on the wall takes place, in UTC: the first time, or at the end of the gap that it falls into."""
    offsets = [wall.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1)]
    moment = (wall - offsets[0]).replace(tzinfo=UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == wall:
        return moment
    before, after = (wall - offsets[1]).replace(tzinfo=UTC), moment
    while after - before > dt.timedelta(seconds=1):
        middle = before + (after - before) // 2
        before, after = (middle, after) if middle.astimezone(zone).utcoffset() == offsets[0] else (before, middle)
    return after.replace(microsecond=0)


def has_day(day, zone):
    noon = day.replace(hour=12, minute=0, second=0)
    return take_place(noon, zone).astimezone(zone).date() == noon.date()


@settings(max_examples=200)
@given(
    frequency=st.sampled_from(ON_THE_WALL),
    zone=st.sampled_from(ZONES).map(ZoneInfo),
    start=st.dates(dt.date(1972, 1, 1), dt.date(2035, 1, 1)) | st.dates(dt.date(2011, 11, 25), dt.date(2011, 12, 29)),
    clock=st.sampled_from([0, 1, 30, 90, 120, 150, 180, 12 * 60, 23 * 60 + 30]),
    periods=st.integers(1, 60),
)
def test_the_wall_clock_is_kept(frequency, zone, start, clock, periods):
    origin = pd.Timestamp(start) + pd.Timedelta(minutes=clock)
    local = [time.to_pydatetime() for time in pd.date_range(origin, periods=15 + periods, freq=frequency)]
    expected = pd.DatetimeIndex([take_place(time, zone) for time in local if has_day(time, zone)])
    expected = expected.as_unit("us").tz_convert(zone)
    known, later = expected[:14], expected[14:]
    found = next_times(known, frequency, len(later))
    assert found.equals(later)
    assert found.tz == zone
    assert next_times(known, infer_frequency(known), len(later)).equals(later)
    check_steps(expected, frequency)


@settings(max_examples=100)
@given(
    frequency=st.sampled_from(ABSOLUTE),
    zone=st.sampled_from(ZONES).map(ZoneInfo),
    start=st.datetimes(dt.datetime(1972, 1, 1), dt.datetime(2035, 1, 1)),
    periods=st.integers(3, 400),
)
def test_hours_and_less_are_lengths_of_time(frequency, zone, start, periods):
    first = start.replace(microsecond=0, tzinfo=UTC)
    length = {"s": 1, "15min": 900, "30min": 1800, "h": 3600, "6h": 21600, "24h": 86400}[frequency]
    expected = pd.DatetimeIndex([first + dt.timedelta(seconds=length * i) for i in range(periods + 10)])
    expected = expected.as_unit("us").tz_convert(zone)
    assert next_times(expected[0], frequency, len(expected) - 1).equals(expected[1:])
    check_steps(expected, frequency)
    # On the wall, 24 hours are a day until the clock is changed.
    assert infer_frequency(expected) in ((frequency, "D") if frequency == "24h" else (frequency,))


def test_hours_go_on_through_the_hour_that_comes_twice():
    times = next_times(pd.Timestamp("2024-10-27 01:00", tz="Europe/Berlin"), "h", 3)
    assert [t.strftime("%H:%M%z") for t in times] == ["02:00+0200", "02:00+0100", "03:00+0100"]
    assert infer_frequency(times) == "h"
    lord_howe = next_times(pd.Timestamp("2024-04-07 01:00", tz="Australia/Lord_Howe"), "30min", 4)
    assert [t.strftime("%H:%M%z") for t in lord_howe] == ["01:30+1100", "01:30+1030", "02:00+1030", "02:30+1030"]
    assert infer_frequency(lord_howe) == "30min"


def test_a_day_of_24_hours_is_not_a_day_on_the_wall():
    times = pd.date_range("2024-03-29 12:00", periods=5, freq="24h", tz="UTC").tz_convert("Europe/Berlin")
    assert infer_frequency(times) == "24h"
    assert infer_frequency(times.tz_convert("UTC")) == "D"


def test_a_clock_time_that_summer_time_skips_is_still_that_day():
    times = next_times(pd.Timestamp("2024-03-29 02:30", tz="Europe/Berlin"), "D", 4)
    assert [t.strftime("%d %H:%M") for t in times] == ["30 02:30", "31 03:00", "01 02:30", "02 02:30"]
    assert infer_frequency(times) == "D"


@pytest.mark.parametrize("moved", ["03:00", "03:30"])
def test_a_row_that_was_moved_by_summer_time_tells_no_new_time_of_day(moved):
    """pandas moves 02:30 to 03:00; `zoneinfo`, Java and calendars (RFC 5545) move it by the hour, to 03:30."""
    local = ["2024-03-28 02:30", "2024-03-29 02:30", "2024-03-30 02:30", f"2024-03-31 {moved}"]
    times = pd.DatetimeIndex(local).tz_localize("Europe/Berlin")
    assert infer_frequency(times) == "D"
    assert [t.strftime("%d %H:%M") for t in next_times(times, "D", 2)] == ["01 02:30", "02 02:30"]


@pytest.mark.parametrize(
    ("zone", "day", "clock", "moved"),
    [
        ("Australia/Lord_Howe", "2024-10-06", "02:10", "02:30"),  # half an hour of summer time
        ("America/St_Johns", "2000-04-02", "00:01", "01:01"),  # a minute past midnight
        ("America/St_Johns", "2000-04-02", "00:30", "01:01"),
        ("Pacific/Chatham", "2024-09-29", "02:50", "03:45"),
    ],
)
def test_a_skipped_time_moves_to_the_end_of_the_gap_wherever_that_is(zone, day, clock, moved):
    before = (pd.Timestamp(f"{day} {clock}") - pd.Timedelta(days=1)).tz_localize(zone)
    times = next_times(before, "D", 2)
    assert [t.strftime("%H:%M") for t in times] == [moved, clock]
    check_steps(times.insert(0, before), "D")


def test_midnight_that_does_not_exist():
    times = next_times(pd.Timestamp("2024-04-24", tz="Africa/Cairo"), "D", 3)
    assert [t.strftime("%d %H:%M%z") for t in times] == ["25 00:00+0200", "26 01:00+0300", "27 00:00+0300"]
    assert next_times(times[:2], "D", 1)[0] == times[2]


def test_samoa_had_no_30_december_2011():
    times = next_times(pd.Timestamp("2011-12-27", tz="Pacific/Apia"), "D", 5)
    assert [t.day for t in times] == [28, 29, 31, 1, 2]
    assert infer_frequency(times) == "D"
    assert [t.day for t in next_times(pd.Timestamp("2011-12-28", tz="Pacific/Apia"), "B", 2)] == [29, 2]
    with pytest.raises(DataError, match=r"1 step\(s\) of D missing in 1 gap\(s\).*between 2011-12-31 and 2012-01-02"):
        check_steps(times.delete(3), "D")


def test_days_of_another_zone_are_named():
    days = pd.date_range("2024-03-20", periods=30, tz="Europe/Berlin").tz_convert("UTC")
    with pytest.raises(DataError, match=r"at another time of day.*--tz Europe/Berlin reads them as days"):
        infer_frequency(days)


def zones():
    yield "Europe/Berlin", "Europe/Berlin"
    yield ZoneInfo("Asia/Kathmandu"), "Asia/Kathmandu"
    yield ZoneInfo("Etc/GMT+5"), "Etc/GMT+5"
    yield dt.UTC, "UTC"
    yield dt.timezone(dt.timedelta(hours=5, minutes=45)), "UTC+05:45"
    yield dt.timezone(-dt.timedelta(hours=3, minutes=30), "mine"), "UTC-03:30"
    yield dateutil.tz.tzutc(), "UTC"
    yield dateutil.tz.tzoffset("mine", 7200), "UTC+02:00"
    yield dateutil.tz.gettz("Europe/Berlin"), "Europe/Berlin"
    try:
        import pytz
    except ImportError:
        return
    yield pytz.timezone("America/New_York"), "America/New_York"
    yield pytz.FixedOffset(60), "UTC+01:00"
    yield pytz.UTC, "UTC"


@pytest.mark.parametrize(("zone", "name"), list(zones()))
@pytest.mark.parametrize("frequency", ["h", "D", "MS"])
def test_a_zone_is_kept_from_the_table_to_the_forecast_and_through_a_file(zone, name, frequency):
    local = pd.date_range("2024-02-01", periods=60, freq=frequency)
    times = (local.tz_localize("UTC").tz_convert(zone) if frequency == "h" else local.tz_localize(zone)).as_unit("us")
    frame = pd.DataFrame({"y": np.arange(60.0)}, index=times.rename("ds"))
    panel = panel_from_frame(frame)
    assert (panel.schema.zone, panel.schema.frequency) == (name, frequency)
    schema = Schema.from_json(json.loads(json.dumps(panel.schema.to_json())))
    again = panel_with_schema(frame.reset_index(), schema)
    assert not again.notes
    elsewhere = frame.tz_convert("UTC" if name != "UTC" else "Asia/Tokyo").reset_index()
    moved = panel_with_schema(elsewhere, schema)
    assert str(moved.times.tz) == name
    assert f"to {name}" in str(moved.notes[0])
    for rows in (panel, again, moved):
        later = next_times(rows.times, schema.frequency, 3)
        table = forecast_frame(schema, rows.ids, [later], np.zeros((1, 3, 1)))
        assert zone_name(pd.DatetimeIndex(table["ds"]).tz) == name
        assert (table["ds"].to_numpy() == later.to_numpy()).all()
        assert (later == next_times(times, frequency, 3)).all()


def test_a_zone_without_a_name_is_refused():
    with pytest.raises(DataError, match="no name that other machines know"):
        zone_name(dateutil.tz.tzstr("EST5EDT"))
    with pytest.raises(DataError, match="no name that other machines know"):
        zone_name(dt.timezone(dt.timedelta(minutes=53, seconds=28)))
