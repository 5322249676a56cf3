"""Some series of a panel: all that belongs to them, and nothing of the others."""

import numpy as np
import pandas as pd
import pytest

from tsformer.data.panel import Panel, Schema
from tsformer.data.selection import selected


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
