"""Published ways to measure, as plans: the long-horizon papers' parts, and a test file that follows the data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tsformer.data.cells import listed
from tsformer.data.panel import Panel
from tsformer.data.selection import named
from tsformer.data.split import Split
from tsformer.errors import DataError, UsageError
from tsformer.evaluation.plan import Block, Plan

PROTOCOLS = ("ltsf",)

ETT = ("HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL", "OT")
"""Loads and oil temperature of a transformer (Zhou et al. 2021, Informer)."""
ETT_ROWS = {"h": (8640, 2880, 2880), "15min": (34560, 11520, 11520)}
"""12, 4 and 4 months of 30 days, by the step of the table."""


def ltsf(panel: Panel, horizon: int, rows: Sequence[int] | None = None) -> Plan:
    """The long-horizon papers' protocol (Zhou et al. 2021; Zeng et al. 2023, LTSF-Linear).

    Training, validation and test rows follow each other from the start of each series: those of the ETT sets, which are
    told by their columns and their step, else 70, 10 and 20 %. All windows whose steps are test rows are forecast, one
    for each row, and what they see reaches back over the border. Errors are of values standardised by the mean and the
    population standard deviation of the training rows, channel by channel, and averaged over windows, steps and
    channels. No window is dropped, while many published figures lack those that fill no batch.

    Args:
        panel: all its targets are measured.
        horizon: steps of each forecast.
        rows: of the three parts, in place of the protocol's.

    Raises:
        DataError: a series has too few rows for the parts, or a target no value in its training rows.
        UsageError: parts that hold no window.
    """
    parts, said = _parts(panel, rows)
    train, validation, test = parts.T
    ends = train + validation + test
    short = ends > panel.lengths
    if short.any():
        first = int(short.argmax())
        raise DataError(
            f"{said} needs {int(ends[first])} rows, and {_whose(panel, first)} has {int(panel.lengths[first])}: "
            "--split TRAIN,VALIDATION,TEST takes other numbers of rows"
        )
    none = (parts < horizon).any(axis=1)
    if none.any():
        first = int(none.argmax())
        counts = "/".join(map(str, parts[first].tolist()))
        raise UsageError(
            f"{said}: parts of {counts} rows of {_whose(panel, first)} do not each hold a window of horizon {horizon}; "
            "take a smaller --horizon, or --split TRAIN,VALIDATION,TEST"
        )
    counts = test - horizon + 1
    series = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    border = train + validation
    origins = border[series] + number
    # what comes after a gap in time is not what follows the origin
    first = panel.offsets[series] + origins
    whole = np.searchsorted(panel.breaks, first) == np.searchsorted(panel.breaks, first + horizon)
    block = Block(Split(train, border, border), series[whole], origins[whole], number[whole])
    notes = _notes(panel, parts, said, int(whole.sum()))
    if not whole.all():
        notes += (f"{int((~whole).sum())} window(s) of the test rows hold a gap in time, and are not forecast",)
    return Plan(horizon, (block,), border, _scale(panel, train), notes)


def follows(panel: Panel, before: np.ndarray, horizon: int) -> Plan:
    """One origin a series, at the border between the data and the rows of a test file, as in the M competitions.

    Args:
        panel: the data with the rows of the test file after those of each series.
        before: int64 `[series]`, rows of the data; a series that ends there is learned from and not forecast.
        horizon: steps of each forecast.

    Raises:
        DataError: a series has fewer test rows than the horizon.
    """
    there = panel.lengths - before
    short = (there > 0) & (there < horizon)
    if short.any():
        first = int(short.argmax())
        others = f" ({named(panel, short)})" if short.sum() > 1 else ""
        raise DataError(
            f"the test file has {int(there[first])} row(s) of {_whose(panel, first)}{others}, and a horizon of "
            f"{horizon} needs as many: take a smaller --horizon"
        )
    series = np.flatnonzero(there > 0)
    validation = np.minimum(np.maximum(before // 10, horizon), before)
    block = Block(Split(before - validation, before, before), series, before[series], np.zeros_like(series))
    ends = there[series]
    notes = [f"1 origin: the last row of the data, and {horizon} row(s) of the test file after it"]
    if (ends > horizon).any():
        notes.append(f"the test file has rows after step {horizon}, which are not looked at")
    left = there == 0
    if left.any():
        notes.append(f"without test rows, and not forecast: {named(panel, left)}")
    return Plan(horizon, (block,), before, None, tuple(notes))


def rows_of(text: str) -> tuple[int, int, int]:
    """The numbers of `--split 8640,2880,2880`.

    Raises:
        UsageError: they are not three whole numbers from 1.
    """
    words = [word.strip() for word in text.split(",")]
    if len(words) != 3 or not all(word.isascii() and word.isdigit() and 0 < int(word) < 2**31 for word in words):
        raise UsageError(f"--split is TRAIN,VALIDATION,TEST, numbers of rows such as 8640,2880,2880, not {text!r}")
    train, validation, test = map(int, words)
    return train, validation, test


def _parts(panel: Panel, rows: Sequence[int] | None) -> tuple[np.ndarray, str]:
    """Rows of the three parts, int64 `[series, 3]`, and what they are called."""
    series = len(panel.ids)
    if rows is not None:
        return np.tile(np.array(rows, dtype=np.int64), (series, 1)), "--split"
    # a long table has a series for each of the columns
    columns = panel.schema.targets if len(panel.schema.targets) > 1 or series == 1 else panel.ids
    step = panel.schema.frequency
    if set(columns) == set(ETT) and isinstance(step, str) and step in ETT_ROWS:
        return np.tile(np.array(ETT_ROWS[step], dtype=np.int64), (series, 1)), f"ETT{step[-1] if step == 'h' else 'm'}"
    # rounded like the papers' code does, int(n * 0.7), down to what floating point makes of it
    train, test = (np.array([int(n * share) for n in panel.lengths.tolist()], dtype=np.int64) for share in (0.7, 0.2))
    return np.stack([train, panel.lengths - train - test, test], axis=1), "70/10/20 %"


def _scale(panel: Panel, train: np.ndarray) -> np.ndarray:
    """Mean and standard deviation of the training rows, float64 `[series, targets, 2]`; 1 for a constant, as
    scikit-learn's StandardScaler has it."""
    targets = len(panel.schema.targets)
    scale = np.empty((len(panel.ids), targets, 2))
    for series, stop in enumerate(train.tolist()):
        start = int(panel.offsets[series])
        rows = panel.values[start : start + stop, :targets]
        empty = np.isnan(rows).all(axis=0)
        if empty.any():
            raise DataError(
                f"column {panel.schema.targets[int(empty.argmax())]!r} of {_whose(panel, series)} has no value in the "
                f"{stop} training rows, by which errors are standardised: leave it out with --target"
            )
        spread = np.nanstd(rows, axis=0)
        constant = np.nanmax(rows, axis=0) == np.nanmin(rows, axis=0)
        scale[series] = np.stack([np.nanmean(rows, axis=0), np.where(constant, 1.0, spread)], axis=1)
    return scale


def _notes(panel: Panel, parts: np.ndarray, said: str, windows: int) -> tuple[str, ...]:
    alike = (parts == parts[0]).all()
    counts = "/".join(map(str, parts[0].tolist())) + ("" if alike else " ...")
    unused = int((panel.lengths - parts.sum(axis=1)).sum())
    rest = f", the last {unused} of {len(panel.values)} not used" if unused else ""
    one = len(panel.ids) == 1
    columns = listed(panel.schema.targets) if one else f"{len(panel.ids)} series"
    return (
        f"ltsf: train/validation/test rows {counts} ({said}){rest}; {windows:,} windows; mse and mae are of {columns} "
        "standardised by the training rows",
    )


def _whose(panel: Panel, series: int) -> str:
    return f"series {panel.ids[series]!r}" if panel.schema.id else "the table"
