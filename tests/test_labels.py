"""Labels in the type of their owner, and back from a run."""

import numpy as np
import pandas as pd
import pytest

from tsformer.data.labels import classes_from, kind_of, labels_from
from tsformer.errors import DataError


@pytest.mark.parametrize(
    ("y", "dtype"),
    [
        ([True, False], bool),
        ([2, 10], np.int64),
        (np.array([2, 10], dtype=np.int8), np.int8),
        (pd.array([2, 10], dtype="Int64"), np.int64),
        (pd.array([True, False], dtype="boolean"), bool),
        ([2.0, -1.0], np.float64),
        (["b", "a"], object),
        (np.array(["b", "a"]), "<U1"),
        (pd.Series(["b", "a"]), object),
    ],
)
def test_types_survive_a_run(y, dtype):
    labels = labels_from(y, 2)
    assert labels.dtype == dtype
    classes = np.unique(labels)
    names = sorted(map(str, labels))  # the order of a run
    back = classes_from(names, kind_of(classes))
    assert back.tolist() == classes.tolist()
    assert [type(value) for value in back.tolist()] == [type(value) for value in classes.tolist()]


def test_a_column_of_a_table():
    assert labels_from(pd.DataFrame({"kind": ["x", "y"]}), 2).tolist() == ["x", "y"]
    with pytest.raises(DataError, match="X has 3 examples and y 2 labels"):
        labels_from(["x", "y"], 3)


@pytest.mark.parametrize(("names", "kind"), [(["a"], "int"), (["1"], "complex")])
def test_damaged_classes(names, kind):
    with pytest.raises((KeyError, ValueError)):
        classes_from(names, kind)


@pytest.mark.parametrize("y", [[2**63, 1, 2], np.array([2**64 - 1, 1, 2], dtype=np.uint64), [-(2**64), 1, 2]])
def test_whole_numbers_beyond_64_bits(y):
    with pytest.raises(DataError, match="beyond 64 bits"):
        labels_from(y, 3)


def test_a_masked_label_is_missing():
    for y in (np.ma.array([0, 1, 0], mask=[0, 1, 0]), np.ma.array(["a", "b", "a"], mask=[0, 1, 0])):
        with pytest.raises(DataError, match=r"1 missing label\(s\), the first is y\[1\]"):
            labels_from(y, 3)
    assert labels_from(np.ma.array([0, 1, 0]), 3).dtype == np.int64


def test_text_that_no_file_can_hold():
    with pytest.raises(DataError, match=r"y\[1\] is .*ud800.*half a character"):
        labels_from(["a", "\ud800"], 2)
