"""Times that lack inside series: refused, filled with rows that have no values, or kept as breaks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tsformer.data.clock import show
from tsformer.data.grid import Grid, grid_of, missing_times
from tsformer.data.irregular import MOST_FILLED
from tsformer.data.sorted_rows import Rows
from tsformer.data.table_options import Gaps
from tsformer.errors import DataError
from tsformer.findings import Finding

_FEW = 10_000
"""Rows that may be filled in whatever the number of those that are there."""


def settle_gaps(rows: Rows, grid: Grid, policy: Gaps) -> tuple[Rows, tuple[Finding, ...]]:
    """Series without gaps, or with `fresh` rows behind them.

    Args:
        rows: at whole steps of the grid's frequency.
        grid: of these rows.
        policy: "fill" or "split"; with "error" there are no gaps.

    Raises:
        DataError: so much lacks that filling it makes no sense.
    """
    lacks = np.flatnonzero(grid.missing > 0)
    if not len(lacks):
        return rows, ()
    count, step = int(grid.missing[lacks].sum()), grid.frequency
    series = len(np.unique(rows.series[lacks]))
    several = f" of {series} series" if rows.schema.id is not None else ""
    name = rows.schema.time
    if policy == "split":
        fresh = rows.fresh.copy()
        fresh[lacks + 1] = True
        text = f"{len(lacks)} gap(s){several}, {count} step(s) of {step}: no window crosses them"
        return replace(rows, fresh=fresh), (Finding("gaps", text, column=name, count=count),)
    if count > max(MOST_FILLED * len(rows.times), _FEW):
        at = int(grid.missing.argmax())
        text = (
            f"{rows.where}: {count} step(s) of {step} are missing for {len(rows.times)} rows, most between "
            f"{show(rows.times[at])} and {show(rows.times[at + 1])}: too many to fill in, --gaps split keeps the "
            "stretches"
        )
        raise DataError(
            text,
            finding=Finding("gaps", text, "fault", name, rows.place(at), count, remedy="--gaps split", options=_SPLIT),
        )
    after, times = missing_times(grid, rows.times)
    text = f"{len(after)} row(s) without values were filled in at {len(lacks)} gap(s){several}"
    return rows.with_more(after, times), (Finding("gaps", text, column=name, count=len(after)),)


def taken_as_holidays(rows: Rows, grid: Grid) -> tuple[Finding, ...]:
    """A note on open days that have no row and are no gap, if there are any, where the step is from one to the next."""
    everything = grid_of(rows.times, rows.offsets, grid.frequency, closures=False)
    away = int(everything.missing.sum() - grid.missing.sum())
    what = "weekday" if grid.frequency == "B" else "open day"
    text = f"{away} {what}(s) without a row are taken as holidays"
    return (Finding("holidays", text, column=rows.schema.time, count=away),) if away else ()


_SPLIT = {"data.gaps": "split"}
