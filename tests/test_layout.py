"""Tables that do not have a row for each time: times across the top, numbered values, years by months."""

import io

import numpy as np
import pandas as pd
import pytest
from tables import panel, said

from tsformer.data.forecast_table import forecast_frame
from tsformer.data.frames import panel_from_frame, panel_with_schema, read_panel
from tsformer.data.frequency import next_times
from tsformer.data.table_options import TableOptions
from tsformer.errors import DataError
from tsformer.tables.layout import arrange


def wide(names, rows, first="region,country"):
    return ",".join([first, *map(str, names)]) + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)


DATES = pd.date_range("2020-01-22", periods=40)
SHORT = [f"{day.month}/{day.day}/{day:%y}" for day in DATES]


def covid(seed=0):
    values = np.random.default_rng(seed).integers(0, 99, (4, 40))
    places = [("", "Chad"), ("", "Peru"), ("Anhui", "China"), ("Tibet", "China")]
    return wide(SHORT, [(*place, *row) for place, row in zip(places, values, strict=True)]), values


def test_dates_across_the_top_become_rows():
    text, values = covid()
    made = panel(text)
    assert made.ids == ("/Chad", "/Peru", "Anhui/China", "Tibet/China")
    assert made.schema.id_columns == ("region", "country")
    assert made.values.reshape(4, 40).tolist() == values.tolist()
    assert list(made.times[:40]) == list(DATES)
    assert "each row is a series, its times are the columns 1/22/20 to 3/1/20" in said(made)[0]
    ahead = next_times(made.times[39], "D", 2)
    out = forecast_frame(made.schema, made.ids, [ahead] * 4, np.zeros((4, 2, 1)))
    assert list(out.columns) == ["region", "country", "date", "value"]
    assert out.iloc[4].tolist() == ["Anhui", "China", out["date"][0], 0]
    assert pd.to_datetime(out["date"][:2], format="%m/%d/%y").tolist() == list(ahead)


def test_new_rows_of_the_same_layout_and_in_long_form():
    text, values = covid()
    schema = panel(text).schema
    few = wide(SHORT, [("Tibet", "China", *values[0])])
    made = read_panel(io.StringIO(few), schema)
    assert (made.ids, made.values[:, 0].tolist()) == (("Tibet/China",), values[0].tolist())
    long = "region,country,date,value\n" + "".join(f"Tibet,China,{day},{i}\n" for i, day in enumerate(SHORT))
    again = read_panel(io.StringIO(long), schema)
    assert (again.ids, again.values[:, 0].tolist()) == (("Tibet/China",), list(range(40)))


def test_years_across_the_top_with_the_ends_missing():
    years = list(range(1960, 1970))
    rows = [
        ("Aruba", "ABW", "GDP", *[""] * 3, *range(3, 10)),
        ("Chad", "TCD", "GDP", *range(8), "", ""),
        ("Mars", "MRS", "GDP", *[""] * 10),
    ]
    made = panel(wide(years, rows, first="Country Name,Country Code,Indicator"))
    assert (made.ids, made.lengths.tolist(), made.schema.id) == (("Aruba", "Chad"), [7, 8], "Country Name")
    assert (made.times[0].year, made.times[14].year, made.schema.frequency) == (1963, 1967, "YS")
    assert "1 of them empty and left out; ignored columns: Country Code, Indicator" in said(made)[0]
    bracketed = panel(wide([f"{year} [YR{year}]" for year in years], rows, first="Country Name,Country Code,Indicator"))
    assert bracketed.times.equals(made.times)


def test_what_is_missing_inside_is_named_by_line_and_column():
    rows = [("Aruba", *range(10)), ("Chad", 1, 2, "", *range(7))]
    with pytest.raises(DataError, match="line 3, column 1962"):
        panel(wide(range(1960, 1970), rows, first="Country"))
    rows = [("Aruba", *range(10)), ("Chad", 1, 2, "1o", *range(7))]
    with pytest.raises(DataError, match=r"column '1962'.*'1o' in line 3"):
        panel(wide(range(1960, 1970), rows, first="Country"))


def test_numbered_values_count_as_steps():
    rows = [("H1", 5, 6, 7, 8, ""), ("H2", 1, 2, 3, "", "")]
    made = panel(wide(["V2", "V3", "V4", "V5", "V6"], rows, first="V1"))
    assert (made.ids, made.lengths.tolist(), made.schema.time) == (("H1", "H2"), [4, 3], "step")
    assert list(made.times) == [1, 2, 3, 4, 1, 2, 3]
    out = forecast_frame(made.schema, made.ids, [pd.Index([5]), pd.Index([4])], np.zeros((2, 1, 1)))
    assert list(out.columns) == ["V1", "step", "value"]


def test_numbered_values_after_several_columns_of_words():
    rows = [("A_CA", "A", "CA", *range(10)), ("A_TX", "A", "TX", *range(10))]
    made = panel(wide([f"d_{i}" for i in range(1, 11)], rows, first="id,item,state"))
    assert (made.ids, made.lengths.tolist()) == (("A_CA", "A_TX"), [10, 10])
    pairs = panel(wide([f"d_{i}" for i in range(1, 11)], [row[1:] for row in rows], first="item,state"))
    assert pairs.ids == ("CA", "TX"), "item is the same throughout, and tells nothing apart"


@pytest.mark.parametrize("written", ["X{}", "year_{}", "Y{}", "{} [YR{}]"])
def test_names_that_programs_make_of_years(written):
    names = [written.format(year, year) for year in range(1990, 2000)]
    made = panel(wide(names, [("Chad", *range(10)), ("Peru", *range(10))], first="country"))
    assert (made.schema.time, made.times[0].year, made.schema.frequency) == ("year", 1990, "YS")


def test_a_row_for_each_year_and_a_column_for_each_month():
    months = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
    rows = [(year, *(year + month / 100 for month in range(1, 13)), 7) for year in (2001, 2000, 2002)]
    rows[2] = (2002, *rows[2][1:7], *[""] * 6, 7)
    for names in (months, [str(month) for month in range(1, 13)], [month.title() + "." for month in months]):
        if names[0].endswith("."):
            names = [name.rstrip(".") for name in names]
        made = panel(wide([*names, "Mean"], rows, first="Year"))
        assert (len(made.times), made.schema.frequency) == (30, "MS")
        assert made.values[:, 0].tolist() == [t.year + t.month / 100 for t in made.times]
        assert "ignored columns: Mean" in said(made)[0]
    turned = pd.DataFrame([row[1:13] for row in rows[:2]], index=["2001", "2000"], columns=months).T
    made = panel_from_frame(turned.rename_axis("month").reset_index())
    assert made.values[:, 0].tolist() == [t.year + t.month / 100 for t in made.times]


def test_years_by_months_of_several_places():
    rows = [(place, year, *range(12)) for place in ("Rome", "Oslo") for year in (2000, 2001)]
    made = panel(wide(range(1, 13), rows, first="city,year"))
    assert (made.ids, made.lengths.tolist()) == (("Rome", "Oslo"), [24, 24])
    assert made.values[:, 0].tolist() == [*range(12)] * 4


LEFT = {
    "columns of numbers by name": pd.DataFrame({"date": DATES, "0": range(40), "1": range(40), "2": range(40)}),
    "product codes": pd.DataFrame({"Date": DATES, "4046": range(40), "4225": range(40), "4770": range(40)}),
    "a few features": pd.DataFrame({"name": list("abc"), "x1": [1, 2, 3], "x2": [1, 2, 3], "x3": [1, 2, 3]}),
    "numbers as names": pd.DataFrame({"v0": [1.5, 2, 3], **{f"v{i}": [1.0, 2, 3] for i in range(1, 12)}}),
    "values and a label": pd.DataFrame(
        {"name": list("abc"), **{f"x{i}": [1.0, 2, 3] for i in range(1, 12)}, "label": [1, 0, 1]}
    ),
    "an index of dates": pd.DataFrame({str(year): range(40) for year in range(1990, 1995)}, index=DATES),
}


@pytest.mark.parametrize("name", LEFT)
def test_other_tables_stay_as_they_are(name):
    frame = LEFT[name]
    assert arrange(frame, TableOptions(), "table")[0] is frame


WEEKS = [f"{{}}{k % 52 + 1}/{2020 + k // 52}" for k in range(60)]


@pytest.mark.parametrize(("name", "word"), [("kw", "KW"), ("week", "Wk"), ("Monat", "Monat "), ("label", "KW")])
def test_a_row_for_each_time_is_no_series(name, word):
    rows = [(week.format(word), *range(10)) for week in WEEKS]
    text = wide([f"store{i}" for i in range(1, 11)], rows, first=name)
    frame = pd.read_csv(io.StringIO(text))
    assert arrange(frame, TableOptions(), "table")[0] is frame
    assert len(arrange(frame, TableOptions(id=[name]), "table")[0]) == 600


def test_many_rows_of_few_numbered_columns_are_doubtful():
    rows = [(f"shop {chr(97 + i)}", *range(10)) for i in range(12)]
    text = wide([f"store{i}" for i in range(1, 11)], rows, first="name")
    made = panel(text)
    (doubt,) = [note for note in made.notes if note.level == "doubt"]
    assert (len(made.ids), doubt.kind, "store1, store2" in doubt.text) == (12, "layout", True)
    by_rows = panel(text, target=[f"store{i}" for i in range(1, 11)])
    assert by_rows.values.shape == (12, 10)
    few = panel(wide([f"store{i}" for i in range(1, 11)], rows[:10], first="name"))
    assert all(note.level == "note" or note.kind != "layout" for note in few.notes)


def test_years_across_and_months_by_words_that_cannot_be_joined():
    months = ["Januar", "Februar", "Maerz", "April", "Mai", "Juni", "Juli", "August"]
    text = wide(range(2018, 2022), [(month, 1, 2, 3, i) for i, month in enumerate(months)], first="Monat")
    with pytest.raises(DataError, match=r"row for each 'Monat'.*--id Monat") as error:
        panel(text)
    assert error.value.finding.options == {}
    assert len(panel(text, id="Monat").ids) == 8


def test_hours_down_and_days_across_are_one_series():
    days = [f"2024-01-{day:02}" for day in range(1, 6)]
    rows = [(f"{hour:02}:00", *(24 * day + hour for day in range(5))) for hour in range(24)]
    made = panel(wide(days, rows, first="uhrzeit"))
    assert (made.schema.frequency, made.values[:, 0].tolist()) == ("h", [*range(120)])


@pytest.mark.parametrize("first", [None, "place"])
def test_numbers_after_any_word_are_no_months(first):
    frame = pd.DataFrame({f"Sensor {i}": np.arange(9.0) ** i for i in (10, 11, 12)})
    if first:
        frame.insert(0, first, [*"abcdefghi"])
    assert arrange(frame, TableOptions(), "table")[0] is frame
    dated = frame.rename(columns={"Sensor 10": "Jan 2020", "Sensor 11": "Feb 2020", "Sensor 12": "Mar 2020"})
    assert first is None or len(arrange(dated, TableOptions(), "table")[0]) == 27


def test_columns_that_the_user_names_are_not_turned():
    text, _ = covid()
    frame = pd.read_csv(io.StringIO(text))
    assert arrange(frame, TableOptions(target=[SHORT[0]]), "table")[0] is frame


def test_rows_that_nothing_tells_apart_are_numbered():
    frame = pd.DataFrame([["x", *range(8)], ["x", *range(8)]], columns=["a", *map(str, range(2000, 2008))])
    made = panel_from_frame(frame)
    assert (made.schema.id, made.ids) == ("row", ("1", "2"))
    assert panel_with_schema(frame, made.schema).ids == ("1", "2")
