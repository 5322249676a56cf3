"""Tables as files, in and out: what is no table, not there or not to be written ends in one line."""

import bz2
import gzip
import io
import lzma
import os
import stat
import sys
import zipfile

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import DAYS, message, table

from tsformer.data.files import content_of, write_table
from tsformer.data.table_options import TableOptions
from tsformer.errors import DataError, ResourceError, UsageError
from tsformer.tables import container
from tsformer.tables.files import read_file, read_table

CSV = b"a,b\n1,2\n3,4\n"


def zipped(**members):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            member = zipfile.ZipInfo(name.replace("__", "/"))  # whose bytes do not tell when they were made
            archive.writestr(member, content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


# In


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b\n", "has no rows, only the columns' names: a, b"),
        ("a,b\n\n,\n", "has no rows"),
        ("a,b\n1,2\n1,2,3\n", "line 3 has 3 cell(s), the columns' names are 2"),
        ("a,b\n1,2\n1\n", "line 3 has 1 cell(s), the columns' names are 2"),
        ("a,b\n1,2\nx\n3,4\n", "line 3 has 1 cell(s)"),
        ("a,b\n1,2,3\n4,5,6\n", "line 2 has 3 cell(s), the names in line 1 are 2"),
        ("y\n1,5\n2,5\n", "line 2 has 2 cell(s), the names in line 1 are 1"),
        ('a,b\n1,"2\n3,4\n', "cannot be split into cells"),
        ('{"a": [1, 2]}\n', "JSON"),
        ("[{}]", "JSON"),
        ("<!DOCTYPE html>\n<p>", "HTML"),
        ("a,b\n1,\0\n", "NUL character in line 2"),
    ],
)
def test_what_is_no_table(text, expected):
    with pytest.raises(DataError) as error:
        table(text)
    assert expected in message(error)


def test_a_wrong_separator_names_the_right_one():
    with pytest.raises(DataError) as error:
        table("a;b\n1;2\n", sep="|")
    assert "--data.sep ';'" in message(error)
    assert error.value.finding.options == {"data.sep": ";"}


def test_lines_are_those_of_the_file():
    frame = table('\na,b\n1,"x\ny"\n2,z\n\n,\n\n')
    assert list(frame.index) == [3, 5]
    assert list(frame["b"]) == ["x\ny", "z"]


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30), st.sampled_from(".,"))
def test_numbers_are_exact(values, decimal):
    text = "a;b\n" + "".join(f"{value!r};x\n" for value in values).replace(".", decimal)
    assert list(table(text, sep=";", decimal=decimal)["a"].astype(float)) == values


def test_whole_numbers_beyond_what_a_float_holds_are_exact():
    frame = table("a,b\n9007199254740993,1\n-9223372036854775808,2\n")
    assert frame["a"].dtype == "int64"
    assert list(frame["a"]) == [9007199254740993, -(2**63)]


def test_cells_are_as_written_where_they_are_no_plain_numbers():
    frame = table("code,flag,none,word\n007,TRUE,None,NA\n100,FALSE,,x\n", text=("word",))
    assert list(frame["code"]) == ["007", "100"]
    assert list(frame["flag"]) == ["TRUE", "FALSE"]
    assert frame["none"].isna().all()
    assert list(frame["word"]) == ["NA", "x"]
    assert all(frame[name].dtype == object for name in ("code", "flag", "word"))


def test_only_the_columns_that_are_needed():
    frame = read_file(io.BytesIO(b"a,b,c\n1,x,2\n"), TableOptions(), columns=["c", "nowhere"]).frame
    assert list(frame.columns) == ["c"]
    assert list(frame.index) == [2]


def test_bytes_bom_and_encodings(tmp_path):
    plain = "\ufefftag,größe\n2024-01-01,1\n"
    for content, options in [
        (plain.encode(), {}),
        (plain[1:].encode("cp1252"), {"encoding": "cp1252"}),
        (plain[1:].encode("cp1252"), {}),
        (plain.encode("utf-16"), {"encoding": "utf-16"}),
        (plain.encode("utf-16"), {}),
        (plain.replace("\n", "\r\n").encode(), {}),
        (plain.replace("\n", "\r").encode(), {}),
    ]:
        path = tmp_path / "table.data"
        path.write_bytes(content)
        assert list(read_table(path, **options).columns) == ["tag", "größe"]
        assert list(read_table(io.BytesIO(content), **options)["größe"]) == [1]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (gzip.compress(CSV, mtime=0), "gzip"),
        (bz2.compress(CSV), "bzip2"),
        (lzma.compress(CSV), "xz"),
        (zipped(**{"x.csv": CSV}), "zip"),
        (zipped(**{"folder__x.csv": CSV, "__MACOSX__._x.csv": b"junk"}), "zip"),
        (zipped(**{"x.csv.gz": gzip.compress(CSV, mtime=0)}), "zip"),
    ],
)
def test_packed_tables(content, kind):
    raw = read_file(io.BytesIO(content), TableOptions())
    assert raw.frame.to_numpy().tolist() == [[1, 2], [3, 4]]
    assert raw.form["container"] == kind


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a,b\n1,2\n1,\xa0\x81\xff\xfe\x90\n", "at byte 10 (line 3): give its encoding"),
        (gzip.compress(b"a,b\n1,2\n" * 1000, mtime=0)[:-9], "damaged gzip"),
        (bz2.compress(CSV)[:-9], "damaged bzip2"),
        (zipped(**{"x.csv": CSV})[:-9], "damaged zip"),
        (b"PK\x03\x04xxxx", "damaged zip"),
        (zipped(**{"a.csv": CSV, "b.csv": CSV}), "a zip of 2 files (a.csv, b.csv), not one table"),
        (zipped(), "a zip of no file"),
        (zipped(**{"[Content_Types].xml": b"<", "xl__workbook.xml": b"<"}), "a workbook (Excel"),
        (b"\xd0\xcf\x11\xe0xxx", "Excel"),
        (b"PAR1xxxx", "damaged Parquet"),
        (b"\x89HDF\r\n", "HDF5"),
        (b"%PDF-1.7", "a PDF"),
    ],
)
def test_bytes_that_are_no_table(tmp_path, content, expected):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(DataError) as error:
        read_table(path)
    assert expected in message(error)
    assert str(path) in message(error)


@pytest.mark.parametrize("content", [gzip.compress(bytes(10**6), mtime=0), zipped(**{"x.csv": bytes(10**6)})])
def test_bombs_are_not_unpacked(content, monkeypatch):
    monkeypatch.setattr(container, "LARGEST", 10**5)
    with pytest.raises(DataError, match="GiB when unpacked"):
        read_table(io.BytesIO(content))


def test_an_encoding_that_is_wrong():
    with pytest.raises(DataError) as error:
        read_table(io.BytesIO(b"a,b\n1,2\n1,\xe4\n"), encoding="utf-8")
    assert "is not written in utf-8 at byte 10 (line 3)" in message(error)
    with pytest.raises(DataError, match=r"--data\.encoding utf-16"):
        read_table(io.BytesIO("a,b\n1,2\n".encode("utf-16")), encoding="utf-8")


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
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(CSV))))
    assert read_table("-").shape == (2, 2)


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
        {"decimal": ";"},
        {"sep": ",", "decimal": ","},
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


def test_a_device_is_no_file():
    with pytest.raises(DataError, match="/dev/zero is a device, not a file"):
        content_of("/dev/zero")
    assert content_of("/dev/null") == b""
