"""What is known ahead, found by series and time, and panels that go on into the future."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tsformer.data.extension import extended, known_ahead
from tsformer.data.frequency import next_times
from tsformer.data.panel import Panel, Schema
from tsformer.errors import DataError

SCHEMA = Schema(("y",), "day", "shop", past_covariates=("rain",), future_covariates=("promo", "price"), frequency="D")


def panel(rows, ids=("a", "b"), schema=SCHEMA, **more):
    """Series of `rows[i]` days, whose values count on: 0, 1, 2, ... over all cells."""
    count = sum(rows)
    days = pd.DatetimeIndex([day for n in rows for day in pd.date_range("2024-01-01", periods=n)]).as_unit("us")
    counts = pd.Index(np.concatenate([np.arange(n) for n in rows]))
    width = len(schema.columns)
    values = np.arange(count * width, dtype=np.float64).reshape(count, width)
    return Panel(
        values=more.pop("values", values),
        offsets=np.cumsum([0, *rows]).astype(np.int64),
        times=days if schema.time else counts,
        ids=ids,
        schema=schema,
        **more,
    )


def ahead(made, steps):
    return [next_times(made.times[made.rows(i)], made.schema.frequency, steps) for i in range(len(made.ids))]


def future(table, schema=SCHEMA):
    """A panel of future rows from (shop, day, promo, price)."""
    frame = pd.DataFrame(table, columns=["shop", "day", "promo", "price"])
    ids = tuple(dict.fromkeys(frame["shop"]))
    parts = [frame[frame["shop"] == name] for name in ids]
    joined = pd.concat(parts)
    values = np.full((len(joined), 4), np.nan)
    values[:, 2:] = joined[["promo", "price"]]
    return Panel(
        values=values,
        offsets=np.cumsum([0, *map(len, parts)]).astype(np.int64),
        times=pd.DatetimeIndex(joined["day"]).as_unit("us"),
        ids=ids,
        schema=schema,
        masked=True,
    )


ROWS = [
    ("b", "2024-01-03", 1.0, 11.0),
    ("a", "2024-01-05", 2.0, 12.0),
    ("a", "2024-01-04", 3.0, 13.0),
    ("b", "2024-01-04", 4.0, 14.0),
]  # series a ends on 3 January, b on the 2nd


def test_rows_are_found_by_series_and_time_in_any_order():
    made = panel([3, 2])
    known, notes = known_ahead(made, ahead(made, 2), future(ROWS), 2)
    assert known.tolist() == [[[3.0, 13.0], [2.0, 12.0]], [[1.0, 11.0], [4.0, 14.0]]]
    assert notes == ()


def test_surplus_rows_are_ignored_and_counted():
    made = panel([3, 2])
    more = [*ROWS, ("c", "2024-01-04", 9.0, 9.0), ("c", "2024-01-05", 9.0, 9.0), ("a", "2024-01-01", 9.0, 9.0)]
    known, notes = known_ahead(made, ahead(made, 2), future(more), 2)
    assert known.tolist() == known_ahead(made, ahead(made, 2), future(ROWS), 2)[0].tolist()
    assert notes == ("ignored 3 of 7 rows of the future table: no steps that are predicted",)


@pytest.mark.parametrize("gone", range(4))
def test_a_missing_row_is_named(gone):
    made = panel([3, 2])
    shop, day = ROWS[gone][:2]
    with pytest.raises(DataError) as caught:
        known_ahead(made, ahead(made, 2), future([row for row in ROWS if row != ROWS[gone]]), 2)
    text = str(caught.value)
    assert f"lacks 1 row(s), the first of series '{shop}' at {day}" in text
    assert "columns shop, day, promo, price" in text
    assert "next 2 step(s) of each series" in text


def test_a_series_without_any_row_is_named():
    made = panel([3, 2])
    with pytest.raises(DataError, match=r"lacks 2 row\(s\).*without any row: a\)"):
        known_ahead(made, ahead(made, 2), future([row for row in ROWS if row[0] == "b"]), 2)


def test_an_empty_cell_is_named():
    made = panel([3, 2])
    rows = [(*row[:3], np.nan) if row[:2] == ("a", "2024-01-05") else row for row in ROWS]
    with pytest.raises(DataError, match="no value in column 'price' of series 'a' at 2024-01-05"):
        known_ahead(made, ahead(made, 2), future(rows), 2)


def test_two_rows_for_one_step():
    made = panel([3, 2])
    with pytest.raises(DataError, match="two rows for 2024-01-04 of series 'b'"):
        known_ahead(made, ahead(made, 2), future([*ROWS, ROWS[3]]), 2)


def test_no_table_where_one_is_needed():
    made = panel([3, 3])
    with pytest.raises(DataError, match=r"needs promo, price .*--future FILE.*\(2024-01-04 to 2024-01-05\)"):
        known_ahead(made, ahead(made, 4), None, 2)


def test_no_table_where_none_is_needed():
    made = panel([3, 2], schema=replace(SCHEMA, future_covariates=()))
    known, notes = known_ahead(made, ahead(made, 2), None, 2)
    assert known.shape == (2, 2, 0)
    assert notes == ()


def test_later_steps_need_not_be_there():
    made = panel([3, 2])
    known, _ = known_ahead(made, ahead(made, 4), future(ROWS), 2)
    assert known[:, :2].tolist() == known_ahead(made, ahead(made, 2), future(ROWS), 2)[0].tolist()
    assert np.isnan(known[:, 2:]).all()


def test_one_series_may_have_another_name():
    schema = replace(SCHEMA, id=None)
    made = panel([3], ids=("air",), schema=schema)
    rows = replace(future([row for row in ROWS if row[0] == "a"], schema), ids=("promotions",))
    assert known_ahead(made, ahead(made, 2), rows, 2)[0].tolist() == [[[3.0, 13.0], [2.0, 12.0]]]


def test_without_times_the_next_rows_count():
    schema = replace(SCHEMA, time=None, id=None, frequency=None)
    made = panel([5], ids=("x",), schema=schema)
    rows = panel([3], ids=("y",), schema=schema, masked=True)
    known, _ = known_ahead(made, [pd.Index([5, 6])], rows, 2)
    assert known.tolist() == [rows.values[:2, 2:].tolist()]


def test_times_that_are_numbers_agree_to_a_part_of_a_step():
    schema = replace(SCHEMA, id=None, frequency=1 / 60)
    made = replace(panel([3], ids=("x",), schema=schema), times=pd.Index(np.arange(3) / 60))
    rows = replace(panel([2], ids=("y",), schema=schema, masked=True), times=pd.Index(np.array([0.0500001, 0.0666666])))
    known, _ = known_ahead(made, [next_times(made.times, 1 / 60, 2)], rows, 2)
    assert known.tolist() == [rows.values[:, 2:].tolist()]


def test_an_extended_panel_goes_on():
    texts = tuple("vwxyz")
    made = panel([3, 2], schema=replace(SCHEMA, text="said"), texts=texts, breaks=np.array([1, 4]))
    times = ahead(made, 2)
    known = np.arange(8.0).reshape(2, 2, 2)
    longer = extended(made, times, known)
    assert longer.offsets.tolist() == [0, 5, 9]
    for series in range(2):
        rows, old = longer.rows(series), made.rows(series)
        assert longer.values[rows][:-2].tolist() == made.values[old].tolist()
        assert np.isnan(longer.values[rows][-2:, :2]).all()
        assert longer.values[rows][-2:, 2:].tolist() == known[series].tolist()
        assert longer.times[rows].equals(made.times[old].append(times[series]))
        assert longer.texts[rows] == (*texts[old], "", "")
    assert longer.breaks.tolist() == [1, 6]
    assert longer.masked


def test_without_times_the_next_rows_of_each_series_count():
    schema = replace(SCHEMA, time=None, frequency=None)
    made = panel([5, 3], schema=schema)
    rows = replace(panel([2, 3], ids=("b", "a"), schema=schema, masked=True), times=pd.RangeIndex(5))
    known, notes = known_ahead(made, [pd.Index([5, 6]), pd.Index([3, 4])], rows, 2)
    assert known.tolist() == [rows.values[2:4, 2:].tolist(), rows.values[:2, 2:].tolist()]
    assert "ignored 1 of 5 rows" in notes[0]
    with pytest.raises(DataError, match=r"lacks 1 row\(s\), the first of series 'b' for step 3"):
        known_ahead(made, [pd.Index([5, 6, 7]), pd.Index([3, 4, 5])], rows, 3)


def test_a_model_that_reads_none_needs_no_table_and_looks_at_none():
    made = panel([3, 2])
    known, notes = known_ahead(made, ahead(made, 2), None, 0)
    assert np.isnan(known).all()
    assert known.shape == (2, 2, 2)
    assert notes == ()
    twice = future([*ROWS, ROWS[3]])  # no fault of what is not looked at
    known, notes = known_ahead(made, ahead(made, 2), twice, 0)
    assert np.isnan(known).all()
    assert notes == ("the future table is not looked at: the model reads no columns that are known ahead",)


def test_why_so_much_is_needed_is_said():
    made = panel([3, 2])
    for table in (None, future(ROWS[:2])):
        with pytest.raises(DataError, match=r"each of the next 2 step\(s\) of each series.* \(all at once\)$"):
            known_ahead(made, ahead(made, 2), table, 2, " (all at once)")


def test_a_finer_future_table_is_refused():
    made = panel([3, 2])
    hours = [
        (shop, f"2024-01-{day:02d} {hour:02d}:00", 1.0, 1.0) for shop, day in [("a", 4), ("b", 3)] for hour in (0, 12)
    ]
    last = [("a", "2024-01-05", 1.0, 1.0), ("b", "2024-01-04", 1.0, 1.0)]
    with pytest.raises(DataError, match=r"2 row.s. between the steps .* 2024-01-04 12:00 .* fitted on frequency D"):
        known_ahead(made, ahead(made, 2), future(hours + last), 2)


def test_weekends_may_stand_between_weekdays():
    schema = replace(SCHEMA, frequency="B")
    made = panel([5], ids=("a",), schema=schema)  # ends on a Friday
    days = [("a", f"2024-01-{day:02d}", float(day), 0.0) for day in range(6, 20)]
    known, notes = known_ahead(made, ahead(made, 10), future(days, schema), 10)
    assert known[0, :, 0].tolist() == [8.0, 9.0, 10.0, 11.0, 12.0, 15.0, 16.0, 17.0, 18.0, 19.0]
    assert notes == ("ignored 4 of 14 rows of the future table: no steps that are predicted",)
