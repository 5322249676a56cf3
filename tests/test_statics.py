"""Static covariates in numbers: against scikit-learn, unknown words, and what a run remembers."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import LabelEncoder, StandardScaler

from tsformer.data.panel import Panel, Schema
from tsformer.data.statics import Statics
from tsformer.errors import DataError


def panel(**columns):
    count = len(next(iter(columns.values())))
    return Panel(
        values=np.zeros((count, 1)),
        offsets=np.arange(count + 1, dtype=np.int64),
        times=pd.DatetimeIndex(["2024-01-01"] * count),
        ids=tuple(f"s{i}" for i in range(count)),
        schema=Schema(("y",), "ds", "shop", frequency="D", static_covariates=tuple(columns)),
        static=pd.DataFrame(columns),
    )


SHOPS = {"size": [3.0, 1.0, 5.0, 7.5], "region": ["south", "north", "south", "west"], "rank": [1, 4, 2, 3]}


def test_numbers_are_standardised_and_words_coded():
    made = panel(**SHOPS)
    statics = Statics.fit(made)
    wanted = StandardScaler().fit_transform(np.column_stack([SHOPS["size"], SHOPS["rank"]]))
    np.testing.assert_allclose(statics.numbers(made), wanted, rtol=1e-6)
    assert statics.numbers(made).dtype == np.float32
    assert statics.codes(made)[:, 0].tolist() == (LabelEncoder().fit_transform(SHOPS["region"]) + 1).tolist()
    assert statics.codes(made).dtype == np.int64
    assert statics.cardinalities == (4,)
    assert statics.notes(made) == ()


def test_new_series_are_seen_with_the_eyes_of_the_fitted_ones():
    statics = Statics.fit(panel(**SHOPS))
    new = panel(size=["3.0", "9"], region=["east", None], rank=[np.nan, 2.5])
    size = np.array(SHOPS["size"])
    np.testing.assert_allclose(statics.numbers(new)[:, 0], (np.array([3.0, 9.0]) - size.mean()) / size.std(), rtol=1e-6)
    assert statics.numbers(new)[0, 1] == 0.0
    assert statics.codes(new).tolist() == [[0], [0]]
    (note,) = statics.notes(new)
    assert "'region'" in note
    assert "east" in note


@pytest.mark.parametrize(("value", "count"), [(4.0, 2), (0.1, 7), (-1e9 / 3, 1000), (0.0, 3)])
def test_a_constant_is_scaled_by_one(value, count):
    """The standard deviation of seven times 0.1 is 1.4e-17 to numpy."""
    same = panel(size=[value] * count)
    statics = Statics.fit(same)
    assert statics.numbers(same)[:, 0] == pytest.approx(np.zeros(count), abs=1e-6)
    assert statics.numbers(panel(size=[value + 1])) == pytest.approx(1.0, rel=1e-6)


def test_a_small_spread_on_a_high_level_is_no_constant():
    size = 1e6 + np.array([1e-3, 2e-3, 3e-3])
    made = panel(size=size)
    np.testing.assert_allclose(Statics.fit(made).numbers(made)[:, 0], [-np.sqrt(1.5), 0, np.sqrt(1.5)], rtol=1e-4)


@pytest.mark.parametrize("kind", [object, "category", "string"])
def test_words_of_any_type_are_coded_alike(kind):
    words = pd.Series(["b", None, "a", "b"], dtype=kind)
    statics = Statics.fit(panel(region=words))
    assert statics.words == {"region": ("a", "b")}
    assert statics.codes(panel(region=words))[:, 0].tolist() == [2, 0, 1, 2]
    assert statics.codes(panel(region=pd.Series([None, "c", "a"], dtype=kind)))[:, 0].tolist() == [0, 0, 1]
    assert statics.notes(panel(region=pd.Series([None, "c", "a"], dtype=kind))) == (
        "static covariate 'region': unknown to the model are c",
    )


def test_codes_that_are_numbers_in_a_column_of_words():
    statics = Statics.fit(panel(region=pd.Series([1, "x", 2], dtype=object)))
    assert statics.codes(panel(region=[2, 1, 3]))[:, 0].tolist() == [2, 1, 0]


def test_words_are_looked_up_once_for_each_column(monkeypatch):
    made = panel(**{f"c{i}": ["x", "y"] for i in range(5)})
    statics = Statics.fit(made)
    monkeypatch.setattr(Statics, "codes", None)
    assert statics.notes(made) == ()


def test_it_comes_back_from_json():
    statics = Statics.fit(panel(**SHOPS))
    again = Statics.from_json(json.loads(json.dumps(statics.to_json())))
    assert again == statics
    assert statics
    assert not Statics()


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"scales": {}, "words": {"a": ["x", "x"]}},
        {"scales": {}, "words": {"a": [1]}},
        {"scales": {"a": [0.0, 0.0]}, "words": {}},
        {"scales": {"a": [1.0]}, "words": {}},
        {"scales": {"a": [0.0, 1.0]}, "words": {"a": ["x"]}},
        {"scales": [], "words": {}},
    ],
)
def test_what_is_none_is_refused(document):
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError)):
        Statics.from_json(document)


def test_what_cannot_be_taken_names_column_and_series():
    statics = Statics.fit(panel(**SHOPS))
    with pytest.raises(DataError, match="'size' of series 's1' is 'big'"):
        statics.numbers(panel(size=["3", "big"], region=["north"] * 2, rank=[1, 1]))
    with pytest.raises(DataError, match="needs the static covariate 'region'"):
        statics.codes(panel(size=[1.0]))
    with pytest.raises(DataError, match="'size' has no value in any series"):
        Statics.fit(panel(size=[np.nan, np.nan]))
    with pytest.raises(DataError, match="'size' of series 's0' is infinite"):
        Statics.fit(panel(size=[np.inf, 1.0]))
    bare = panel(size=[1.0])
    assert not Statics.fit(replace(bare, static=None, schema=replace(bare.schema, static_covariates=())))
