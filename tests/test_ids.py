"""Columns that tell the series of a long table apart."""

import itertools

import numpy as np
import pandas as pd
import pytest
from tables import framed, said

from tsformer.data.forecast_table import forecast_frame
from tsformer.data.frames import panel_from_frame, panel_with_schema
from tsformer.data.identity import join_id, split_id
from tsformer.errors import DataError
from tsformer.tables.ids import find_ids, smallest_key, with_id

DAYS = pd.date_range("2024-01-01", periods=12)


def long(**columns):
    """A row for each combination of those columns and each day."""
    keys = pd.DataFrame(list(itertools.product(*columns.values(), DAYS)), columns=[*columns, "day"])
    return keys.assign(y=np.random.default_rng(0).normal(size=len(keys)))


def test_one_column_is_found_and_said():
    made = panel_from_frame(long(shop=["a", "b/c", "d"]))
    assert (made.schema.id, made.ids, made.schema.id_columns) == ("shop", ("a", "b/c", "d"), ())
    assert "series are told apart by shop: 3 of them" in said(made)


def test_two_columns_are_joined_and_taken_apart_again():
    frame = long(region=["N", "S/W"], purpose=["work", "visit"])
    frame["state"] = frame["region"].str.lower()
    made = panel_from_frame(frame)
    assert made.schema.id_columns == ("region", "purpose")
    assert made.ids == ("N/work", "N/visit", "S\\/W/work", "S\\/W/visit")
    out = forecast_frame(made.schema, made.ids, [DAYS[:1]] * 4, np.zeros((4, 1, 1)))
    assert list(out.columns) == ["region", "purpose", "day", "y"]
    assert out["region"].tolist() == ["N", "N", "S/W", "S/W"]
    again = panel_with_schema(frame[frame["region"] == "S/W"].sample(frac=1, random_state=0), made.schema)
    assert set(again.ids) == set(made.ids[2:])


def test_words_before_whole_numbers_and_whole_numbers_where_there_are_no_words():
    frame = long(shop=["a", "b", "c"])
    frame["rank"] = frame["shop"].map({"a": 3, "b": 1, "c": 2})
    assert find_ids(frame, frame["day"], ["day"], "t") == ("shop",)
    assert find_ids(frame.drop(columns="shop"), frame["day"], ["day"], "t") == ("rank",)
    numbered = long(store=[1, 2, 3], item=[1, 2])
    assert find_ids(numbered, numbered["day"], ["day"], "t") == ("store", "item")


def test_one_partition_by_two_names_is_no_question():
    frame = long(country=["Chad", "Peru"])
    frame["code"] = frame["country"].map({"Chad": "TCD", "Peru": "PER"})
    assert find_ids(frame, frame["day"], ["day"], "t") == ("country",)


def test_several_partitions_are_a_question():
    frame = long(country=["Chad", "Peru", "Mali"])
    frame["station"] = [f"{c}{d.day % 2}" for c, d in zip(frame["country"], frame["day"], strict=True)]
    with pytest.raises(DataError, match="'country' gives 3, 'station' gives 6 series") as error:
        panel_from_frame(frame)
    assert error.value.finding.options == {"data.id": ["country"]}
    assert framed(frame, id="station").ids[0] == "Chad1"


def test_a_few_duplicates_do_not_hide_the_series():
    frame = long(shop=[f"shop {i}" for i in range(20)])
    assert find_ids(pd.concat([frame, frame.head(1)]), pd.Index([*frame["day"], DAYS[0]]), ["day"], "t") == ("shop",)


@pytest.mark.parametrize("name", ["hour", "hr", "month", "comment", "y_int"])
def test_what_is_no_id(name):
    frame = long(part=range(24))[["day", "part", "y"]].rename(columns={"part": "hour"})
    if name in ("comment", "y_int"):
        frame = frame.drop(columns="hour")
        frame[name] = [f"row {i}" for i in range(len(frame))] if name == "comment" else range(len(frame))
    else:
        frame = frame.rename(columns={"hour": name})
    assert find_ids(frame, frame["day"], ["day"], "t") == ()


def test_series_one_after_another_need_not_overlap_much():
    frame = pd.DataFrame({"day": [*DAYS, *(DAYS + pd.Timedelta(days=10))], "store": [1] * 12 + [2] * 12})
    assert find_ids(frame, frame["day"], ["day"], "t") == ("store",)
    mixed = frame.assign(store=[1, 2] * 12)
    assert find_ids(mixed, mixed["day"], ["day"], "t") == ()


def test_few_repeats_are_duplicates():
    frame = pd.DataFrame({"day": [*DAYS, DAYS[0]], "kind": ["a"] * 12 + ["b"]})
    assert find_ids(frame, frame["day"], ["day"], "t") == ()


def test_a_missing_part_is_an_empty_one():
    frame, name = with_id(pd.DataFrame({"a": [None, "x"], "b": ["u", "u"]}), ["a", "b"])
    assert frame[name].tolist() == ["/u", "x/u"]
    assert [split_id(cell) for cell in frame[name]] == [("", "u"), ("x", "u")]
    assert name == join_id(["a", "b"])


def test_the_smallest_key():
    frame = pd.DataFrame({"a": [1, 1, 2, 2], "b": [1, 2, 1, 2], "c": [1, 2, 3, 4]})
    assert smallest_key(frame, ["a", "b"]) == ("a", "b")
    assert smallest_key(frame, ["a", "b", "c"]) == ("c",)
    assert smallest_key(frame, ["a"]) == ()
