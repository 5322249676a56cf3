"""A run and new sequences make answers: a label and its probability for each, or another sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch

from tsformer.building import device_in_use
from tsformer.data.examples import Examples
from tsformer.data.sequence_set import SequenceSet, cut_note
from tsformer.data.sequences import Sequences, SequenceSchema
from tsformer.data.vocabulary import PAD, SEP
from tsformer.errors import DataError, DivergedError, UsageError
from tsformer.fitted import Fitted
from tsformer.nn.beam import possible
from tsformer.nn.seq2seq import SequenceToSequence
from tsformer.plugin import Task
from tsformer.sequence_preparation import coded_set, lengths_of
from tsformer.training.loop import PREDICTED_AT_ONCE, predictions

PROBABILITY, SCORE = "probability", "score"


@dataclass(frozen=True)
class Answered:
    """What a model says of each example, in the order of the input.

    Attributes:
        table: the text or the id of each example, the label or answer under its own name, and how sure that is:
            the probability of the label, or the logarithm of that of the answer.
        probabilities: of each class, float64 `[examples, classes]`; None for answers.
        notes: what the user should hear of, one line each.
    """

    table: pd.DataFrame
    probabilities: np.ndarray | None = None
    notes: tuple[str, ...] = ()


def answer(fitted: Fitted, sequences: Sequences, *, beam: int = 1) -> Answered:
    """Label sequences, or answer them.

    Args:
        fitted: a classifier, or a model that answers one sequence by another.
        sequences: as the run's data plugin reads them; labels and answers are not looked at.
        beam: answers that are followed at a time; 1 takes the best token each time.

    Raises:
        DataError: other texts or channels than the model was fitted on.
        UsageError: a pretrained model, which answers nothing by itself, or a beam for a classifier.
    """
    task, schema = fitted.problem.task, fitted.schema
    require_answers(task)
    assert isinstance(schema, SequenceSchema)
    if beam < 1 or (beam > 1 and task is Task.CLASSIFY):
        raise UsageError(f"--beam {beam}: answers are searched with at least 1, and classes are not searched at all")
    examples = _examples(fitted, schema, sequences)
    device = device_in_use(fitted.module)
    table = _asked(sequences)
    remedy = "fit again with a larger --lookback to see more"
    cut = cut_note(lengths_of(examples), fitted.problem.lookback, texts=sequences.series is None, remedy=remedy)
    notes = (cut,) if cut else ()
    with fitted.settings.model.at_fault("prediction"):
        if task is Task.CLASSIFY:
            probabilities = probabilities_of(fitted, examples, device)
            best = probabilities.argmax(1)
            table[free_name(table, schema.label or "label")] = [fitted.words.classes[i] for i in best]
            table[free_name(table, PROBABILITY)] = probabilities[np.arange(len(best)), best]
            return Answered(table, probabilities, notes)
        found, scores = searched(fitted, examples, beam, device)
    assert fitted.words.tokenizer is not None
    table[free_name(table, schema.target or "target")] = [fitted.words.tokenizer.decode(ids) for ids in found]
    table[free_name(table, SCORE)] = scores
    return Answered(table, None, notes)


def require_answers(task: Task) -> None:
    """Raises UsageError for a pretrained run."""
    if task is Task.PRETRAIN:
        raise UsageError(
            "a pretrained run predicts nothing by itself: fit a model with --init-from and this run, then predict"
        )


def probabilities_of(fitted: Fitted, examples: Examples, device: torch.device) -> np.ndarray:
    """How likely each class is, float64 `[examples, classes]`.

    Raises:
        DivergedError: something is not finite.
    """
    found = np.empty((len(examples), fitted.problem.classes))
    for logits, batch in predictions(fitted.module, examples, device):
        assert batch.series is not None
        found[batch.series.numpy()] = logits.cpu().double().softmax(-1).numpy()
    return _finite(fitted, found)


def _finite(fitted: Fitted, found: np.ndarray) -> np.ndarray:
    if not np.isfinite(found).all():
        raise DivergedError(
            f"{fitted.settings.model} predicts values that are not finite; "
            "are the numbers on the scale of those that it was fitted on?"
        )
    return found


def searched(fitted: Fitted, examples: Examples, beam: int, device: torch.device) -> tuple[list[list[int]], np.ndarray]:
    """The answer to each example in tokens, without its end, and the logarithm of its probability, `[examples]`."""
    module = fitted.module.eval()
    found: list[list[int]] = [[] for _ in range(len(examples))]
    scores = np.full(len(examples), np.nan)
    if isinstance(module, SequenceToSequence):
        for batch in examples.batches(max(1, PREDICTED_AT_ONCE // beam)):
            asked = replace(batch, target_tokens=None, target_token_mask=None)
            with torch.inference_mode():
                answers = module.answer(asked.to(device), beam)
            for place, ids, score in zip(
                _places(batch.series), answers.tokens.tolist(), answers.scores.tolist(), strict=True
            ):
                found[place], scores[place] = [token for token in ids if token != PAD], score
        return found, _finite(fitted, scores)
    if beam > 1:
        raise UsageError(f"{fitted.settings.model} has no beam search: leave --beam out")
    for logits, batch in predictions(module, examples, device):
        likely = possible(logits.cpu().double()).log_softmax(-1)
        best, ids = likely.max(-1)
        for place, row, sure in zip(_places(batch.series), ids.tolist(), best.tolist(), strict=True):
            length = row.index(SEP) if SEP in row else len(row)
            found[place], scores[place] = row[:length], sum(sure[: length + 1])
    return found, _finite(fitted, scores)


def _places(series: torch.Tensor | None) -> list[int]:
    assert series is not None
    places: list[int] = series.tolist()
    return places


def _examples(fitted: Fitted, schema: SequenceSchema, sequences: Sequences) -> SequenceSet:
    """New sequences in numbers, as the model was fitted on them."""
    problem = fitted.problem
    if sequences.schema.channels != schema.channels:
        raise DataError(
            f"the model was fitted on the channels {', '.join(schema.channels) or 'of no numbers'}, "
            f"and the data have {', '.join(sequences.schema.channels) or 'none'}"
        )
    if (fitted.words.tokenizer is not None) != (sequences.texts is not None):
        there = "with" if fitted.words.tokenizer is not None else "without"
        raise DataError(f"the model was fitted on data {there} texts, and these are not")
    bare = replace(sequences, labels=None, targets=None)
    return coded_set(bare, fitted.words, fitted.chain, problem.lookback, problem.text_length)


def _asked(sequences: Sequences) -> pd.DataFrame:
    """What each answer is about: its text, or the id of its series."""
    schema = sequences.schema
    if sequences.series is None and sequences.texts is not None:
        # Objects: a text that no file can hold is no text to Arrow.
        return pd.DataFrame({schema.text or "text": list(sequences.texts)}, dtype=object)
    return pd.DataFrame({schema.id or "series": list(sequences.ids)})


def free_name(table: pd.DataFrame, name: str) -> str:
    """A name that is not taken: a text column may be called "probability", too."""
    while name in table:
        name = f"{name}_"
    return name


def answers_of(
    fitted: Fitted, test: Examples, train: Examples, device: torch.device
) -> tuple[Sequence[Sequence[int]], ...]:
    """Answers to the test part, the truth, what was asked, and the true answers of the training part, in tokens."""
    found, _ = searched(fitted, test, 1, device)
    return found, _true(test), _sources(test), _true(train)


def _true(examples: Examples) -> list[list[int]]:
    assert isinstance(examples, SequenceSet)
    assert examples.targets is not None
    return [examples.targets[int(i)].tolist() for i in examples.index]


def _sources(examples: Examples) -> list[list[int]]:
    assert isinstance(examples, SequenceSet)
    assert examples.tokens is not None
    return [examples.tokens[int(i)].tolist() for i in examples.index]
