"""Cells and names in messages, and columns of numbers as panels have them."""

import numpy as np
import pandas as pd
import pytest
from tables import DAYS, csv, message, panel

from tsformer.data.cells import LINE, as_text, listed, parsed, place, plain_numbers, require
from tsformer.errors import DataError, UsageError


def test_places_are_lines_labels_or_positions():
    frame = pd.DataFrame({"y": [1, 2]}, index=pd.Index([5, 9], name=LINE))
    assert place(frame, 1) == "line 9"
    assert place(frame.rename_axis(None), 1) == "row 9"
    assert place(frame.set_axis(["a", "a"]), 1) == "row 1"


def test_names_are_listed_and_asked_for():
    assert listed([f"c{i}" for i in range(10)]) == "c0, c1, c2, c3, c4, c5, c6, c7 and 2 more"
    assert listed(["a\nb"]) == "'a\\nb'"
    with pytest.raises(DataError, match=r"x has no column 'closs': did you mean 'Close'\? it has Close, Open"):
        require(pd.DataFrame({"Close": [1], "Open": [2]}), ["closs"], "x")
    with pytest.raises(DataError, match="no text that a file can hold"):
        as_text("\ud800", "column", "x")


def test_text_is_parsed_to_the_last_bit():
    cells = ["0.1", "1e23", "9007199254740993", "2.2250738585072014e-308", "x", "1_000"]
    values = parsed(pd.Series(cells, dtype=object))
    np.testing.assert_array_equal(values, [*map(float, cells[:4]), np.nan, np.nan])
    assert plain_numbers(pd.Series(["1", "2"], dtype=object)).dtype == np.int64
    assert plain_numbers(pd.Series(["1", "x"], dtype=object)) is None


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "2", "3", "inf", "5", "6", "7"], "1 infinite value(s), the first in line 5"),
        (["1", "2", "3", "4", "5", "6", "1_000"], "the first '1_000' in line 8"),
        (['"1,234"', '"2,345"', '"3,456"', '"3,457"', '"3,458"', '"3,459"', '"3,450"'], "whose comma may be a decimal"),
    ],
)
def test_cells_that_are_no_values(cells, expected):
    with pytest.raises(DataError) as error:
        panel(csv(DAYS, values=cells))
    assert expected in message(error)
    assert "column 'y'" in message(error)


def test_what_is_not_a_number_is_ignored_and_said():
    made = panel(
        ",date,a,word,yes,none,stamp\n0,2024-01-01,1,x,True,,20200101\n1,2024-01-02,2,y,False,,20200102\n"
        "2,2024-01-03,3,z,True,,20200103\n"
    )
    assert made.schema.targets == ("a",)
    said = " ".join(map(str, made.notes))
    assert all(name in said for name in ("word", "yes", "none", "Unnamed: 0", "stamp"))
    with pytest.raises(DataError, match="no column of numbers"):
        panel("date,word\n2024-01-01,x\n2024-01-02,y\n2024-01-03,z\n")


def test_named_targets_must_be_numbers():
    text = "date,a,word\n2024-01-01,1,x\n2024-01-02,2,y\n2024-01-03,3,4\n"
    assert panel(text, target=["a"]).notes == ()
    with pytest.raises(DataError, match=r"column 'word' has 2 cell.* the first 'x' in line 2"):
        panel(text, target=["word"])
    with pytest.raises(DataError, match=r"no column 'A'.*did you mean 'a'"):
        panel(text, target=["A"])
    with pytest.raises(UsageError, match="named twice"):
        panel(text, target=["a", "a"])
    with pytest.raises(UsageError, match="named twice"):
        panel(text, time="date", target=["date"])


def test_constant_columns_are_fine():
    assert panel(csv(DAYS, values=["5"] * 7)).values.tolist() == [[5.0]] * 7


@pytest.mark.parametrize("options", [{}, {"sep": ";", "decimal": ","}, {"decimal": ","}])
def test_decimal_commas(options):
    made = panel("date;y\n2024-01-01;1,5\n2024-01-02;2\n2024-01-03;-3,25\n", **options)
    assert made.values.ravel().tolist() == [1.5, 2.0, -3.25]


def test_markers_are_missing_values_and_said():
    cells = ["1", "--", "3", "4", "nil", "6", "7"]
    with pytest.raises(DataError):
        panel(csv(DAYS, values=cells))
    made = panel(csv(DAYS, values=cells), missing="mask")
    assert np.isnan(made.values.ravel()).tolist() == [cell in ("--", "nil") for cell in cells]
    said = " ".join(map(str, made.notes))
    assert "'--' read as missing" in said
    assert "'nil' read as missing" in said
