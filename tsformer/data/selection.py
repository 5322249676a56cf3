"""Some series of a panel, or their first rows, and which of them are at fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from tsformer.data.cells import listed
from tsformer.data.panel import Panel
from tsformer.errors import DataError

Made = TypeVar("Made")


def selected(panel: Panel, keep: np.ndarray) -> Panel:
    """The panel of those series that a mask, boolean `[series]`, keeps: one at least."""
    if keep.all():
        return panel
    rows = np.repeat(keep, panel.lengths)
    places = np.cumsum(rows) - 1
    return replace(
        panel,
        values=np.ascontiguousarray(panel.values[rows]),
        offsets=np.concatenate([[0], np.cumsum(panel.lengths[keep])]).astype(np.int64),
        times=panel.times[rows],
        ids=tuple(name for name, kept in zip(panel.ids, keep, strict=True) if kept),
        texts=None if panel.texts is None else tuple(np.array(panel.texts, dtype=object)[rows]),
        breaks=places[panel.breaks[rows[panel.breaks]]],
        static=None if panel.static is None else panel.static[keep].reset_index(drop=True),
    )


def beginnings(panel: Panel, rows: np.ndarray) -> Panel:
    """The panel of the first rows of each series: int64 `[series]`, from one to all of them."""
    if (rows == panel.lengths).all():
        return panel
    within = np.arange(len(panel.values)) - np.repeat(panel.offsets[:-1], panel.lengths)
    kept = within < np.repeat(rows, panel.lengths)
    places = np.cumsum(kept) - 1
    return replace(
        panel,
        values=np.ascontiguousarray(panel.values[kept]),
        offsets=np.concatenate([[0], np.cumsum(rows)]).astype(np.int64),
        times=panel.times[kept],
        texts=None if panel.texts is None else tuple(np.array(panel.texts, dtype=object)[kept]),
        breaks=places[panel.breaks[kept[panel.breaks]]],
    )


def named(panel: Panel, some: np.ndarray) -> str:
    """How many of the series, and which: boolean `[series]`."""
    if panel.schema.id is None:
        return "the series"
    names = [name for name, it in zip(panel.ids, some, strict=True) if it]
    return f"{len(names)} of {len(panel.ids)} series ({listed(names)})"


def blaming(make: Callable[..., Made], *panels: Panel) -> Made:
    """What `make` makes of panels of the same series; an error says which of them it does not take.

    Raises:
        DataError: that of `make`, with `series`.
    """
    try:
        return make(*panels)
    except DataError as error:
        error.series = _refused(make, panels)
        raise


def _refused(make: Callable[..., object], panels: tuple[Panel, ...]) -> np.ndarray:
    """The series that `make` does not take, boolean `[series]`, found by halves: few of many are found soon."""
    try:
        make(*panels)
    except DataError:
        series = len(panels[0].ids)
        if series == 1:
            return np.ones(1, dtype=bool)
        first = np.arange(series) < series // 2
        halves = (tuple(selected(panel, half) for panel in panels) for half in (first, ~first))
        return np.concatenate([_refused(make, half) for half in halves])
    return np.zeros(len(panels[0].ids), dtype=bool)
