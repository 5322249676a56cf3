"""A panel with the steps that are to be predicted: their times, and what is known ahead of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from tsformer.data.cells import listed
from tsformer.data.clock import show
from tsformer.data.panel import Panel
from tsformer.data.step import Step
from tsformer.data.wall import as_numbers
from tsformer.errors import DataError

_PARTS = 1000
"""Of a step, to which times that are numbers have to agree."""


def extended(panel: Panel, times: Sequence[pd.Index], known: np.ndarray) -> Panel:
    """The panel with further rows for each series, whose targets and past covariates are missing.

    Args:
        panel: rows up to now.
        times: for each series those of its further rows, `[steps]`.
        known: future covariates of these rows, float64 `[series, steps, future covariates]`.
    """
    series, steps = known.shape[:2]
    offsets = panel.offsets + steps * np.arange(series + 1)
    values = np.full((offsets[-1], panel.values.shape[1]), np.nan)
    ahead = (offsets[1:, None] + np.arange(-steps, 0)).reshape(-1)
    behind = np.ones(len(values), dtype=bool)
    behind[ahead] = False
    values[behind] = panel.values
    values[ahead, values.shape[1] - known.shape[2] :] = known.reshape(len(ahead), -1)
    order = np.empty(len(values), dtype=np.int64)
    order[behind], order[ahead] = np.arange(len(panel.values)), np.arange(len(panel.values), len(values))
    texts = None
    if panel.texts is not None:
        all_texts = np.array([*panel.texts, *[""] * len(ahead)], dtype=object)
        texts = tuple(all_texts[order])
    return replace(
        panel,
        values=values,
        offsets=offsets,
        times=panel.times.append(list(times)).take(order),
        texts=texts,
        masked=True,
        breaks=panel.breaks + steps * (np.searchsorted(panel.offsets, panel.breaks, side="right") - 1),
    )


def known_ahead(
    panel: Panel, times: Sequence[pd.Index], future: Panel | None, needed: int, why: str = ""
) -> tuple[np.ndarray, tuple[str, ...]]:
    """The future covariates of the steps to be predicted, by series and time.

    Args:
        panel: rows up to now; its schema says what is needed.
        times: for each series those of the steps, `[steps]`.
        future: rows with them, in any order, of which targets and past covariates are not looked at; a table without
            times has the next rows of each series.
        needed: of how many steps they have to be there, 0 for a model that reads none; NaN stands for those of later
            ones that are not.
        why: what is said after these are asked for.

    Returns:
        float64 `[series, steps, future covariates]`, and notes.

    Raises:
        DataError: rows or values are missing; names the first.
    """
    names = panel.schema.future_covariates
    steps = len(times[0])
    known = np.full((len(panel.ids), steps, len(names)), np.nan)
    if not names or not needed:
        unread = "the future table is not looked at: the model reads no columns that are known ahead"
        return known, () if future is None else (unread,)
    if future is None:
        raise DataError(f"the model needs {listed(list(names))} of what it predicts: {_how(panel, times, needed)}{why}")
    if panel.schema.time is None:  # the rows of each series count from its own start
        keys = np.arange(len(future.values)) - np.repeat(future.offsets[:-1], future.lengths)
    else:
        keys = _keys(future, future.times)
    index = pd.MultiIndex.from_arrays([_series(panel, future), keys])
    if not index.is_unique:
        twice = int(index.duplicated().argmax())
        raise DataError(f"the future table has two rows for {show(future.times[twice])}{_of(future, twice)}: keep one")
    if panel.schema.time is None:
        ahead = np.tile(np.arange(steps), len(panel.ids))
    else:
        ahead = np.concatenate([_keys(panel, each) for each in times])
    rows = index.get_indexer(pd.MultiIndex.from_arrays([np.repeat(np.arange(len(panel.ids)), steps), ahead]))
    columns = [future.schema.columns.index(name) for name in names]
    found = rows >= 0
    known.reshape(-1, len(names))[found] = future.values[rows[found]][:, columns]
    _check_complete(panel, times, known[:, :needed], found.reshape(-1, steps)[:, :needed], why)
    _check_between(future, index, rows[found], ahead.reshape(len(panel.ids), -1)[:, [0, -1]])
    surplus = len(future.values) - int(found.sum())
    if not surplus:
        return known, ()
    return known, (f"ignored {surplus} of {len(future.values)} rows of the future table: no steps that are predicted",)


def _check_between(future: Panel, index: pd.MultiIndex, taken: np.ndarray, ends: np.ndarray) -> None:
    """Raises DataError when there are further rows between all steps: the future table takes another, finer step.

    Args:
        index: series and key of each row of the future table.
        taken: positions of the rows that are steps.
        ends: the first and the last step of each series, `[series, 2]`.
    """
    frequency = future.schema.frequency
    if isinstance(frequency, str) and Step.parse(frequency).closes:
        return  # a table of all days has those between them, too
    series, keys = (np.asarray(index.get_level_values(level)) for level in (0, 1))
    known = series >= 0  # int64, -1 and below for series that are not predicted
    between = known & (keys > ends[np.where(known, series, 0), 0]) & (keys < ends[np.where(known, series, 0), 1])
    between[taken] = False
    if between.sum() >= max(1, len(taken) - len(np.unique(series[taken]))):
        first = int(between.argmax())
        raise DataError(
            f"the future table has {int(between.sum())} row(s) between the steps that are predicted, the first at "
            f"{show(future.times[first])}{_of(future, first)}, and the model was fitted on frequency "
            f"{frequency}: bring the table to it"
        )


def _series(panel: Panel, future: Panel) -> np.ndarray:
    """The series of the panel that each row of the future table belongs to, -1 for none, int64 `[rows]`."""
    if panel.schema.id is None:
        places = [0] * len(future.ids)
    else:
        order = {name: place for place, name in enumerate(panel.ids)}
        # Series that are in none keep a number of their own: their rows are not those of each other.
        places = [order.get(name, -1 - place) for place, name in enumerate(future.ids)]
    return np.repeat(np.array(places, dtype=np.int64), future.lengths)


def _keys(panel: Panel, times: pd.Index) -> np.ndarray:
    """Whole numbers that are equal where times `[rows]` are."""
    if isinstance(times, pd.DatetimeIndex):
        return as_numbers(times.as_unit("us"))
    step = panel.schema.frequency
    size = float(step) if isinstance(step, int | float) else 1.0
    parts = _PARTS if panel.schema.time is not None else 1
    return np.rint(np.asarray(times, dtype=np.float64) / size * parts).astype(np.int64)


def _check_complete(panel: Panel, times: Sequence[pd.Index], known: np.ndarray, found: np.ndarray, why: str) -> None:
    if not found.all():
        series, step = (int(i) for i in np.argwhere(~found)[0])
        without = [panel.ids[i] for i in np.flatnonzero(~found.any(axis=1))] if panel.schema.id else []
        whole = f" (without any row: {listed(without)})" if without else ""
        error = DataError(
            f"the future table lacks {int((~found).sum())} row(s), the first {_place(panel, times, series, step)}"
            f"{whole}; needed is {_how(panel, times, known.shape[1])}{why}"
        )
        error.series = np.asarray(~found.all(axis=1))
        raise error
    empty = np.isnan(known)
    if empty.any():
        series, step, column = (int(i) for i in np.argwhere(empty)[0])
        error = DataError(
            f"the future table has no value in column {panel.schema.future_covariates[column]!r} "
            f"{_place(panel, times, series, step)} ({int(empty.sum())} in all): fill it in{why}"
        )
        error.series = empty.any(axis=(1, 2))
        raise error


def _place(panel: Panel, times: Sequence[pd.Index], series: int, step: int) -> str:
    name = f"of series {panel.ids[series]!r} " if panel.schema.id else ""
    return name + (f"at {show(times[series][step])}" if panel.schema.time else f"for step {step + 1}")


def _of(future: Panel, row: int) -> str:
    if future.schema.id is None:
        return ""
    return f" of series {future.ids[int(np.searchsorted(future.offsets, row, side='right')) - 1]!r}"


def _how(panel: Panel, times: Sequence[pd.Index], needed: int) -> str:
    """How the table of what is known ahead has to look."""
    schema = panel.schema
    keys = [*(schema.id_columns or filter(None, [schema.id])), *(schema.time_columns or filter(None, [schema.time]))]
    series = " of each series" if schema.id else ""
    firsts, lasts = {show(some[0]) for some in times}, {show(some[needed - 1]) for some in times}
    span = f" ({firsts.pop()} to {lasts.pop()})" if schema.time and len(firsts) == len(lasts) == 1 else ""
    return (
        f"--future FILE, a table with the columns {', '.join([*keys, *schema.future_covariates])} and a row for each "
        f"of the next {needed} step(s){series}{span}"
    )
