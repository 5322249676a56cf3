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


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"values": np.array([[0.0], [np.nan], [1], [2]])}, "masked=True says"),
        ({"breaks": np.array([2])}, "each inside a series"),
        ({"breaks": np.array([0])}, "each inside a series"),
        ({"breaks": np.array([4])}, "each inside a series"),
        ({"breaks": np.array([3, 1])}, "must ascend"),
        ({"breaks": np.array([1.0])}, "must be int64"),
        ({"static": pd.DataFrame({"size": [1, 2]})}, "static covariates of no name"),
        ({"schema": Schema(("y",), static_covariates=("size",))}, "names of some that it has not"),
        (
            {"schema": Schema(("y",), static_covariates=("size",)), "static": pd.DataFrame({"size": [1]})},
            "not a row for each of 2 series",
        ),
        (
            {"schema": Schema(("y",), static_covariates=("y",)), "static": pd.DataFrame({"y": [1, 2]})},
            "the column 'y' twice",
        ),
    ],
)
def test_what_is_missing_and_static_fits_the_series(changed, expected):
    parts = (np.zeros((4, 1)), np.array([0, 2, 4]), pd.Index([0, 1, 0, 1]), ("a", "b"), Schema(("y",)))
    names = ("values", "offsets", "times", "ids", "schema")
    with pytest.raises(ValueError, match=expected) as error:
        Panel(**{**dict(zip(names, parts, strict=True)), **changed})
    message(error)


def test_masks_and_breaks():
    values = np.array([[0.0], [np.nan], [1], [2]])
    parts = (values, np.array([0, 2, 4]), pd.Index([0, 1, 0, 9]), ("a", "b"), Schema(("y",)))
    panel = Panel(*parts, masked=True, breaks=np.array([1, 3]))
    assert (panel.masked, panel.breaks.tolist()) == (True, [1, 3])


def test_schemas_in_json():
    schema = Schema(
        ("y",),
        time="date",
        id="region/kind",
        id_columns=("region", "kind"),
        time_columns=("date", "hour"),
        read_format="%d/%m/%Y %H",
        time_format="%Y-%m-%d %H:%M",
        static_covariates=("size",),
        calendar=("hour",),
        holidays="DE",
        decimal=",",
        frequency="h",
    )
    assert Schema.from_json(schema.to_json()) == schema
    old = {"targets": ["y"], "time": "date", "frequency": "D", "past_covariates": [], "future_covariates": []}
    assert Schema.from_json(old) == Schema(("y",), time="date", frequency="D")
    for wrong in ({"decimal": 3}, {"id_columns": [1]}, {"static_covariates": [None]}, {"holidays": 3}):
        with pytest.raises(ValueError, match="does not hold names"):
            Schema.from_json({**schema.to_json(), **wrong})
