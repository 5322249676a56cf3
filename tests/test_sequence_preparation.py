"""From sequences to examples: what is learned from which part, what models are told, what is refused."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tsformer import fitting
from tsformer import weights as saved
from tsformer.config import resolve
from tsformer.config_layer import Layer
from tsformer.data.ragged import Ragged, offsets_of
from tsformer.data.sequence_set import MOST_SEEN
from tsformer.data.sequences import TEST, TRAIN, VALIDATION, Sequences, SequenceSchema
from tsformer.data.vocabulary import SPECIAL, UNK
from tsformer.errors import DataError, UsageError
from tsformer.nn.classification import ClassOutput
from tsformer.nn.pretraining import HiddenOutput
from tsformer.nn.token_output import TokenOutput
from tsformer.sequence_preparation import _lookback, as_panel, coded_set, complete_sequences, prepare_sequences
from tsformer.settings import MOST_STEPS

SMALL = {"name": "transformer", "d_model": 8, "n_heads": 2, "d_ff": 8, "encoder_layers": 1}
PARTS = np.array([TRAIN] * 8 + [VALIDATION] * 4 + [TEST] * 4, dtype=np.int8)
WORDS = ("red", "green", "blue", "grey")


def settings(task="classify", **sections):
    values = {"model": SMALL, "task": task, **sections}
    values["train"] = {"max_steps": 3, "batch_size": 4, **values.get("train", {})}
    return resolve([Layer(values)], needs_data=False)


def texts(later=lambda text: text, answers=False):
    """Sixteen texts in given parts; `later` changes those that training does not see."""
    made = [f"{WORDS[i % 4]} {WORDS[i // 4]} n{i}" for i in range(16)]
    made = [text if part == TRAIN else later(text) for text, part in zip(made, PARTS, strict=True)]
    return Sequences(
        SequenceSchema(text="text", label="label", target="answer" if answers else None),
        tuple(map(str, range(16))),
        texts=tuple(made),
        labels=None if answers else tuple("xy"[i % 2] for i in range(16)),
        targets=tuple(" ".join(reversed(text.split())) for text in made) if answers else None,
        parts=PARTS,
    )


def series(later=lambda values: values, words=False, channels=("a", "b")):
    """Sixteen series of unequal length, with missing values."""
    generator = np.random.default_rng(0)
    made = [generator.normal(5, 3, size=(2 + i % 5, len(channels))) for i in range(16)]
    made = [values if part == TRAIN else later(values) for values, part in zip(made, PARTS, strict=True)]
    made[0][1, 0] = np.nan
    rows = np.concatenate(made)
    return Sequences(
        SequenceSchema(text="say" if words else None, label="label", channels=channels, id="id"),
        tuple(map(str, range(16))),
        texts=tuple(f"{WORDS[i % 4]} here" for i in range(len(rows))) if words else None,
        series=Ragged(rows, offsets_of([len(values) for values in made])),
        labels=tuple("xy"[i % 2] for i in range(16)),
        parts=PARTS,
    )


def kept(chosen, sequences):
    """What a run keeps: words, transforms, weights."""
    fitted = fitting.fit(chosen, sequences).fitted
    return fitted.words.to_json(), fitted.chain.to_json(), saved.save(fitted.module)


@pytest.mark.parametrize("task", ["classify", "sequence", "pretrain"])
def test_texts_outside_training_teach_nothing(task):
    first, second = (
        kept(settings(task), texts(later, answers=task == "sequence"))
        for later in (lambda text: text, lambda text: text.replace(" n", " unseen"))
    )
    assert first == second
    assert not {"unseen9", "n9"} & set(first[0]["tokenizer"]["words"])


@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("task", ["classify", "pretrain"])
def test_numbers_outside_training_teach_nothing(task, words):
    first, second = (
        kept(settings(task), series(later, words)) for later in (lambda values: values, lambda values: values * 1e3)
    )
    assert first == second


def test_training_texts_do_teach():
    plain = kept(settings(), texts())
    assert plain != kept(settings(), replace(texts(), texts=("another", *texts().texts[1:])))
    assert plain[2] != kept(settings(train={"seed": 1}), texts())[2]


def test_the_same_seed_gives_the_same_bytes():
    for task in ("classify", "sequence", "pretrain"):
        assert kept(settings(task), texts(answers=task == "sequence")) == kept(
            settings(task), texts(answers=task == "sequence")
        )


def test_the_scaler_knows_the_training_rows():
    prepared = prepare_sequences(settings(), series())
    rows = series().series
    training = rows.values[: rows.offsets[8]]
    state = prepared.parts.chain.to_json()[""][0]
    np.testing.assert_allclose(state["mean"], np.nanmean(training, 0), rtol=0.02)
    np.testing.assert_allclose(state["scale"], np.nanstd(training, 0), rtol=0.02)
    seen = prepared.parts.train.batch()
    real = seen.past_mask
    for channel in range(2):
        values = seen.past[..., channel][real[..., channel]]
        assert float(values.mean()) == pytest.approx(0, abs=0.02)


def test_what_is_missing_stays_missing():
    prepared = prepare_sequences(settings(), series())
    batch = prepared.parts.train.batch()
    assert int((~batch.past_mask[0, -2:]).sum()) == 1
    assert not batch.past_mask[0, -1, 0]
    assert batch.past_mask[0, -1, 1]
    assert torch.isfinite(batch.past).all()


def test_a_channel_without_any_number_is_finite():
    lacking = series()
    lacking.series.values[:, 1] = np.nan
    assert np.isfinite(as_panel(lacking.series, lacking).values).all()
    result = fitting.fit(settings(), lacking)
    assert np.isfinite(result.metrics()["test"]["log_loss"])


def test_without_a_scaler_numbers_are_taken_as_they_are():
    prepared = prepare_sequences(settings(scale="none"), series())
    batch = prepared.parts.test.batch(torch.tensor([1]))
    np.testing.assert_allclose(batch.past[0].numpy(), series().series[13], rtol=1e-6)


@pytest.mark.parametrize("scale", ["standard", "none"])
def test_numbers_beyond_single_precision_are_no_fault_of_the_model(scale):
    large = series(lambda values: values * 1e60)
    with pytest.raises(DataError, match="too large for single precision"):
        prepare_sequences(settings(scale=scale), large)


def test_what_a_model_is_told():
    problem = prepare_sequences(settings(), texts()).problem
    assert (problem.task, problem.output, problem.classes) == ("classify", "classes", 2)
    assert problem.vocabulary == len(SPECIAL) + 4 + 8
    assert (problem.lookback, problem.channels, problem.text_length, problem.target_vocabulary) == (3, 0, 0, 0)
    problem = prepare_sequences(settings("sequence"), texts(answers=True)).problem
    assert (problem.output, problem.horizon, problem.classes) == ("tokens", 4, 0)
    assert problem.target_vocabulary == problem.vocabulary
    problem = prepare_sequences(settings(), series(words=True)).problem
    assert (problem.channels, problem.text_length, problem.lookback) == (2, 2, 6)
    problem = prepare_sequences(settings("pretrain"), series()).problem
    assert (problem.output, problem.vocabulary, problem.classes) == ("hidden", 0, 0)


def test_what_is_minimised():
    kinds = {"classify": ClassOutput, "sequence": TokenOutput, "pretrain": HiddenOutput}
    for task, kind in kinds.items():
        parts = prepare_sequences(settings(task), texts(answers=task == "sequence")).parts
        assert type(parts.objective) is kind
    uneven = replace(texts(), labels=("x",) * 6 + ("y",) * 10)
    plain, balanced = (
        prepare_sequences(settings(train={"class_weights": weights}), uneven).parts.objective.weights.tolist()
        for weights in ("none", "balanced")
    )
    assert plain == [1, 1]
    assert balanced == pytest.approx([8 / (2 * 6), 8 / (2 * 2)])


def test_chunks_read_all_up_to_what_a_window_may_be():
    chunked = settings(model={**SMALL, "chunk": 4})
    assert _lookback(chunked, np.array([3, 700])) == 700
    assert _lookback(chunked, np.array([MOST_STEPS + 1])) == MOST_STEPS
    assert _lookback(settings(), np.array([3, 700])) == MOST_SEEN


def test_answers_have_a_limit():
    long = replace(texts(answers=True), targets=("word " * 700,) * 16)
    prepared = prepare_sequences(settings("sequence"), long)
    assert prepared.problem.horizon == MOST_SEEN
    assert prepared.parts.train.batch().target_tokens.shape[1] == MOST_SEEN
    assert f"16 of 16 answers have more than {MOST_SEEN - 1} tokens" in " ".join(prepared.notes)


def test_texts_at_steps_are_as_long_as_those_of_training():
    """The texts of the other parts decide no shape."""
    plain, other = (prepare_sequences(settings(), series_with_texts(last)) for last in ("b", "b " * 9))
    assert plain.problem == other.problem


def series_with_texts(last):
    """Sixteen series of two steps; the texts of the last, which is not for training, are given."""
    parts = np.array([TRAIN] * 10 + [VALIDATION] * 2 + [TEST] * 4, dtype=np.int8)
    return Sequences(
        SequenceSchema(text="text", label="label", channels=("x",)),
        tuple(map(str, range(16))),
        texts=("a", "b") * 15 + (last, last),
        series=Ragged(np.random.default_rng(0).normal(size=(32, 1)), np.arange(0, 33, 2)),
        labels=("x", "y") * 8,
        parts=parts,
    )


def test_pretraining_needs_no_two_classes():
    one = replace(texts(), labels=("x",) * 16)
    assert len(prepare_sequences(settings("pretrain"), one).parts.train) > 0


def test_the_lookback_comes_from_the_training_part():
    chosen = settings()
    prepared = prepare_sequences(chosen, texts(lambda text: f"{text} {text}"))
    assert prepared.problem.lookback == 3
    assert "8 of 16 texts have more than 3 tokens" in " ".join(prepared.notes)
    assert prepared.parts.test.batch().tokens.shape == (4, 3)
    assert complete_sequences(chosen, prepared.problem).window.lookback == 3
    asked = prepare_sequences(settings(window={"lookback": 2}), texts())
    assert asked.parts.train.batch().tokens.shape == (8, 2)


def test_of_long_series_the_last_steps_are_seen():
    prepared = prepare_sequences(settings(window={"lookback": 2}, scale="none"), series())
    np.testing.assert_allclose(
        prepared.parts.train.batch(torch.tensor([4])).past[0].numpy(), series().series[4][-2:], rtol=1e-6
    )


def test_unknown_words_and_labels():
    prepared = prepare_sequences(settings(), texts())
    found = coded_set(
        replace(texts(), texts=("red yellow",) * 16, labels=("x",) * 15 + ("z",), parts=None),
        prepared.parts.words,
        prepared.parts.chain,
        lookback=9,
        text_length=9,
    )
    assert found.tokens[0].tolist() == [found.tokens[0][0], UNK]
    assert found.labels.tolist() == [0] * 15 + [-1]


def test_classes_that_training_lacks_are_classes_too():
    sequences = replace(texts(), labels=(*texts().labels[:15], "z"))
    prepared = prepare_sequences(settings(), sequences)
    assert prepared.parts.words.classes == ("x", "y", "z")
    result = fitting.fit(settings(), sequences)
    assert result.metrics()["by_class"]["z"]["support"] == 1
    assert any("no example of class z" in line for line in result.cautions())


@pytest.mark.parametrize("texts_", [[""] * 16, ["  "] * 16])
def test_texts_that_hold_nothing(texts_):
    with pytest.raises(DataError, match="training texts are all empty"):
        prepare_sequences(settings(), replace(texts(), texts=tuple(texts_)))


def test_some_empty_texts_are_examples_as_others():
    sequences = replace(texts(), texts=("", *texts().texts[1:9], "", *texts().texts[10:]))
    result = fitting.fit(settings(), sequences)
    assert result.metrics()["test"]["examples"] == 4
    assert np.isfinite(result.metrics()["test"]["log_loss"])


@pytest.mark.parametrize(
    ("task", "data", "fault", "said"),
    [
        ("classify", replace(texts(), labels=None), UsageError, "--label"),
        ("sequence", texts(), DataError, "no answers"),
    ],
)
def test_what_the_task_needs_and_the_data_lack(task, data, fault, said):
    with pytest.raises(fault, match=said):
        prepare_sequences(settings(task), data)


def test_one_word_per_part_is_no_reason_to_fail():
    """The longest answer of the training part is what can be said: others are read as far, and told of."""
    sequences = texts(lambda text: f"{text} and more", answers=True)
    prepared = prepare_sequences(settings("sequence"), sequences)
    assert prepared.problem.horizon == 4
    assert "8 of 16 answers are longer than any in training" in " ".join(prepared.notes)


def test_padding_is_told():
    padding = prepare_sequences(settings(), series()).padding(settings().train)
    assert 0 <= padding.bucketed <= padding.shuffled < 1
    hidden = prepare_sequences(settings("pretrain"), series()).padding(settings().train)
    assert (hidden.bucketed, hidden.shuffled) == (padding.bucketed, padding.shuffled)
