"""Rows put together as series: by id, in order of time, at one frequency."""

import numpy as np
import pandas as pd
import pytest
from tables import DAYS, framed, panel

from tsformer.data.frames import (
    forecast_frame,
    panel_with_schema,
)
from tsformer.data.panel import Schema
from tsformer.errors import DataError
from tsformer.sources import read


def long(series, name="shop"):
    return f"{name},date,y\n" + "".join(f"{key},{day},{value}\n" for key, day, value in series)


def test_series_in_order_of_appearance():
    rows = [("b", day, i) for i, day in enumerate(DAYS)] + [("a", day, 10 + i) for i, day in enumerate(DAYS[2:6])]
    mixed = panel(long([rows[i] for i in (0, 7, 1, 2, 8, 9, 3, 4, 5, 10, 6)]), id="shop")
    assert mixed.ids == ("b", "a")
    assert mixed.offsets.tolist() == [0, 7, 11]
    assert mixed.values.ravel().tolist() == [0, 1, 2, 3, 4, 5, 6, 10, 11, 12, 13]
    assert mixed.notes == ()
    assert mixed.schema == Schema(("y",), "date", "shop", frequency="D", time_format="%Y-%m-%d")


def test_ids_are_text_as_written():
    rows = [(key, day, 1) for key in ("007", "NA", "7") for day in DAYS[:3]]
    made = panel(long(rows), id="shop")
    assert made.ids == ("007", "NA", "7")
    out = forecast_frame(made.schema, made.ids, [made.times[:2]] * 3, np.arange(6.0).reshape(3, 2, 1))
    assert list(out["shop"]) == ["007", "007", "NA", "NA", "7", "7"]
    assert list(out.columns) == ["shop", "date", "y"]
    assert list(out["y"]) == [0, 1, 2, 3, 4, 5]
    with pytest.raises(DataError, match=r"'shop' names no series in 1 row\(s\), the first in line 3"):
        panel(long([("a", DAYS[0], 1), ("", DAYS[1], 1), ("a", DAYS[2], 1)]), id="shop")


def test_a_country_across_the_top_that_is_called_na():
    wide = "country," + ",".join(DAYS) + "\n" + "".join(f"{name},1,2,3,4,5,6,7\n" for name in ("NA", "DE"))
    with pytest.raises(DataError, match=r"names no series in 7 row\(s\).*NA among them") as error:
        panel(wide)
    assert error.value.finding.options == {"data.id": ["country"]}
    assert panel(wide, id="country").ids == ("NA", "DE")


def test_empty_names_are_for_the_user_to_complete():
    rows = [(key, day, 1) for key in ("a", "") for day in DAYS]
    with pytest.raises(DataError, match="complete or remove them") as error:
        panel(long(rows), id="shop")
    assert error.value.finding.options == {}


def test_an_id_that_does_not_tell_series_apart():
    pairs = "x,z,date,y\n" + "".join(f"{x},{z},{day},1\n" for x in "ab" for z in "cd" for day in DAYS)
    with pytest.raises(DataError, match=r"in series 'a'.*: do 'x' and 'z' tell the series apart\? --id x,z") as error:
        panel(pairs, id="x")
    assert error.value.finding.options == {"data.id": ["x", "z"]}


def test_one_frequency_for_all():
    rows = [("a", day, 1) for day in DAYS] + [("b", f"2024-0{i}-01", 1) for i in range(1, 5)]
    with pytest.raises(DataError, match="series 'b': frequency is MS, series 'a' has D"):
        panel(long(rows), id="shop")
    rows = [("a", day, 1) for day in DAYS] + [("b", day, 1) for day in (*DAYS[:3], DAYS[4])]
    with pytest.raises(DataError, match=r"series 'b': 1 step\(s\) of D missing"):
        panel(long(rows), id="shop")


def test_weekends_that_are_taken_as_closed_are_said():
    days = [str(day.date()) for day in pd.bdate_range("2024-01-01", periods=20)]
    (note,) = panel(long([("a", day, 1) for day in days]), id="shop").notes[:1]
    assert (note.kind, note.level, note.text) == ("closed", "note", "weekends are taken as closed: frequency B")
    (doubt,) = panel(long([("a", day, 1) for day in days[:10]]), id="shop").notes[:1]
    assert (doubt.kind, doubt.level, doubt.count) == ("closed", "doubt", 10)
    chosen = panel(long([("a", day, 1) for day in days[:10]]), id="shop", freq="B")
    assert all(note.kind != "closed" for note in chosen.notes)


def test_weekdays_hold_for_a_series_too_short_to_show_them():
    days = [str(day.date()) for day in pd.bdate_range("2024-01-01", periods=20)]
    made = panel(long([("short", day, 1) for day in days[:3]] + [("long", day, 1) for day in days]), id="shop")
    assert made.schema.frequency == "B"


def test_a_series_whose_times_repeat_is_called_by_its_id():
    frame = pd.DataFrame({"shop": [1, 1, 2, 2], "ds": pd.to_datetime(["2024-01-01"] * 4), "y": 1.0})
    with pytest.raises(DataError, match=r"repeats 2 time\(s\) in series '1', the first 2024-01-01 in row 0 and row 1"):
        framed(frame, id="shop", time="ds")


def test_ids_that_are_written_alike_are_one_series():
    days = pd.date_range("2024-01-01", periods=6)
    frame = pd.DataFrame({"shop": [1, "1", 1, "2", 2, "2"], "ds": [*days[:3], *days[:3]], "y": range(6)})
    made = framed(frame, id="shop", time="ds")
    assert (made.ids, made.offsets.tolist()) == (("1", "2"), [0, 3, 6])


@pytest.mark.parametrize("nothing", [None, " ", np.nan, pd.NA])
def test_rows_of_no_series(nothing):
    frame = pd.DataFrame({"shop": ["a", "a", nothing, "a"], "ds": pd.date_range("2024-01-01", periods=4), "y": 1.0})
    with pytest.raises(DataError, match=r"'shop' names no series in 1 row\(s\), the first in row 2"):
        framed(frame, id="shop", time="ds")


def test_a_series_in_each_row_is_no_long_table():
    frame = pd.DataFrame({"name": ["a", "b", "c"], "1": [1.0, 2.0, 3.0], "2": [4.0, 5.0, np.nan]})
    with pytest.raises(DataError, match=r"'name' names 3 series of one row each.*melt\('name'\).dropna\(\)"):
        framed(frame, id="name")
    turned = frame.melt("name").dropna()
    assert framed(turned, id="name").lengths.tolist() == [2, 2, 1]


BERLIN = pd.date_range("2024-03-20", "2024-04-10", tz="Europe/Berlin")
ODD = {  # all of one length: what has its size may take the place in memory of what was looked at before
    "gap": (
        pd.date_range("2024-03-20", periods=23, tz="Europe/Berlin").delete(5),
        r"series 'z': 1 step\(s\) of D missing in 1 gap",
    ),
    "other frequency": (
        pd.date_range("2024-03-20", periods=22, freq="2D", tz="Europe/Berlin"),
        r"series 'z': frequency is 2D, .* D: one frequency is needed",
    ),
    "hours": (pd.date_range("2024-03-20", periods=22, freq="h", tz="Europe/Berlin"), "series 'z': frequency is h"),
}


def in_berlin(odd):
    """Twelve series alike, daily across the change to summer time, and a last one with times of its own."""
    parts = dict.fromkeys("abcdefghijkl", BERLIN) | {"z": odd}
    return pd.concat([pd.DataFrame({"shop": name, "date": times, "y": 1.0}) for name, times in parts.items()])


@pytest.mark.parametrize(("odd", "said"), ODD.values(), ids=ODD)
def test_every_series_with_a_zone_is_looked_at(odd, said):
    schema = framed(in_berlin(BERLIN), id="shop").schema
    assert (schema.frequency, schema.zone) == ("D", "Europe/Berlin")
    with pytest.raises(DataError, match=said):
        framed(in_berlin(odd), id="shop")
    with pytest.raises(DataError, match=said):
        panel_with_schema(in_berlin(odd), schema)


@pytest.mark.parametrize("offset", ["Z", "+05:30"])
def test_every_series_of_a_file_with_an_offset_is_looked_at(offset, tmp_path):
    days = [f"2024-01-{day:02} 03:00{offset}" for day in range(1, 21)]
    kept = dict.fromkeys("abcdefghijkl", days[:-1]) | {"z": days[:7] + days[8:]}
    rows = "".join(f"{name},{day},1\n" for name, times in kept.items() for day in times)
    (tmp_path / "table.csv").write_text("shop,date,y\n" + rows)
    with pytest.raises(DataError, match=r"series 'z': 1 step\(s\) of D missing in 1 gap"):
        read("csv", path=str(tmp_path / "table.csv"), id="shop")
