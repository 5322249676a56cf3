"""From a data plugin: a panel or sequences, as they are read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from tsformer import registry
from tsformer.config import validate_options
from tsformer.data import new_rows
from tsformer.data.continuation import continued
from tsformer.data.declarations import TextFileOptions
from tsformer.data.frames import read_panel, read_table
from tsformer.data.long_series import series_with_schema
from tsformer.data.panel import Panel, Schema
from tsformer.data.sequences import Sequences, SequenceSchema
from tsformer.data.table_options import TableOptions
from tsformer.data.texts import new_texts
from tsformer.errors import DataError, PluginError, UsageError
from tsformer.registry import Kind
from tsformer.settings import Chosen, Settings


def read(name: str, **options: Any) -> Panel | Sequences:
    """Load data by a data plugin's name: `read("csv", path="air_passengers")`.

    Raises:
        PluginError: unknown plugin.
        UsageError: options that it does not take.
        DataError: data that cannot be taken.
    """
    plugin = registry.get(Kind.DATA, name)
    return load_data(Chosen(Kind.DATA, name, plugin, validate_options(plugin.config, "data", options)))


def load_data(data: Chosen | None) -> Panel | Sequences:
    """What a data plugin holds: a panel, with the windows that it recommends, or sequences.

    Raises:
        UsageError: None, as in a run that was fitted on rows from Python.
        DataError: data that cannot be taken.
    """
    if data is None:
        raise UsageError("this run was fitted on rows from Python: give rows, by --input FILE, or a table in Python")
    with data.at_fault("load"), _missing_file_named():
        found = data.plugin.load(data.config)
    panel = _checked(found, data)
    if isinstance(panel, Sequences) or not data.plugin.defaults:
        return panel
    with data.at_fault("defaults"):
        return replace(panel, defaults=data.plugin.defaults(panel))


def read_rows(settings: Settings, source: str | None, schema: Schema | SequenceSchema) -> Panel | Sequences:
    """New rows or sequences in the columns of a schema: from a file or "-" (stdin), or the run's own data when None.

    Raises:
        DataError: rows that cannot be taken.
    """
    try:
        found = _rows(settings, source, schema)
    except DataError as error:
        if source is None or error.finding is None or not error.finding.options:
            raise
        # What `fit` takes for an option is settled here by the run.
        text = f"{error} (options are those of the fit: correct the rows, or fit again with others)"
        raise DataError(text, finding=error.finding) from None
    wanted = Panel if isinstance(schema, Schema) else Sequences
    if not isinstance(found, wanted):
        raise PluginError(f"{settings.data} read {type(found).__name__}, and the run was fitted on {wanted.__name__}")
    return found


def read_future(settings: Settings, source: str, schema: Schema) -> Panel:
    """What is known ahead, from a file or "-" (stdin), read like the table that the run was fitted on.

    Raises:
        DataError: rows that cannot be taken.
    """
    return new_rows.read_future(source, schema, policies(settings, schema))


def read_test(settings: Settings, source: str, panel: Panel) -> Panel:
    """The data with the rows of a test file, or "-" (stdin), after those of each series; see `continued`.

    What is known of whole series is that of the data.

    Raises:
        DataError: rows that cannot be taken, of other series or times, or without a column of the data.
    """
    found = read_rows(settings, source, replace(panel.schema, static_covariates=()))
    if not isinstance(found, Panel):
        raise PluginError(f"{settings.data} read {type(found).__name__} from {source!r}, not a Panel")
    return replace(continued(panel, found, source), notes=(*panel.notes, *found.notes))


def policies(settings: Settings, schema: Schema) -> TableOptions:
    """How new rows are read, like the table that the run was fitted on: from a file, or one in memory."""
    config = settings.data.config if settings.data else None
    return config if isinstance(config, TableOptions) else TableOptions.model_validate(schema.policies)


def _rows(settings: Settings, source: str | None, schema: Schema | SequenceSchema) -> Panel | Sequences:
    data = settings.data
    try:
        if data is not None and data.plugin.read is not None:
            with data.at_fault("read"), _missing_file_named():
                found = data.plugin.read(data.config, source, schema)
            return _checked(found, data)
        if source is None:
            return load_data(data)
        if isinstance(schema, Schema):
            return read_panel(source, schema, policies(settings, schema))
    except DataError as error:
        if source is not None:
            raise
        raise DataError(f"the run's own data cannot be read again, give rows with --input ({error})") from None
    return _plain(source, schema)


def _plain(source: str, schema: SequenceSchema) -> Sequences:
    """New sequences where no data plugin says how they are written: lines or a table of texts, or a long table."""
    if schema.channels:
        if schema.id is None:
            raise DataError("the run was fitted on arrays from Python; predict with its Classifier, see tsformer.load")
        return series_with_schema(read_table(source, text=[schema.id]), schema, source=source)
    title = schema.text or "text"
    table = new_texts(TextFileOptions(path=source), source, (title,), title)
    return Sequences(schema, tuple(map(str, table.lines)), texts=tuple(table.column(title)), notes=table.notes)


@contextmanager
def _missing_file_named() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(f"no file '{error.filename}'" if error.filename else str(error)) from error


def _checked(found: object, data: Chosen) -> Panel | Sequences:
    if isinstance(found, Sequences):
        return found
    if not isinstance(found, Panel):
        raise PluginError(f"{data} returned {type(found).__name__}, not a Panel or Sequences")
    bad = np.isinf(found.values) if found.masked else ~np.isfinite(found.values)  # NaN behind a mask is missing
    if bad.any():
        raise DataError(f"{data} returned values that are not finite")
    return found
