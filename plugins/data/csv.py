"""A table from a CSV file, a shipped data set, or stdin."""

from __future__ import annotations

import os

import pydantic

from tsformer.data.declarations import Names
from tsformer.data.frames import panel_from_frame, read_panel, read_table, source_name
from tsformer.data.panel import Panel, Schema
from tsformer.errors import DataError
from tsformer.plugin import Config, DataPlugin, Field, Task


class CsvConfig(Config):
    """Where the table is, and what its columns are."""

    path: str = Field(
        ...,
        description="the file (.csv, .csv.gz), '-' for stdin, or a shipped data set such as air_passengers",
        flag="--path",
        min_length=1,
    )
    target: Names = Field(
        (),
        description="column to forecast: repeat it, or separate names by commas; default: all columns of numbers",
        flag="--target",
    )
    time: str | None = Field(
        None, description="column of times; default: the one that holds dates", flag="--time", min_length=1
    )
    id: str | None = Field(
        None, description="column that tells series apart in a long table", flag="--id", min_length=1
    )
    text: str | None = Field(
        None,
        description="column of texts, of which a forecast sees those up to its start; cells may be empty",
        flag="--text",
        min_length=1,
    )
    time_format: str | None = Field(
        None,
        description="how times are written if not with the year first, for example '%m/%d/%Y'",
        flag="--time-format",
        min_length=1,
    )
    sep: str = Field(",", description="what separates columns: , ; | or tab", flag="--sep")
    decimal: str = Field(".", description="decimal mark: . or ,", flag="--decimal")
    encoding: str = Field("utf-8-sig", description="encoding of the file, for example cp1252", flag="--encoding")

    @pydantic.field_validator("path")
    @classmethod
    def _from_any_folder(cls, path: str) -> str:
        """A file that is here is remembered by its full path, so that its run can be used from any folder."""
        return os.path.realpath(path) if path != "-" and os.path.isfile(path) else path


def load(config: CsvConfig) -> Panel:
    """Raises DataError, UsageError or ResourceError, one line each."""
    written = [name for name in (config.time, config.id, config.text) if name is not None]
    frame = read_table(config.path, sep=config.sep, decimal=config.decimal, encoding=config.encoding, text=written)
    return panel_from_frame(
        frame,
        time=config.time,
        id=config.id,
        targets=config.target,
        text=config.text,
        time_format=config.time_format,
        source=source_name(config.path),
    )


def read(config: CsvConfig, source: str | None, schema: Schema) -> Panel:
    """New rows, written like the file that the run was fitted on; that very file when no other is named.

    Raises:
        DataError: rows that cannot be taken, or a run that was fitted on stdin, which cannot be read twice.
    """
    if source is None and config.path == "-":
        raise DataError("it was fitted on stdin")
    path = config.path if source is None else source
    return read_panel(path, schema, sep=config.sep, decimal=config.decimal, encoding=config.encoding)


plugin = DataPlugin(
    config=CsvConfig,
    load=load,
    example=CsvConfig(path="air_passengers"),
    tasks={Task.FORECAST, Task.PRETRAIN},
    read=read,
)
