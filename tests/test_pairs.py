"""The pairs plugin: sources and answers, and new sources at predict time."""

import pytest
from tables import message
from tsformer_plugins.data.pairs import PairsConfig, plugin

from tsformer.data.sequences import SequenceSchema
from tsformer.errors import DataError


def write(path, content):
    path.write_text(content, encoding="utf-8")
    return str(path)


@pytest.fixture
def config(tmp_path):
    return PairsConfig(
        path=write(tmp_path / "pairs.tsv", "en\tde\tno\none dog\tein Hund\t1\ntwo\tzwei\t2\nthree\t\t3\n"),
        source="en",
        target="de",
    )


def test_pairs(config):
    found = plugin.load(config)
    assert found.texts == ("one dog", "two")
    assert found.targets == ("ein Hund", "zwei")
    assert (found.ids, found.labels) == (("2", "3"), None)
    assert found.notes == ("1 row(s) without an answer are left out",)
    assert found.schema == SequenceSchema(text="en", target="de")
    assert plugin.read(config, None, found.schema) == found


def test_columns_by_number(tmp_path):
    config = PairsConfig(path=write(tmp_path / "pairs.csv", "ein,one\nzwei,two\n"), source="2", target="1")
    found = plugin.load(config)
    assert (found.texts, found.targets) == (("one", "two"), ("ein", "zwei"))
    lines = plugin.read(config, write(tmp_path / "new.txt", "three\n"), found.schema)
    assert (lines.texts, lines.targets) == (("three",), None)


@pytest.mark.parametrize(
    ("name", "content", "texts", "targets"),
    [
        ("new.txt", "four\n\nfive\n", ("four", "", "five"), None),
        ("new.csv", "en\nfour\n", ("four",), None),
        ("new.tsv", "de\ten\nvier\tfour\n", ("four",), ("vier",)),
        ("new.csv", "de,en\nvier,four\n,five\n", ("four", "five"), None),
    ],
)
def test_new_sources(tmp_path, config, name, content, texts, targets):
    found = plugin.read(config, write(tmp_path / name, content), plugin.load(config).schema)
    assert (found.texts, found.targets) == (texts, targets)


def test_what_cannot_be_taken(tmp_path, config):
    def refused(**options):
        with pytest.raises(DataError) as error:
            plugin.load(config.model_copy(update=options))
        return message(error)

    assert "column 'en' is both source and target" in refused(target="en")
    assert "has no column 'fr', it has en, de, no" in refused(target="fr")
    empty = write(tmp_path / "empty.csv", "en,de\none,\n")
    assert "column 'de' has no text in any row" in refused(path=empty)
    with pytest.raises(DataError, match="it was fitted on stdin"):
        plugin.read(config.model_copy(update={"path": "-"}), None, SequenceSchema(text="en", target="de"))
