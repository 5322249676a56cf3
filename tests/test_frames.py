"""DataFrames in and out: a table made in Python, new rows of a known one, and anything at all."""

import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import DAYS, csv, framed, message, panel, said, table

from tsformer.data.frames import forecast_frame, load_panel, panel_from_frame, panel_with_schema, read_panel
from tsformer.data.frequency import next_times
from tsformer.data.panel import Panel, Schema
from tsformer.data.table_options import TableOptions
from tsformer.errors import DataError, TsformerError

# DataFrames


def test_frames_made_in_python():
    stamps = pd.date_range("2024-01-01", periods=5, freq="h", tz="Europe/Berlin")
    made = framed(pd.DataFrame({"unique_id": 1, "ds": stamps, "y": range(5)}), id="unique_id", target=["y"])
    assert (made.ids, made.schema.zone, made.schema.frequency) == (("1",), "Europe/Berlin", "h")
    assert made.schema.time_format is None
    out = forecast_frame(made.schema, made.ids, [next_times(made.times[-1], "h", 2)], np.zeros((1, 2, 1)))
    assert list(out["ds"]) == list(stamps[-1] + pd.to_timedelta([1, 2], unit="h"))
    for index in (stamps.tz_localize(None), pd.period_range("2024-01", periods=5, freq="M", name="month")):
        made = panel_from_frame(pd.DataFrame({"y": range(5)}, index=index))
        assert made.schema.time == (index.name or "time")
        assert made.schema.frequency == ("MS" if index.name else "h")
    dates = [day.date() for day in pd.date_range("2024-01-01", periods=5)]
    assert panel_from_frame(pd.DataFrame({"when": dates, "y": range(5)})).schema.frequency == "D"


def test_types_of_columns_in_python():
    days = pd.date_range("2024-01-01", periods=3)
    made = panel_from_frame(
        pd.DataFrame(
            {
                "ds": days,
                "nullable": pd.array([1, 2, 3], dtype="Int64"),
                "single": np.array([0.5, 1.5, 2.5], dtype=np.float32),
                "objects": pd.Series([1, 2.5, 3], dtype=object),
                "flags": [True, False, True],
                "lists": [[1], [2], [3]],
                "spans": pd.to_timedelta([1, 2, 3], unit="D"),
                "complex": np.array([1j, 2j, 3j]),
                7: [1, 2, 3],
            }
        )
    )
    assert made.schema.targets == ("nullable", "single", "objects", "7")
    assert said(made) == ("ignored columns that are not numbers: flags, lists, spans, complex",)
    with pytest.raises(DataError, match=r"'y' has 1 missing value.*in row 1"):
        panel_from_frame(
            pd.DataFrame(
                {"ds": pd.date_range("2024-01-01", periods=5), "y": pd.array([1, None, 3, 4, 5], dtype="Int64")}
            )
        )


def test_an_index_of_dates_and_a_column_of_its_name():
    days = pd.date_range("2024-01-01", periods=5)
    with pytest.raises(DataError, match="the index and a column are both called 'y'"):
        panel_from_frame(pd.DataFrame({"y": range(5)}, index=days.rename("y")))
    frame = pd.DataFrame({"time": [3.5, 1, 2, 9, 4], "date": [3, 1, 2, 9, 4.5]}, index=days)
    made = panel_from_frame(frame)
    assert (made.schema.time, made.schema.targets) == ("ds", ("time", "date"))
    assert panel_with_schema(frame, made.schema).times.equals(made.times)
    out = forecast_frame(made.schema, made.ids, [next_times(made.times[-1], "D", 2)], np.zeros((1, 2, 2)))
    assert list(out.columns) == ["ds", "time", "date"]
    both = pd.DataFrame({"date": days, "y": range(5)}).set_index("date", drop=False)
    assert panel_from_frame(both).schema.targets == ("y",)


def test_an_index_of_times_that_are_not_dates():
    frame = pd.DataFrame({"y": range(60)}, index=pd.Index(range(1949, 2009), name="year"))
    with pytest.raises(DataError, match=r"index 'year' is no DatetimeIndex: reset_index\(\)"):
        panel_from_frame(frame)
    assert panel_from_frame(frame.reset_index()).schema.frequency == "YS"


def test_rows_are_counted_where_labels_repeat():
    part = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=3), "y": [1.0, 2, 3]})
    with pytest.raises(DataError, match="2024-01-01 in row 0 and row 3"):
        panel_from_frame(pd.concat([part, part]))
    later = part.assign(ds=part["ds"] + pd.Timedelta(days=3), y=[1, np.nan, 3])
    with pytest.raises(DataError, match="first in row 4"):
        panel_from_frame(pd.concat([part, later]))


def test_numbers_too_large_to_compute_with():
    days = pd.date_range("2024-01-01", periods=3)
    for values in ([1, 2e100, -3e300], [1.0, -1e101, 1e300]):
        made = pd.DataFrame({"ds": days, "y": values})
        expected = r"'y' has 2 value\(s\) beyond 1e\+100, too large .* in row 1: bring the column to a sensible unit"
        with pytest.raises(DataError, match=expected):
            panel_from_frame(made)
        with pytest.raises(DataError, match=expected):
            panel_with_schema(made, Schema(("y",), "ds", frequency="D"))
    with pytest.raises(DataError, match=r"'y' has 1 infinite value\(s\), the first in row 2"):
        panel_from_frame(pd.DataFrame({"ds": days, "y": pd.Series([1, 2, 10**400], dtype=object)}))
    assert panel_from_frame(pd.DataFrame({"ds": days, "y": [0, -1e100, 1e100]})).values.min() == -1e100


def test_frames_that_are_refused():
    days = pd.date_range("2024-01-01", periods=3)
    with pytest.raises(DataError, match="several columns called y"):
        panel_from_frame(pd.DataFrame([[1, 2]], columns=["y", "y"]))
    with pytest.raises(DataError, match="MultiIndex"):
        panel_from_frame(pd.DataFrame({"y": [1, 2]}, index=pd.MultiIndex.from_tuples([(1, 2), (1, 3)])))
    with pytest.raises(DataError, match=r"has 3 row\(s\) but no column"):
        panel_from_frame(pd.DataFrame(index=days))
    with pytest.raises(DataError, match="no rows"):
        panel_from_frame(pd.DataFrame({"ds": days[:0], "y": []}))
    with pytest.raises(DataError, match=r"'ds' has no time in 1 row\(s\), the first in row 2"):
        panel_from_frame(pd.DataFrame({"ds": [*days[:2], pd.NaT], "y": [1, 2, 3]}))
    with pytest.raises(DataError, match="finer than a microsecond"):
        panel_from_frame(pd.DataFrame({"ds": days.as_unit("ns") + pd.Timedelta(1, "ns"), "y": [1, 2, 3]}))


# New rows of a known table


@pytest.fixture
def known():
    return panel("date,a,b\n" + "".join(f"{day},1,2\n" for day in DAYS)).schema


def test_columns_are_taken_by_name(known):
    made = panel_with_schema(table("b,c,a,date\n2,9,1,2025-01-01\n4,9,3,2025-01-02\n"), known)
    assert made.values.tolist() == [[1, 2], [3, 4]]
    assert made.schema == known
    assert said(made) == ("ignored columns that the model does not know: c",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("date,a,B\n2025-01-01,1,2\n", "no column 'b': did you mean 'B'?"),
        ("day,a,b\n2025-01-01,1,2\n", "no column 'date'"),
        ("date,a,b\n2025-01-01,1,2\n2025-02-01,1,2\n2025-03-01,1,2\n", "frequency is MS, the model was fitted on D"),
        ("date,a,b\n2025-01-01,1,2\n2025-01-03,1,2\n", "1 step(s) of D missing"),
        ("date,a,b\n01/02/2025,1,2\n", "--dayfirst or --no-dayfirst says which"),
        ("date,a,b\n1,1,2\n2,1,2\n", "does not hold the kind of times"),
        ("date,a,b\n2025-01-01 00:00Z,1,2\n", "is in zone UTC, the model was fitted on local times"),
        ("date,a,b\n2025-01-01,1,\n2025-01-02,1,2\n", "column 'b' has 1 missing value(s), the first in line 2"),
        ("date,a,b\n2025-01-01,1,2\n2025-01-02,1,two\n", "the first 'two' in line 3"),
    ],
)
def test_new_rows_that_do_not_go_with_the_schema(known, text, expected):
    with pytest.raises(DataError) as error:
        panel_with_schema(table(text), known)
    assert expected in message(error)


def test_one_new_row_is_enough(known):
    assert panel_with_schema(table("date,a,b\n2025/01/01,1,2\n"), known).times[0] == pd.Timestamp("2025-01-01")


def test_new_rows_are_brought_to_the_zone(known):
    schema = panel(csv([f"2024-01-01 0{i}:00+01:00" for i in range(3)])).schema
    made = panel_with_schema(table(csv(["2024-06-01 08:00Z"])), schema)
    assert made.times[0].hour == 9
    assert said(made) == ("times were converted from zone UTC to UTC+01:00",)


def test_years_and_numbers_again():
    for text in ("year,y\n1990,1\n1991,2\n1992,3\n", "t,y\n0,1\n1,2\n2,3\n", "a,y\n1,2\n2,3\n4,5\n"):
        made = panel(text)
        again = panel_with_schema(table(text), Schema.from_json(made.schema.to_json()))
        assert again.schema == made.schema
        assert again.times.equals(made.times)


def test_times_that_are_joined_are_joined_again():
    rows = [f"{day:02}/03/2024;{hour:02}.00;{24 * day + hour}" for day in range(1, 21) for hour in range(24)]
    made = panel("Date;Time;y\n" + "\n".join(rows) + "\n")
    assert (made.schema.time, made.schema.time_columns, made.schema.frequency) == ("Date", ("Date", "Time"), "h")
    schema = Schema.from_json(made.schema.to_json())
    few = read_panel(io.StringIO("y;Time;Date\n7;00.00;05/04/2024\n8;01.00;05/04/2024\n"), schema)
    assert list(few.times) == [pd.Timestamp("2024-04-05 00:00"), pd.Timestamp("2024-04-05 01:00")]
    out = forecast_frame(schema, made.ids, [next_times(few.times[-1], "h", 3)], np.ones((1, 3, 1)))
    assert list(out.columns) == ["Date", "y"]
    again = read_panel(io.StringIO(out.to_csv(index=False)), schema)
    assert again.times[0] == pd.Timestamp("2024-04-05 02:00")


def test_the_decimal_mark_of_the_table_decides_for_few_rows():
    made = panel("day;y\n" + "".join(f"{day};{i},{i}5\n" for i, day in enumerate(DAYS)))
    assert made.schema.decimal == ","
    assert read_panel(io.StringIO("day;y\n2024-02-01;1,234\n"), made.schema).values.tolist() == [[1.234]]
    pointed = panel("day,y\n" + "".join(f"{day},{i}.5\n" for i, day in enumerate(DAYS))).schema
    assert read_panel(io.StringIO('day,y\n2024-02-01,"1,234"\n'), pointed).values.tolist() == [[1234]]


def test_the_day_is_where_it_was_in_the_table_that_is_known():
    made = panel("day,y\n" + "".join(f"{day}/01/2024,{day}\n" for day in range(1, 29)))
    few = read_panel(io.StringIO("day,y\n02/03/2024,1\n03/03/2024,2\n04/03/2024,3\n"), made.schema)
    assert few.times[0] == pd.Timestamp("2024-03-02")


# Anything at all


CELLS = st.one_of(
    st.sampled_from(
        ["", "1", "2.5", "-3", "1e5", "nan", "inf", "x", "--", "1,2", "2024-01-01", "2024-01-02", "2024-13-01"]
    ),
    st.sampled_from(
        ["01/02/2024", "201701", "1999", "2000", "True", "2024-01-01T00:00Z", "2024-01-01 00:00+25:00", '"', " "]
    ),
    st.text(max_size=6),
)
NAMES = st.one_of(st.sampled_from(["date", "ds", "t", "year", "month", "y", "", "id", "time"]), st.text(max_size=4))
NAMED = NAMES.filter(lambda name: name.strip(", ") and '"' not in name and name.isprintable())


@settings(deadline=None, max_examples=150)
@given(
    names=st.lists(NAMES, max_size=4),
    rows=st.lists(st.lists(CELLS, min_size=1, max_size=4), max_size=6),
    sep=st.sampled_from([",", ";", "\t"]),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    options=st.fixed_dictionaries(
        {},
        optional={
            "time": NAMED,
            "id": NAMED,
            "target": st.lists(NAMED, max_size=2),
            "time_format": st.just("%m/%d/%Y"),
        },
    ),
)
def test_any_text_is_a_panel_or_one_line(names, rows, sep, end, options):
    check_anything(end.join(sep.join(row) for row in [names, *rows]), options)


@settings(deadline=None, max_examples=120)
@given(
    start=st.dates(min_value=pd.Timestamp("1900-01-01").date(), max_value=pd.Timestamp("2200-01-01").date()),
    frequency=st.sampled_from(["D", "MS", "W-MON", "h", "B"]),
    values=st.lists(st.floats(-1e100, 1e100).map(lambda x: x if abs(x) > 1e-100 else 0.0), min_size=8, max_size=20),
    series=st.integers(1, 2),
    bad=st.lists(st.tuples(st.integers(0, 19), st.integers(0, 2), CELLS), max_size=1),
    seed=st.integers(0, 99),
)
def test_a_good_table_in_any_order_with_a_bad_cell(start, frequency, values, series, bad, seed):
    times = pd.date_range(start, periods=20, freq=frequency)
    rows = [
        [str(i % series), times[i // series].strftime("%Y-%m-%d %H:%M"), repr(value)] for i, value in enumerate(values)
    ]
    np.random.default_rng(seed).shuffle(rows)
    for at, column, cell in bad:
        rows[at % len(rows)][column] = cell
    frame = pd.DataFrame(rows, columns=["id", "date", "y"])
    made = check_anything(frame.to_csv(index=False), {"id": "id", "target": ["y"]})
    if not bad and len(values) // series >= 6:
        assert isinstance(made, Panel)
        assert made.schema.frequency == frequency or frequency == "B"
        for name, own in zip(made.ids, range(len(made.ids)), strict=True):
            assert made.values[made.rows(own), 0].tolist() == values[int(name) :: series]


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=60), st.sampled_from(["utf-8-sig", "utf-16", "cp1252", "gb18030"]))
def test_any_bytes_are_a_panel_or_one_line(content, encoding):
    check_anything(io.BytesIO(content), {}, encoding=encoding)


def check_anything(source, options, **reading):
    try:
        source = io.StringIO(source) if isinstance(source, str) else source
        made = load_panel(source, TableOptions(**options, **reading))
    except TsformerError as error:
        made, said = None, str(error)
    else:
        said = "a panel"
        assert isinstance(made, Panel)
        assert np.isfinite(made.values).all()
        for series in range(len(made.ids)):
            times = made.times[made.rows(series)]
            assert times.is_monotonic_increasing
            assert times.is_unique
    assert said.splitlines() == [said]
    return made
