"""How well answers to texts are found, beside what naive answers would give. What is undefined is None."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Metrics = dict[str, float | int | None]
"""Numbers by name."""

Words = Sequence[str] | Sequence[int]
"""An answer in words or tokens, without its end."""

NAIVE = {"copy": "a copy of the text", "most_frequent": "the most frequent answer"}
"""Naive answers, in words: the text itself, and the most frequent answer of the training part."""


@dataclass(frozen=True)
class AnswerScore:
    """What came of a set of examples.

    Attributes:
        overall: {"sequence_accuracy", "token_accuracy", "edit_distance", "mean_length", "true_length", "examples"}.
            Sequence accuracy is the share of answers that are right as a whole; token accuracy the share of the true
            words that stand in their place, the end counted as one of them; edit distance the mean number of words to
            insert, delete or replace (Levenshtein 1966); lengths are means, in words.
        baselines: the same for each of `NAIVE`.
    """

    overall: Metrics
    baselines: Mapping[str, Metrics]

    def to_json(self) -> dict[str, Any]:
        """Plain numbers: {"test", "baselines"}."""
        return {"test": self.overall, "baselines": dict(self.baselines)}

    def cautions(self, model: str) -> Iterator[str]:
        """A line for each naive answer that is as near to the truth as those of the model."""
        own = self.overall["edit_distance"]
        for name, baseline in self.baselines.items():
            other = baseline["edit_distance"]
            if own is not None and other is not None and 0 < other <= own:  # both may be perfect
                yield (
                    f"{model} does not beat {NAIVE[name]} on the test part: edit distance {own:.4g} against {other:.4g}"
                )


def answer_score(
    answers: Sequence[Words], truth: Sequence[Words], texts: Sequence[Words], train_truth: Sequence[Words]
) -> AnswerScore:
    """Score answers.

    Args:
        answers: one to each example.
        truth: the true ones.
        texts: what is answered.
        train_truth: the true answers of the training part, at least one; the first of equally frequent ones counts.

    Raises:
        ValueError: when there are more or fewer answers than examples.
    """
    [(frequent, _)] = Counter[tuple[Any, ...]](map(tuple, train_truth)).most_common(1)
    naive: dict[str, Sequence[Words]] = {"copy": texts, "most_frequent": [frequent] * len(truth)}
    return AnswerScore(_metrics(answers, truth), {name: _metrics(given, truth) for name, given in naive.items()})


def _metrics(answers: Sequence[Words], truth: Sequence[Words]) -> Metrics:
    if len(answers) != len(truth):
        raise ValueError(f"{len(answers)} answers to {len(truth)} examples")
    hits, words, examples = 0, sum(map(len, truth)) + len(truth), len(truth)
    for answer, true in zip(answers, truth, strict=True):
        hits += sum(a == t for a, t in zip(answer, true, strict=False)) + (len(answer) == len(true))

    def mean(numbers: Iterator[int]) -> float | None:
        return sum(numbers) / examples if examples else None

    return {
        "sequence_accuracy": mean(int([*a] == [*t]) for a, t in zip(answers, truth, strict=True)),
        "token_accuracy": hits / words if words else None,
        "edit_distance": mean(map(edit_distance, answers, truth)),
        "mean_length": mean(map(len, answers)),
        "true_length": mean(map(len, truth)),
        "examples": examples,
    }


def edit_distance(answer: Words, truth: Words) -> int:
    """The least number of words to insert, delete or replace (Wagner & Fischer 1974), by rows of their table."""
    code: dict[str | int, int] = {}
    a, b = (np.array([code.setdefault(word, len(code)) for word in words]) for words in (answer, truth))
    steps = np.arange(len(b) + 1)
    row = steps
    for index, word in enumerate(a, start=1):
        best = np.minimum(row[:-1] + (b != word), row[1:] + 1)
        # An insertion costs 1 for each step to the right.
        row = np.minimum.accumulate(np.concatenate([[index], best]) - steps) + steps
    return int(row[-1])
