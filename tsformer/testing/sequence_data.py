"""Checks of a data plugin that returns `Sequences`, each a plain function that explains what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields

import numpy as np

from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.ragged import Ragged
from tsformer.data.sequences import Sequences, SequenceSchema
from tsformer.errors import TsformerError
from tsformer.plugin import DataPlugin, Task
from tsformer.sequence_preparation import prepare_sequences
from tsformer.testing.data_leakage import trace_of, traces
from tsformer.testing.data_read import check_missing_file
from tsformer.testing.failure import CheckFailedError
from tsformer.testing.generators import generators, seeded
from tsformer.testing.sequence_read import check_read, loaded


def check_sequences(plugin: DataPlugin) -> None:
    """load returns Sequences that hold text where text belongs, and what the declared tasks learn from."""
    sequences = loaded(plugin)
    for name in ("ids", "texts", "labels", "targets", "notes"):
        words = getattr(sequences, name)
        wrong = next((word for word in words or () if not isinstance(word, str)), None)
        if wrong is not None or not isinstance(words, tuple | None):
            raise CheckFailedError(f"{name} must be a tuple of str, and holds {wrong!r} in {type(words).__name__}")
    for name in ("labels", "targets"):
        if any(not word.strip() for word in getattr(sequences, name) or ()):
            raise CheckFailedError(f"{name} holds an empty one; leave the example out and say so in `notes`")
    if any("\n" in note for note in sequences.notes):
        raise CheckFailedError("notes are not lines")
    schema = sequences.schema
    try:
        again = SequenceSchema.from_json(json.loads(json.dumps(schema.to_json(), allow_nan=False)))
    except (TypeError, ValueError) as error:
        raise CheckFailedError(f"the schema cannot be kept in a run folder as JSON: {error}") from error
    if again != schema:
        raise CheckFailedError(f"the schema comes back from JSON as {again}, not as {schema}")
    if sequences.series is not None and np.isnan(sequences.series.values).all(axis=0).any():
        number = int(np.isnan(sequences.series.values).all(axis=0).argmax())
        raise CheckFailedError(f"channel {schema.channels[number]!r} has no number at all")
    if Task.CLASSIFY in plugin.tasks and sequences.labels is None:
        raise CheckFailedError("tasks has classify, but the example has no labels; give an example that has them")
    if Task.SEQUENCE in plugin.tasks and (sequences.targets is None or sequences.texts is None):
        raise CheckFailedError("tasks has sequence, but the example has no texts with targets; give one that has them")


def check_same_again(plugin: DataPlugin) -> None:
    """The same configuration gives the same examples, bit for bit, whatever the state of the random generators."""
    found = []
    for seed in (1, 2):
        with seeded(seed):
            found.append(_parts(loaded(plugin)))
    if found[0] != found[1]:
        name = next(name for name in found[0] if found[0][name] != found[1][name])
        raise CheckFailedError(
            f"loading twice gives other {name}; where something is drawn, use np.random.default_rng(config.seed), and "
            "sort what comes in no order, as files of a folder do"
        )


def _parts(sequences: Sequences) -> dict[str, object]:
    """What sequences hold, to be compared."""

    def plain(value: object) -> object:
        if isinstance(value, Ragged):
            return value.values.tobytes(), value.offsets.tobytes()
        return value.tobytes() if isinstance(value, np.ndarray) else value

    return {field.name: plain(getattr(sequences, field.name)) for field in fields(sequences)}


def check_leaves_rng_alone(plugin: DataPlugin) -> None:
    """Loading neither seeds nor draws from the caller's random generators."""
    with seeded(20201):
        before = generators()
        loaded(plugin)
        for name, state in generators().items():
            if state != before[name]:
                raise CheckFailedError(
                    f"{name} global random generator is changed; use np.random.default_rng(config.seed)"
                )


def check_preparation(plugin: DataPlugin) -> None:
    """The example can be split, cut into tokens and scaled as `tsformer fit` does, for every task that is declared."""
    sequences = loaded(plugin)
    for task in Task:
        if task not in plugin.tasks:
            continue
        settings = resolve([Layer({"model": {"name": "transformer"}, "task": task.value})], needs_data=False)
        try:
            prepared = prepare_sequences(settings, sequences)
        except TsformerError as error:
            raise CheckFailedError(f"for {task} the example cannot be used: {error}") from error
        empty = next((name for name in ("train", "validation", "test") if not len(getattr(prepared.parts, name))), None)
        if empty is not None:
            raise CheckFailedError(f"for {task} the {empty} part of the example is empty; give more examples")


def check_statistics(plugin: DataPlugin) -> str | None:
    """No scaling with statistics of all examples has left a trace in the numbers.

    A mean, median, standard deviation, interquartile range, maximum or range over all examples that is 0 or 1 to the
    last digits was brought there, with test examples in the sum. A series that is scaled by itself leaks nothing.
    """
    sequences = loaded(plugin)
    series = sequences.series
    if series is None:
        return "there are no numbers"
    for number, name in enumerate(sequences.schema.channels):
        trace = trace_of(_there(series.values[:, number]))
        each = [_there(series[i][:, number]) for i in range(len(series))] if trace else []
        if trace and not all(np.ptp(column) == 0 or any(traces(column)) for column in each if len(column)):
            raise CheckFailedError(
                f"channel {name!r} has {trace} over all examples: it was scaled with statistics of the test part; give "
                "values in their own unit, --scale does it with training examples (if it is chance or by design, take "
                "an example with other rows)"
            )
    return None


def _there(column: np.ndarray) -> np.ndarray:
    return column[~np.isnan(column)]


SEQUENCE_DATA_CHECKS: tuple[Callable[[DataPlugin], str | None], ...] = (
    check_sequences,
    check_same_again,
    check_leaves_rng_alone,
    check_preparation,
    check_statistics,
    check_missing_file,
    check_read,
)
