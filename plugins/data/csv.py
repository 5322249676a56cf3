"""A table from a CSV or Parquet file, a shipped data set, or stdin."""

from __future__ import annotations

from tsformer.data.declarations import FilePath
from tsformer.data.frames import load_panel, read_panel
from tsformer.data.panel import Panel, Schema
from tsformer.data.table_options import TableOptions
from tsformer.errors import DataError
from tsformer.plugin import Config, DataPlugin, Field, Task


class _Place(Config):
    path: FilePath = Field(
        ...,
        description="the file (.csv, .parquet, .tsf, packed or not), '-' for stdin, or a shipped data set such as "
        "air_passengers",
        flag="--path",
        min_length=1,
    )


class CsvConfig(TableOptions, _Place):
    """Where the table is, how it is written, what its columns are, and what is done about what is missing."""


def load(config: CsvConfig) -> Panel:
    """Raises DataError, UsageError or ResourceError, one line each."""
    return load_panel(config.path, config)


def read(config: CsvConfig, source: str | None, schema: Schema) -> Panel:
    """New rows, read like the file that the run was fitted on; that very file when no other is named.

    Raises:
        DataError: rows that cannot be taken, or a run that was fitted on stdin, which cannot be read twice.
    """
    if source is None and config.path == "-":
        raise DataError("it was fitted on stdin")
    return read_panel(config.path if source is None else source, schema, config)


plugin = DataPlugin(
    config=CsvConfig,
    load=load,
    example=CsvConfig(path="air_passengers"),
    tasks={Task.FORECAST, Task.PRETRAIN},
    read=read,
)
