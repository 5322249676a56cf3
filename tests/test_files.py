"""Text tables as files, in and out: what is no table, no text, not there or not to be written ends in one line."""

import gzip
import io
import os
import stat
import sys

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import DAYS, message, table

from tsformer.data.frames import (
    read_table,
    write_table,
)
from tsformer.errors import DataError, ResourceError, UsageError

# Files


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b\n", "has no rows, only the columns' names: a, b"),
        ("a,b\n\n,\n", "has no rows"),
        ("a,b,a\n1,2,3\n", "line 1 names 2 columns 'a' (columns 1, 3)"),
        ("a,b\n1,2\n1,2,3\n", "line 3 has 3 cell(s), the columns' names are 2"),
        ("a,b\n1,2\n1\n", "line 3 has 1 cell(s), the columns' names are 2"),
        ("a,b\n1,2\n\n3,4\n", "line 3 is blank, but rows follow it"),
        ("a;b\n1;2\n", "--data.sep ';'"),
        ("a\tb\n1\t2\n", "--data.sep '\\t'"),
        ("2024-01-01,1\n2024-01-02,2\n", "line 1 holds values, not names ('2024-01-01', ...)"),
        ('a,b\n1,"2\n3,4\n', "cannot be split into cells"),
        ('{"a": [1, 2]}\n', "JSON"),
        ("<!DOCTYPE html>\n<p>", "HTML"),
        ("a,b\n1,\0\n", "NUL character in line 2"),
        ("# made by x\na,b\n1,2\n", "remove the comments (#)"),
        ("title,,\na,b,c\n1,2,3\n", "2 columns without a name"),
    ],
)
def test_what_is_no_table(text, expected):
    with pytest.raises(DataError) as error:
        table(text)
    assert expected in message(error)


def test_lines_are_those_of_the_file():
    frame = table('\na,b\n1,"x\ny"\n2,z\n\n,\n\n')
    assert list(frame.index) == [3, 5]
    assert list(frame["b"]) == ["x\ny", "z"]


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30), st.sampled_from(".,"))
def test_numbers_are_exact(values, decimal):
    text = "a;b\n" + "".join(f"{value!r};x\n" for value in values).replace(".", decimal)
    assert list(table(text, sep=";", decimal=decimal)["a"].astype(float)) == values


def test_bytes_bom_gzip_and_encodings(tmp_path):
    plain = "\ufefftag,größe\n2024-01-01,1\n"
    for content, options in [
        (plain.encode(), {}),
        (gzip.compress(plain.encode()), {}),
        (plain[1:].encode("cp1252"), {"encoding": "cp1252"}),
        (plain.encode("utf-16"), {"encoding": "utf-16"}),
        (plain.replace("\n", "\r\n").encode(), {}),
        (plain.replace("\n", "\r").encode(), {}),
    ]:
        path = tmp_path / "table.data"
        path.write_bytes(content)
        assert list(read_table(path, **options).columns) == ["tag", "größe"]
        assert list(read_table(io.BytesIO(content), **options)["größe"]) == [1]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a,b\n1,2\n1,\xe4\n", "is not written in utf-8-sig at byte 10 (line 3)"),
        ("a,b\n1,2\n".encode("utf-16"), "--data.encoding utf-16"),
        (gzip.compress(b"a,b\n1,2\n" * 1000)[:-9], "damaged gzip"),
        (b"PK\x03\x04xxxx", "Excel"),
        (b"PAR1xxxx", "Parquet"),
    ],
)
def test_bytes_that_are_no_text(tmp_path, content, expected):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(DataError) as error:
        read_table(path)
    assert expected in message(error)
    assert str(path) in message(error)


def test_files_that_are_not_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prices.csv").write_text("a\n1\n")
    for path, expected in [
        ("prices.cvs", "there is prices.csv"),
        ("prices", "there is prices.csv"),
        ("nowhere/prices.csv", "there is no folder nowhere"),
        (".", "is a folder: name a file in it (there is prices.csv)"),
        ("zzz", "air_passengers"),
        ("a\0b", "no file"),
        ("x" * 5000, "no file"),
        ("~nobody-of-that-name/x", "no file"),
    ]:
        with pytest.raises(DataError) as error:
            read_table(path)
        assert expected in message(error)


def test_a_file_goes_before_a_data_set_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(read_table("air_passengers")) == 144
    (tmp_path / "air_passengers").write_text("a\n1\n")
    assert len(read_table("air_passengers")) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path):
    path = tmp_path / "secret.csv"
    path.write_text("a\n1\n")
    path.chmod(0)
    with pytest.raises(ResourceError, match="Permission"):
        read_table(path)


def test_stdin(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,2\n")))
    assert read_table("-").shape == (1, 2)


def test_stdin_that_cannot_be_read(monkeypatch):
    closed = io.TextIOWrapper(io.BytesIO(b""))
    closed.close()
    for stdin in (None, closed):
        monkeypatch.setattr(sys, "stdin", stdin)
        with pytest.raises(DataError) as error:
            read_table("-")
        assert "stdin cannot be read" in message(error)


@pytest.mark.parametrize(
    "options",
    [
        *({"sep": sep} for sep in ("ab", "", "1", "\n", '"')),
        *({"decimal": decimal} for decimal in (";", ",")),
        *({"encoding": encoding} for encoding in ("utf-9", "base64")),
    ],
)
def test_options_that_make_no_sense(options):
    with pytest.raises(UsageError, match=r"--data\."):
        table("a,b\n1,2\n", **options)


def test_tab_has_three_spellings():
    for sep in ("\t", r"\t", "tab"):
        assert list(table("a\tb\n1\t2\n", sep=sep).columns) == ["a", "b"]


# Out


def test_what_is_written_reads_the_same(tmp_path):
    frame = pd.DataFrame({"date": DAYS[:2], "y": [0.1 + 0.2, 1e-300]})
    for name in ("out.csv", "out.csv.gz"):
        write_table(frame, tmp_path / name)
        assert list(read_table(tmp_path / name)["y"]) == list(frame["y"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "out.csv.gz"]


def test_stdout(capsys):
    write_table(pd.DataFrame({"y": [0.1 + 0.2]}), "-")
    assert capsys.readouterr().out == "y\n0.30000000000000004\n"


def test_places_that_cannot_be_written(tmp_path):
    frame = pd.DataFrame({"y": [1.0]})
    for place in (tmp_path / "no" / "out.csv", tmp_path, "a\0b", "x" * 5000, "~nobody-of-that-name/x"):
        with pytest.raises(ResourceError) as error:
            write_table(frame, place)
        assert "cannot be written" in message(error)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "out.csv"
    path.write_text("old\n")

    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ResourceError, match="No space left"):
        write_table(pd.DataFrame({"y": [1.0]}), path)
    assert path.read_text() == "old\n"
    assert len(list(tmp_path.iterdir())) == 1


def test_links_and_devices_are_written_to_not_replaced(tmp_path):
    (tmp_path / "real.csv").write_text("old\n")
    (tmp_path / "link.csv").symlink_to("real.csv")
    write_table(pd.DataFrame({"y": [1]}), tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "y\n1\n"
    write_table(pd.DataFrame({"y": [1]}), os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
