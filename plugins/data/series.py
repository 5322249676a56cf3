"""Labelled series: .ts files of the UCR and UEA archives, or a long table with an id for each series."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
import pandas as pd

from tsformer.data.cells import listed
from tsformer.data.declarations import FilePath, Names, OptionalFilePath
from tsformer.data.files import source_name
from tsformer.data.long_series import series_from_frame, series_with_schema
from tsformer.data.ragged import Ragged, offsets_of
from tsformer.data.sequences import TEST, TRAIN, Sequences, SequenceSchema
from tsformer.data.texts import ending_of, read_text
from tsformer.data.ts_file import TsFile, parse_ts
from tsformer.errors import DataError
from tsformer.plugin import Config, DataPlugin, Field, Task, changed
from tsformer.tables.files import read_table


class SeriesConfig(Config):
    """Where the series are, and what the columns of a table are."""

    path: FilePath = Field(
        ...,
        description="the file (.ts, or a long table: .csv, .tsv; each also .gz), '-' for a table on stdin, or a "
        "shipped data set",
        flag="--path",
        min_length=1,
    )
    test: OptionalFilePath = Field(None, description="a .ts file of the test part", min_length=1)
    id: str | None = Field(None, description="column that tells series apart in a table", flag="--id", min_length=1)
    label: str | None = Field(
        None,
        description="column of labels in a table, the same in all rows of a series (default: there are none)",
        flag="--label",
        min_length=1,
    )
    time: str | None = Field(
        None,
        description="column of times in a table, by which steps are ordered (default: the order of the rows)",
        flag="--time",
        min_length=1,
    )
    channels: Names = Field(
        (),
        description="columns of numbers in a table: repeat it, or separate names by commas; default: all columns of "
        "numbers",
        flag="--channels",
    )
    text: str | None = Field(
        None, description="column in a table with a text at each step", flag="--text", min_length=1
    )
    time_format: str | None = Field(
        None,
        description="how times are written if not with the year first, for example '%m/%d/%Y'",
        flag="--time-format",
        min_length=1,
    )
    sep: str | None = Field(
        None, description="what separates columns: , ; | or tab (default: tab in .tsv, else ,)", flag="--sep"
    )
    decimal: str = Field(".", description="decimal mark: . or ,", flag="--decimal")
    encoding: str = Field("utf-8-sig", description="encoding of the file, for example cp1252", flag="--encoding")

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        if _is_ts(self.path):
            unread = changed(self, "id", "label", "time", "channels", "text", "time_format", "sep", "decimal")
            if unread:
                yield f"a .ts file has no columns: leave out {', '.join(unread)}"
        elif self.id is None:
            yield "a table of series needs the column that tells them apart: --id"
        if self.test is not None and not (_is_ts(self.path) and _is_ts(self.test)):
            yield "test goes with .ts files: path X_TRAIN.ts and test X_TEST.ts"


def load(config: SeriesConfig) -> Sequences:
    """Raises DataError, UsageError or ResourceError, one line each."""
    if not _is_ts(config.path):
        return series_from_frame(
            _table(config, config.path),
            id=str(config.id),
            label=config.label,
            time=config.time,
            channels=config.channels,
            text=config.text,
            time_format=config.time_format,
            source=source_name(config.path),
        )
    return _load_ts(config)


def read(config: SeriesConfig, source: str | None, schema: SequenceSchema) -> Sequences:
    """New series, with or without labels, in a file of the kind that the run was fitted on; its own again when no
    source is named.

    Raises:
        DataError: series that cannot be taken, or a run that was fitted on stdin, which cannot be read twice.
    """
    if source is None and config.path == "-":
        raise DataError("it was fitted on stdin")
    if source is None:
        return load(config)
    if _is_ts(config.path):
        return _read_ts(config, source, schema)
    if _is_ts(source):
        raise DataError(f"{source} is a .ts file, but the model knows a table: give one with {listed(schema.channels)}")
    frame = _table(config, source)
    return series_with_schema(frame, schema, time_format=config.time_format, source=source_name(source))


def _is_ts(path: str) -> bool:
    return ending_of(path) == ".ts"


def _table(config: SeriesConfig, source: str) -> pd.DataFrame:
    written = [name for name in (config.id, config.label, config.time, config.text) if name is not None]
    sep = config.sep or ("\t" if ending_of(source) in (".tsv", ".tab") else ",")
    return read_table(source, sep=sep, decimal=config.decimal, encoding=config.encoding, text=written)


def _load_ts(config: SeriesConfig) -> Sequences:
    """The series of one .ts file, or of those of training and test part; called by their number from 1."""
    paths = [path for path in (config.path, config.test) if path is not None]
    whole = [_ts_file(config, path) for path in paths]
    files = [file.labelled() for file in whole]
    counts = [len(file.series) for file in files]
    width = files[0].series.values.shape[1]
    for path, file in zip(paths, files, strict=True):
        if file.series.values.shape[1] != width:
            raise DataError(f"{path} has {file.series.values.shape[1]} channel(s), {paths[0]} has {width}")
        if (file.labels is None) != (files[0].labels is None):
            raise DataError(f"one of {paths[0]} and {path} has classes, the other has none: @classLabel in both")
        if not len(file.series):
            raise DataError(f"{path} has no class in any line: @classLabel false, if there are none")
    prefixes = np.repeat(["", "TEST:"][: len(files)], counts)  # which make ids unique
    left_out = sum(len(file.series) for file in whole) - sum(counts)
    labelled = files[0].labels is not None
    return Sequences(
        schema=SequenceSchema(
            label="class" if labelled else None,
            channels=("value",) if width == 1 else tuple(f"channel_{number}" for number in range(1, width + 1)),
        ),
        ids=tuple(f"{prefix}{i}" for prefix, i in zip(prefixes, chain(*(f.numbers for f in files)), strict=True)),
        series=Ragged(
            np.concatenate([file.series.values for file in files]),
            offsets_of(np.concatenate([file.series.lengths for file in files])),
        ),
        labels=tuple(label for file in files for label in file.labels or ()) if labelled else None,
        parts=np.repeat(np.array([TRAIN, TEST], dtype=np.int8), counts) if len(files) > 1 else None,
        notes=(f"{left_out} series without a class are left out",) if left_out else (),
    )


def _read_ts(config: SeriesConfig, source: str, schema: SequenceSchema) -> Sequences:
    file = _ts_file(config, source)
    width, known = file.series.values.shape[1], len(schema.channels)
    if width != known:
        raise DataError(f"{source_name(source)} has {width} channel(s), the model knows {known}")
    labels = file.labels if schema.label is not None and file.labels is not None and all(file.labels) else None
    return Sequences(schema=schema, ids=tuple(map(str, file.numbers)), series=file.series, labels=labels)


def _ts_file(config: SeriesConfig, path: str) -> TsFile:
    return parse_ts(read_text(path, config.encoding), source_name(path))


plugin = DataPlugin(
    config=SeriesConfig,
    load=load,
    example=SeriesConfig(path="cylinder_bell_funnel", id="series", time="step", label="shape"),
    tasks={Task.CLASSIFY, Task.PRETRAIN},
    read=read,
)
