"""Some series of a panel: all that belongs to them, and nothing of the others."""

import numpy as np
import pandas as pd
import pytest

from tsformer.data.panel import Panel, Schema
from tsformer.data.selection import blaming, named, selected
from tsformer.errors import DataError


@pytest.fixture
def panel():
    days = pd.date_range("2024-01-01", periods=9)
    return Panel(
        values=np.arange(9.0)[:, None],
        offsets=np.array([0, 3, 5, 9]),
        times=days,
        ids=("a", "b", "c"),
        schema=Schema(("y",), "ds", "id", frequency="D", text="said", static_covariates=("size",)),
        texts=tuple("stuvwxyz!"),
        breaks=np.array([2, 4, 7]),
        static=pd.DataFrame({"size": [1.0, 2.0, 3.0]}),
    )


def test_all_that_belongs_to_the_kept_ones(panel):
    made = selected(panel, np.array([True, False, True]))
    assert made.values[:, 0].tolist() == [0, 1, 2, 5, 6, 7, 8]
    assert made.offsets.tolist() == [0, 3, 7]
    assert made.times.day.tolist() == [1, 2, 3, 6, 7, 8, 9]
    assert made.ids == ("a", "c")
    assert "".join(made.texts) == "stuxyz!"
    assert made.values[made.breaks, 0].tolist() == [2, 7]
    assert made.static["size"].tolist() == [1.0, 3.0]


def test_all_of_them_are_the_panel_itself(panel):
    assert selected(panel, np.ones(3, dtype=bool)) is panel


def test_names_of_some(panel):
    assert named(panel, np.array([True, False, True])) == "2 of 3 series (a, c)"


@pytest.mark.parametrize("bad", ["a", "c", "bc", "abc"])
def test_an_error_says_which_series_are_not_taken(panel, bad):
    def take(some, same):
        assert some.ids == same.ids
        if set(some.ids) & set(bad):
            raise DataError("not these")
        return some.ids

    with pytest.raises(DataError, match="not these") as error:
        blaming(take, panel, panel)
    assert error.value.series.tolist() == [name in bad for name in "abc"]
    good = selected(panel, np.array([name not in bad for name in "abc"])) if bad != "abc" else None
    assert good is None or blaming(take, good, good) == good.ids


def test_few_of_many_are_found_soon():
    many = Panel(
        np.zeros((1024, 1)), np.arange(1025), pd.RangeIndex(1024), tuple(map(str, range(1024))), Schema(("y",))
    )
    tries = []

    def take(some):
        tries.append(len(some.ids))
        if "700" in some.ids:
            raise DataError("700")

    with pytest.raises(DataError) as error:
        blaming(take, many)
    assert np.flatnonzero(error.value.series).tolist() == [700]
    assert len(tries) == 2 + 2 * 10
