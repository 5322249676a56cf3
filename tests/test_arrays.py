"""Examples from Python: what is taken, and what is said of the rest."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import tsformer
from tsformer.data.arrays import examples_from
from tsformer.errors import DataError, UsageError

CUBE = np.arange(24.0).reshape(2, 3, 4)


def series(data, layout=None):
    found = examples_from(data, layout)
    return [found.series[place].tolist() for place in range(len(found))]


@pytest.mark.parametrize(
    "data", [[[1, 2], [3, 4]], np.array([[1, 2], [3, 4]], dtype=np.int8), pd.DataFrame({"a": [1, 3], "b": [2, 4]})]
)
def test_rows_are_series_of_one_channel(data):
    assert series(data) == [[[1], [2]], [[3], [4]]]
    assert examples_from(data).schema.channels == ("value",)


def test_axes():
    assert series(CUBE, "NTC") == CUBE.tolist()
    assert series(CUBE, "NCT") == CUBE.transpose(0, 2, 1).tolist()
    assert examples_from(CUBE, "NTC").schema.channels == ("channel_1", "channel_2", "channel_3", "channel_4")


def test_unequal_lengths():
    assert series([[1.0], [2.0, 3.0]]) == [[[1]], [[2], [3]]]
    assert series([CUBE[0], CUBE[1, :1]], "NTC") == [CUBE[0].tolist(), CUBE[1, :1].tolist()]
    mixed = np.empty(2, dtype=object)
    mixed[:] = [np.zeros(2), np.ones(3)]
    assert series(mixed) == [[[0], [0]], [[1], [1], [1]]]


@pytest.mark.parametrize("data", [["a", "b c"], np.array(["a", "b c"]), pd.Series(["a", "b c"], index=[7, 8])])
def test_texts(data):
    found = examples_from(data)
    assert (found.texts, found.series) == (("a", "b c"), None)
    assert all(type(text) is str for text in found.texts)


def test_what_read_gives_stays():
    sequences = tsformer.read("text", path="reviews", text=["review"])
    assert examples_from(sequences) is sequences


@pytest.mark.parametrize(
    ("data", "layout", "error", "said"),
    [
        ("a text", None, UsageError, "not str"),
        (3, None, UsageError, "not int"),
        ([], None, DataError, "X has no examples"),
        ([1.0, 2.0], None, DataError, r"X\[0\] is one number, not a series"),
        (CUBE, None, UsageError, r"3 step\(s\) of 4 channel\(s\), layout='NCT' if it is 3 channel\(s\) of 4 step"),
        (CUBE[None], "NTC", DataError, r"X\[0\] is an array \(2, 3, 4\)"),
        ([CUBE[0], CUBE[1].T], "NCT", DataError, r"X\[1\] has 4 channel\(s\) by layout='NCT', X\[0\] has 3"),
        ([[1.0], [[1.0]]], None, DataError, r"X\[1\] has 2 axes, X\[0\] has 1"),
        ([[1.0], []], None, DataError, r"X\[1\] has no steps"),
        ([[1.0, 2.0], [3.0, -np.inf]], None, DataError, r"X\[1\] holds -inf at step 1, channel 0"),
        (np.where(CUBE == 23, np.inf, 0), "NCT", DataError, r"X\[1\] holds inf at step 3, channel 2"),
        (["a", None], None, DataError, r"X\[1\] is no text but None"),
        ([["a"], ["b"]], None, DataError, r"X\[0\] holds something that is no number; texts are given one"),
    ],
)
def test_what_is_refused(data, layout, error, said):
    with pytest.raises(error, match=said) as caught:
        examples_from(data, layout)
    assert "\n" not in str(caught.value)


def test_a_mask_stands_for_missing_values():
    values = np.ma.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], mask=[[0, 1, 0], [0, 0, 0]])
    found = examples_from(values).series.values[:, 0]
    np.testing.assert_array_equal(found, [1, np.nan, 3, 4, 5, 6])
    whole = np.ma.array(np.arange(6).reshape(2, 3), mask=[[1, 0, 0], [0, 0, 0]])  # of whole numbers, too
    assert np.isnan(examples_from(whole).series.values[0, 0])


@pytest.mark.parametrize("dtype", ["complex128", "datetime64[s]", "timedelta64[s]"])
def test_what_is_no_real_number(dtype):
    with pytest.raises(DataError, match=r"X\[0\] holds .* numbers are real ones"):
        examples_from(np.ones((2, 3)).astype(dtype))


def test_a_sparse_matrix():
    with pytest.raises(UsageError, match=r"X\.toarray\(\)"):
        examples_from(csr_matrix(np.eye(3)))
