"""Panels made by hand, whose parts do not fit together."""

import numpy as np
import pandas as pd
import pytest
from tables import message

from tsformer.data.panel import Panel, Schema


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"offsets": np.array([0])}, "no series"),
        ({"offsets": np.array([0, 2, 2, 4])}, "a series without rows"),
        ({"offsets": np.array([0, 3, 2, 4])}, "ascend from 0"),
        ({"offsets": np.array([1, 4])}, "ascend from 0"),
        ({"offsets": np.array([0.0, 4.0])}, "must be int64"),
        ({"offsets": np.array([0, 2, 4], dtype=np.int32)}, "must be int64"),
        ({"offsets": np.array([0, 3])}, "does not fit together"),
        ({"values": np.zeros(4)}, r"must be \[rows, columns\]"),
        ({"ids": ("a", "a")}, "the id 'a' twice"),
        ({"ids": ("a",)}, r"1 ids for 2 series"),
        ({"schema": Schema((), past_covariates=("y",))}, "no target"),
        ({"schema": Schema(("y",), past_covariates=("y",)), "values": np.zeros((4, 2))}, "the column 'y' twice"),
        ({"schema": Schema(("y",), time="y")}, "the column 'y' twice"),
    ],
)
def test_panels_that_do_not_fit_together(changed, expected):
    parts = {
        "values": np.zeros((4, 1)),
        "offsets": np.array([0, 2, 4]),
        "times": pd.Index([0, 1, 0, 1]),
        "ids": ("a", "b"),
        "schema": Schema(("y",)),
    }
    assert Panel(**parts).lengths.tolist() == [2, 2]
    with pytest.raises(ValueError, match=expected) as error:
        Panel(**{**parts, **changed})
    message(error)
