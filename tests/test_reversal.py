"""The reversal plugin: all different, evenly long, and the answer is the reverse."""

from collections import Counter

import pytest
from pydantic import ValidationError
from tsformer_plugins.data.reversal import ReversalConfig, plugin

from tsformer.data.sequences import Sequences, SequenceSchema
from tsformer.plugin import Task


def loaded(**options: int) -> Sequences:
    return plugin.load(ReversalConfig(**options))


def test_the_answer_is_the_reverse() -> None:
    data = loaded(pairs=500)
    assert data.schema == SequenceSchema(text="source", target="target")
    for source, target in zip(data.texts, data.targets, strict=True):
        assert target.split(" ") == source.split(" ")[::-1]
    assert plugin.tasks == {Task.SEQUENCE}
    assert data.ids[:2] == ("1", "2")


def test_sequences_are_all_different_and_of_every_length_and_letter() -> None:
    data = loaded()
    assert len(data) == len(set(data.texts)) == 20_000
    words = [text.split(" ") for text in data.texts]
    lengths = Counter(map(len, words))
    assert set(lengths) == set(range(5, 21))
    assert max(lengths.values()) < 1.3 * min(lengths.values())
    letters = Counter(letter for text in words for letter in text)
    assert "".join(sorted(letters)) == "abcdefghijklmnopqrst"
    assert max(letters.values()) < 1.1 * min(letters.values())


def test_a_seed_gives_the_same_sequences_again() -> None:
    assert loaded(pairs=50, seed=3).texts == loaded(pairs=50, seed=3).texts
    assert loaded(pairs=50, seed=3).texts != loaded(pairs=50, seed=4).texts


def test_options_are_heard_up_to_half_of_what_there_is() -> None:
    data = loaded(pairs=7, symbols=2, shortest=1, longest=3)  # 2 + 4 + 8 sequences
    assert len(set(data.texts)) == 7
    assert set("".join(data.texts)) == set("ab ")
    with pytest.raises(ValidationError, match=r"pairs 8 must be at most half of the 14 sequences"):
        loaded(pairs=8, symbols=2, shortest=1, longest=3)


def test_shortest_is_not_above_longest() -> None:
    with pytest.raises(ValidationError, match="shortest 6 is above longest 5"):
        loaded(shortest=6, longest=5)
