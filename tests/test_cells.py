"""Cells as numbers: what is one, what was meant to be one, and what is missing."""

import pytest
from tables import DAYS, csv, message, panel

from tsformer.errors import DataError, UsageError


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "", "3"], "1 missing value(s), the first in line 3"),
        (["NA", "null", "3"], "2 missing value(s), the first in line 2"),
        (["1", "2", "inf"], "1 infinite value(s), the first in line 4"),
        (["1", "--", "3"], "1 cell(s) that are not numbers, the first '--' in line 3"),
        (["1", "2", "."], "the first '.' in line 4"),
        (['"1,234"', "5", "6"], "the first '1,234' in line 2: take thousands separators"),
        (['"1,234"', '"2,345"', '"3,456"'], "3 cell(s) that are not numbers"),
        (["5%", "6%", "7%"], "the first '5%'"),
        (["1.5K", "2M", "3"], "the first '1.5K'"),
        (['"1,5"', '"2,25"', '"3,5"'], "--data.decimal ','"),
        (["1_000", "2", "3"], "the first '1_000'"),
    ],
)
def test_cells_that_are_no_values(cells, expected):
    with pytest.raises(DataError) as error:
        panel(csv(DAYS[:3], values=cells))
    assert expected in message(error)
    assert "column 'y'" in message(error)


def test_a_gap_in_one_column_names_those_without():
    with pytest.raises(DataError, match=r"column 'b' has 1 missing.*--target a,c"):
        panel("date,a,b,c\n2024-01-01,1,2,3\n2024-01-02,1,,3\n2024-01-03,1,2,3\n")


def test_what_is_not_a_number_is_ignored_and_said():
    made = panel(
        ",date,a,word,yes,none,stamp\n0,2024-01-01,1,x,True,,20200101\n1,2024-01-02,2,y,False,,20200102\n"
        "2,2024-01-03,3,z,True,,20200103\n"
    )
    assert made.schema.targets == ("a",)
    assert made.notes == (
        "ignored columns that are not numbers: word, yes",
        "ignored columns without a value: none",
        "ignored columns without a name: Unnamed: 0",
        "ignored columns of dates: stamp",
    )
    with pytest.raises(DataError, match="no column of numbers"):
        panel("date,word\n2024-01-01,x\n2024-01-02,y\n2024-01-03,z\n")


def test_named_targets_must_be_numbers():
    text = "date,a,word\n2024-01-01,1,x\n2024-01-02,2,y\n2024-01-03,3,4\n"
    assert panel(text, targets=["a"]).notes == ()
    with pytest.raises(DataError, match=r"column 'word' has 2 cell.* the first 'x' in line 2"):
        panel(text, targets=["word"])
    with pytest.raises(DataError, match=r"no column 'A'.*did you mean 'a'"):
        panel(text, targets=["A"])
    with pytest.raises(UsageError, match="named twice"):
        panel(text, targets=["a", "a"])
    with pytest.raises(UsageError, match="named twice"):
        panel(text, time="date", targets=["date"])


def test_constant_columns_are_fine():
    assert panel(csv(DAYS, values=["5"] * 7)).values.tolist() == [[5.0]] * 7


def test_decimal_commas():
    made = panel("date;y\n2024-01-01;1,5\n2024-01-02;2\n2024-01-03;-3,25\n", sep=";", decimal=",")
    assert made.values.ravel().tolist() == [1.5, 2.0, -3.25]
    with pytest.raises(DataError, match="the first '--' in line 3"):
        panel("date;y\n2024-01-01;1,5\n2024-01-02;--\n2024-01-03;-3,25\n", sep=";", decimal=",")
