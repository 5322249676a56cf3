"""The series plugin: .ts files and long tables in, labelled series out."""

import gzip
import io
import sys

import numpy as np
import pytest
from pydantic import ValidationError
from tables import message
from tsformer_plugins.data.series import SeriesConfig, plugin

from tsformer.data.sequences import TEST, TRAIN
from tsformer.errors import DataError

TS = "@univariate false\n@classLabel true up down\n@data\n"
TABLE = "id;step;label;x;y\n7;1;up;2;1,5\n7;0;up;1;0,5\n8;0;down;3;2,5\n"
COLUMNS = {"sep": ";", "decimal": ",", "id": "id", "time": "step", "label": "label"}


def write(path, content):
    path.write_text(content, encoding="utf-8")
    return str(path)


def refused(config, source=None, schema=None):
    with pytest.raises(DataError) as error:
        plugin.load(config) if schema is None else plugin.read(config, source, schema)
    return message(error)


def test_a_ts_file(tmp_path):
    found = plugin.load(SeriesConfig(path=write(tmp_path / "X.ts", TS + "1,2:3,?:up\n5:6:down\n")))
    assert (found.ids, found.labels, found.parts) == (("1", "2"), ("up", "down"), None)
    assert found.schema.channels == ("channel_1", "channel_2")
    assert found.schema.label == "class"
    assert np.array_equal(found.series.values, [[1, 3], [2, np.nan], [5, 6]], equal_nan=True)
    assert found.series.lengths.tolist() == [2, 1]


def test_training_and_test_part(tmp_path):
    train = write(tmp_path / "X_TRAIN.ts", TS + "1,2:up\n3,4:?\n5,6:down\n")
    test = tmp_path / "X_TEST.ts.gz"
    test.write_bytes(gzip.compress((TS + "7:down\n8,9:up\n").encode()))
    found = plugin.load(SeriesConfig(path=train, test=str(test)))
    assert found.ids == ("1", "3", "TEST:1", "TEST:2")
    assert found.parts.tolist() == [TRAIN, TRAIN, TEST, TEST]
    assert found.parts.dtype == np.int8
    assert found.labels == ("up", "down", "down", "up")
    assert [one.ravel().tolist() for one in map(found.series.__getitem__, range(4))] == [[1, 2], [5, 6], [7], [8, 9]]
    assert found.schema.channels == ("value",)
    assert found.notes == ("1 series without a class are left out",)


def test_new_ts_files(tmp_path):
    config = SeriesConfig(path=write(tmp_path / "X.ts", TS + "1:up\n2:down\n"))
    schema = plugin.load(config).schema
    plain = write(tmp_path / "new.ts", "@data\n7,8\n9\n")
    found = plugin.read(config, plain, schema)
    assert (found.ids, found.labels, found.schema) == (("1", "2"), None, schema)
    half = plugin.read(config, write(tmp_path / "half.ts", TS + "1:up\n2:?\n"), schema)
    assert (len(half), half.labels) == (2, None)
    assert plugin.read(config, write(tmp_path / "all.ts", TS + "1:up\n"), schema).labels == ("up",)
    assert plugin.read(config, None, schema).labels == ("up", "down")
    wide = write(tmp_path / "wide.ts", TS + "1:2:up\n")
    assert f"{wide} has 2 channel(s), the model knows 1" in refused(config, wide, schema)
    assert "no .ts file" in refused(config, write(tmp_path / "new.csv", TABLE), schema)


def test_parts_that_do_not_go_together(tmp_path):
    train = write(tmp_path / "A.ts", TS + "1:up\n")
    wide = write(tmp_path / "B.ts", TS + "1:2:up\n")
    bare = write(tmp_path / "C.ts", "@data\n1\n")
    empty = write(tmp_path / "D.ts", TS + "1:?\n")
    assert f"{wide} has 2 channel(s), {train} has 1" in refused(SeriesConfig(path=train, test=wide))
    assert f"one of {train} and {bare} has classes, the other has none" in refused(SeriesConfig(path=train, test=bare))
    assert "has no class in any line" in refused(SeriesConfig(path=empty))
    assert plugin.load(SeriesConfig(path=bare)).labels is None


def test_a_table(tmp_path):
    path = write(tmp_path / "x.csv", TABLE)
    config = SeriesConfig(path=path, **COLUMNS)
    found = plugin.load(config)
    assert (found.ids, found.labels) == (("7", "8"), ("up", "down"))
    assert found.series.values.tolist() == [[1, 0.5], [2, 1.5], [3, 2.5]]
    chosen = plugin.load(SeriesConfig(path=path, channels="y, x", **COLUMNS))
    assert chosen.schema.channels == ("y", "x")
    new = write(tmp_path / "new.csv", "y;x;id;step\n1,5;1;a;0\n")
    later = plugin.read(config, new, found.schema)
    assert (later.ids, later.labels, later.series.values.tolist()) == (("a",), None, [[1, 1.5]])
    assert "is a .ts file, but the model knows a table" in refused(config, "new.ts", found.schema)


def test_a_tsv_is_separated_by_tabs(tmp_path):
    path = write(tmp_path / "x.tsv", "id\tv\tsaid\na\t1\tone, two\na\t2\t\n")
    found = plugin.load(SeriesConfig(path=path, id="id", text="said"))
    assert (found.series.values.ravel().tolist(), found.texts) == ([1, 2], ("one, two", ""))


def test_stdin(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TABLE.encode())))
    config = SeriesConfig(path="-", **COLUMNS)
    found = plugin.load(config)
    assert found.ids == ("7", "8")
    assert "it was fitted on stdin" in refused(config, None, found.schema)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"path": "x.csv"}, "a table of series needs the column that tells them apart: --id"),
        ({"path": "X.ts", "id": "a", "sep": ";"}, "a .ts file has no columns: leave out id a, sep ;"),
        ({"path": "x.csv", "id": "a", "test": "X_TEST.ts"}, "test goes with .ts files"),
        ({"path": "X_TRAIN.ts.gz", "test": "x.csv"}, "test goes with .ts files"),
    ],
)
def test_options_that_do_not_go_together(options, expected):
    with pytest.raises(ValidationError, match=expected):
        SeriesConfig(**options)


def test_the_example_is_shipped(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = plugin.load(plugin.example)
    assert found.ids[:2] == ("s01", "s02")
    assert set(found.labels) == {"bell", "cylinder", "funnel"}
