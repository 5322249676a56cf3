"""Long tables of labelled series: grouped, in order, and refused where rows do not go together."""

import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import message

from tsformer.data.long_series import series_from_frame, series_with_schema
from tsformer.data.sequences import SequenceSchema
from tsformer.errors import DataError, UsageError
from tsformer.tables.files import read_table

TABLE = """who,when,x,kind,y,said
b,2,4,up,,
a,3,3,down,30,three
a,1,1,down,10,one
b,1,5,up,50,"five, six"
a,2,2,down,20,
"""
KNOWN = {"id": "who", "label": "kind", "time": "when", "text": "said"}


def frame(content=TABLE, **known):
    return read_table(io.StringIO(content), text=[*{**KNOWN, **known}.values()])


def series(content=TABLE, /, **options):
    options = {**KNOWN, **options}
    return series_from_frame(frame(content), **options, source="moves.csv")


def refused(content=TABLE, /, **options):
    with pytest.raises((DataError, UsageError)) as error:
        series(content, **options)
    return message(error)


def test_rows_are_grouped_and_in_order_of_time():
    found = series()
    assert found.ids == ("b", "a")  # in order of appearance
    assert found.labels == ("up", "down")
    assert found.series.lengths.tolist() == [2, 3]
    assert np.array_equal(found.series.values, [[5, 50], [4, np.nan], [1, 10], [2, 20], [3, 30]], equal_nan=True)
    assert found.texts == ("five, six", "", "one", "", "three")
    assert found.schema == SequenceSchema(text="said", label="kind", channels=("x", "y"), id="who", time="when")
    assert found.notes == ()


def test_without_a_time_rows_keep_their_order():
    found = series(time=None, text=None, channels=["x"])
    assert found.series.values.ravel().tolist() == [4, 5, 3, 1, 2]
    assert found.texts is None


def test_times_may_be_dates():
    table = "id,day,v\n7,02/01/2024,2\n7,01/01/2024,1\n8,01/01/2024,3\n"
    read = read_table(io.StringIO(table), text=["id"])
    found = series_from_frame(read, id="id", time="day", time_format="%d/%m/%Y")
    assert (found.ids, found.series.values.ravel().tolist()) == (("7", "8"), [1, 2, 3])


def test_channels_are_all_numbers_unless_named():
    table = "who,when,x,note,empty,step\na,1,1,hm,,0\na,2,NA,hm,,1\n"
    found = series(table, label=None, text=None)
    assert found.schema.channels == ("x",)
    assert found.notes == (
        "ignored columns that are not numbers: note",
        "ignored columns without a value: empty",
        "ignored columns called like times (--time orders by one, --channels takes it): step",
    )
    assert series(table, label=None, text=None, channels=["step", "x"]).series.values.tolist()[0] == [0, 1]


def test_ids_and_labels_stay_as_written():
    found = series("who,x,kind\n007,1,1\n007,2,1\n7,3,1.0\n7,4,1.0\n", time=None, text=None)
    assert (found.ids, found.labels) == (("007", "7"), ("1", "1.0"))


def test_series_without_a_label_are_left_out():
    found = series("who,x,kind,said\na,1,,p\nb,2,up,q\na,3,,r\nb,4,up,s\n", time=None)
    assert (found.ids, found.labels, found.texts) == (("b",), ("up",), ("q", "s"))
    assert found.series.values.ravel().tolist() == [2, 4]
    assert found.notes == ("1 series without a label are left out",)


@settings(deadline=None)
@given(st.permutations(range(12)), st.randoms())
def test_the_order_of_rows_does_not_matter(order, random):
    table = pd.DataFrame(
        {"id": np.repeat(["p", "q", "r"], 4), "t": np.tile(range(4), 3), "v": random.sample(range(99), 12)}
    )
    table["label"] = table["id"].str.upper()
    found = series_from_frame(table.iloc[list(order)], id="id", label="label", time="t")
    for place, name in enumerate(found.ids):
        assert found.labels[place] == name.upper()
        assert found.series[place].ravel().tolist() == table["v"][table["id"] == name].tolist()


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        (TABLE, {"label": "x"}, "series 'b' has the label '5' in line 5 and '4' in line 2"),
        (TABLE.replace("b,1,5,up", "b,1,5,"), {}, "series 'b' has the label '' in line 5 and 'up' in line 2"),
        (TABLE.replace("a,3", "a,1"), {}, "series 'a' has the time 1 in line 3 and in line 4 (1 such row(s))"),
        (TABLE.replace("a,3", ",3"), {}, "column 'who' names no series in 1 row(s), the first in line 3"),
        (TABLE.replace("a,3", "a,"), {}, "column 'when'"),
        (
            TABLE.replace("30", "thirty"),
            {},
            "column 'y' has 1 cell(s) that are not numbers, the first 'thirty' in line 3",
        ),
        (TABLE.replace("30", "inf"), {}, "column 'y' has 1 value(s) beyond 1e+100"),
        (TABLE, {"channels": ["said"], "text": None}, "column 'said' has 3 cell(s) that are not numbers"),
        (TABLE, {"channels": ["x", "z"]}, "has no column 'z'"),
        (TABLE, {"channels": ["x", "who"]}, "column 'who' is named twice"),
        (TABLE, {"id": "x"}, "column 'x' names 5 series of one row each"),
        ("who,when,kind,said\na,1,k,s\n", {}, "has no column of numbers, it has who, when, kind, said"),
        ("who,when,kind,said,x\na,1,,s,1\n", {}, "column 'kind' has no label in any row"),
        ("who,when,kind,said,x\na,1,k,s,\n", {"channels": ["x"]}, "column 'x' has no value"),
    ],
)
def test_what_cannot_be_taken(content, options, expected):
    assert expected in refused(content, **options)


def test_new_series():
    schema = series().schema
    new = frame("y,who,when,x,said,more\n1,c,2,3,b,?\n,c,1,4,a,?\n")
    found = series_with_schema(new, schema)
    assert (found.ids, found.labels, found.texts) == (("c",), None, ("a", "b"))
    assert np.array_equal(found.series.values, [[4, np.nan], [3, 1]], equal_nan=True)
    assert series_with_schema(frame(), schema).labels == ("up", "down")
    half = series_with_schema(frame(TABLE.replace("up", "")), schema)
    assert (half.ids, half.labels) == (("b", "a"), None)
    torn = series_with_schema(frame("who,when,x,y,said,kind\na,1,1,1,,up\na,2,1,1,,down\n"), schema)
    assert torn.labels is None  # labels that disagree are no concern of a prediction
    single = series_with_schema(frame("who,when,x,y,said\na,1,1,1,\nb,1,2,2,\nc,1,3,3,\n"), schema)
    assert single.series.lengths.tolist() == [1, 1, 1]
    with pytest.raises(DataError, match="has no column 'y'"):
        series_with_schema(frame("who,when,x,said\na,1,1,\n"), schema)
