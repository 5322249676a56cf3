"""Every source of sequences passes every check; for each check there is a bad one that fails it and no other."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tsformer import registry, testing
from tsformer.data.panel import Panel, Schema
from tsformer.data.ragged import Ragged
from tsformer.data.sequences import Sequences, SequenceSchema
from tsformer.errors import DataError
from tsformer.plugin import Config, DataPlugin, Field, Task
from tsformer.registry import Kind
from tsformer.testing import DATA_CHECKS, SEQUENCE_DATA_CHECKS

SOURCES = {name: registry.get(Kind.DATA, name) for name in registry.entries(Kind.DATA)}


@pytest.mark.parametrize("check", SEQUENCE_DATA_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", [name for name, plugin in SOURCES.items() if Task.FORECAST not in plugin.tasks])
def test_data_passes(name, check):
    assert check in testing.checks_of(SOURCES[name])
    check(SOURCES[name])


def test_panels_keep_their_own_checks():
    assert testing.checks_of(SOURCES["csv"]) == DATA_CHECKS


class Drawn(Config):
    seed: int = Field(0, ge=0, description="seed of the words")


class InAFile(Config):
    path: str = Field(..., description="the file")


WORDS = ("red", "green", "blue", "soup", "bread")
TEXTS = SequenceSchema(text="said", label="mood", target="answer")
SERIES = SequenceSchema(label="mood", channels=("a", "b"), id="who")


def texts(seed=0):
    generator = np.random.default_rng(seed)
    found = tuple(" ".join(generator.choice(WORDS, 6)) for _ in range(60))
    return Sequences(
        schema=TEXTS,
        ids=tuple(map(str, range(1, 61))),
        texts=found,
        labels=tuple("good" if "soup" in text else "bad" for text in found),
        targets=tuple(text[::-1] for text in found),
    )


def series(scale=lambda values: values):
    generator = np.random.default_rng(0)
    values = generator.normal(3, 2, (240, 2))
    return Sequences(
        schema=SERIES,
        ids=tuple(f"w{i}" for i in range(40)),
        series=Ragged(scale(values), np.arange(41) * 6),
        labels=("good", "bad") * 20,
    )


def load(config):
    return texts(config.seed)


def load_series(config):
    return series()


def plugin_of(load=load, config=Drawn, example=None, tasks=frozenset(Task) - {Task.FORECAST}, **more):
    return DataPlugin(config=config, load=load, example=example or config(), tasks=tasks, **more)


LABELLED = {Task.CLASSIFY, Task.PRETRAIN}


def returns_a_panel(config):
    times = pd.RangeIndex(60)
    return Panel(np.zeros((60, 1)), np.array([0, 60]), times, ("",), Schema(targets=("a",)))


def names_twice(config):
    found = load(config)
    return replace(found, ids=("1", *found.ids[:-1]))


def counts_in_ids(config):
    return replace(load(config), ids=tuple(range(60)))


def has_no_labels(config):
    return replace(load(config), labels=None)


def has_no_targets(config):
    return replace(load(config), targets=None)


def has_an_empty_label(config):
    found = load(config)
    return replace(found, labels=("", *found.labels[1:]))


def draws_unseeded(config):
    return texts(None)


def seeds_numpy(config):
    np.random.seed(config.seed)  # noqa: NPY002
    return texts(config.seed)


def has_one_mood(config):
    return replace(load(config), labels=("good",) * 60)


def standardises_all(config):
    return series(lambda values: (values - values.mean(0)) / values.std(0))


def squeezes_all(config):
    return series(lambda values: (values - values.min(0)) / np.ptp(values, axis=0))


def refuses_to_read(config, source, schema):
    if source is None:
        raise DataError("cannot be read again")
    return reads(config, source, schema)


def reads(config, source, schema):
    if source is None:
        return load(config)
    if not Path(source).exists():
        raise DataError(f"no file '{source}'")
    table = pd.read_csv(source, dtype=str)
    columns = {
        name: tuple(table[column]) if column in table else None
        for name, column in {"texts": schema.text, "labels": schema.label, "targets": schema.target}.items()
    }
    return Sequences(schema=schema, ids=tuple(map(str, range(len(table)))), **columns)


def reads_sorted(config, source, schema):
    found = reads(config, source, schema)
    order = sorted(range(len(found)), key=found.texts.__getitem__) if source else range(len(found))
    some = {
        name: None if getattr(found, name) is None else tuple(getattr(found, name)[i] for i in order)
        for name in ("texts", "labels", "targets")
    }
    return replace(found, **some)


def needs_labels(config, source, schema):
    found = reads(config, source, schema)
    if found.labels is None:
        raise DataError("no labels")
    return found


def forgets_labels(config, source, schema):
    return replace(reads(config, source, schema), labels=None) if source else load(config)


def says_nothing_of_the_file(config):
    if config.path != "here.csv":
        raise DataError("it cannot be read")
    return texts()


def takes_any_file(config):
    return texts()


BAD = [
    ("check_sequences", plugin_of(returns_a_panel)),
    ("check_sequences", plugin_of(names_twice)),
    ("check_sequences", plugin_of(counts_in_ids)),
    ("check_sequences", plugin_of(has_no_labels)),
    ("check_sequences", plugin_of(has_no_targets)),
    ("check_sequences", plugin_of(has_an_empty_label)),
    ("check_same_again", plugin_of(draws_unseeded)),
    ("check_leaves_rng_alone", plugin_of(seeds_numpy)),
    ("check_preparation", plugin_of(has_one_mood)),
    ("check_statistics", plugin_of(standardises_all, tasks=LABELLED)),
    ("check_statistics", plugin_of(squeezes_all, tasks=LABELLED)),
    ("check_missing_file", plugin_of(says_nothing_of_the_file, InAFile, InAFile(path="here.csv"))),
    ("check_missing_file", plugin_of(takes_any_file, InAFile, InAFile(path="here.csv"))),
    ("check_read", plugin_of(read=refuses_to_read)),
    ("check_read", plugin_of(read=reads_sorted)),
    ("check_read", plugin_of(read=needs_labels)),
    ("check_read", plugin_of(read=forgets_labels)),
]


def test_every_check_has_a_bad_plugin():
    assert {check for check, _ in BAD} == {check.__name__ for check in SEQUENCE_DATA_CHECKS}


@pytest.mark.parametrize(
    "plugin",
    [plugin_of(), plugin_of(read=reads), plugin_of(load_series, tasks=LABELLED)],
    ids=["texts", "with a reader", "series"],
)
def test_the_good_plugins_pass(plugin):
    assert testing.check(plugin) == {}


@pytest.mark.parametrize(
    ("check", "plugin"), BAD, ids=[f"{(plugin.read or plugin.load).__name__}" for _, plugin in BAD]
)
def test_a_bad_plugin_fails_exactly_one_check(check, plugin):
    failed = testing.check(plugin)
    assert list(failed) == [check], failed


def test_series_that_are_scaled_one_by_one_leak_nothing():
    def each(values):
        groups = values.reshape(40, 6, 2)
        return ((groups - groups.mean(1, keepdims=True)) / groups.std(1, keepdims=True)).reshape(240, 2)

    assert testing.check(plugin_of(lambda config: series(each), tasks=LABELLED)) == {}


def test_a_source_of_sequences_that_declares_forecasts_is_told():
    failed = testing.check(plugin_of(tasks={Task.FORECAST}))
    assert failed == {
        "check_panel": "load returns Sequences, not a Panel; leave forecast out of the tasks of sequences"
    }
