"""Text cells as numbers: on evidence of the whole column, and never without a word."""

import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsformer.data.cells import LINE
from tsformer.data.frames import load_panel, read_panel
from tsformer.data.table_options import TableOptions
from tsformer.errors import DataError
from tsformer.tables.decimals import comma_or_point, decimal_of
from tsformer.tables.files import read_file
from tsformer.tables.numbers import as_numbers, merged
from tsformer.tables.sentinels import suspected_sentinels


def numbers(cells, *, named=False, decimal="", **options):
    column = pd.Series(cells, index=pd.RangeIndex(2, len(cells) + 2, name=LINE), dtype=object)
    return as_numbers(column, "y", TableOptions(**options), "x.csv", named=named, decimal=decimal)


NAN = float("nan")


@pytest.mark.parametrize(
    ("cells", "values", "kinds"),
    [
        (["1", " 2.5", "-3e2"], [1, 2.5, -300], []),
        (["8,746.6", "950", "1,234,567"], [8746.6, 950, 1234567], ["thousands"]),
        (["8.746,6", "950", "1.234.567"], [8746.6, 950, 1234567], ["thousands", "decimal"]),
        (["28,801", "34,02", "0,5"], [28.801, 34.02, 0.5], ["decimal"]),
        (["1 234,5", "12\u202f000,25"], [1234.5, 12000.25], ["thousands", "decimal"]),
        (["1'234.5", "2\u2019000"], [1234.5, 2000], ["thousands"]),
        (["12,34,567.5", "1,23,456"], [1234567.5, 123456], ["thousands"]),
        (["7.83%", "-0.93 %"], [7.83, -0.93], ["percent"]),
        (["1.38M", "610.66K", "0.5B", "2T"], [1.38e6, 610660, 5e8, 2e12], ["size"]),
        (["$1.5", "-$2.25", "3 $"], [1.5, -2.25, 3], ["currency"]),
        (["(1.5)", "2"], [-1.5, 2], ["accounting"]),
        (["\u22121.5", "2"], [-1.5, 2], []),
        (["1", "--", "NM", "nil", "."], [1, NAN, NAN, NAN, NAN], ["marker"] * 4),
        (["--", "--"], [NAN, NAN], ["marker"]),
        (["1", "NA", None, "3"], [1, NAN, NAN, 3], []),
        (["950", "7", "8", "1,234", "2,345", "3,456"], [950, 7, 8, 1234, 2345, 3456], ["thousands"]),
        (["inf", "1"], [np.inf, 1], []),
        ([1, 2.5, None], [1, 2.5, NAN], []),
    ],
)
def test_numbers_as_people_write_them(cells, values, kinds):
    found = numbers(cells)
    np.testing.assert_array_equal(found.values, np.array(values, dtype=np.float64))
    assert [note.kind for note in found.notes] == kinds
    assert found.values.dtype == np.float64


@pytest.mark.parametrize(
    "cells",
    [
        ["north", "south"],
        ["2020-01-01", "2020-01-02"],
        ["01.02.2024", "02.02.2024"],
        ["18.00.00", "19.00.00"],
        ["TRUE", "FALSE"],
        ["a", "b", "1"],
        ["5 m", "6 m"],
        ["-", "a"],
    ],
)
def test_words_are_no_numbers(cells):
    assert numbers(cells).values is None
    assert numbers([True, False]).values is None


def test_truth_is_a_number_where_it_is_asked_for():
    assert numbers(["TRUE", "false", None], named=True).values.tolist()[:2] == [1.0, 0.0]
    assert np.array_equal(numbers([True, None, False], named=True).values, [1.0, NAN, 0.0], equal_nan=True)


@pytest.mark.parametrize(
    ("cells", "options", "expected"),
    [
        (["1", "trace", "3"], {"data.na": ["trace"]}, "1 cell(s) that are not numbers, the first 'trace' in line 3"),
        (["1", "2", "3", "4", "5", "a", "b", "c", "d"], {}, "4 cell(s) that are not numbers, the first 'a' in line 7"),
        (["1", "2", "1_000"], {"data.na": ["1_000"]}, "the first '1_000' in line 4"),
        (
            ["1,234", "2,345"],
            {},
            "whose comma may be a decimal mark or separate thousands, the first '1,234' in line 2",
        ),
        (["1,234", "12,345"], {"data.decimal": "."}, "--decimal . if it separates thousands, --decimal , if not"),
        (["1,5", "2.5"], {}, "whose comma may be"),
        (["1,23,4", "2", "3"], {}, "the first '1,23,4'"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_settles_it(cells, options, expected):
    with pytest.raises(DataError) as error:
        numbers(cells)
    assert expected in str(error.value)
    assert "\n" not in str(error.value)
    finding = error.value.finding
    assert (finding.level, finding.column) == ("fault", "y")
    assert finding.options == options


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["3%", "0.03", "4%"], "'0.03' in line 3 is written without the sign % that others have"),
        (["$5", "€6", "$7"], "'€6' in line 3 is written with another sign than '$5'"),
        (["5 EUR", "6 USD"], "'6 USD' in line 3 is written with another sign than '5 EUR'"),
    ],
)
def test_units_that_differ_are_refused(cells, expected):
    with pytest.raises(DataError) as error:
        numbers(cells)
    assert expected in str(error.value)
    finding = error.value.finding
    assert (finding.kind, finding.column, finding.row, finding.options) == ("units", "y", "line 3", {})


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["3%", "0", "4.5%"], [3, 0, 4.5]),
        (["$5", "6.5", "USD 7"], [5, 6.5, 7]),
        (["€5", "6 EUR", "EUR 7"], [5, 6, 7]),
        (["1.5K", "2.5"], [1500, 2.5]),
    ],
)
def test_units_that_are_the_same(cells, values):
    assert numbers(cells).values.tolist() == values


def test_the_options_of_a_refusal_settle_it():
    with pytest.raises(DataError) as error:
        numbers(["1", "trace", "3"])
    settled = numbers(["1", "trace", "3"], na=tuple(error.value.finding.options["data.na"]))
    assert [note.text for note in settled.notes] == [
        "'trace' read as missing: 1 cell(s) in column 'y', the first in line 3"
    ]
    assert np.isnan(settled.values).tolist() == [False, True, False]


@pytest.mark.parametrize(("decimal", "values"), [(".", [1234, 2345]), (",", [1.234, 2.345])])
def test_the_user_or_the_other_columns_settle_a_comma(decimal, values):
    assert numbers(["1,234", "2,345"], decimal=decimal).values.tolist() == values
    assert TableOptions(decimal=decimal).decimal == decimal
    column = pd.Series(["1,234", "2,345"], dtype=object)
    assert as_numbers(column, "y", TableOptions(decimal=decimal), "x", named=True).values.tolist() == values


def test_a_column_goes_before_the_others():
    assert numbers(["1,5", "2,25"], decimal=".").values.tolist() == [1.5, 2.25]


def test_numbers_that_stand_for_missing():
    found = numbers(["1", "-200", "3"], sentinel=(-200,))
    assert np.isnan(found.values).tolist() == [False, True, False]
    assert found.notes[0].text == "'-200' read as missing: 1 cell(s) in column 'y', the first in line 3"
    plain = as_numbers(pd.Series([1, -200, 3]), "y", TableOptions(na=("-200",)), "x", named=True)
    assert np.isnan(plain.values).tolist() == [False, True, False]


def test_notes_on_many_columns_are_one():
    columns = {name: numbers(["1,234.5", "--"]) for name in "abc"}
    notes = [note for column in columns.values() for note in column.notes]
    texts = [note.text for note in merged(notes)]
    assert len(texts) == 2
    assert texts[0] == "thousands separators removed: 3 cells in 3 columns (y, y, y)"
    assert texts[1] == "'--' read as missing: 3 cells in 3 columns (y, y, y)"


@settings(deadline=None)
@given(
    st.lists(st.decimals(-(10**9), 10**9, places=2), min_size=2, max_size=20),
    st.sampled_from([",.", ".,", " ,", "'.", "\u202f,"]),
)
def test_grouped_numbers_come_back(amounts, marks):
    group, decimal = marks
    cells = [f"{amount:,.2f}".translate({ord(","): group, ord("."): decimal}) for amount in amounts]
    assert numbers(cells).values.tolist() == [float(amount) for amount in amounts]


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("a;b\n1,5;x\n2,5;y\n", ","),
        ("a,b\n1.5,x\n2.5,y\n", "."),
        ('a,b\n"1,234","1,234.5"\n', "."),
        ("a,b\n1,2\n", ""),
        ("a;b\n1,5;2.5\n", ""),
        ("when;b\n01.02.2024;2,5\n02.02.2024;3,5\n", ","),
    ],
)
def test_the_mark_of_a_table(text, mark):
    assert decimal_of(read_file(io.StringIO(text), TableOptions()).frame, TableOptions()) == mark


def test_points_between_thousands_beside_decimal_commas():
    frame = read_file(io.StringIO("d;y;z\n2020-01-01;1,5;1.234\n2020-01-02;2,25;12.345\n"), TableOptions()).frame
    decimal = decimal_of(frame, TableOptions())
    assert as_numbers(frame["z"], "z", TableOptions(), "x", named=True, decimal=decimal).values.tolist() == [
        1234,
        12345,
    ]


@pytest.mark.parametrize(
    ("rows", "doubtful"),
    [
        (["1.234", "12.345", "950"], True),
        (["1.234", "12.345", "0.5"], False),
        (["1.234", "0.234"], False),
        (["1", "2"], False),
    ],
)
def test_points_that_may_separate_thousands_are_said(rows, doubtful):
    text = "when;visitors\n" + "".join(f"0{day}.01.2023;{cell}\n" for day, cell in enumerate(rows, 1))
    raw = read_file(io.StringIO(text), TableOptions())
    assert list(raw.frame["visitors"]) == [float(cell) for cell in rows]
    assert [note.level for note in raw.notes if note.kind == "decimal"] == ["doubt"] * doubtful
    settled = read_file(io.StringIO(text), TableOptions(decimal="."))
    assert [note.kind for note in settled.notes] == ["separator"]


def test_points_between_thousands_beside_tabs_are_doubted():
    text = "when\tvisitors\n" + "".join(f"0{n}.01.2023\t{cell}\n" for n, cell in enumerate(["950", "1.234", "7"], 1))
    assert [note.kind for note in read_file(io.StringIO(text), TableOptions()).notes] == ["separator", "decimal"]


@pytest.mark.parametrize(
    ("cells", "known", "values"),
    [
        (["1.234", "1.300"], ",", [1234, 1300]),
        (["1.234", "1.300"], ".", [1.234, 1.3]),
        (["1.234", "1.35"], ",", [1.234, 1.35]),
        (["1.234", "1,5"], ",", [1234, 1.5]),
    ],
)
def test_the_mark_of_a_table_that_is_known_settles_points(cells, known, values):
    text = "when;visitors\n" + "".join(f"2023-01-0{n};{cell}\n" for n, cell in enumerate(cells, 1))
    raw = read_file(io.StringIO(text), TableOptions(), decimal=known)
    assert [note.kind for note in raw.notes] == ["separator"]
    decimal = decimal_of(raw.frame, TableOptions()) or known
    column = as_numbers(raw.frame["visitors"], "visitors", TableOptions(), "x", named=True, decimal=decimal)
    assert column.values.tolist() == values


def test_new_rows_are_written_as_the_table_that_is_known():
    rows = "".join(f"2023-01-{n:02};{n}.234,5\n" for n in range(1, 10))
    schema = load_panel(io.StringIO("when;visitors\n" + rows), TableOptions()).schema
    again = read_panel(io.StringIO("when;visitors\n2023-01-10;1.234\n2023-01-11;1.300\n"), schema)
    assert again.values[:, 0].tolist() == [1234, 1300]


def test_whole_numbers_beside_such_points_speak_for_thousands():
    text = "when;visitors\n01.01.2023;950\n02.01.2023;7\n03.01.2023;88\n04.01.2023;1.234\n"
    (doubt,) = [note for note in read_file(io.StringIO(text), TableOptions()).notes if note.level == "doubt"]
    assert doubt.options == {"data.decimal": ","}
    options = TableOptions(**{name.removeprefix("data."): value for name, value in doubt.options.items()})
    column = read_file(io.StringIO(text), options).frame["visitors"]
    assert as_numbers(column, "visitors", options, "x", named=True).values.tolist() == [950, 7, 88, 1234]


def test_what_one_column_says():
    assert comma_or_point(["1,5", "1,234"]) == ","
    assert comma_or_point(["1,234.5"]) == "."
    assert comma_or_point(["1,234", "5,678"]) == ""
    assert comma_or_point(["1,5", "1.5"]) == ""
    assert comma_or_point(["0,123"]) == ","


# Sentinels


def doubts(**columns):
    values = {name: np.array(column, dtype=np.float64) for name, column in columns.items()}
    return suspected_sentinels(values, pd.DataFrame(values).rename_axis(LINE))


@pytest.mark.parametrize("number", [-200, -999, -9999, -99.99, -9900, 99999, 9999, -9.99, 1e20])
def test_numbers_far_from_all_others_are_suspected(number):
    series = np.sin(np.arange(100.0)) * 5 + 8
    series[[10, 11, 50]] = number
    (found,) = doubts(y=series)
    assert found.level == "doubt"
    assert found.options == {"data.sentinel": [number]}
    assert (found.count, found.row, found.column) == (3, "line 10", "y")


def test_one_doubt_for_all_columns():
    many = np.r_[np.arange(100.0), [-999] * 5]
    found = doubts(a=many, b=many + 0.0, c=np.arange(105.0))
    assert [note.count for note in found] == [10]
    assert found[0].text.startswith("-999 lies far from all other values in 2 column(s) (a, b), 10 cell(s)")


@pytest.mark.parametrize(
    "series",
    [
        np.r_[np.arange(20, 80), [-1.0] * 10],  # counts
        np.r_[np.tile([3.0, 4, 5, 6, 7], 20), [-1.0] * 11],
        np.r_[np.tile([0.0, 60, 75, 100], 20), [-100.0] * 3],
        np.r_[np.arange(100.0), -999],
        np.r_[np.arange(100.0), 9999],
        np.r_[np.tile([1.0, 2, 3, 4], 20), 9, 9],
    ],
)
def test_what_may_be_measured_is_a_remark_only(series):
    (found,) = doubts(y=series)
    assert found.level == "doubt"
    assert found.options == {}
    assert f"--sentinel {series[-1]:g}" in found.remedy


def test_a_number_in_the_rows_of_a_made_up_one_is_one():
    counts = np.r_[np.arange(20, 80), [-1.0] * 10]
    found = doubts(days=counts, spread=np.where(counts < 0, -9.99, counts / 9))
    assert [finding.options for finding in found] == [{"data.sentinel": [-9.99]}, {"data.sentinel": [-1.0]}]


@pytest.mark.parametrize(
    "series",
    [
        np.arange(-200.0, 200.0),
        np.r_[np.arange(1100.0), -999],
        np.r_[np.tile([-1.0, 0, 1], 30)],
        np.r_[np.arange(100.0), [99.0] * 20],
        np.full(50, -999.0),
        np.r_[np.arange(100.0), [-37.63] * 3],
        np.zeros(0),
    ],
)
def test_what_is_not_suspected(series):
    assert doubts(y=series) == ()


def test_codes_among_words_are_no_numbers_but_numbers_in_doubt_are():
    codes = pd.Series(["0"] * 300 + ["a"] * 4, dtype=object)
    assert as_numbers(codes, "holiday", TableOptions(), "table", named=False).values is None
    commas = pd.Series([f"{i},{i * 7 % 1000:03d}" for i in range(1, 300)], dtype=object)
    with pytest.raises(DataError, match="--decimal"):
        as_numbers(commas, "visitors", TableOptions(), "table", named=False)


@pytest.mark.parametrize("written", ["R$ {}", "EUR {}", "{} zł", "{} EUR"])
def test_currencies_in_letters_hide_no_decimal_comma(written):
    cells = pd.Series([written.format(f"9.{i:03d},50") for i in range(100, 140)], dtype=object)
    assert comma_or_point(cells) == ","
    found = as_numbers(cells, "price", TableOptions(), "table", named=False)
    assert found.values.tolist() == [9000.5 + i for i in range(100, 140)]
