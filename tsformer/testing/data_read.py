"""Checks of where a data plugin takes its rows from: files that are not there, and new rows at predict time."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from tsformer.config import validate_options
from tsformer.data.clock import write_times
from tsformer.data.frames import read_panel
from tsformer.data.panel import Panel, Schema
from tsformer.data.sequences import Sequences
from tsformer.data.table_options import TableOptions
from tsformer.errors import TsformerError, in_words
from tsformer.plugin import DataPlugin, option_type
from tsformer.testing.failure import CheckFailedError

NOWHERE = "no_such_file"


def loaded(plugin: DataPlugin) -> Panel:
    """The panel of the plugin's example."""
    panel = plugin.load(plugin.example)
    if not isinstance(panel, Panel):
        raise CheckFailedError(
            f"load returns {type(panel).__name__}, not a Panel; leave forecast out of the tasks of sequences"
            if isinstance(panel, Sequences)
            else f"load returns {type(panel).__name__}, not a Panel"
        )
    return panel


def check_missing_file(plugin: DataPlugin) -> str | None:
    """A file that is not there is named in one line, by an error of tsformer's or by a plain FileNotFoundError."""
    names = file_options(plugin)
    if not names:
        return "no option names a file"
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            here = getattr(plugin.example, name)
            nowhere = str(Path(folder) / f"{NOWHERE}{Path(str(here)).suffix or '.csv'}")

            def load(name: str = name, nowhere: str = nowhere) -> object:
                config = validate_options(plugin.config, "data", {**plugin.example.model_dump(), name: nowhere})
                return plugin.load(config)

            _names_it(load, f"with {name} = a file that is not there, load")
        if plugin.read is not None:
            read, schema = plugin.read, plugin.load(plugin.example).schema
            nowhere = str(Path(folder) / f"{NOWHERE}.csv")
            _names_it(lambda: read(plugin.example, nowhere, schema), "with a source that is not there, read")
    return None


def check_read(plugin: DataPlugin) -> None:
    """Rows at predict time come in the schema's columns, by name: from a CSV file, and by `read` the data once more."""
    panel = loaded(plugin)
    targets = panel.schema.targets[::-1]
    order = [*range(len(targets))[::-1], *range(len(targets), len(panel.schema.columns))]
    schema, wanted = replace(panel.schema, targets=targets), panel.values[:, order]
    if plugin.read is not None:
        try:
            _expect(plugin.read(plugin.example, None, schema), schema, wanted, "read(config, None, schema)")
        except TsformerError as error:
            raise CheckFailedError(
                f"read(config, None, schema) must give the data of the example again, not: {error}"
            ) from error
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "rows.csv")
        table_of(panel).to_csv(file, index=False)
        try:
            if plugin.read is not None:
                rows = plugin.read(plugin.example, file, schema)
            else:
                rows = read_panel(file, schema, TableOptions(missing="mask" if panel.masked else "error"))
        except TsformerError as error:
            if plugin.read is not None:
                return  # it reads files of another kind
            raise CheckFailedError(
                f"rows like those of the example, in a CSV file, are refused at predict time: {error}; are time, id "
                "and frequency in the schema those of the rows?"
            ) from error
        _expect(rows, schema, wanted, "a CSV file with the same rows")


def _expect(rows: object, schema: Schema, wanted: np.ndarray, what: str) -> None:
    if not isinstance(rows, Panel):
        raise CheckFailedError(f"{what} gives {type(rows).__name__}, not a Panel")
    if rows.schema.columns != schema.columns:
        raise CheckFailedError(f"{what} gives columns {rows.schema.columns}, the schema asked for {schema.columns}")
    if rows.values.shape != wanted.shape or not _same(rows.values, wanted):
        raise CheckFailedError(f"{what} gives other values than load; take columns by name, in the schema's order")


def _same(values: np.ndarray, wanted: np.ndarray) -> bool:
    return np.allclose(values, wanted, rtol=1e-12, atol=0, equal_nan=True)


def table_of(panel: Panel) -> pd.DataFrame:
    """A panel as the table that a user would give; aware times in UTC, for in a file all rows share one offset."""
    schema = panel.schema
    columns: dict[str, object] = {}
    if schema.id is not None:
        columns[schema.id] = np.repeat(np.asarray(panel.ids, dtype=object), panel.lengths)
    if schema.time is not None:
        columns[schema.time] = panel.times
        if isinstance(panel.times, pd.DatetimeIndex):
            if schema.time_format is not None:
                columns[schema.time] = write_times(panel.times, schema.time_format)
            elif panel.times.tz is not None:
                columns[schema.time] = panel.times.tz_convert("UTC")
    columns |= dict(zip(schema.columns, panel.values.T, strict=True))
    if panel.static is not None:
        columns |= {name: np.repeat(panel.static[name].array, panel.lengths) for name in schema.static_covariates}
    return pd.DataFrame(columns)


def file_options(plugin: DataPlugin) -> list[str]:
    """Options that are paths: by their type, or text that is called like one."""

    def is_file(name: str, words: str) -> bool:
        return words == "PATH" or (words == "TEXT" and name.split("_")[-1] in ("path", "file", "filename", "folder"))

    kinds = {name: option_type(field.annotation) for name, field in plugin.config.model_fields.items()}
    return [name for name, kind in kinds.items() if not kind.many and is_file(name, kind.words)]


def _names_it(call: Callable[[], object], doing: str) -> None:
    try:
        call()
    except (TsformerError, FileNotFoundError) as error:
        if NOWHERE not in str(error):
            raise CheckFailedError(f"{doing} raises {type(error).__name__} without naming the file: {error}") from error
    except Exception as error:
        raise CheckFailedError(
            f"{doing} raises {in_words(error)}; raise DataError or FileNotFoundError that names the file"
        ) from error
    else:
        raise CheckFailedError(f"{doing} returns data; raise DataError or FileNotFoundError that names the file")
