"""Sequences of unequal length, padded no further than the longest of each batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tsformer.data.bucketing import like_lengths, padded_share
from tsformer.data.ragged import Ragged
from tsformer.data.vocabulary import PAD, SEP
from tsformer.data.windows import Batch

MOST_LENGTH = 2**62  # where there is no limit
MOST_SEEN = 512
"""Steps or tokens that a model sees, at most, where nobody asked for another number."""


@dataclass(frozen=True)
class Padding:
    """Share of the positions of a pass that are padded.

    Attributes:
        bucketed: in batches of like lengths.
        shuffled: in batches drawn from all.
    """

    bucketed: float
    shuffled: float


@dataclass(frozen=True)
class SequenceSet:
    """One part of the data as `Examples`; the parts share their arrays, and nothing is copied but batches.

    Attributes:
        index: int64 `[examples]`, which sequences of the arrays belong to this part.
        lookback: steps that the model sees at most: the first tokens of a longer text, the last steps of a longer
            series.
        tokens: int64, one sequence for each example; one for each row of `series` where there are series.
        text_length: tokens kept of the text at each step of a series.
        series: float32 `[rows, channels]`, scaled; NaN = missing.
        targets: int64, the answers, without special tokens.
        answer_length: tokens of an answer that a batch holds at most, its end included; 0 for all.
        labels: int64, the class of each sequence.
        bucketing: batches of like lengths.
    """

    index: np.ndarray
    lookback: int
    tokens: Ragged | None = None
    text_length: int = 0
    series: Ragged | None = None
    targets: Ragged | None = None
    answer_length: int = 0
    labels: np.ndarray | None = None
    bucketing: bool = True

    def __len__(self) -> int:
        return len(self.index)

    @property
    def lengths(self) -> np.ndarray:
        """Steps or tokens of each example as the model sees it, those of its answer added: int64 `[examples]`."""
        return self._sides.sum(axis=1)

    @cached_property
    def _sides(self) -> np.ndarray:
        """Lengths of what the encoder reads, and of the answer with its end: int64 `[examples, 1 or 2]`."""
        source = self.tokens if self.series is None else self.series
        assert source is not None
        sides = [np.minimum(source.lengths[self.index], self.lookback)]
        if self.targets is not None:
            sides.append(np.minimum(self.targets.lengths[self.index] + 1, self.answer_length or MOST_LENGTH))
        return np.stack(sides, axis=1)

    def batch(self, index: Tensor | None = None) -> Batch:
        """Gather examples, padded to the longest of them, or to one step where all are empty.

        Args:
            index: int64 `[batch]`, places in this part, which `Batch.series` repeats; all of them when None.
        """
        places = torch.arange(len(self)) if index is None else index
        chosen = self.index[places.numpy()]
        past = past_mask = tokens = token_mask = target_tokens = target_token_mask = None
        if self.series is not None:
            rows, real = _rows(self.series, chosen, self.lookback, left=True)
            past = _filled(self.series.values, rows, real)
            past_mask = real[:, :, None] & ~np.isnan(past)
            past[~past_mask] = 0.0
            if self.tokens is not None:
                tokens, token_mask = self._text_of_each_step(self.tokens, rows, real)
        elif self.tokens is not None:
            rows, token_mask = _rows(self.tokens, chosen, self.lookback)
            tokens = _filled(self.tokens.values, rows, token_mask)
        if self.targets is not None:
            target_tokens, target_token_mask = _ended(self.targets, chosen, self.answer_length or MOST_LENGTH)
        return Batch(
            past=_tensor(past),
            past_mask=_tensor(past_mask),
            tokens=_tensor(tokens),
            token_mask=_tensor(token_mask),
            target_tokens=_tensor(target_tokens),
            target_token_mask=_tensor(target_token_mask),
            label=None if self.labels is None else torch.from_numpy(self.labels[chosen]),
            series=places,
        )

    def _text_of_each_step(self, texts: Ragged, rows: np.ndarray, real: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Tokens and their mask, `[batch, time, longest text]`."""
        inner, words = _rows(texts, rows[real], self.text_length)
        tokens = np.full((*real.shape, words.shape[1]), PAD)
        mask = np.zeros(tokens.shape, dtype=bool)
        tokens[real], mask[real] = _filled(texts.values, inner, words), words
        return tokens, mask

    def batches(self, size: int) -> Iterator[Batch]:
        """Each example once; with bucketing the longest come first, so that a lack of memory shows at once."""
        order = np.argsort(-self.lengths, kind="stable") if self.bucketing else np.arange(len(self))
        for start in range(0, len(self), size):
            yield self.batch(torch.from_numpy(order[start : start + size]))

    def passes(self, size: int, generator: np.random.Generator) -> Iterator[np.ndarray]:
        """The examples of each training step, int64 `[at most size]`, without end; each pass has all of them once."""
        while True:
            order = generator.permutation(len(self))
            if self.bucketing:
                yield from like_lengths(order, self.lengths[order], size, generator)
            else:
                yield from (order[start : start + size] for start in range(0, len(order), size))

    def thin(self, most: int) -> SequenceSet:
        """At most `most` examples, evenly spaced."""
        if len(self) <= most:
            return self
        return replace(self, index=self.index[np.linspace(0, len(self) - 1, most).round().astype(np.int64)])

    def padding(self, size: int, generator: np.random.Generator) -> Padding:
        """How much of a pass is padded with bucketing and without, by one pass of each."""

        def share(bucketing: bool) -> float:
            batches = replace(self, bucketing=bucketing).passes(size, generator)
            return padded_share(self._sides, islice(batches, -(-len(self) // size)))

        return Padding(bucketed=share(True), shuffled=share(False))


def lookback_for(lengths: np.ndarray) -> int:
    """Steps that the model sees where nobody asked for another number: all of the longest sequence, up to 512."""
    return int(min(MOST_SEEN, lengths.max(initial=1)))


def cut_note(
    lengths: np.ndarray, lookback: int, *, texts: bool, remedy: str = "raise --lookback to see more"
) -> str | None:
    """How many sequences are longer than what the model sees, and what to do; None when none is."""
    longer = np.count_nonzero(lengths > lookback)
    if not longer:
        return None
    seen = (
        f"texts have more than {lookback} tokens; the first"
        if texts
        else f"series have more than {lookback} steps; the last"
    )
    return f"{longer} of {len(lengths)} {seen} {lookback} are seen: {remedy}"


def _rows(sequences: Ragged, chosen: np.ndarray, most: int, left: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Where the values of some sequences lie, and what is real and not padded: both `[chosen, longest]`.

    Padded on the right, the first `most` values are kept; padded on the left, the last `most`.
    """
    starts, stops = sequences.offsets[chosen], sequences.offsets[chosen + 1]
    lengths = np.minimum(stops - starts, most)
    longest = lengths.max(initial=1)
    steps = np.arange(longest)
    if left:
        return stops[:, None] + steps - longest, steps >= longest - lengths[:, None]
    return starts[:, None] + steps, steps < lengths[:, None]


def _filled(values: np.ndarray, rows: np.ndarray, real: np.ndarray) -> np.ndarray:
    """Values `[batch, longest, ...]` at those rows; zero, which is `PAD`, where nothing is real."""
    filled = np.zeros((*real.shape, *values.shape[1:]), dtype=values.dtype)
    filled[real] = values[rows[real]]
    return filled


def _ended(answers: Ragged, chosen: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Answers with their end, and what is real: `[chosen, longest + 1]`; of longer ones the first `most` tokens."""
    lengths = answers.lengths[chosen]
    steps = np.arange(min(int(lengths.max(initial=0)) + 1, most))
    words = steps < lengths[:, None]
    tokens = _filled(answers.values, answers.offsets[chosen][:, None] + steps, words)
    tokens[steps == lengths[:, None]] = SEP
    return tokens, steps <= lengths[:, None]


def _tensor(array: np.ndarray | None) -> Any:  # as Batch has it: a tensor, or None where a task has none
    return None if array is None else torch.from_numpy(array)
