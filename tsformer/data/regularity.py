"""Whether the series of a table take one step: which one, and which of them do not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import NoReturn

import numpy as np
import pandas as pd

from tsformer.data.frequency import MOST_WEEKDAYS, infer_frequency, likely_frequency
from tsformer.data.grid import Frequency, Grid, grid_of, inside_series, stand
from tsformer.data.irregular import refuse_gaps, refuse_steps
from tsformer.data.pattern import FEWEST_DAYS
from tsformer.data.sorted_rows import Rows
from tsformer.data.step import Step
from tsformer.data.table_options import Gaps
from tsformer.errors import DataError
from tsformer.findings import Finding

_ASKED = 100
"""Series, the longest and others here and there, whose steps decide on the frequency of all."""

_ENOUGH = 10
"""Rows of which no two are one step apart, so that they take another one."""


def common_frequency(rows: Rows) -> Frequency:
    """The step that most rows take; from one open day to the next where all others are rows without a value.

    Raises:
        DataError: no series has three rows.
    """
    frequency = _common_step(rows)
    full: np.ndarray = ~np.isnan(rows.values).all(axis=1)
    if full.all() or not isinstance(frequency, str) or Step.parse(frequency).unit not in ("D", "C"):
        return frequency
    opened = rows.take(np.flatnonzero(full))
    if np.diff(opened.offsets).max(initial=0) < FEWEST_DAYS:
        return frequency
    chosen = _common_step(opened)
    return chosen if isinstance(chosen, str) and Step.parse(chosen).closes else frequency


def _common_step(rows: Rows) -> Frequency:
    """The step that most rows of some series take."""
    lengths = np.diff(rows.offsets)
    votes: Counter[Frequency] = Counter()
    for series in np.argsort(-lengths, kind="stable")[:: max(1, len(lengths) // _ASKED)].tolist():
        if lengths[series] < 3 and votes:
            break
        try:
            votes[likely_frequency(rows.times[rows.part(series)])] += int(lengths[series])
        except DataError as error:
            _refuse_at(rows, [series], error)
    return votes.most_common(1)[0][0]


def closed_weekdays(rows: Rows, frequency: Frequency) -> tuple[Finding, ...]:
    """That weekdays without rows are taken as closed, where they are: a doubt where few rows say so."""
    if not isinstance(frequency, str) or not Step.parse(frequency).closes:
        return ()
    step, count = Step.parse(frequency), int(np.diff(rows.offsets).max())
    days = "weekends are" if step.unit == "B" else "weekdays without a row are"
    text = f"{days} taken as closed: frequency {frequency}"
    if count >= FEWEST_DAYS:
        return (Finding("closed", text, column=rows.schema.time),)
    text += f", which {count} rows hardly show; if weekends only lack, --freq D --gaps fill --missing mask"
    return (Finding("closed", text, "doubt", rows.schema.time, count=count, remedy="--freq D where they are not"),)


def without_closed_days(rows: Rows, frequency: Frequency) -> tuple[Rows, tuple[Finding, ...]]:
    """Without the rows that hold nothing and are on a day that is closed, where the step is from one open day on."""
    empty: np.ndarray = np.isnan(rows.values).all(axis=1)
    if not isinstance(rows.times, pd.DatetimeIndex) or not isinstance(frequency, str) or not empty.any():
        return rows, ()
    step = Step.parse(frequency)
    closed = empty & ~stand(rows.times, rows.offsets, step)[1]
    if not step.closes or not closed.any():
        return rows, ()
    count, first = int(closed.sum()), rows.place(int(closed.argmax()))
    text = f"left out {count} row(s) without any value on days that are closed, the first {first}"
    return rows.take(np.flatnonzero(~closed)), (Finding("closed", text, column=rows.schema.time, count=count),)


def regular_grid(rows: Rows, frequency: Frequency, gaps: Gaps, *, fitted: bool) -> Grid:
    """The grid of rows that are whole steps of the frequency apart, and one step where gaps are an error.

    Args:
        fitted: the frequency is that of a model, whatever the rows themselves take.

    Raises:
        DataError: some series are otherwise; the first is named, and how many there are.
    """
    if isinstance(rows.times, pd.DatetimeIndex) != isinstance(frequency, str):
        kind = "dates" if isinstance(rows.times, pd.DatetimeIndex) else "numbers"
        raise DataError(f"{rows.where}: times are {kind}, which do not go with frequency {frequency!r}")
    grid = grid_of(rows.times, rows.offsets, frequency, closures=False)
    lacking, count = int(np.maximum(grid.missing, 0).sum()), len(rows.times)
    if fitted or count >= MOST_WEEKDAYS * (count + lacking):
        grid = grid_of(rows.times, rows.offsets, frequency)
    bad = grid.off
    if gaps == "error":
        bad[:-1] |= grid.missing > 0
    series = np.unique(rows.series[bad])
    if fitted:
        series = np.union1d(series, _of_longer_steps(rows, grid))
    if len(series):
        _refuse(rows, series.tolist(), grid, fitted=fitted)
    return grid


def _of_longer_steps(rows: Rows, grid: Grid) -> np.ndarray:
    """Series that lack a step after every row, and are long enough to say that they take another one."""
    near = inside_series(rows.offsets) & (grid.missing == 0)
    has_near = np.bincount(rows.series[:-1][near], minlength=len(rows.ids)) > 0
    return np.flatnonzero(~has_near & (np.diff(rows.offsets) >= _ENOUGH))


def _refuse(rows: Rows, bad: list[int], grid: Grid, *, fitted: bool) -> NoReturn:
    """Raise DataError for the first of the series that are bad."""
    part, frequency = rows.part(bad[0]), grid.frequency
    times, missing, off = rows.times[part], grid.missing[part.start : part.stop - 1], grid.off[part]
    try:
        own = infer_frequency(times)
    except DataError:
        own = frequency
    good = np.setdiff1d(np.arange(len(rows.ids)), bad)
    at = part.start + int(off.argmax() if off.any() else (missing > 0).argmax())
    try:
        if own != frequency:
            known = "the model was fitted on" if fitted else _like(rows, good)
            _refuse_other(own, frequency, known, to_be_brought=not fitted and len(good) > 0)
        if off.any():
            refuse_steps(times, frequency, grid.fits[part], alone=not len(good))
        refuse_gaps(times, missing, frequency, grid.missing)
    except DataError as error:
        _refuse_at(rows, bad, error, at)


def _refuse_other(own: Frequency, frequency: Frequency, known: str, *, to_be_brought: bool) -> NoReturn:
    """Raise DataError for a series of its own frequency, which can be brought to that of the others."""
    text = f"frequency is {own}, {known} {frequency}: one frequency is needed"
    options: dict[str, object] = {}
    if to_be_brought:
        options = {"data.freq": str(frequency), "data.duplicates": "mean", "data.gaps": "fill", "data.missing": "mask"}
    raise DataError(text, finding=Finding("frequency", text, "fault", options=options))


def _like(rows: Rows, good: np.ndarray) -> str:
    """Whose the frequency of the table is: the longest of the series that are good has it."""
    if not len(good):
        return "what is asked for is"
    longest = good[np.diff(rows.offsets)[good].argmax()]
    return f"series {rows.ids[longest]!r} has"


def _refuse_at(rows: Rows, bad: list[int], error: DataError, at: int | None = None) -> NoReturn:
    """Raise the error about the first of the bad series again, with its name, the row, and how many there are."""
    more = f" ({len(bad)} of {len(rows.ids)} series are like it)" if len(bad) > 1 else ""
    text = f"{rows.where}{rows.of(bad[0])}: {error}{more}"
    found = error.finding
    if found is not None:
        row = None if at is None else rows.place(at)
        found = replace(found, text=text, column=rows.schema.time, row=row)
    raise DataError(text, finding=found) from None
