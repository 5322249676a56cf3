"""The outline of a text table: separator, names, and what stands above, between and below the rows."""

import io

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsformer.data.table_options import TableOptions
from tsformer.errors import DataError, TsformerError
from tsformer.tables.files import read_file


def read(text, **options):
    return read_file(io.StringIO(text), TableOptions(**options))


def kinds(raw):
    return [note.kind for note in raw.notes]


@pytest.mark.parametrize(
    ("text", "separator", "columns"),
    [
        ("a,b\n1,2\n3,4\n", ",", 2),
        ("a;b;c\n1,5;2;x\n3,5;4;y\n", ";", 3),
        ("a\tb\n1,5\t2\n3,5\t4\n", "\t", 2),
        ("a|b\n1|2\n", "|", 2),
        (" a   b  c\n 1  22  3\n 4   5 66\n", " ", 3),
        ("2020;1,5\n2021;2,5\n", ";", 2),
        ("when\n2024-01-01\n2024-01-02\n", ",", 1),
        ('a,b\n"x;y;z",2\n"u;v;w",4\n', ",", 2),
    ],
)
def test_separators(text, separator, columns):
    raw = read(text)
    assert raw.form["separator"] == separator
    assert raw.frame.shape[1] == columns
    assert ("separator" in kinds(raw)) == (separator != ",")


@pytest.mark.parametrize(
    ("text", "names", "lines", "said"),
    [
        ("Category: All categories,,,\nmonth,a,b,c\n2004-01,1,2,3\n", ["month", "a", "b", "c"], [3], ["preamble"]),
        (
            '"Source","World",\n\n"Updated","2023",\n\n"Name","1960","1961",\n"A","1","2",\n"B","3","4",\n',
            ["Name", "1960", "1961"],
            [6, 7],
            ["preamble"],
        ),
        ('723,"PLACE",-5.0\nDate,Time,a,b\n01/01/88,01:00,1,2\n01/02/88,01:00,3,4\n', None, [3, 4], ["preamble"]),
        ("# made by x\na,b\n1,2\n", ["a", "b"], [3], []),
        ("# made by x\n# a,b\n1,2\n3,4\n", ["a", "b"], [3, 4], []),
        ("# made\n\n" * 400 + "a,b\n1,2\n", ["a", "b"], [802], []),
        ("#,a\n1,2\n3,4\n", ["Unnamed: 0", "a"], [2, 3], []),
        ("a,b\n1,2\n# half-way\n3,4\n", ["a", "b"], [2, 4], ["comment"]),
        ("t,power\nUTC,MW\n2020-01-01,1\n2020-01-02,2\n", ["t", "power"], [3, 4], ["units"]),
        ("t;a;b\n;;\n01.01.2017;1;2\n02.01.2017;3;4\n", ["t", "a", "b"], [3, 4], ["separator"]),
        ("P,Close,Close\nT,AAPL,MSFT\n2020-01-01,1,2\n", ["P T", "Close AAPL", "Close MSFT"], [3], ["joined_names"]),
        ("a,b,a\n1,2,3\n", ["a", "b", "a.2"], [2], ["repeated_names"]),
        ("a,b\n1,2\n\n3,4\n", ["a", "b"], [2, 4], ["blank"]),
        ("a,b,c\n1,2,3\n,,\n3,4,5\n,,\n", ["a", "b", "c"], [2, 4], ["blank"]),
        ("a,b,\n1,2,\n3,4,\n", ["a", "b"], [2, 3], []),
        ("a,b\n1,2,\n3,4,,\n", ["a", "b"], [2, 3], []),
        ("a,b,\n1,2\n3,4\n", ["a", "b"], [2, 3], []),
        ("Month,n\n1960-01,6\n1960-02,7\n\nRidership, in total\n", ["Month", "n"], [2, 3], ["footer"]),
        ("day,a,b\n2020-01-01,1,2\nSource: somebody\n", ["day", "a", "b"], [2], ["footer"]),
        ("day,a\n2020-01-01,1\nTotal:,1\n", ["day", "a"], [2], ["footer"]),
        (",0\n1821,269\n1822,321\n", ["Unnamed: 0", "0"], [2, 3], []),
        ("id,2000,2001,2002\nx,1,2,3\ny,4,5,6\n", ["id", "2000", "2001", "2002"], [2, 3], []),
        ("Station,Basel\nUnit,m\n\nDay,Value\n2020-01-01,5\n2020-01-02,6\n", ["Day", "Value"], [5, 6], ["preamble"]),
        (
            "Latitude,47.5\nPlace,Basel\nDate,Value\n2020-01-01,5\n2020-01-02,6\n",
            ["Date", "Value"],
            [4, 5],
            ["preamble"],
        ),
        ("sep=;\nday;n\n2020-01-01;5\n2020-01-02;6\n", ["day", "n"], [3, 4], ["separator", "preamble"]),
        ("day,n\n2020-01-01,5\nday,n\n2020-01-02,6\n", ["day", "n"], [2, 4], ["names"]),
        ("2024-01-01,1\n2024-01-02,2\n", ["c1", "c2"], [1, 2], ["no_header"]),
        ("A,2020-01-01,1.5\nA,2020-01-02,2\n", ["c1", "c2", "c3"], [1, 2], ["no_header"]),
    ],
)
def test_names_and_rows(text, names, lines, said):
    raw = read(text)
    assert names is None or list(raw.frame.columns) == names
    assert list(raw.frame.index) == lines
    assert kinds(raw) == said


@pytest.mark.parametrize(
    ("text", "lines", "said"),
    [
        ("id,date,y\n#1,2024-01-01,1\nB,2024-01-01,2\nC,2024-01-01,3\n", [2, 3, 4], ["hashes"]),
        ("id,date,y\nB,2024-01-01,1\n#1,2024-01-01,\nC,2024-01-01,3\n", [2, 3, 4], ["hashes"]),
        ("id,date,y\nB,2024-01-01,1\n#old,2024-01-01,gone\nC,2024-01-01,3\n", [2, 4], ["comment"]),
        ("id,y\nB,1\n# moved to Rome,2024\nC,3\n", [2, 4], ["hidden"]),
        ("date,y\n#2024-01-01,1\n2024-01-02,2\n2024-01-03,3\n", [3, 4], ["hidden"]),
        ("date,y\n2024-01-01,1\n# 2024-01-02,2\n2024-01-03,3\n", [2, 4], ["hidden"]),
        ("date,y\n# measured by hand\n2024-01-01,1\n2024-01-02,2\n", [3, 4], ["comment"]),
        ("#2024-01-01,1\n2024-01-02,2\n2024-01-03,3\n", [2, 3], ["no_header", "hidden"]),
        ("#1,2024-01-01,1\nB,2024-01-01,2\nC,2024-01-01,3\n", [1, 2, 3], ["no_header", "hashes"]),
        ("t,power\nUTC,MW\n# x\n2020-01-01,1\n2020-01-02,2\n", [4, 5], ["units", "comment"]),
        ('"a\nb",y\n\n# x\n1,2\n3,4\n', [5, 6], ["comment"]),
    ],
)
def test_lines_that_begin_with_a_hash(text, lines, said):
    raw = read(text)
    assert list(raw.frame.index) == lines
    assert kinds(raw) == said
    assert [note.level for note in raw.notes if note.kind == "hidden"] == ["doubt"] * said.count("hidden")
    written = text.split("\n")
    assert [str(cell) for cell in raw.frame.iloc[:, 0]] == [written[line - 1].split(",")[0] for line in lines]


@pytest.mark.parametrize(
    ("text", "said"),
    [("0,1\n5,6\n7,8\n", True), ("2020,2021\n5,6\n7,8\n", True), (",0\n5,6\n7,8\n", False)],
)
def test_numbers_that_are_taken_for_names_are_said(text, said):
    raw = read(text)
    assert list(raw.frame.index) == [2, 3]
    assert kinds(raw) == ["numbers_as_names"] * said


def test_a_blank_line_in_a_table_of_one_column_is_a_missing_value():
    frame = read("y\n1\n\n3\n\n").frame
    assert list(frame.index) == [2, 3, 4]
    assert list(frame["y"].isna()) == [False, True, False]


def test_the_header_is_where_the_user_says():
    assert list(read("x,y\n1,2\n", header=0).frame["c1"]) == ["x", "1"]
    assert list(read("1,2\n3,4\n", header=1).frame.columns) == ["1", "2"]
    assert list(read("a,b\nc,d\n1,2\n", header=2).frame.columns) == ["c", "d"]
    with pytest.raises(DataError, match="no names in line 9"):
        read("a,b\n1,2\n", header=9)


def test_cells_agree_with_pandas_where_the_outline_is_given():
    text = "site,1,2\nday;n\nUTC;MW\n" + "".join(f"2020-01-{day:02};{day / 8}\n" for day in range(1, 29)) + "\n"
    ours = read(text).frame
    theirs = pd.read_csv(io.StringIO(text), sep=";", skiprows=[0, 2])
    assert list(ours["n"]) == list(theirs["n"])
    assert list(ours["day"]) == list(theirs["day"])
    assert list(ours.index) == list(range(4, 32))


CELLS = st.text(st.sampled_from("ab1.,;\t|\"' \n\r#%-é\0{[<\u2028"), max_size=6)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.lists(CELLS, max_size=4), max_size=8), st.sampled_from(",;\t|"), st.sampled_from(["\n", "\r\n", "\r"])
)
def test_any_text_is_a_table_or_refused_in_one_line(rows, sep, end):
    text = end.join(sep.join(row) for row in rows)
    for content in (io.StringIO(text), io.BytesIO(text.encode("utf-16")), io.BytesIO(text.encode("cp1252", "ignore"))):
        frame = table_or_error(content)
        if isinstance(frame, TsformerError):
            assert "\n" not in str(frame)
        else:
            assert frame.index.is_monotonic_increasing
            assert frame.columns.is_unique


def table_or_error(content):
    try:
        return read_file(content, TableOptions()).frame
    except TsformerError as error:
        return error
