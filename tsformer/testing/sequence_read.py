"""Checks of new sequences at predict time: from a file, with and without labels or answers."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.ragged import offsets_of
from tsformer.data.sequences import Sequences
from tsformer.errors import TsformerError
from tsformer.plugin import DataPlugin
from tsformer.registry import Kind
from tsformer.settings import Chosen
from tsformer.sources import read_rows
from tsformer.testing.failure import CheckFailedError


def loaded(plugin: DataPlugin) -> Sequences:
    """The sequences of the plugin's example."""
    found = plugin.load(plugin.example)
    if not isinstance(found, Sequences):
        raise CheckFailedError(
            f"load returns {type(found).__name__}, not Sequences; rows of a table (Panel) are for plugins with "
            "forecast among their tasks"
        )
    return found


def check_read(plugin: DataPlugin) -> None:
    """New examples come by the schema's columns in their order, with labels or answers and without them."""
    sequences = loaded(plugin)
    schema = sequences.schema
    if plugin.read is not None:
        try:
            again = plugin.read(plugin.example, None, schema)
        except TsformerError as error:
            raise CheckFailedError(
                f"read(config, None, schema) must give the data of the example again, not: {error}"
            ) from error
        _expect(again, sequences, "read(config, None, schema)")
    turned = _turned(sequences)
    unlabelled = replace(turned, labels=None, targets=None)
    with tempfile.TemporaryDirectory() as folder:
        for name, wanted in {"with labels or answers": turned, "without labels or answers": unlabelled}.items():
            file = str(Path(folder) / f"{len(name)}.csv")
            table_of(wanted).to_csv(file, index=False)
            what = f"a CSV file {name}"
            try:
                found = _read(plugin, file, sequences)
            except TsformerError as error:
                if plugin.read is not None and wanted is turned:
                    return  # it reads files of another kind
                raise CheckFailedError(f"{what} is refused at predict time: {error}") from error
            # where nobody says how they are written, new examples are only answered, not judged
            _expect(found, unlabelled if plugin.read is None else wanted, what, answers=plugin.read is not None)


def _read(plugin: DataPlugin, file: str, sequences: Sequences) -> object:
    if plugin.read is not None:
        return plugin.read(plugin.example, file, sequences.schema)
    settings = resolve([Layer({"model": {"name": "transformer"}})], needs_data=False)
    settings = replace(settings, data=Chosen(Kind.DATA, "example", plugin, plugin.example))
    return read_rows(settings, file, sequences.schema)


def _expect(found: object, wanted: Sequences, what: str, answers: bool = True) -> None:
    if not isinstance(found, Sequences):
        raise CheckFailedError(f"{what} gives {type(found).__name__}, not Sequences")
    if found.schema.channels != wanted.schema.channels:
        raise CheckFailedError(
            f"{what} gives channels {found.schema.channels}, the schema asked for {wanted.schema.channels}"
        )
    if len(found) != len(wanted) or found.texts != wanted.texts:
        raise CheckFailedError(f"{what} gives other texts than load, or in another order; keep the order of the source")
    if wanted.series is not None:
        series = found.series
        same = series is not None and np.array_equal(series.offsets, wanted.series.offsets)
        same = same and series is not None and np.allclose(
            series.values, wanted.series.values, rtol=1e-12, atol=0, equal_nan=True
        )  # fmt: skip
        if not same or (wanted.schema.id is not None and found.ids != wanted.ids):
            raise CheckFailedError(
                f"{what} gives other series than load, or in another order; take channels by name, and keep the order"
            )
    for name in ("labels", "targets") if answers else ():
        if getattr(found, name) != getattr(wanted, name):
            there = "none" if getattr(found, name) is None else "others"
            raise CheckFailedError(f"{what} should give the {name} that stand there, if any, and gives {there}")


def _turned(sequences: Sequences) -> Sequences:
    """The same examples, the last one first."""
    order = np.arange(len(sequences))[::-1]
    texts, series = sequences.texts, sequences.series
    if texts is not None and series is not None:
        texts = tuple(text for i in order for text in texts[series.offsets[i] : series.offsets[i + 1]])
    elif texts is not None:
        texts = texts[::-1]
    return replace(
        sequences,
        ids=sequences.ids[::-1],
        texts=texts,
        series=None if series is None else series.take(order),
        labels=None if sequences.labels is None else sequences.labels[::-1],
        targets=None if sequences.targets is None else sequences.targets[::-1],
        parts=None,
    )


def table_of(sequences: Sequences) -> pd.DataFrame:
    """Sequences as the table that a user would give: a row for each text, or for each step of a series."""
    schema, series = sequences.schema, sequences.series
    lengths = np.ones(len(sequences), dtype=np.int64) if series is None else series.lengths
    columns: dict[str, object] = {}

    def add(name: str | None, cells: object) -> None:
        if name is not None and cells is not None:
            columns[name] = cells

    def repeated(words: tuple[str, ...] | None) -> object:
        return None if words is None else np.repeat(np.asarray(words, dtype=object), lengths)

    add(schema.id, repeated(sequences.ids))
    step = np.arange(lengths.sum()) - np.repeat(offsets_of(lengths)[:-1], lengths)
    add(schema.time, pd.Timestamp("2024-01-01") + pd.to_timedelta(step, unit="D"))
    add(schema.text, sequences.texts)
    add(schema.label, repeated(sequences.labels))
    add(schema.target, repeated(sequences.targets))
    for number, name in enumerate(schema.channels):
        add(name, None if series is None else series.values[:, number])
    return pd.DataFrame(columns)
