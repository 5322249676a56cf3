"""Local times and their zones: localised in the order of the file, and zones known by their changes of the clock."""

from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

from tsformer.data.frames import panel_from_frame
from tsformer.data.table_options import TableOptions
from tsformer.errors import DataError, UsageError
from tsformer.tables.times import read_time
from tsformer.tables.zones import check_zone, clock_changes, localised

AUTUMN = pd.date_range("2024-10-26 22:00", periods=9, freq="h", tz="Europe/Berlin")


def alone(times):
    return np.zeros(len(times), dtype=np.int64)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo"])
@pytest.mark.parametrize("step", ["h", "15min"])
@pytest.mark.parametrize("way", [1, -1])
def test_hours_that_come_twice_are_told_apart_by_their_order(zone, step, way):
    step = "30min" if zone == "Australia/Lord_Howe" else step  # its clocks change by half an hour
    times = pd.date_range("2017-01-01", "2018-01-01", freq=step, tz="UTC").tz_convert(zone)[::way]
    found = localised(times.tz_localize(None), zone, alone(times))
    assert (found.times == times).all()
    assert str(found.times.tz) == zone
    assert found.once == 0


def test_each_series_has_its_own_order():
    wall = AUTUMN.tz_localize(None)
    by_series = localised(wall.append(wall[::-1]), "Europe/Berlin", np.repeat([0, 1], 9))
    assert (by_series.times == AUTUMN.append(AUTUMN[::-1])).all()
    by_time = localised(wall.repeat(3), "Europe/Berlin", np.tile([7, 3, 5], 9))
    assert (by_time.times == AUTUMN.repeat(3)).all()


def test_an_hour_that_comes_twice_and_stands_once():
    wall = AUTUMN.tz_localize(None).unique()
    found = localised(wall, "Europe/Berlin", alone(wall))
    assert found.once == 1
    assert found.times[4].utcoffset() == ZoneInfo("Europe/Berlin").utcoffset(AUTUMN[4].to_pydatetime())
    frame = pd.DataFrame({"time": wall.strftime("%Y-%m-%d %H:%M")})
    column = read_time(frame, ("time",), TableOptions(tz="Europe/Berlin"), "table")
    assert "1 time(s) that come twice when clocks in Europe/Berlin go back stand once" in str(column.notes[0])


def test_an_hour_that_the_clock_skips():
    frame = pd.DataFrame({"time": ["2024-03-31 01:00", "2024-03-31 02:00", "2024-03-31 03:00"]})
    with pytest.raises(
        DataError, match=r"1 time\(s\) that the clocks of Europe/Berlin skip.*2024-03-31 02:00.* in row 1"
    ):
        read_time(frame, ("time",), TableOptions(tz="Europe/Berlin"), "table")


def test_ids_keep_series_apart():
    wall = AUTUMN.tz_localize(None).strftime("%d.%m.%Y %H:%M")
    frame = pd.DataFrame({"a": ["x"] * 9 + ["y"] * 9, "b": 1, "time": [*wall, *wall]})
    column = read_time(frame, ("time",), TableOptions(tz="Europe/Berlin", id=("a", "b")), "table")
    assert (column.times == AUTUMN.append(AUTUMN)).all()


@pytest.mark.parametrize("order", ["one after another", "by time"])
@pytest.mark.parametrize("days", [2, 40])
def test_series_that_nobody_names_keep_the_hour_that_comes_twice(order, days):
    moments = pd.date_range("2024-10-26 00:00", periods=24 * days, freq="h", tz="Europe/Berlin")
    wall = [*moments.tz_localize(None).strftime("%Y-%m-%d %H:%M")]
    frame = pd.DataFrame({"time": wall * 2, "site": np.repeat(["A", "B"], len(wall)), "y": np.arange(2.0 * len(wall))})
    if order == "by time":
        frame = frame.sort_values(["time", "site"], kind="stable", ignore_index=True)
    panel = panel_from_frame(frame, TableOptions(tz="Europe/Berlin"))
    assert panel.ids == ("A", "B")
    assert (panel.times == moments.append(moments)).all()
    assert panel.values[:, 0].tolist() == list(range(2 * len(wall)))


@pytest.mark.parametrize(
    ("zone", "found"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        ("Europe/Paris", "Europe/Berlin"),
        ("Europe/London", "Europe/London"),
        ("America/Los_Angeles", "America/New_York"),
        ("Australia/Sydney", "Australia/Sydney"),
        ("Asia/Beirut", "Asia/Beirut"),
    ],
)
@pytest.mark.parametrize("step", ["h", "15min"])
def test_a_zone_is_known_by_its_changes(zone, found, step):
    times = pd.date_range("2021-01-01", "2023-01-01", freq=step, tz="UTC").tz_convert(zone).tz_localize(None)
    assert clock_changes(times) == found
    assert clock_changes(times[::-1]) == found
    if zone != "Asia/Beirut":  # others, too, skip that hour
        assert clock_changes(times.unique()) == found, "hours that come twice may have been thrown away"
    assert clock_changes(times.delete(range(500, 530))) == found, "a gap of another kind"


def test_what_no_clock_explains():
    hours = pd.date_range("2021-01-01", "2022-01-01", freq="h")
    assert clock_changes(hours) is None
    assert clock_changes(hours.append(hours[77:78])) is None, "a row twice in January"
    assert clock_changes(hours.delete([100, 2000, 4000])) is None
    assert clock_changes(hours.append(hours[[2000, 2000]])) is None, "three times"
    assert clock_changes(pd.date_range("2021-01-01", periods=400)) is None
    assert clock_changes(hours.tz_localize("UTC")) is None
    assert clock_changes(hours[:1]) is None


def test_names_of_zones():
    for zone in ("UTC", "Europe/Berlin", "UTC+05:30", "Etc/GMT+5"):
        check_zone(zone)
    for wrong in ("Berlin/Europe", "", "+99:00", "Mars"):
        with pytest.raises(UsageError, match="is no time zone"):
            check_zone(wrong)
