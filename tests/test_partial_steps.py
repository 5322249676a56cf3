"""Steps that hold several rows, and what is done about those that are not whole."""

import numpy as np
import pandas as pd
import pytest
from tables import framed, said

from tsformer.errors import DataError


def hourly(start, end, **more):
    times = pd.date_range(start, end, freq="h")
    return pd.DataFrame({"ds": times, "y": np.ones(len(times)), **more})


def test_a_day_that_is_not_over_is_no_day():
    made = framed(hourly("2024-01-01 06:00", "2024-01-12 00:00"), freq="D", duplicates="sum")
    assert made.times[[0, -1]].tolist() == [pd.Timestamp("2024-01-02"), pd.Timestamp("2024-01-11")]
    assert (made.values == 24.0).all()
    assert any("left out 19 row(s) of 2 step(s) at either end that are not whole" in line for line in said(made))


def test_whole_days_stay():
    made = framed(hourly("2024-01-01", "2024-01-11 23:00"), freq="D", duplicates="sum")
    assert (len(made.times), made.values.sum()) == (11, 11 * 24)
    assert not any("not whole" in line for line in said(made))


def test_each_series_has_its_own_ends():
    table = pd.concat(
        [hourly("2024-01-01", "2024-01-05 10:00", id="a"), hourly("2024-01-01", "2024-01-05 23:00", id="b")]
    )
    made = framed(table, id="id", freq="D", duplicates="mean")
    assert np.diff(made.offsets).tolist() == [4, 5]


def test_one_row_a_step_has_no_parts():
    made = framed(hourly("2024-01-01 00:00", "2024-01-02 05:00"), freq="h")
    assert len(made.times) == 30


def test_months_of_unequal_length_are_whole():
    days = pd.date_range("2024-01-01", "2024-06-30", freq="D")
    made = framed(pd.DataFrame({"ds": days, "y": 1.0}), freq="MS", duplicates="sum")
    assert made.values[:, 0].tolist() == [31.0, 29.0, 31.0, 30.0, 31.0, 30.0]


def test_rows_of_one_step_need_a_policy_all_the_same():
    with pytest.raises(DataError, match="--duplicates"):
        framed(hourly("2024-01-01", "2024-01-11 23:00"), freq="D")
