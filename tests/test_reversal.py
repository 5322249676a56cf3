"""The reversal plugin: all different, evenly long, and the answer is the reverse."""

from collections import Counter

import pytest
from pydantic import ValidationError
from tsformer_plugins.data.reversal import ReversalConfig, plugin

import tsformer
from tsformer import fitting
from tsformer.config import resolve
from tsformer.config_layer import Layer
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


def right(options, positions, train, **model):
    """Share of the unseen sequences that a plain Transformer writes backwards without a fault."""
    layer = Layer(
        {"task": "sequence", "model": {"name": "transformer", "positions": positions, **model}, "train": train}
    )
    result = fitting.fit(resolve([layer], needs_data=False), tsformer.read("reversal", **options))
    assert result.score.overall["examples"] >= 600
    return result.score.overall["sequence_accuracy"]


SMALL = {"symbols": 8, "shortest": 3, "longest": 6, "pairs": 3000}
SHORT = {"max_steps": 400, "lr": 3e-3, "eval_every": 100}
LITTLE = {"d_model": 32, "d_ff": 64, "encoder_layers": 1, "decoder_layers": 1, "norm_first": True}


def test_a_transformer_learns_it_and_without_positions_it_cannot():
    assert right(SMALL, "sinusoidal", SHORT, **LITTLE) > 0.99
    assert right(SMALL, "none", SHORT, **LITTLE) < 0.3  # without order, only the right letters can be known


@pytest.mark.slow
@pytest.mark.parametrize(("positions", "lowest", "highest"), [("sinusoidal", 0.99, 1.0), ("none", 0.0, 0.05)])
def test_sequences_of_5_to_20_letters_with_default_options(positions, lowest, highest):
    assert lowest <= right({}, positions, {}) <= highest
