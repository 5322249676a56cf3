"""Texts, with or without labels: a table, plain lines, or a folder with a file of lines for each label."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from tsformer.data.cells import listed
from tsformer.data.declarations import FilePath, Names, TextFileOptions
from tsformer.data.sequences import Sequences, SequenceSchema
from tsformer.data.texts import (
    TABLES,
    TextTable,
    ending_of,
    is_number,
    new_texts,
    plain_lines,
    read_text,
    text_table,
)
from tsformer.errors import DataError
from tsformer.plugin import DataPlugin, Field, Task

TEXT, LABEL = "text", "label"  # what plain lines are called


class TextConfig(TextFileOptions):
    """Where the texts are, and which column holds what."""

    path: FilePath = Field(
        ...,
        description="the file (.csv, .tsv, .txt, each also .gz), '-' for stdin, a shipped data set such as reviews, or "
        "a folder with a .txt for each label",
        flag="--path",
        min_length=1,
    )
    text: Names = Field(
        (),
        description="column of texts, by name, or by number from 1 where columns have no names; several are joined "
        "(default: the only one beside the label; where a file is no table, its lines)",
        flag="--text",
    )
    label: str | None = Field(
        None, description="column of labels, by name or number (default: there are none)", flag="--label", min_length=1
    )


def load(config: TextConfig) -> Sequences:
    """Raises DataError, UsageError or ResourceError, one line each."""
    if os.path.isdir(config.path):
        return _folder(config, config.path)
    text = read_text(config.path, config.encoding)
    asked = config.text or config.label or config.sep or config.header is not None or config.quoting is not None
    if not asked and ending_of(config.path) not in TABLES:
        lines = plain_lines(text, config.path, TEXT)
        return _sequences(lines, SequenceSchema(text=TEXT), lines.column(TEXT), None)
    named = [*config.text, *([config.label] if config.label else [])]
    table = text_table(text, config, config.path, named)
    columns = config.text or (_only_text(table, config.label),)
    title = table.title(*columns)
    if config.label is None:
        return _sequences(table, SequenceSchema(text=title), table.column(*columns), None)
    if table.place(config.label) in map(table.place, columns):
        raise DataError(f"{table.source}: column {config.label!r} is both text and label: choose another --label")
    if config.header is None and all(map(is_number, named)):
        _check_first_row(table, config.label)
    labels = [cell.strip() for cell in table.column(config.label)]
    if not any(labels):
        raise DataError(f"{table.source}: column {config.label!r} has no label in any row: choose another --label")
    table = table.only_where([*map(bool, labels)], "row(s) without a label are left out")
    schema = SequenceSchema(text=title, label=table.title(config.label))
    return _sequences(table, schema, table.column(*columns), [*filter(None, labels)])


def read(config: TextConfig, source: str | None, schema: SequenceSchema) -> Sequences:
    """New texts, a table with the columns of texts, with or without labels, or plain lines; those of the run again when
    no source is named.

    Raises:
        DataError: rows that cannot be taken, or a run that was fitted on stdin, which cannot be read twice.
    """
    if source is None and config.path == "-":
        raise DataError("it was fitted on stdin")
    if source is None:
        return load(config)
    if os.path.isdir(source):
        return _folder(config, source)
    title = schema.text or TEXT
    table = new_texts(config, source, config.text if len(config.text) > 1 else (title,), title)
    if table.names == (title,):
        return _sequences(table, schema, table.column(title), None)
    label = schema.label
    labels = [cell.strip() for cell in table.column(label)] if label is not None and table.has(label) else []
    texts = table.column(*(config.text if len(config.text) > 1 else (title,)))
    return _sequences(table, schema, texts, labels if labels and all(labels) else None)


def _sequences(table: TextTable, schema: SequenceSchema, texts: list[str], labels: list[str] | None) -> Sequences:
    return Sequences(
        schema=schema,
        ids=tuple(map(str, table.lines)),
        texts=tuple(texts),
        labels=None if labels is None else tuple(labels),
        notes=table.notes,
    )


def _folder(config: TextConfig, folder: str) -> Sequences:
    """Each file of lines is a class of its own, called like the file."""
    files = sorted(file for file in Path(folder).iterdir() if ending_of(file.name) == ".txt")
    if len(files) < 2:
        raise DataError(
            f"{folder} is a folder: name a file in it; or have a .txt file for each label there, one text in a line"
        )
    if config.text or config.label:
        raise DataError(f"{folder} is a folder, where files are called like their labels: leave --text and --label out")
    texts: list[str] = []
    labels: list[str] = []
    ids: list[str] = []
    for file in files:
        label = file.name.removesuffix(".gz").removesuffix(".txt")
        lines = plain_lines(read_text(file, config.encoding), str(file), TEXT)
        texts += lines.column(TEXT)
        labels += [label] * len(lines.rows)
        ids += [f"{label}:{line}" for line in lines.lines]
    note = f"labels are the names of {len(files)} files: {listed(sorted(set(labels)))}"
    schema = SequenceSchema(text=TEXT, label=LABEL)
    return Sequences(schema=schema, ids=tuple(ids), texts=tuple(texts), labels=tuple(labels), notes=(note,))


def _only_text(table: TextTable, label: str | None) -> str:
    others = [name for place, name in enumerate(table.names) if label is None or place != table.place(label)]
    if len(others) == 1:
        return others[0]
    raise DataError(
        f"{table.source} has the columns {listed(table.names)}: name the one of texts, --text "
        f"{(others or ['NAME'])[0]} (by number, --text 1, where the first line holds no names)"
    )


def _check_first_row(table: TextTable, label: str) -> None:
    """Names above columns that are given by number would be an example of a class of their own."""
    cells = table.column(label)
    times = Counter(cells)
    if times.pop(cells[0]) == 1 and times and min(times.values()) > 1:
        raise DataError(
            f"{table.source} line {table.lines[0]} has {cells[0]!r} for a label, as no other line has: "
            "--data.header true if the line holds names, false if it is an example"
        )


plugin = DataPlugin(
    config=TextConfig,
    load=load,
    example=TextConfig(path="reviews", text=("review",), label="sentiment"),
    tasks={Task.CLASSIFY, Task.PRETRAIN},
    read=read,
)
