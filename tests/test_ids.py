"""Columns that tell the series of a long table apart."""

import itertools

import numpy as np
import pandas as pd
import pytest
from tables import framed, panel, said

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


@pytest.mark.parametrize("name", ["hour", "hr", "month", "quartal", "kw", "monat", "stunde", "comment", "y_int"])
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


def blocks(**spans):
    """Series one after another, each on the days from one number to another."""
    parts = [(name, range(*span)) for name, span in spans.items()]
    rows = [(name, pd.Timestamp("2024-01-01") + pd.Timedelta(days=day)) for name, days in parts for day in days]
    return pd.DataFrame(rows, columns=["store", "day"]).assign(y=np.random.default_rng(0).normal(size=len(rows)))


APART = {
    "the later one first": {"B": (60, 120), "A": (0, 60)},
    "one of two rows": {"A": (0, 30), "B": (30, 60), "C": (60, 90), "D": (90, 120), "E": (120, 150), "new": (0, 2)},
    "hardly any overlap": {"A": (0, 32), "B": (30, 62), "C": (60, 92), "new": (5, 7)},
    "in no order": {"C": (40, 60), "A": (0, 20), "D": (60, 80), "B": (20, 40)},
}


@pytest.mark.parametrize("name", APART)
@pytest.mark.parametrize("rows", [slice(None), slice(None, None, -1)], ids=["ascending", "descending"])
def test_times_that_start_again_with_a_block_are_those_of_another_series(name, rows):
    made = panel_from_frame(blocks(**APART[name]).iloc[rows].reset_index(drop=True))
    expected = {store: last - first for store, (first, last) in APART[name].items()}
    assert dict(zip(made.ids, made.lengths, strict=True)) == expected


def test_words_in_blocks_that_times_do_not_keep_are_no_ids():
    frame = blocks(B=(60, 120), A=(0, 60))
    for words in (["x"] * 50 + ["y"] * 70, ["x"] * 60 + ["y"] * 59 + ["x"], [*"abc", *["x"] * 57, *["y"] * 60]):
        assert find_ids(frame.assign(store=words), frame["day"], ["day"], "t") == (), words


def test_a_series_that_begins_where_another_one_ends_is_doubtful():
    made = panel_from_frame(blocks(A=(0, 60), B=(60, 120)))
    (doubt,) = [note for note in made.notes if note.level == "doubt"]
    assert (made.lengths.tolist(), doubt.column, doubt.remedy) == ([120], "store", "--id store")
    assert framed(blocks(A=(0, 60), B=(60, 120)), id="store").ids == ("A", "B")
    assert not panel_from_frame(blocks(A=(0, 60)).assign(store=[*"ab"] * 30)).notes[1:]


def test_whole_numbers_are_ids_however_they_are_stored():
    frame = long(store=[1.0, 2.0, 7.0])
    assert find_ids(frame, frame["day"], ["day"], "t") == ("store",)
    frame["store"] += 0.5
    assert find_ids(frame, frame["day"], ["day"], "t") == ()


def test_numbers_beyond_all_floats_are_no_trouble():
    frame = long(store=[10**400, 2 * 10**400, 1])
    assert find_ids(frame, frame["day"], ["day"], "t") == ("store",)


def written(*rows, columns="country"):
    return f"{columns},day,y\n" + "".join(f"{row},{day:%Y-%m-%d},{i}\n" for row in rows for i, day in enumerate(DAYS))


@pytest.mark.parametrize(
    ("content", "ids"),
    [
        (written("NA", "DE"), ["NA", "DE"]),
        (written("DE", "FR", "NAN"), ["DE", "FR", "NAN"]),
        (written("Af,NA", "Af,DE", "As,DE", columns="part,country"), ["Af/NA", "Af/DE", "As/DE"]),
    ],
)
def test_names_that_are_words_for_nothing_are_read_as_written(content, ids):
    with pytest.raises(DataError, match=r"names none in 12 row.*NA among them") as error:
        panel(content)
    columns = error.value.finding.options["data.id"]
    assert columns == content.split(",day")[0].split(",")
    assert list(panel(content, id=columns).ids) == ids


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
