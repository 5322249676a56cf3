"""Targets, covariates and what is known of each series; rows of the future."""

import numpy as np
import pandas as pd
import pytest
from tables import framed, said

from tsformer.data.frames import future_panel, panel_from_frame, panel_with_schema
from tsformer.data.panel import Schema
from tsformer.data.table_options import TableOptions
from tsformer.errors import DataError, UsageError

DAYS = pd.date_range("2024-01-01", periods=10)
ROLES = {
    "id": "shop",
    "target": "sold",
    "future_covariates": ["promo", "price"],
    "past_covariates": "visits",
    "static_covariates": ["region", "size"],
}


def shops(count=2):
    frame = pd.DataFrame({"shop": np.repeat([f"s{i}" for i in range(count)], 10), "day": [*DAYS] * count})
    row = np.arange(len(frame))
    return frame.assign(
        sold=row * 1.0,
        visits=row * 2.0,
        promo=row % 3 == 0,
        price=row * 0.5,
        region=np.where(frame["shop"] == "s0", "north", "south"),
        size=np.repeat(np.arange(count) + 5.0, 10),
    )


def test_columns_of_values_are_targets_then_past_then_future():
    frame = shops()
    made = framed(frame, **ROLES)
    assert made.schema.columns == ("sold", "visits", "promo", "price")
    expected = frame[["sold", "visits", "promo", "price"]].astype(float)
    assert made.values.tolist() == expected.to_numpy().tolist()
    assert made.static.to_dict("list") == {"region": ["north", "south"], "size": [5.0, 6.0]}
    assert list(made.static.index) == list(made.ids)


@pytest.mark.parametrize("cells", [("TRUE", "FALSE"), ("true", "false"), ("True", "False"), (True, False)])
def test_true_and_false_are_one_and_zero(cells):
    frame = shops()
    frame["promo"] = [cells[0] if flag else cells[1] for flag in frame["promo"]]
    assert framed(frame, **ROLES).values[:, 2].tolist() == [float(i % 3 == 0) for i in range(20)]


def test_words_are_no_covariate_over_time():
    frame = shops().assign(promo=["sun", "rain"] * 10)
    with pytest.raises(DataError, match=r"'promo' holds words \(sun, .*a column of 0 and 1"):
        framed(frame, **ROLES)


def test_what_changes_is_not_static():
    frame = shops()
    frame.loc[13, "region"] = "west"
    with pytest.raises(DataError, match=r"'region' changes within series 's1', from south to west in row 13"):
        framed(frame, **ROLES)
    frame.loc[13, "region"] = None
    assert framed(frame, **ROLES).static["region"].tolist() == ["north", "south"]
    frame.loc[frame["shop"] == "s1", "size"] = np.nan
    assert np.isnan(framed(frame, **ROLES).static["size"].iloc[1])


def test_a_column_has_one_part():
    for wrong in ({"past_covariates": "sold"}, {"future_covariates": ["shop"]}, {"target": ["sold", "sold"]}):
        with pytest.raises(UsageError, match="named twice"):
            framed(shops(), **{**ROLES, **wrong})
    for name in ("past_covariates", "future_covariates", "static_covariates", "target"):
        with pytest.raises(DataError, match="no column 'prize': did you mean 'price'"):
            framed(shops(), **{**ROLES, name: ["prize"]})


def test_what_never_changes_is_no_target_unless_it_is_named():
    frame = pd.DataFrame({"day": DAYS, "y": range(10), "code": 600036, "flat": 1.5})
    made = panel_from_frame(frame)
    assert made.schema.targets == ("y",)
    assert "ignored columns with one and the same number throughout (--target takes them): code, flat" in said(made)
    assert framed(frame, target="flat").schema.targets == ("flat",)
    assert panel_from_frame(frame[["day", "flat"]]).schema.targets == ("flat",)


def test_numbers_of_a_series_are_no_targets():
    made = framed(shops(), id="shop")
    assert made.schema.targets == ("sold", "visits", "price")
    assert any("one value for each series (--static-covariates takes them): size" in line for line in said(made))
    assert any("not numbers: promo, region" in line for line in said(made))


def test_a_series_that_never_changes_is_doubtful():
    frame = shops(3)
    frame.loc[frame["shop"] == "s1", "sold"] = 7
    (doubt,) = [note for note in framed(frame, id="shop", target="sold").notes if note.level == "doubt"]
    assert (doubt.kind, doubt.count, doubt.example) == ("constant", 1, "7")
    assert "'s1'" in doubt.text


TIMES = pd.date_range("2023-12-20", periods=400, freq="6h")
BERLIN = TIMES.tz_localize("UTC").tz_convert("Europe/Berlin")
MEASURED = {
    "hours": [5, 8, 7, 3] * 100,
    "minutes": [*range(40)] * 10,
    "Q": [1, 3, 2, 4] * 100,
    "week": [*range(20)] * 20,
    "day": [7, 30, 4, 4] * 100,
    "month": [1, 7, 3, 12] * 100,
    "units": [200101, 200112, 200104, 200102] * 100,
}
AGAIN = {
    "year": BERLIN.year,
    "quarter": BERLIN.quarter,
    "month": BERLIN.month,
    "day": BERLIN.day,
    "hour": BERLIN.hour,
    "weekday": BERLIN.day_of_week + 1,
    "doy": BERLIN.day_of_year,
    "week": TIMES.isocalendar()["week"],
    "kw": TIMES.strftime("%U").astype(int),
    "weekofyear": (TIMES.day_of_year - 1) // 7 + 1,
    "units": [int(stamp) for stamp in TIMES.strftime("%Y%m")],
    "booked": [int(stamp) for stamp in TIMES[::-1].strftime("%Y%m%d")],
}


@pytest.mark.parametrize("name", MEASURED)
def test_numbers_that_are_no_part_of_the_time_are_forecast_whatever_they_are_called(name):
    frame = pd.DataFrame({"date": TIMES, "y": np.sin(np.arange(400)), name: np.array(MEASURED[name])})
    assert panel_from_frame(frame).schema.targets == ("y", name)


@pytest.mark.parametrize("name", AGAIN)
def test_parts_of_the_time_are_not_forecast(name):
    """Also those in another zone, and weeks by other rules."""
    frame = pd.DataFrame({"date": TIMES, "y": np.sin(np.arange(400)), name: np.array(AGAIN[name], dtype=int)})
    assert panel_from_frame(frame).schema.targets == ("y",)


def test_rows_of_the_future_are_left_out():
    frame = shops()
    ahead = frame[frame["day"] >= DAYS[8]].index
    frame.loc[ahead, ["sold", "visits"]] = np.nan
    made = framed(frame, **ROLES)
    assert made.lengths.tolist() == [8, 8]
    assert any("4 row(s) after the last value of the targets left out" in line for line in said(made))
    again = panel_with_schema(frame.sample(frac=1, random_state=0), made.schema)
    assert sorted(again.lengths) == [8, 8]
    frame.loc[3, "sold"] = np.nan
    with pytest.raises(DataError, match="'sold' has 1 missing"):
        framed(frame, **ROLES)


# Rows of the future


@pytest.fixture
def schema():
    return framed(shops(), **ROLES).schema


def future(rows=3):
    days = pd.date_range("2024-01-11", periods=rows)
    frame = pd.DataFrame({"shop": np.repeat(["s0", "s1"], rows), "day": [*days] * 2})
    return frame.assign(promo=[True, False, True] * 2, price=np.arange(6) * 0.25)


def test_future_rows_hold_what_is_known_ahead(schema):
    made = future_panel(future().sample(frac=1, random_state=1), schema)
    expected = future().set_index(["shop", "day"])
    assert made.masked
    assert np.isnan(made.values[:, :2]).all()
    for i, name in enumerate(made.ids):
        known = expected.loc[name].loc[made.times[made.rows(i)]]
        assert made.values[made.rows(i), 2:].tolist() == known.astype(float).to_numpy().tolist()
        assert made.times[made.rows(i)].is_monotonic_increasing


@pytest.mark.parametrize("cells", [1e9, np.nan, "anything at all"])
def test_targets_in_future_rows_are_not_looked_at(schema, cells):
    expected = future_panel(future(), schema)
    made = future_panel(future().assign(sold=cells, visits=cells, region=cells), schema)
    assert np.array_equal(made.values, expected.values, equal_nan=True)


def test_future_rows_that_cannot_be_taken(schema):
    with pytest.raises(DataError, match="no column 'promo': did you mean 'prom'"):
        future_panel(future().rename(columns={"promo": "prom"}), schema)
    twice = pd.concat([future(), future().head(2)], ignore_index=True)
    assert future_panel(twice, schema).lengths.tolist() == [3, 3]
    twice.loc[7, "price"] = 99
    with pytest.raises(DataError, match=r"differ in 1 row\(s\) of one time, the first in row 1 and row 7"):
        future_panel(twice, schema)


@pytest.mark.parametrize("empty", [0, 6])
def test_of_two_rows_of_the_future_the_real_value_counts(schema, empty):
    twice = pd.concat([future(), future().head(1)], ignore_index=True)
    twice.loc[empty, "price"] = np.nan
    assert np.array_equal(future_panel(twice, schema).values, future_panel(future(), schema).values, equal_nan=True)


def test_a_single_row_of_the_future():
    schema = Schema(("y",), "day", future_covariates=("x",), frequency="D")
    made = future_panel(pd.DataFrame({"day": ["2024-01-11"], "x": [2.0]}), schema, TableOptions())
    assert (made.values[0, 1], made.times[0]) == (2.0, pd.Timestamp("2024-01-11"))
