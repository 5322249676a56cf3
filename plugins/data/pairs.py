"""Pairs of texts, such as sentences and their translations: a table with a column of each."""

from __future__ import annotations

from tsformer.data.declarations import TextFileOptions
from tsformer.data.sequences import Sequences, SequenceSchema
from tsformer.data.texts import TextTable, new_texts, read_text, text_table
from tsformer.errors import DataError
from tsformer.plugin import DataPlugin, Field, Task


class PairsConfig(TextFileOptions):
    """Where the pairs are, and which column holds what."""

    source: str = Field(
        "source",
        description="column of the texts that are given, by name, or by number from 1 where columns have no names",
        flag="--source",
        min_length=1,
    )
    target: str = Field("target", description="column of the answers, by name or number", flag="--target", min_length=1)


def load(config: PairsConfig) -> Sequences:
    """Raises DataError, UsageError or ResourceError, one line each."""
    text = read_text(config.path, config.encoding)
    table = text_table(text, config, config.path, [config.source, config.target])
    if table.place(config.source) == table.place(config.target):
        raise DataError(f"{table.source}: column {config.source!r} is both source and target: choose another --target")
    answers = table.column(config.target)
    filled = [bool(answer.strip()) for answer in answers]
    if not any(filled):
        raise DataError(f"{table.source}: column {config.target!r} has no text in any row: choose another --target")
    table = table.only_where(filled, "row(s) without an answer are left out")
    schema = SequenceSchema(text=table.title(config.source), target=table.title(config.target))
    return _sequences(table, schema, table.column(config.source), schema.target)


def read(config: PairsConfig, source: str | None, schema: SequenceSchema) -> Sequences:
    """New texts, a table with or without the column of answers, or plain lines; those of the run again when no source
    is named.

    Raises:
        DataError: rows that cannot be taken, or a run that was fitted on stdin, which cannot be read twice.
    """
    if source is None and config.path == "-":
        raise DataError("it was fitted on stdin")
    if source is None:
        return load(config)
    title = schema.text or config.source
    table = new_texts(config, source, [title], title)
    target = None if table.names == (title,) else schema.target
    return _sequences(table, schema, table.column(title), target)


def _sequences(table: TextTable, schema: SequenceSchema, texts: list[str], target: str | None) -> Sequences:
    answers = table.column(target) if target is not None and table.has(target) else []
    return Sequences(
        schema=schema,
        ids=tuple(map(str, table.lines)),
        texts=tuple(texts),
        targets=tuple(answers) if answers and all(answer.strip() for answer in answers) else None,
        notes=table.notes,
    )


plugin = DataPlugin(
    config=PairsConfig,
    load=load,
    example=PairsConfig(path="reviews", source="review", target="sentiment"),
    tasks={Task.SEQUENCE},
    read=read,
)
