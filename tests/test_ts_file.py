"""Files of the UCR and UEA archives: what is in them, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import message

from tsformer.data.ts_file import parse_ts
from tsformer.errors import DataError

HEAD = "# a remark\n@problemName Two\n@timeStamps false\n@univariate true\n@classLabel true up down\n@data\n"
WIDE = "@univariate false\n@dimensions 2\n@equalLength false\n@CLASSLABEL True a b\n@DATA\n"


def refused(text):
    with pytest.raises(DataError) as error:
        parse_ts(text, "X.ts")
    return message(error)


def test_one_dimension():
    found = parse_ts(HEAD + "1,2.5,-3E-1:up\n\n# between\n4,5,6:down\n", "X.ts")
    assert found.labels == ("up", "down")
    assert found.series.values.ravel().tolist() == [1, 2.5, -0.3, 4, 5, 6]
    assert found.series.values.shape == (6, 1)
    assert found.series.lengths.tolist() == [3, 3]


def test_dimensions_lengths_and_missing_values():
    found = parse_ts(WIDE + "1,?:10,20:a\r\n3,4,NaN:30, 40 ,50:b\r\n", "X.ts")
    assert found.series.lengths.tolist() == [2, 3]
    assert np.array_equal(found.series.values, [[1, 10], [np.nan, 20], [3, 30], [4, 40], [np.nan, 50]], equal_nan=True)


def test_no_classes():
    found = parse_ts("%# remarks come in kinds\n@classLabel false\n@data\n1,2\n3,4\n", "X.ts")
    assert found.labels is None
    assert found.series.values.ravel().tolist() == [1, 2, 3, 4]


def test_a_class_may_be_missing():
    assert parse_ts(HEAD + "1:up\n2:?\n3:\n", "X.ts").labels == ("up", "", "")


def test_classes_need_not_be_listed_and_stay_as_written():
    assert parse_ts("@classLabel true\n@data\n1:007\n2:1.0\n", "X.ts").labels == ("007", "1.0")


@settings(deadline=None)
@given(
    st.lists(
        st.lists(st.floats(allow_infinity=False), min_size=2, max_size=2).flatmap(
            lambda row: st.integers(1, 5).map(lambda length: np.tile(row, (length, 1)))
        ),
        min_size=1,
        max_size=5,
    )
)
def test_numbers_are_exact(series):
    lines = [":".join(",".join(map(repr, map(float, channel))) for channel in one.T) for one in series]
    found = parse_ts("@classLabel false\n@data\n" + "\n".join(lines), "X.ts")
    assert np.array_equal(found.series.values, np.concatenate(series), equal_nan=True)
    assert found.series.lengths.tolist() == [len(one) for one in series]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,2\n", "line 1 stands above @data, but does not begin with @ or #: no .ts file"),
        ("@univariate true\n", "has no line @data"),
        (HEAD, "has no series below @data"),
        ("@timestamps TRUE\n@data\n(0,1)\n", "has time stamps"),
        ("@targetlabel true\n@data\n1:2.5\n", "has numbers to be predicted (@targetLabel true)"),
        (HEAD + "1,2:sideways\n", "line 7 ends with 'sideways', but @classLabel names the classes up, down"),
        (HEAD + "1,x:up\n", "line 7: 'x' is no number (? stands for one that is missing)"),
        (HEAD + "1,inf:up\n", "line 7 holds a value that is infinite"),
        (HEAD + "1:2:up\n", "line 7 has 2 dimension(s), not 1 as said above @data"),
        ("@univariate true\n@data\n1,2:3\n", "(@classLabel true if the last is a class)"),
        (HEAD + "up\n", "line 7 has 0 dimension(s), not 1"),
        (WIDE + "1,2:3,4,5:a\n", "line 6: dimension 2 has 3 value(s), the first has 2"),
        ("@classLabel false\n@data\n1:2\n1\n", "line 4 has 1 dimension(s), the first series has 2"),
        ("@equalLength true\n@seriesLength 3\n@data\n1,2,3\n1,2\n", "line 5 has 2 value(s), not 3 as @seriesLength"),
    ],
)
def test_what_is_refused(text, expected):
    assert expected in refused(text)


def test_an_underscore_is_no_part_of_a_number():
    with pytest.raises(DataError, match="'1_0' is no number"):
        parse_ts("@univariate true\n@classLabel true a b\n@data\n1_0,2:a\n", "x.ts")
