"""Reading texts: cells stay as written, and no line is lost or joined without a word."""

import csv
import gzip
import io
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import message

from tsformer.data.declarations import TextFileOptions
from tsformer.data.texts import new_texts, plain_lines, read_text, text_table
from tsformer.errors import DataError, UsageError

NOT_BALANCED = ('quotes (") are taken as text, since they do not balance (--data.quoting)',)


def table(text, ending=".csv", named=("a", "b"), **options):
    path = f"texts{ending}"
    return text_table(text, TextFileOptions(path=path, **options), path, named)


def refused(text, ending=".csv", named=("a", "b"), **options):
    with pytest.raises((DataError, UsageError)) as error:
        table(text, ending, named, **options)
    return message(error)


CELLS = st.text(st.characters(exclude_characters="\r\0", exclude_categories=["Cs"]), max_size=20)


@settings(deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8), st.sampled_from([",", ";", "\t"]))
def test_what_the_csv_module_writes_comes_back(rows, sep):
    rows = [("a", "b"), *((f"x{first}", second) for first, second in rows)]
    file = io.StringIO()
    csv.writer(file, delimiter=sep, lineterminator="\n").writerows(rows)
    found = table(file.getvalue(), sep=sep, quoting=True)
    assert [tuple(row) for row in found.rows] == rows[1:]
    ends = [line + sum(cell.count("\n") for cell in row) for line, row in zip(found.lines, rows[1:], strict=True)]
    assert list(found.lines[1:]) == [end + 1 for end in ends[:-1]]


@settings(deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"])), min_size=1))
def test_plain_lines_are_all_there(lines):
    found = plain_lines("\n".join(lines) + "\n", "texts", "text")
    assert found.column("text") == lines
    assert list(found.lines) == list(range(1, len(lines) + 1))


def test_empty_lines_are_empty_texts():
    assert plain_lines("\none\n\n", "texts", "text").column("text") == ["", "one", ""]


def test_cells_are_kept_as_written():
    found = table('a,b\n1,007\n 1.0 ,NA\n"x,""y""",\n')
    assert found.rows == [["1", "007"], [" 1.0 ", "NA"], ['x,"y"', ""]]
    assert (found.names, list(found.lines), found.notes) == (("a", "b"), [2, 3, 4], ())


def test_columns_by_number_when_they_have_no_names():
    found = table("1,title,story\n2,,other\n", named=("1", "3"))
    assert found.names == ("1", "2", "3")
    assert found.column("3") == ["story", "other"]
    assert found.column("2", "3") == ["title story", "other"]
    assert list(found.lines) == [1, 2]


def test_columns_by_number_of_a_table_with_names():
    found = table("kind,what\nx,y\n", named=("2",), header=True)
    assert (found.title("2"), found.column("2")) == ("what", ["y"])


@pytest.mark.parametrize(
    ("ending", "text"), [(".tsv", "a\tb\nx,y\tz\n"), (".txt", "a\tb\nx,y\tz\n"), (".csv", 'a,b\n"x,y",z\n')]
)
def test_what_separates_columns_follows_from_the_file(ending, text):
    assert table(text, ending).rows == [["x,y", "z"]]


def test_quotes_of_a_tsv_that_do_not_balance_are_text():
    found = table('a\tb\n"one\tx\ntwo"\ty\n"three" he said\tz\n', ".tsv")
    assert found.column("a") == ['"one', 'two"', '"three" he said']
    assert found.notes == NOT_BALANCED


def test_quotes_of_a_tsv_that_swallow_whole_lines_are_text():
    found = table('a\tb\nx\t"one\ny\ttwo"\n', ".tsv")
    assert found.rows == [["x", '"one'], ["y", 'two"']]
    assert found.notes == NOT_BALANCED


def test_quotes_of_a_tsv_that_balance_enclose_cells():
    assert table('a\tb\n"say ""hi"""\tx\n', ".tsv").rows == [['say "hi"', "x"]]
    assert table('a\tb\n"say ""hi"""\tx\n', ".tsv", quoting=False).rows == [['"say ""hi"""', "x"]]


def test_a_quote_of_a_csv_that_swallows_lines_is_noticed():
    text = 'a,b\n1,"one\n2,two\n3,three"\n4,four\n'
    assert "a quote makes one row of lines 2 to 4" in refused(text)
    assert table(text, quoting=False).column("b") == ['"one', "two", 'three"', "four"]
    joined = table(text, quoting=True)
    assert joined.rows == [["1", "one\n2,two\n3,three"], ["4", "four"]]
    assert joined.notes == ("1 row(s) go over several lines, as quotes say; the first, lines 2-4",)


def test_texts_of_several_lines_are_one_cell_and_said():
    found = table('a,b\n1,"one\ntwo"\n2,x\n')
    assert found.rows == [["1", "one\ntwo"], ["2", "x"]]
    assert list(found.lines) == [2, 4]
    assert "1 row(s) go over several lines" in found.notes[0]


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ('a,b\n1,"x" y\n', {}, "line 2 cannot be split into cells"),
        ('a,b\n1,x\n2,"y\n3,z\n', {}, "line 3 cannot be split into cells: unexpected end of data"),
        ("a,b\n1,x,y\n", {}, "line 2 has 3 cell(s), line 1 has 2, when split at ','"),
        ("a,b\n1,x\n\n2,y\n", {}, "line 3 is blank, but rows follow it"),
        ("\na,b\n1,x\n", {}, "line 1 is blank"),
        ("a,b\n", {}, "has no rows, only the columns' names: a, b"),
        ("\n\n", {}, "is empty"),
        ("a,b,a\n1,2,3\n", {}, "line 1 names several columns 'a'"),
        ("a,b\n1,2\n", {"header": False}, "--data.header false: columns are given by number, from 1, not as 'a'"),
        ("a,b\n1,2\n", {"sep": "ab"}, "--data.sep 'ab'"),
    ],
)
def test_what_is_no_table_of_texts(text, options, expected):
    assert expected in refused(text, **options)


def test_columns_that_are_not_there():
    found = table("review,label\nx,y\n")
    with pytest.raises(DataError, match="has no column 'reviews', it has review, label; did you mean 'review'"):
        found.column("reviews")
    with pytest.raises(DataError, match="has no column '3'"):
        found.column("3")
    with pytest.raises(DataError, match=r"--data\.sep ';'"):
        table("review;label\nx;y\n").column("review")


def test_a_cell_may_be_longer_than_what_the_csv_module_takes():
    limit = csv.field_size_limit()
    assert table('a,b\n1,"' + "long, " * 50_000 + '"\n').column("b") == ["long, " * 50_000]
    assert csv.field_size_limit() == limit


def test_json_is_no_text(tmp_path):
    (tmp_path / "texts.jsonl").write_text('{"text": "one"}\n')
    with pytest.raises(DataError, match=r"texts\.jsonl is JSON, HTML or XML"):
        read_text(str(tmp_path / "texts.jsonl"))


def test_blank_lines_at_the_end_are_no_rows():
    assert len(table("a,b\n1,x\n\n\n").rows) == 1


def read(tmp_path, content, encoding="utf-8-sig"):
    path = tmp_path / "texts.txt"
    path.write_bytes(content)
    return read_text(path, encoding)


def test_files_as_they_come(tmp_path):
    assert read(tmp_path, b"\xef\xbb\xbfone\r\ntwo\r\n") == "one\ntwo\n"
    assert read(tmp_path, b"one\rtwo\r") == "one\ntwo\n"
    assert read(tmp_path, gzip.compress("好\n".encode())) == "好\n"
    assert read(tmp_path, "好\n".encode("gb18030"), "gb18030") == "好\n"
    assert read(tmp_path, b"<3 this\n{that}\n") == "<3 this\n{that}\n"


@pytest.mark.parametrize(
    ("content", "encoding", "expected"),
    [
        (b"", "utf-8", "is empty"),
        (b"one\n\xff\n", "utf-8", "at byte 4 (line 2)"),
        ("一\n好\n".encode("gb18030"), "utf-8", "gb18030 (Chinese)"),
        (b"one\nt\0wo\n", "utf-8", "NUL character in line 2"),
        (gzip.compress(b"one" * 99, mtime=0)[:-9], "utf-8", "damaged gzip"),
        (b"one", "utf-9", "--data.encoding 'utf-9'"),
    ],
)
def test_files_that_are_no_text(tmp_path, content, encoding, expected):
    with pytest.raises((DataError, UsageError)) as error:
        read(tmp_path, content, encoding)
    assert expected in message(error)


def new(tmp_path, name, content, columns, **options):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    found = new_texts(TextFileOptions(path="fitted.csv", **options), str(path), columns, " ".join(columns))
    return found.names, found.column(*(columns if len(found.names) > 1 else found.names))


def test_new_texts_are_lines_or_a_table(tmp_path):
    assert new(tmp_path, "new.txt", "one, two\n\nthree\n", ("review",)) == (("review",), ["one, two", "", "three"])
    assert new(tmp_path, "new.txt", "id,review\n1,one\n", ("review",)) == (("id", "review"), ["one"])
    assert new(tmp_path, "new.csv", "id,review\n1,one\n", ("review",)) == (("id", "review"), ["one"])
    assert new(tmp_path, "new.tsv", "id\treview\n1\tone\n", ("review",)) == (("id", "review"), ["one"])
    with pytest.raises(DataError, match="has no column 'review'"):
        new(tmp_path, "new.csv", "id,text\n1,one\n", ("review",))


def test_a_first_text_that_holds_the_name_of_the_column(tmp_path):
    lines = "Nice one, review\nbad\n"
    assert new(tmp_path, "new.txt", lines, ("review",)) == (("review",), ["Nice one, review", "bad"])
    prose = "Nice one, review\nbad, too\n"
    assert new(tmp_path, "new.txt", prose, ("review",)) == (("review",), ["Nice one, review", "bad, too"])
    path = tmp_path / "table.txt"
    path.write_text("id,review\n1,one\n", encoding="utf-8")
    (note,) = new_texts(TextFileOptions(path="fitted.csv"), str(path), ("review",), "review").notes
    assert "is read as a table, for its first line holds the name review" in note
    with pytest.raises(DataError, match="line 3"):  # a table with a broken line stays one
        new(tmp_path, "new.txt", "id,review\n1,one\n2,two,three\n", ("review",))


@pytest.mark.parametrize("name", ["new.csv", "new.tsv", "new.txt"])
def test_empty_texts_at_the_end_are_texts(tmp_path, name):
    assert new(tmp_path, name, "review\ngood\n\nbad\n\n\n", ("review",))[1] == ["good", "", "bad", "", ""]


def test_new_texts_by_number(tmp_path):
    assert new(tmp_path, "new.txt", "x\tone\ny\ttwo\n", ("2",)) == (("1", "2"), ["one", "two"])
    assert new(tmp_path, "new.txt", "x\tone\ny\n", ("2",)) == (("2",), ["x\tone", "y"])
    assert new(tmp_path, "new.txt", "a, b\nc, d\n", ("2",)) == (("2",), ["a, b", "c, d"])
    assert new(tmp_path, "new.csv", "x,one\n", ("2",)) == (("1", "2"), ["one"])
    assert new(tmp_path, "new.txt", "a, b\n", ("2",), sep=",") == (("2",), ["a, b"])


def test_new_texts_are_written_like_the_file_of_the_run(tmp_path):
    (tmp_path / "x.txt").write_text("x;one\ny;two\n")
    found = new_texts(TextFileOptions(path="fitted.txt", sep=";"), str(tmp_path / "x.txt"), ("2",), "2")
    assert found.column("2") == ["one", "two"]
    with pytest.raises(DataError, match=r"has no column '2', it has 1: it seems to want --data\.sep ';'"):
        table("x;one\ny;two\n", ".txt", ("2",)).column("2")


def test_stdin(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("好\n\nno".encode())))
    found = new_texts(TextFileOptions(path="fitted.csv"), "-", ("review",), "review")
    assert (found.source, found.column("review")) == ("stdin", ["好", "", "no"])


def test_a_shipped_data_set_gives_way_to_a_file_here(tmp_path, monkeypatch):
    assert read_text("reviews").startswith("review\tsentiment\n")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reviews").write_text("mine\n")
    assert read_text("reviews") == "mine\n"
