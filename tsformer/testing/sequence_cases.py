"""Small sequences of each kind that a model may be asked to read, with labels, answers or hidden steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from tsformer.data.examples import Examples
from tsformer.data.hidden_steps import HiddenSteps
from tsformer.data.ragged import Ragged, offsets_of, ragged
from tsformer.data.sequence_set import SequenceSet
from tsformer.data.vocabulary import SPECIAL
from tsformer.nn.classification import ClassOutput
from tsformer.nn.objective import Objective
from tsformer.nn.pretraining import HiddenOutput
from tsformer.nn.token_output import TokenOutput
from tsformer.plugin import Problem, Task
from tsformer.testing.problem import PROBLEM, windows

EXAMPLES, CLASSES, LOOKBACK, LONGEST = 48, 3, 15, 12
VOCABULARY, TEXT_LENGTH, CHANNELS = len(SPECIAL) + 2 * CLASSES + 2, 3, 2
LONGEST_ANSWER, SPARE = 5, 3
"""Words of an answer, and how much longer problems allow sequences to be than they are: for more padding."""
TRAIN, VALIDATION, UNSEEN = np.arange(24), np.arange(24, 36), np.arange(36, EXAMPLES)
"""Examples by part; a `fit` hook is given the first two."""


@dataclass(frozen=True)
class Part:
    """A problem with the examples to learn it from.

    Attributes:
        kind: what the inputs are, in words.
        problem, objective: what is asked.
        train, validation: the examples.
    """

    kind: str
    problem: Problem
    objective: Objective
    train: Examples
    validation: Examples


def classes() -> Iterator[Part]:
    """Numbers, tokens, and both."""
    for kind in ("numbers", "tokens", "numbers with a text at each step"):
        yield _part(kind, Task.CLASSIFY, ClassOutput(CLASSES), _sequences(kind, labelled=True))


def answers() -> Iterator[Part]:
    """Tokens, whose answer is the same backwards."""
    generator = np.random.default_rng(7)
    lengths = 1 + np.arange(EXAMPLES) % LONGEST_ANSWER
    texts = [generator.integers(len(SPECIAL), VOCABULARY, length) for length in lengths]
    sequences = SequenceSet(
        index=np.arange(EXAMPLES),
        lookback=LOOKBACK,
        tokens=ragged(texts),
        targets=ragged([text[::-1] for text in texts]),
    )
    yield _part("tokens", Task.SEQUENCE, TokenOutput(), sequences)


def hidden_steps() -> Iterator[Part]:
    """Numbers, tokens, and the rows of a table."""
    for kind in ("numbers", "tokens"):
        yield _hiding(_part(kind, Task.PRETRAIN, HiddenOutput(), _sequences(kind, labelled=False)))
    problem = replace(PROBLEM, task=Task.PRETRAIN, output="hidden", lookback=PROBLEM.lookback + SPARE)
    yield _hiding(Part("the rows of a table", problem, HiddenOutput(), *windows()))


def _hiding(part: Part) -> Part:
    train, validation = (HiddenSteps(some, 0.3, 2.0, seed=0) for some in (part.train, part.validation))
    return replace(part, train=train, validation=validation)


def _part(kind: str, task: Task, objective: Objective, sequences: SequenceSet) -> Part:
    answered, read = sequences.targets is not None, sequences.tokens is not None
    problem = Problem(
        task=task,
        lookback=LOOKBACK,
        horizon=LONGEST_ANSWER + 1 + SPARE if answered else 0,
        past_covariates=0 if sequences.series is None else CHANNELS,
        output={Task.CLASSIFY: "classes", Task.SEQUENCE: "tokens"}.get(task, "hidden"),
        vocabulary=VOCABULARY if read else 0,
        text_length=sequences.text_length,
        target_vocabulary=VOCABULARY if answered else 0,
        classes=CLASSES if task is Task.CLASSIFY else 0,
    )
    train, validation = (replace(sequences, index=index) for index in (TRAIN, VALIDATION))
    return Part(kind, problem, objective, train, validation)


def _sequences(kind: str, labelled: bool) -> SequenceSet:
    """All examples of all parts: unequal lengths, numbers that are missing, steps without a text."""
    generator = np.random.default_rng(7)
    labels = np.arange(EXAMPLES) % CLASSES
    lengths = 3 + np.arange(EXAMPLES) * 5 % (LONGEST - 2)
    series = _waves(generator, labels, lengths) if "numbers" in kind else None
    tokens, text_length = None, 0
    if kind == "tokens":
        tokens = _texts(generator, labels, lengths)
    elif "text" in kind:
        steps = np.repeat(labels, lengths)
        tokens, text_length = _texts(generator, steps, np.arange(len(steps)) % (TEXT_LENGTH + 1)), TEXT_LENGTH
    return SequenceSet(
        index=np.arange(EXAMPLES),
        lookback=LOOKBACK,
        tokens=tokens,
        text_length=text_length,
        series=series,
        labels=labels if labelled else None,
    )


def _waves(generator: Generator, labels: np.ndarray, lengths: np.ndarray) -> Ragged:
    """Waves around a level, each class with its own; float32, here and there NaN."""
    offsets = offsets_of(lengths)
    step = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    level = np.repeat(labels - 1.0, lengths)
    values = np.sin(step[:, None] * [0.5, 1.0]) + level[:, None] + generator.normal(0, 0.05, (len(step), CHANNELS))
    values[5::17, 1] = np.nan
    return Ragged(values.astype(np.float32), offsets)


def _texts(generator: Generator, labels: np.ndarray, lengths: np.ndarray) -> Ragged:
    """Words that each class has for itself, and some that all have."""
    offsets = offsets_of(lengths)
    own = len(SPECIAL) + 2 * np.repeat(labels, lengths) + generator.integers(0, 2, offsets[-1])
    shared = VOCABULARY - 1 - generator.integers(0, 2, offsets[-1])
    return Ragged(np.where(generator.random(offsets[-1]) < 0.7, own, shared), offsets)
