"""From sequences to examples: split, learn words and scale from the training part, turn all into numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tsformer.data.hidden_steps import HiddenSteps
from tsformer.data.panel import Panel, Schema
from tsformer.data.ragged import Ragged
from tsformer.data.sequence_set import MOST_LENGTH, MOST_SEEN, Padding, SequenceSet, cut_note, lookback_for
from tsformer.data.sequence_split import split_sequences
from tsformer.data.sequences import TEST, TRAIN, VALIDATION, Sequences, SequenceSchema
from tsformer.data.tokens import Tokenizer
from tsformer.data.transforms import Chain
from tsformer.errors import DataError, UsageError
from tsformer.nn.classification import ClassOutput, balanced_weights
from tsformer.nn.token_output import TokenOutput
from tsformer.parts import Parts, with_hidden_steps
from tsformer.plugin import Problem, Task
from tsformer.preparation import LONGEST_TEXT, build_chain
from tsformer.settings import DEFAULT_ANSWER_STEPS, MOST_STEPS, Settings, TrainConfig, WindowConfig
from tsformer.words import Words, learn_tokenizer

OUTPUT_NAMES = {Task.CLASSIFY: "classes", Task.SEQUENCE: "tokens", Task.PRETRAIN: "hidden"}
MOST_CLASSES = 2000
"""Their confusions are counted pair by pair."""


@dataclass(frozen=True)
class PreparedSequences:
    """Sequences, split and turned into numbers.

    Attributes:
        sequences: as they were read.
        partition: int8 `[examples]`, the part of each.
        parts: what a model is given of all this.
        notes: what the user should hear of, one line each.
    """

    sequences: Sequences
    partition: np.ndarray
    parts: Parts
    notes: tuple[str, ...]

    @property
    def problem(self) -> Problem:
        return self.parts.problem

    @property
    def train(self) -> SequenceSet:
        """The training part before anything of it is hidden."""
        examples = self.parts.train
        if isinstance(examples, HiddenSteps):
            examples = examples.examples
        assert isinstance(examples, SequenceSet)
        return examples

    def padding(self, train: TrainConfig) -> Padding | None:
        """How much of a pass over the training part is padded; None where nothing is learned in batches."""
        examples = self.train
        return examples.padding(train.batch_for(len(examples)), np.random.default_rng(train.seed))


def prepare_sequences(settings: Settings, sequences: Sequences, earlier: Tokenizer | None = None) -> PreparedSequences:
    """Split, fit tokenizer and scaler on the training part, and cut what is longer than the lookback.

    Args:
        earlier: of a run that the model starts from; see `learn_tokenizer`.

    Raises:
        DataError: too few examples, no labels or answers for a task that needs them, values outside a scaler's domain.
    """
    _check_task(settings, sequences)
    read = sequences if settings.task is Task.CLASSIFY else replace(sequences, labels=None)
    partition = split_sequences(read, settings.train.seed)
    parts = partition.parts
    if TEST not in parts and settings.task is not Task.CLASSIFY:
        raise DataError("the data name parts, but no test example; name one, or no parts at all")
    training = np.flatnonzero(parts == TRAIN)
    words = _words(settings, sequences, training, earlier)
    chain = build_chain(settings, numbers_of(sequences.schema))
    if sequences.series is not None and settings.scale is not None:
        chain.fit(as_panel(sequences.series.take(training), sequences), np.array([_rows(sequences.series, training)]))
    coded = coded_set(sequences, words, chain, MOST_LENGTH, LONGEST_TEXT)
    per_step = sequences.series is not None and coded.tokens is not None
    if sequences.series is not None and coded.tokens is not None:
        texts = Ragged(coded.tokens.lengths, sequences.series.offsets).take(training)
        coded = replace(coded, text_length=max(1, min(LONGEST_TEXT, int(texts.values.max(initial=1)))))
    lengths = lengths_of(coded)
    lookback = settings.window.lookback or _lookback(settings, lengths[training])
    horizon = 0 if coded.targets is None else min(int(coded.targets.lengths[training].max()) + 1, MOST_SEEN)
    wanted = settings.train.bucketing
    # Letters written backwards, 500 steps: 97 % right from mixed batches, 63 % from those of one length each.
    bucketing = settings.task is not Task.SEQUENCE if wanted is None else wanted
    coded = replace(coded, lookback=lookback, bucketing=bucketing, answer_length=horizon)
    size = len(words.tokenizer.vocabulary) if words.tokenizer else 0
    problem = Problem(
        task=settings.task,
        lookback=lookback,
        horizon=horizon,
        past_covariates=len(sequences.schema.channels),
        output=OUTPUT_NAMES[settings.task],
        vocabulary=size,
        text_length=coded.text_length if per_step else 0,
        target_vocabulary=size if sequences.targets is not None else 0,
        classes=len(words.classes) if settings.task is Task.CLASSIFY else 0,
    )
    train, validation, test = (
        replace(coded, index=np.flatnonzero(parts == part)) for part in (TRAIN, VALIDATION, TEST)
    )
    objective = _objective(problem, settings.train, coded, training)
    given = Parts(problem, objective, train, validation, test, chain, words)
    if settings.task is Task.PRETRAIN:
        given = with_hidden_steps(given, settings.train)
    notes = [*partition.notes, cut_note(lengths, lookback, texts=sequences.series is None)]
    longer = 0 if coded.targets is None else int((coded.targets.lengths + 1 > horizon).sum())
    if longer:
        why = "are longer than any in training" if horizon < MOST_SEEN else f"have more than {horizon - 1} tokens"
        notes.append(f"{longer} of {len(sequences)} answers {why}, and cannot be found whole")
    return PreparedSequences(sequences, parts, given, tuple(note for note in notes if note))


def _lookback(settings: Settings, lengths: np.ndarray) -> int:
    """What a model sees where nobody asked for another number; one that reads in chunks sees all."""
    chunked = getattr(settings.model.config, "chunk", None) is not None
    return min(int(lengths.max(initial=1)), MOST_STEPS) if chunked else lookback_for(lengths)


def complete_sequences(settings: Settings, problem: Problem) -> Settings:
    """The window as it was chosen, and the steps; a sequence has no horizon, season or stride."""
    train = settings.train
    if settings.task is Task.SEQUENCE and train.max_steps is None and train.epochs is None:
        train = train.model_copy(update={"max_steps": DEFAULT_ANSWER_STEPS})
    return replace(settings, window=WindowConfig(lookback=problem.lookback), train=train)


def coded_set(sequences: Sequences, words: Words, chain: Chain, lookback: int, text_length: int) -> SequenceSet:
    """Sequences in numbers, all in one part: words that were never seen are unknown, and so are labels (-1)."""
    tokenizer, texts, answers = words.tokenizer, sequences.texts, sequences.targets
    labels = None
    if sequences.labels is not None and words.classes:
        known = {name: number for number, name in enumerate(words.classes)}
        labels = np.array([known.get(label, -1) for label in sequences.labels], dtype=np.int64)
    tokens = None if tokenizer is None or texts is None else tokenizer.encode(texts)
    return SequenceSet(
        index=np.arange(len(sequences)),
        lookback=lookback,
        tokens=tokens,
        text_length=text_length if sequences.series is not None and tokens is not None else 0,
        series=None if sequences.series is None else scaled(sequences.series, sequences, chain),
        targets=None if tokenizer is None or answers is None else tokenizer.encode(answers),
        labels=labels,
    )


def lengths_of(coded: SequenceSet) -> np.ndarray:
    """Tokens or steps of each example before any cut, int64 `[examples]`."""
    source = coded.tokens if coded.series is None else coded.series
    assert source is not None
    return source.lengths


def scaled(series: Ragged, sequences: Sequences, chain: Chain) -> Ragged:
    """Series after the scaler, float32; what is missing stays so.

    Raises:
        DataError: values that the scaler or single precision cannot hold.
    """
    values = chain.forward(as_panel(series, sequences)).tensor().numpy()
    return Ragged(np.where(np.isnan(series.values), np.float32(np.nan), values), series.offsets)


def as_panel(series: Ragged, sequences: Sequences) -> Panel:
    """All rows as one series, for a scaler to be fitted on.

    In place of what is missing stand others of the channel's values, each about as often: its distribution remains.
    """
    values, missing = series.values.copy(), np.isnan(series.values)
    for channel in np.flatnonzero(missing.any(0)):
        gaps = missing[:, channel]
        there = values[~gaps, channel]
        values[gaps, channel] = np.resize(there, int(gaps.sum())) if len(there) else 0.0
    rows = len(values)
    return Panel(
        values=np.ascontiguousarray(values),
        offsets=np.array([0, rows], dtype=np.int64),
        times=pd.RangeIndex(rows),
        ids=("",),
        schema=numbers_of(sequences.schema),
    )


def numbers_of(schema: Schema | SequenceSchema) -> Schema:
    """The numeric columns as a table has them."""
    return schema if isinstance(schema, Schema) else Schema(targets=schema.channels)


def _rows(series: Ragged, index: np.ndarray) -> int:
    return int(series.lengths[index].sum())


def _words(settings: Settings, sequences: Sequences, training: np.ndarray, earlier: Tokenizer | None) -> Words:
    tokenizer = None
    if sequences.texts is not None:
        texts = sequences.texts
        if sequences.series is None:
            seen = [texts[i] for i in training]
        else:
            offsets = sequences.series.offsets
            seen = [text for i in training for text in texts[offsets[i] : offsets[i + 1]]]
        if sequences.targets is not None:
            seen += [sequences.targets[i] for i in training]
        tokenizer = learn_tokenizer(seen, settings.tokens, earlier)
    classes: tuple[str, ...] = ()
    if settings.task is Task.CLASSIFY and sequences.labels is not None:
        classes = tuple(sorted(set(sequences.labels)))  # those that training lacks count as missed, too
        if len(classes) > MOST_CLASSES:
            raise DataError(
                f"the column '{sequences.schema.label}' has {len(classes):,} different labels, more than the "
                f"{MOST_CLASSES:,} that can be told apart: is it the one of the labels (--label)?"
            )
    return Words(tokenizer, classes)


def _objective(
    problem: Problem, train: TrainConfig, coded: SequenceSet, training: np.ndarray
) -> ClassOutput | TokenOutput:
    if problem.task is Task.CLASSIFY and coded.labels is not None:
        balanced = train.class_weights == "balanced"
        weights = balanced_weights(coded.labels[training], problem.classes) if balanced else None
        return ClassOutput(problem.classes, train.label_smoothing, weights)
    return TokenOutput(train.label_smoothing)


def _check_task(settings: Settings, sequences: Sequences) -> None:
    """Raises DataError or UsageError when what the task needs is not there."""
    if settings.task is Task.CLASSIFY and sequences.labels is None:
        raise UsageError("no labels: name their column with --label, or learn without any: --task pretrain")
    if settings.task is Task.SEQUENCE and sequences.targets is None:
        raise DataError("no answers: every text needs one to learn from")
    if settings.transforms:
        names = ", ".join(f"--transform {chosen.name}" for chosen in settings.transforms)
        raise UsageError(f"{names}: transforms are for targets of forecasts; --scale acts on all numbers")
