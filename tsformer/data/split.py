"""The split: by time, per series, before any window is cut and before any statistic is taken."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tsformer.data.cells import listed
from tsformer.errors import DataError, UsageError
from tsformer.findings import Finding


@dataclass(frozen=True)
class Split:
    """Where the parts of each series end, in rows counted from the start of that series.

    Attributes:
        train: int64 `[series]`; rows `[0, train)` are for training.
        validation: int64 `[series]`; rows `[train, validation)`; the test part is what follows. A split may leave no
            test part to any series: then nothing is scored.
        lengths: int64 `[series]`.
    """

    train: np.ndarray
    validation: np.ndarray
    lengths: np.ndarray


def without_test(split: Split) -> bool:
    """Whether a split leaves no row to test on, in any series."""
    return bool((split.validation == split.lengths).all())


def split_by_time(
    lengths: np.ndarray,
    horizon: int,
    lookback: int,
    lost: int = 0,
    ids: Sequence[str] | None = None,
    fewest: np.ndarray | None = None,
) -> Split:
    """70/10/20 per series, rounded down, the rest to the test part; validation and test hold at least one horizon.

    Args:
        lengths: int64 `[series]`, rows of each series.
        horizon: steps predicted by a window.
        lookback: steps seen by a window; the training part must hold one whole window.
        lost: rows that transforms lose at the start.
        ids: names for the message; None for a single series without a name.
        fewest: int64 `[series]`, rows that a window must see in place of the whole lookback.

    Raises:
        DataError: a series is too short; says how many rows are needed.
    """
    train, test = _parts(lengths, horizon)
    least = np.full_like(lengths, lookback) if fewest is None else fewest
    short = np.flatnonzero(train < least + lost + horizon)
    if len(short):
        raise _refused(lengths, short, horizon, lookback, lost, ids, int(least[short[0]]))
    return Split(train, lengths - test, lengths)


def long_enough(
    lengths: np.ndarray, horizon: int, lookback: int, lost: int, short: Literal["skip", "pad"]
) -> tuple[np.ndarray, np.ndarray]:
    """Which series stay when short ones are left out, or padded as far as that goes.

    Args:
        lengths, horizon, lookback, lost: as in `split_by_time`.

    Returns:
        boolean `[series]`, which stay; int64 `[series]`, the rows that a window of each must see: the whole lookback,
        or, where the series is padded, one.
    """
    train, _ = _parts(lengths, horizon)
    fewest = np.full_like(lengths, lookback)
    if short == "pad":
        fewest[train < lookback + lost + horizon] = 1
    return train >= fewest + lost + horizon, fewest


def _refused(
    lengths: np.ndarray,
    short: np.ndarray,
    horizon: int,
    lookback: int,
    lost: int,
    ids: Sequence[str] | None,
    seen: int,
) -> DataError:
    """What to raise for short series, with what settles it: few are left out, more are padded where that is enough.

    Args:
        seen: rows that a window must see; less than the lookback where all that can be padded is.
    """
    least = f"lookback {lookback}" if seen == lookback else f"at least {seen} row(s) to look back on"
    window = f"{least}{f', {lost} row(s) lost to transforms' if lost else ''} and horizon {horizon}"
    needs = f"{window} need {shortest(seen + lost, horizon)} rows in all, to leave enough for training"
    remedy = "use a smaller --lookback or --horizon, or more data"
    if seen < lookback:
        return too_short(lengths, short, ids, needs, remedy)
    some = len(short) < len(lengths)
    text = f"{too_short(lengths, short, ids, needs, f'{remedy}, or --short pad')}{' (--short skip)' if some else ''}"
    if len(short) > len(lengths) / 2 and lengths[short].max() >= shortest(1 + lost, horizon):
        policy, remedy = "pad", "fill up what windows see of them: --short pad"
    elif some:
        policy, remedy = "skip", "leave them out: --short skip"
    else:
        return DataError(text, finding=Finding("short", text, "fault", count=len(short), remedy=remedy))
    options = {"window.short": policy}
    return DataError(text, finding=Finding("short", text, "fault", count=len(short), remedy=remedy, options=options))


def check_ends(split: Split, lengths: np.ndarray, ids: Sequence[str] | None = None) -> None:
    """Refuse a split that does not end within each series.

    Arguments as in `split_by_time`.

    Raises:
        UsageError: names the first series that it does not fit, and says how many there are.
    """
    parts = (("train", split.train), ("validation", split.validation), ("lengths", split.lengths))
    for name, stops in parts:
        whole = isinstance(stops, np.ndarray) and stops.dtype == np.int64 and stops.shape == lengths.shape
        if not whole:
            raise UsageError(f"split.{name} must be an int64 array with a number for each of {len(lengths)} series")
    beyond = np.flatnonzero(split.lengths > lengths)
    if len(beyond):
        first, others = int(beyond[0]), _others(lengths, beyond, ids, "too short")
        raise UsageError(
            f"the split of {_name(ids, first)} ends at row {int(split.lengths[first])}, "
            f"but it has {int(lengths[first])} rows{others}"
        )


def check_split(
    split: Split, lengths: np.ndarray, horizon: int, lookback: int, lost: int = 0, ids: Sequence[str] | None = None
) -> None:
    """Refuse a split of the user's own unless each part of each series holds a window.

    Arguments as in `split_by_time`.

    Raises:
        UsageError: names the first series that it does not fit, and says how many there are.
    """
    check_ends(split, lengths, ids)
    parts = (("train", split.train), ("validation", split.validation), ("lengths", split.lengths))
    starts = (np.full_like(split.train, lookback + lost), split.train, split.validation)
    names = ("training", "validation") if without_test(split) else ("training", "validation", "test")
    for (name, stops), start, part in zip(parts, starts, names, strict=False):
        short = np.flatnonzero(stops - start < horizon)
        if len(short):
            first, others = int(short[0]), _others(lengths, short, ids, "split like that")
            raise UsageError(
                f"the split of {_name(ids, first)} leaves no {part} window: split.{name} is {int(stops[first])}, "
                f"and {int(start[first])} rows before it and a horizon of {horizon} need more{others}"
            )


def too_short(lengths: np.ndarray, short: np.ndarray, ids: Sequence[str] | None, needs: str, remedy: str) -> DataError:
    """What to raise when series `short` of all have too few rows: names the first, and says how many there are.

    Args:
        lengths: int64 `[series]`, rows of each series.
        short: int64, which of them are too short; one at least.
        ids: names of the series; None for a single one without a name.
        needs: what rows are needed for, and how many.
        remedy: what to do.
    """
    first, others = int(short[0]), _others(lengths, short, ids, "too short")
    drop = ", or leave the short series out" if len(short) < len(lengths) else ""
    return DataError(f"{_name(ids, first)} has {int(lengths[first])} rows; {needs}{others}; {remedy}{drop}")


def shortest(lookback: int, horizon: int) -> int:
    """The fewest rows with which `split_by_time` succeeds."""
    rows = range(lookback + 3 * horizon, 2 * (lookback + 3 * horizon) + 20)
    enough = bisect_left(rows, True, key=lambda count: bool(_parts(np.array(count), horizon)[0] >= lookback + horizon))
    return rows[enough]


def _name(ids: Sequence[str] | None, series: int) -> str:
    return f"series {ids[series]!r}" if ids else "the series"


def _others(lengths: np.ndarray, bad: np.ndarray, ids: Sequence[str] | None, how: str) -> str:
    """How many series are like the one that a message names, where there are several at all."""
    if not ids or len(lengths) == 1:
        return ""
    return f" ({len(bad)} of {len(lengths)} series are {how}: {listed([ids[i] for i in bad])})"


def _parts(lengths: np.ndarray, horizon: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows for training and for the test."""
    train, validation = lengths * 7 // 10, lengths // 10
    test = np.maximum(lengths - train - validation, horizon)
    return lengths - test - np.maximum(validation, horizon), test
