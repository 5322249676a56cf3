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
        ({"schema": Schema(("y",), text="y"), "texts": ("",) * 4}, "the column 'y' twice"),
        ({"schema": Schema(("y",), text="said"), "texts": ("",) * 3}, "3 texts for 4 rows"),
        ({"schema": Schema(("y",), text="said")}, "a name of texts that it has not"),
        ({"texts": ("",) * 4}, "texts of no name"),
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


def test_texts_are_text():
    parts = (np.zeros((2, 1)), np.array([0, 2]), pd.Index([0, 1]), ("a",), Schema(("y",), text="said"))
    assert Panel(*parts, texts=("", "good")).texts == ("", "good")
    with pytest.raises(TypeError, match="text only"):
        Panel(*parts, texts=("", float("nan")))


def test_the_schema_of_an_earlier_run_has_no_texts():
    document = Schema(("y",), time="day", frequency="D", text="said").to_json()
    assert Schema.from_json(document).text == "said"
    assert Schema.from_json({name: value for name, value in document.items() if name != "text"}).text is None
    with pytest.raises(ValueError, match="does not hold names"):
        Schema.from_json({**document, "text": 3})
