"""From a run and new sequences to answers: whatever else is asked, an example's answer is its own."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from tsformer import fitting, prediction
from tsformer import run as runs
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.ragged import ragged
from tsformer.data.sequences import Sequences, SequenceSchema
from tsformer.data.vocabulary import SPECIAL
from tsformer.errors import DataError, DivergedError, UsageError
from tsformer.prediction import answer

SMALL = {"d_model": 8}
LAYERS = {"n_heads": 2, "d_ff": 8, "encoder_layers": 1}
MODELS = {
    "transformer": {**SMALL, **LAYERS},
    "tcn_transformer": {**SMALL, **LAYERS, "tcn_layers": 1, "stride": 2},
    "lstm": {**SMALL, "n_layers": 1},
    "tcn": SMALL,
}
POOLINGS = {
    **{kind: {"pooling": kind} for kind in ("mean", "cls", "max", "attention")},
    "chunk": {"chunk": 4, "chunk_stride": 2},
}
WORDS = ("red", "green", "blue", "grey", "good", "bad")


def settings(model="transformer", task="classify", options=None, **train):
    values = {"name": model, **MODELS[model], **(options or {})}
    return resolve([Layer({"model": values, "task": task, "train": {"max_steps": 3, **train}})], needs_data=False)


def texts(answers=False):
    generator = np.random.default_rng(0)
    made = [" ".join([*generator.choice(WORDS, generator.integers(1, 9)), f"n{i}"]) for i in range(40)]
    return Sequences(
        SequenceSchema(text="said", label=None if answers else "mood", target="answer" if answers else None),
        tuple(map(str, range(40))),
        texts=tuple(made),
        labels=None if answers else tuple("xyz"[i % 3] for i in range(40)),
        targets=tuple(" ".join(text.split()[::-1]) for text in made) if answers else None,
    )


def series(words=False):
    generator = np.random.default_rng(0)
    made = [generator.normal(5, 3, size=(generator.integers(1, 10), 2)) for _ in range(40)]
    for values in made[::3]:
        values[len(values) // 2, 0] = np.nan
    made[5][:] = np.nan  # nothing at all
    rows = sum(map(len, made))
    return Sequences(
        SequenceSchema(text="say" if words else None, label="mood", channels=("a", "b"), id="who"),
        tuple(f"s{i}" for i in range(40)),
        texts=tuple(generator.choice([*WORDS, "", "red blue"], rows)) if words else None,
        series=ragged(made, np.float64),
        labels=tuple("xy"[i % 2] for i in range(40)),
    )


def some(sequences, index):
    """Those examples alone, without labels."""
    names = [sequences.ids[i] for i in index]
    if sequences.series is None:
        chosen = tuple(sequences.texts[i] for i in index)
        return replace(sequences, ids=tuple(names), texts=chosen, labels=None, targets=None)
    offsets = sequences.series.offsets
    chosen = None
    if sequences.texts is not None:
        chosen = tuple(text for i in index for text in sequences.texts[offsets[i] : offsets[i + 1]])
    return replace(
        sequences, ids=tuple(names), texts=chosen, series=sequences.series.take(np.array(index)), labels=None
    )


def untrained(chosen, sequences):
    fitted = fitting.make_ready(chosen, sequences).fitted
    fitted.module.eval()
    return fitted


@pytest.mark.parametrize("kind", ["texts", "series", "series and texts"])
@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("model", MODELS)
def test_an_example_alone_and_among_others(model, pooling, kind):
    """Neither padding nor the other examples of a batch change a probability."""
    sequences = texts() if kind == "texts" else series(words=kind != "series")
    if kind == "texts":
        sequences = replace(sequences, texts=("", "never heard", *sequences.texts[2:]))
    fitted = untrained(settings(model, options=POOLINGS[pooling]), sequences)
    together = answer(fitted, some(sequences, range(40))).probabilities
    assert np.isfinite(together).all()
    np.testing.assert_allclose(together.sum(1), 1)
    for i in (0, 1, 5, 7, 20, 39):
        np.testing.assert_allclose(answer(fitted, some(sequences, [i])).probabilities[0], together[i], atol=1e-6)
    assert together.std(0).max() > 1e-4  # it does look at the input


@pytest.mark.parametrize("model", MODELS)
def test_an_answer_alone_and_among_others(model):
    sequences = texts(answers=True)
    fitted = untrained(settings(model, "sequence"), sequences)
    for beam in (1, 3):
        together = answer(fitted, some(sequences, range(40)), beam=beam).table
        for i in (0, 7, 39):
            alone = answer(fitted, some(sequences, [i]), beam=beam).table
            assert alone["answer"][0] == together["answer"][i]
            assert alone["score"][0] == pytest.approx(together["score"][i], abs=1e-4)


@pytest.fixture(scope="module")
def classified(tmp_path_factory):
    """A fit of texts, and its run folder."""
    folder = tmp_path_factory.mktemp("runs") / "texts"
    writer = runs.Writer(folder)
    result = fitting.fit(settings(max_steps=20, lr=0.02), texts(), watch=fitting.Watch(start=writer.start))
    writer.finish(result.fitted, result.summary())
    return result, folder


@pytest.mark.parametrize("kind", ["texts", "series", "series and texts"])
def test_the_labels_are_those_that_the_fit_scored(kind):
    sequences = texts() if kind == "texts" else series(words=kind != "series")
    result = fitting.fit(settings(max_steps=10, lr=0.02), sequences)
    fitted, partition = result.fitted, result.prepared.partition
    made = answer(fitted, sequences)
    counts = np.zeros_like(result.score.confusion)
    for example in np.flatnonzero(partition == 2):
        names = fitted.words.classes
        counts[names.index(sequences.labels[example]), names.index(made.table["mood"][example])] += 1
    assert counts.tolist() == result.metrics()["confusion"]


def test_the_answers_are_those_that_the_fit_scored():
    sequences = texts(answers=True)
    result = fitting.fit(settings(task="sequence", max_steps=10, lr=0.02), sequences)
    made = answer(result.fitted, sequences).table
    test = np.flatnonzero(result.prepared.partition == 2)
    encode = result.fitted.words.tokenizer.encode
    right = [encode([made["answer"][i]])[0].tolist() == encode([sequences.targets[i]])[0].tolist() for i in test]
    assert np.mean(right) == result.metrics()["test"]["sequence_accuracy"]
    assert encode(list(made["answer"][test])).lengths.mean() == result.metrics()["test"]["mean_length"]


def test_a_run_loaded_in_another_process_gives_the_same_bits(classified, tmp_path):
    result, folder = classified
    np.save(tmp_path / "here.npy", answer(result.fitted, texts()).probabilities)
    program = f"""
import sys
sys.path.insert(0, {str(__file__).rpartition("/")[0]!r})
import numpy as np
from pathlib import Path
from tsformer import run
from tsformer.prediction import answer
from test_prediction import texts
np.save({str(tmp_path / "there.npy")!r}, answer(run.load(Path({str(folder)!r}))[0], texts()).probabilities)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert (tmp_path / "here.npy").read_bytes() == (tmp_path / "there.npy").read_bytes()


def test_texts_of_any_kind(classified):
    fitted = classified[0].fitted
    given = ["", "   ", "never heard of", "red " * 10_000, "RED", "red", "\ud83d", "数学 \x00"]
    made = answer(fitted, Sequences(SequenceSchema(text="said"), tuple("abcdefgh"), texts=tuple(given)))
    assert np.isfinite(made.probabilities).all()
    assert made.probabilities[0].tolist() == made.probabilities[1].tolist()  # blanks are no words
    assert made.probabilities[4].tolist() == made.probabilities[5].tolist()
    assert made.table["said"].tolist() == given
    assert made.notes == (
        f"1 of 8 texts have more than {fitted.problem.lookback} tokens; the first {fitted.problem.lookback} are seen: "
        "fit again with a larger --lookback to see more",
    )


def test_of_a_long_text_the_first_words_count(classified):
    fitted = classified[0].fitted
    words = ["red", "blue"] * 20
    seen = " ".join(words[: fitted.problem.lookback])
    made = answer(fitted, Sequences(SequenceSchema(text="said"), ("a", "b"), texts=(" ".join(words), seen)))
    np.testing.assert_allclose(made.probabilities[0], made.probabilities[1], atol=1e-6)


def test_labels_are_not_looked_at(classified):
    fitted = classified[0].fitted
    relabelled = replace(texts(), labels=tuple("?" * 40))
    assert answer(fitted, relabelled).probabilities.tolist() == answer(fitted, texts()).probabilities.tolist()


@pytest.mark.parametrize(
    ("text", "label", "names"),
    [
        ("probability", "mood", ["probability", "mood", "probability_"]),
        ("text", "probability", ["text", "probability", "probability_"]),
        ("x", "x", ["x", "x_", "probability"]),
    ],
)
def test_columns_that_are_called_as_ours(classified, text, label, names):
    fitted = replace(classified[0].fitted, schema=SequenceSchema(text=text, label=label))
    made = answer(fitted, Sequences(SequenceSchema(text=text), ("a",), texts=("red",)))
    assert list(made.table.columns) == names
    assert made.table[names[2]][0] == made.probabilities.max()


def test_other_data_than_the_model_knows(classified):
    fitted = classified[0].fitted
    with pytest.raises(DataError, match="channels"):
        answer(fitted, some(series(), [0, 1]))
    numbers = untrained(settings(), series())
    with pytest.raises(DataError, match="channels a, b"):
        answer(numbers, texts())
    with pytest.raises(DataError, match="without texts"):
        answer(numbers, series(words=True))
    with pytest.raises(DataError, match="with texts"):
        answer(untrained(settings(), series(words=True)), series())


def test_numbers_far_from_those_it_was_fitted_on():
    fitted = untrained(settings(), series())
    far = some(series(), [0, 1])
    far.series.values[:] = 1e35
    with pytest.raises(DivergedError, match="on the scale"):
        answer(fitted, far)


def test_beams_are_for_answers(classified):
    with pytest.raises(UsageError, match="--beam 2"):
        answer(classified[0].fitted, texts(), beam=2)
    fitted = untrained(settings(task="sequence"), texts(answers=True))
    with pytest.raises(UsageError, match="--beam 0"):
        answer(fitted, texts(), beam=0)


def test_a_wider_beam_finds_no_worse_answers():
    sequences = texts(answers=True)
    fitted = untrained(settings(task="sequence"), sequences)
    one, all_ = (answer(fitted, some(sequences, range(8)), beam=beam).table["score"] for beam in (1, 200))
    assert (one < 0).all()
    assert np.isfinite(all_).all()


def test_a_pretrained_run_answers_nothing():
    fitted = untrained(settings(task="pretrain"), texts())
    with pytest.raises(UsageError, match="--init-from"):
        answer(fitted, texts())


def test_only_words_are_said():
    """No special token, and no more than the longest answer; for that alone an answer may lack its end."""
    ready = fitting.make_ready(settings(task="sequence"), texts(answers=True))
    found, scores = prediction.searched(ready.fitted, ready.prepared.parts.test, 1, torch.device("cpu"))
    assert len(found) == len(ready.prepared.parts.test)
    assert all(token >= len(SPECIAL) for ids in found for token in ids)
    assert max(map(len, found)) <= ready.fitted.problem.horizon
    assert np.isfinite(scores).all()
