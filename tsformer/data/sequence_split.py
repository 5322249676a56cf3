"""The split of examples: by class, at random, with equal examples in the same part."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tsformer.data.cells import listed
from tsformer.data.sequences import TEST, TRAIN, VALIDATION, Sequences
from tsformer.data.tokens_words import normal
from tsformer.errors import DataError

TENTHS = (7, 1, 2)
"""What the training, validation and test parts get."""
FEWEST = 5
"""Different examples without which there is nothing to split."""
FEW_GROUPS = 60
"""Different examples of a class below which each is placed by itself, to come as close to the shares as can be."""
FEW = 200
"""Training examples below which validation gets a fifth of them, for a tenth would say too little."""


@dataclass(frozen=True)
class Partition:
    """Which part each example belongs to.

    Attributes:
        parts: int8 `[examples]` of `TRAIN`, `VALIDATION` and `TEST`.
        repeated: examples that are equal to an earlier one.
        notes: what the user should hear of, one line each.
    """

    parts: np.ndarray
    repeated: int
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> tuple[int, int, int]:
        """Examples for training, validation and test."""
        train, validation, test = np.bincount(self.parts, minlength=3).tolist()
        return train, validation, test


def split_sequences(sequences: Sequences, seed: int) -> Partition:
    """70/10/20 of each class; the parts that the data name themselves stay, only validation is taken out of training.

    Examples are equal, and come into the same part, when their texts are, but for capitals, spaces and width, and their
    series are, bit by bit; of pairs only the sources count. Equal examples count as what most of them are labelled. The
    split depends on the seed and on what the examples are, not on their order, and hardly on their labels.

    Raises:
        DataError: too few examples, or too few classes.
    """
    groups = _groups(sequences, seed)
    classes, labels = (), np.zeros(len(sequences), dtype=np.int64)
    if sequences.labels is not None:
        names, labels = np.unique(np.array(sequences.labels, dtype=object), return_inverse=True)
        classes = tuple(names.tolist())
        if len(classes) == 1:
            raise DataError(f"all {len(sequences)} examples have the label {classes[0]!r}; at least two are needed")
    if sequences.parts is None:
        return _partition(groups, labels, classes)
    return _completed(sequences.parts.astype(np.int8), groups, labels, classes)


def _partition(groups: np.ndarray, labels: np.ndarray, classes: Sequence[str]) -> Partition:
    """A split of all examples."""
    different = int(groups.max()) + 1
    few = (
        f"{len(groups)} example(s), {different} of them different, are too few to be split into training, validation "
        "and test"
    )
    if different < FEWEST:
        raise DataError(f"{few}; at least {FEWEST} different ones are needed")
    parts, rare = _dealt(groups, labels, TENTHS)
    seldom = f"{len(rare)} of {len(classes)} classes have fewer than {len(TENTHS)} different examples"
    named = listed([classes[label] for label in rare])
    if len(np.unique(parts)) < len(TENTHS) or len(classes) - len(rare) < min(2, len(classes)):
        why = f": {seldom} ({named})" if rare else ""
        raise DataError(f"{few} with at least two classes in each{why}")
    notes = []
    if rare:
        notes.append(f"{seldom} and are in the training part only: {named}")
    repeated = len(groups) - different
    if repeated:
        notes.append(f"{repeated} of {len(groups)} examples repeat an earlier one; equal ones are in the same part")
    return Partition(parts, repeated, tuple(notes))


def _completed(
    parts: np.ndarray,
    groups: np.ndarray,
    labels: np.ndarray,
    classes: Sequence[str],
) -> Partition:
    """A split that the data name; a validation part that is missing is taken out of the training part."""
    if TRAIN not in parts:
        raise DataError("the data name parts, but no training example; name one, or no parts at all")
    notes = []
    given = np.flatnonzero(parts == TRAIN)
    if len(classes) and len(np.unique(labels[given])) == 1:
        raise DataError(
            f"all {len(given)} training examples have the label {classes[labels[given[0]]]!r}; at least two are needed"
        )
    if VALIDATION not in parts:
        weights = (4, 1) if len(given) < FEW else (9, 1)
        ours = np.unique(groups[given], return_inverse=True)[1]
        parts[given], _ = _dealt(ours, labels[given], weights)
        taken = np.count_nonzero(parts == VALIDATION)
        if not taken:
            raise DataError(
                f"{len(given)} training example(s), {ours.max() + 1} of them different, leave none for validation; at "
                "least two different ones of a class are needed"
            )
        if TEST in parts:
            notes.append(f"{taken} of {len(given)} training examples serve as validation part, for the data name none")
    known = np.isin(groups[parts == TEST], groups[parts != TEST])
    if known.any():
        notes.append(f"{known.sum()} of {len(known)} test examples are among those for training or validation, too")
    unseen = np.setdiff1d(labels, labels[parts == TRAIN])
    if len(unseen):
        notes.append(f"no training example has the label(s) {listed([classes[label] for label in unseen])}")
    return Partition(parts, int(len(groups) - groups.max() - 1), tuple(notes))


def _groups(sequences: Sequences, seed: int) -> np.ndarray:
    """Which examples are equal: int64 `[examples]`, numbered at random by the seed and by what each one is alone."""
    key = seed.to_bytes(8, "little")
    digests = [hashlib.blake2b(content, digest_size=16, key=key).hexdigest() for content in _contents(sequences)]
    return np.unique(digests, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _contents(sequences: Sequences) -> Iterator[bytes]:
    """What makes examples equal."""
    texts, series = sequences.texts, sequences.series
    if series is None:
        yield from (_plain(text) for text in texts or ())
        return
    for example in range(len(series)):
        start, stop = series.offsets[example : example + 2]
        words = () if texts is None else (_plain(text) for text in texts[start:stop])
        yield b"\n".join([*words, series[example].tobytes()])


def _plain(text: str) -> bytes:
    """The text as a tokenizer reads it, but for case."""
    return normal(text, lower=True).casefold().encode("utf-8", "surrogatepass")


def _dealt(groups: np.ndarray, labels: np.ndarray, weights: Sequence[int]) -> tuple[np.ndarray, list[int]]:
    """Deal groups out to as many parts as there are weights, class by class; every part gets some of every class.

    Within a class the groups go to the parts in the order of their numbers, so that what one set of labels holds out,
    another does, but for a few groups at the borders.

    Args:
        groups: int64 `[examples]`, numbered from 0 without gaps, at random.
        labels: int64 `[examples]`.

    Returns:
        parts: int8 `[examples]`.
        rare: classes whose examples are in fewer groups than there are parts; these groups are in part 0.
    """
    pairs, counts = np.unique(np.stack([groups, labels]), axis=1, return_counts=True)
    there, times = np.unique(pairs[1], return_counts=True)
    rare = there[times < len(weights)]
    kept = np.bincount(groups, weights=np.isin(labels, rare)) > 0
    first = np.lexsort((pairs[1], -counts, pairs[0]))[np.unique(pairs[0], return_index=True)[1]]
    sizes, majority = np.bincount(groups), pairs[1][first]
    parts = np.zeros(len(sizes), dtype=np.int8)
    for label in np.unique(majority[~kept]):
        members = np.flatnonzero((majority == label) & ~kept)
        parts[members] = _in_turn(sizes[members], weights)
    return parts[groups], rare.tolist()


def _in_turn(sizes: np.ndarray, weights: Sequence[int]) -> np.ndarray:
    """Part of each group, int64 `[groups]`: large ones where they fit, and the others in turn fill what is left.

    Every part gets a group, as long as there are as many. Of few groups all count as large.
    """
    total, unit = int(sizes.sum()), sum(weights)
    large = (sizes > 1) & (sizes * unit * 20 > total * min(weights))
    if large.any() and len(sizes) < FEW_GROUPS:
        large[:] = True
    parts = np.zeros(len(sizes), dtype=np.int64)
    owed = [weight * total for weight in weights]  # an example is `unit` units, so that all is in whole numbers
    empty = set(range(len(weights)))
    by_size = np.flatnonzero(large)[np.argsort(-sizes[large], kind="stable")]
    for left, group in zip(range(len(sizes), 0, -1), by_size.tolist(), strict=False):
        units = int(sizes[group]) * unit
        possible = sorted(empty) if left <= len(empty) else range(len(weights))  # the last ones go where there is none
        fitting = [part for part in possible if owed[part] >= units]
        if fitting:
            part = max(fitting, key=lambda part: owed[part] / weights[part])
        else:
            part = max(possible, key=lambda part: owed[part])
        parts[group] = part
        owed[part] -= units
        empty.discard(part)
    small = np.flatnonzero(~large)
    middles = np.cumsum(sizes[small]) - sizes[small] / 2  # a group belongs where its middle lies
    room = np.cumsum(np.maximum(owed, 0))
    borders = sizes[small].sum() * room[:-1] / max(1, room[-1])
    cuts = np.searchsorted(middles, borders)
    if not large.any():  # every part gets a group
        least = np.arange(1, len(weights))
        cuts = np.clip(np.maximum(cuts, least), None, np.maximum(len(small) - len(weights) + least, 0))
        cuts = np.maximum.accumulate(cuts)
    parts[small] = np.searchsorted(cuts, np.arange(len(small)), side="right")
    return parts
