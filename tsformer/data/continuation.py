"""Rows of another file that go on where the series of a panel end: the test files of competitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from tsformer.data.cells import listed
from tsformer.data.clock import show
from tsformer.data.frequency import next_times
from tsformer.data.panel import Panel
from tsformer.data.wall import as_numbers
from tsformer.errors import DataError

_PARTS = 1e-6
"""Of a step, to which times that are numbers have to agree."""


def continued(panel: Panel, rows: Panel, source: str) -> Panel:
    """The panel with further rows after those of each series; a series without any stays as it is.

    Times have to go on where those of the series end. Counters may begin anew, as in M4's test files, and rows without
    times are taken in their order.

    Args:
        rows: in the columns of the panel's schema.
        source: what messages call the further rows.

    Raises:
        DataError: ids that the panel has not, or times that do not come next.
    """
    found = _places(panel, rows, source)
    owner = np.concatenate([np.repeat(np.arange(len(panel.ids)), panel.lengths), np.repeat(found, rows.lengths)])
    order = np.argsort(owner, kind="stable")
    times = _times_ahead(panel, rows, found, source)
    more = np.zeros(len(panel.ids), dtype=np.int64)
    more[found] = rows.lengths
    offsets = np.concatenate([[0], np.cumsum(panel.lengths + more)]).astype(np.int64)
    texts = None
    if panel.texts is not None:
        texts = tuple(np.array([*panel.texts, *(rows.texts or ("",) * len(rows.values))], dtype=object)[order])
    moved = np.argsort(order)  # where each row has gone
    breaks = np.sort(np.concatenate([moved[panel.breaks], moved[len(panel.values) + rows.breaks]])).astype(np.int64)
    return replace(
        panel,
        values=np.ascontiguousarray(np.concatenate([panel.values, rows.values])[order]),
        offsets=offsets,
        times=panel.times.append(times).take(order),
        texts=texts,
        masked=panel.masked or rows.masked,
        breaks=breaks,
    )


def _places(panel: Panel, rows: Panel, source: str) -> np.ndarray:
    """The series of the panel that each of the further rows' goes on with, int64 `[series of rows]`."""
    if panel.schema.id is None:
        return np.zeros(1, dtype=np.int64)
    known = {name: place for place, name in enumerate(panel.ids)}
    new = [name for name in rows.ids if name not in known]
    if new:
        raise DataError(
            f"{source} has {len(new)} series that the data have not ({listed(new)}); column {panel.schema.id!r} of the "
            f"data names {listed(panel.ids)}"
        )
    return np.array([known[name] for name in rows.ids], dtype=np.int64)


def _times_ahead(panel: Panel, rows: Panel, found: np.ndarray, source: str) -> pd.Index:
    """The times of the further rows, `[rows]`, checked, or counted on where they begin anew."""
    counted: list[pd.Index] = []
    for series, place in enumerate(found.tolist()):
        before, after = panel.times[panel.rows(place)], rows.times[rows.rows(series)]
        if panel.schema.time is None:
            counted.append(pd.Index(np.arange(len(after)) + len(before)))
            continue
        expected = next_times(before, panel.schema.frequency, 1, panel.schema.holidays)[0]
        if _same(after[0], expected, panel):
            counted.append(after)
        elif isinstance(after, pd.DatetimeIndex) or not _same(after[0], before[0], panel):
            whose = f" of series {rows.ids[series]!r}" if panel.schema.id else ""
            raise DataError(
                f"{source}: the rows{whose} begin at {show(after[0])}, but {show(expected)} comes after the last row "
                f"of the data, {show(before[-1])}: the test file holds the rows that follow"
            )
        else:
            counted.append(pd.Index(after.to_numpy() - after[0] + expected))
    return _joined(counted)


def _joined(times: Sequence[pd.Index]) -> pd.Index:
    return times[0].append(list(times[1:]))


def _same(one: Any, other: Any, panel: Panel) -> bool:
    if isinstance(panel.times, pd.DatetimeIndex):
        both = as_numbers(pd.DatetimeIndex([one, other]).as_unit("us"))
        return bool(both[0] == both[1])
    step = panel.schema.frequency
    size = float(step) if isinstance(step, int | float) else 1.0
    return bool(abs(float(one) - float(other)) <= _PARTS * size)
