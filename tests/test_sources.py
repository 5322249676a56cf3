"""What data plugins hand over, and how new rows and sequences are read for a run."""

import io
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tsformer import Config, DataPlugin, Panel, register, sources
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.panel import Schema
from tsformer.data.sequences import Sequences, SequenceSchema
from tsformer.errors import DataError, PluginError, TsformerError, UsageError

TEXTS = Sequences(SequenceSchema(text="text"), ("1", "2"), texts=("one", "two"))


class NoOptions(Config):
    """None."""


def settings(data, **options):
    task = "classify" if data in ("text", "series") else "forecast"
    values = {"model": {"name": "transformer"}, "data": {"name": data, **options}, "task": task}
    return resolve([Layer(values)])


def mine(own_registry, load, **more):
    register("mine", DataPlugin(config=NoOptions, load=load, example=NoOptions(), **more))
    return resolve([Layer({"model": {"name": "transformer"}, "data": {"name": "mine"}})])


def test_read_by_name(in_tmp):
    Path("t.tsv").write_text("text\tlabel\nok then\t1\n\t0\n")
    found = sources.read("text", path="t.tsv", label="label")
    assert isinstance(found, Sequences)
    assert (found.texts, found.labels) == (("ok then", ""), ("1", "0"))
    assert isinstance(sources.read("sine", points=50), Panel)
    with pytest.raises(UsageError, match="nosuch"):
        sources.read("text", path="t.tsv", nosuch=1)
    with pytest.raises(PluginError, match="nosuch"):
        sources.read("nosuch")


@pytest.mark.parametrize("given", [None, [1.0], np.zeros((3, 1)), {"texts": ("a",)}])
def test_what_is_neither_a_panel_nor_sequences(own_registry, given):
    with pytest.raises(PluginError, match=r"data 'mine'.*not a Panel or Sequences"):
        sources.load_data(mine(own_registry, lambda config: given).data)


def panel_with(value, **more):
    values = np.arange(20.0)[:, None]
    values[5] = value
    times = pd.date_range("2024-01-01", periods=20)
    return Panel(values, np.array([0, 20]), times, ("",), Schema(("y",), "ds", frequency="D"), **more)


def test_what_is_missing_is_behind_a_mask_or_refused(own_registry):
    chosen = mine(own_registry, lambda config: panel_with(np.nan, masked=True))
    assert np.isnan(sources.load_data(chosen.data).values[5, 0])


@pytest.mark.parametrize(("value", "masked"), [(np.nan, False), (np.inf, False), (-np.inf, True)])
def test_what_is_not_finite_is_refused(own_registry, value, masked):
    chosen = mine(own_registry, lambda config: panel_with(value, masked=masked))
    with pytest.raises(TsformerError, match=r"data 'mine' .*(not finite|NaN)"):
        sources.load_data(chosen.data)


def test_what_a_plugin_reads_again_is_checked_too(own_registry):
    chosen = mine(own_registry, lambda config: TEXTS, read=lambda config, source, schema: [source])
    with pytest.raises(PluginError, match="returned list"):
        sources.read_rows(chosen, "file", TEXTS.schema)


def test_sequences_of_a_plugin_pass(own_registry):
    chosen = mine(own_registry, lambda config: TEXTS, defaults=lambda panel: 1 / 0)  # which are for panels
    assert sources.load_data(chosen.data) is TEXTS
    assert sources.read_rows(chosen, None, TEXTS.schema) is TEXTS


def test_a_missing_file_is_named(own_registry):
    def load(config):
        raise FileNotFoundError(2, "No such file", "there.txt")

    chosen = mine(own_registry, load)
    with pytest.raises(DataError, match=r"no file 'there.txt'"):
        sources.load_data(chosen.data)
    with pytest.raises(DataError, match=r"run's own data cannot be read again, give rows with --input.*there.txt"):
        sources.read_rows(chosen, None, TEXTS.schema)


def test_no_data_to_read_again():
    chosen = resolve([Layer({"model": {"name": "transformer"}, "task": "classify"})], needs_data=False)
    with pytest.raises(UsageError, match="--input FILE"):
        sources.read_rows(chosen, None, TEXTS.schema)


def test_new_texts_where_no_plugin_says_how_they_are_written(in_tmp):
    chosen = resolve([Layer({"model": {"name": "transformer"}, "task": "classify"})], needs_data=False)
    Path("lines.txt").write_text("one, two\n\nthree\n")
    found = sources.read_rows(chosen, "lines.txt", SequenceSchema(text="said", label="mood"))
    assert found.texts == ("one, two", "", "three")
    assert found.ids == ("1", "2", "3")
    Path("table.csv").write_text('mood,said\nx,"one, two"\n,three\n')
    found = sources.read_rows(chosen, "table.csv", SequenceSchema(text="said", label="mood"))
    assert (found.texts, found.labels) == (("one, two", "three"), None)
    Path("other.csv").write_text("mood,words\nx,y\n")
    with pytest.raises(DataError, match="said"):
        sources.read_rows(chosen, "other.csv", SequenceSchema(text="said", label="mood"))


def test_new_series_where_no_plugin_says_how_they_are_written(in_tmp):
    chosen = resolve([Layer({"model": {"name": "transformer"}, "task": "classify"})], needs_data=False)
    pd.DataFrame({"who": ["07", "07", "8"], "x": [1.0, np.nan, 3.0]}).to_csv("s.csv", index=False)
    found = sources.read_rows(chosen, "s.csv", SequenceSchema(id="who", label="mood", channels=("x",)))
    assert found.ids == ("07", "8")  # as written
    np.testing.assert_array_equal(found.series.values[:, 0], [1.0, np.nan, 3.0])
    with pytest.raises(DataError, match="arrays from Python"):
        sources.read_rows(chosen, "s.csv", SequenceSchema(channels=("x",)))


def test_texts_from_stdin(in_tmp, monkeypatch):
    Path("t.tsv").write_text("text\tlabel\na\t1\nb\t0\n")
    chosen = settings("text", path="t.tsv", text="text", label="label")
    schema = sources.load_data(chosen.data).schema
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("ä\nb\n".encode()), encoding="utf-8"))
    assert sources.read_rows(chosen, "-", schema).texts == ("ä", "b")


def test_the_runs_own_texts_are_gone(in_tmp):
    Path("t.tsv").write_text("text\tlabel\na\t1\nb\t0\n")
    chosen = settings("text", path="t.tsv", text="text", label="label")
    schema = sources.load_data(chosen.data).schema
    Path("t.tsv").unlink()
    with pytest.raises(DataError, match=r"give rows with --input.*t\.tsv"):
        sources.read_rows(chosen, None, schema)
    with pytest.raises(DataError, match=r"^no file new\.csv"):
        sources.read_rows(chosen, "new.csv", schema)
