"""Where a fitted model is scored: every window of the test part that its fit held out, or of rows that came later."""

from __future__ import annotations

import numpy as np

from tsformer.data.panel import Panel
from tsformer.data.selection import named, selected
from tsformer.data.split import Split, long_enough, split_by_time
from tsformer.errors import DataError
from tsformer.evaluation.outlook import stretch_starts
from tsformer.evaluation.plan import Block, Plan
from tsformer.fitted import Fitted
from tsformer.history import in_columns_of


def test_plan(fitted: Fitted, panel: Panel) -> tuple[Panel, Plan]:
    """The windows of the test part of the data that a model was fitted on: the same that its fit was scored on.

    Returns:
        The series that the fit had, and the plan.

    Raises:
        DataError: the data have become too short since.
    """
    panel = in_columns_of(panel, fitted.schema)  # type: ignore[arg-type]
    window, lost = fitted.settings.window, fitted.chain.lost
    lookback, horizon = fitted.problem.lookback, fitted.problem.horizon
    fewest = np.full_like(panel.lengths, lookback)
    notes: tuple[str, ...] = ()
    if window.short != "error":
        stay, fewest = long_enough(panel.lengths, horizon, lookback, lost, window.short)
        if stay.any() and not stay.all():
            notes = (f"left out {named(panel, ~stay)}, which are too short",)
            panel, fewest = selected(panel, stay), fewest[stay]
    ids = panel.ids if panel.schema.id else None
    split = split_by_time(panel.lengths, horizon, lookback, lost, ids, fewest)
    return panel, _plan(panel, horizon, split.validation, fewest, notes)


def rows_plan(fitted: Fitted, panel: Panel) -> tuple[Panel, Plan]:
    """Every window whose lookback and horizon lie in the rows of a panel.

    Raises:
        DataError: there is none.
    """
    panel = in_columns_of(panel, fitted.schema)  # type: ignore[arg-type]
    lookback, horizon, lost = fitted.problem.lookback, fitted.problem.horizon, fitted.chain.lost
    seen = (1 if fitted.settings.window.short == "pad" else lookback) + lost
    enough = panel.lengths >= seen + horizon
    if not enough.any():
        longest = int(panel.lengths.max())
        raise DataError(
            f"no window to score: the model looks back {seen} rows and ahead {horizon}, and the longest series has "
            f"{longest} rows; give more of them"
        )
    notes = () if enough.all() else (f"left out {named(panel, ~enough)}, with fewer than {seen + horizon} rows",)
    panel = selected(panel, enough)
    return panel, _plan(panel, horizon, np.full_like(panel.lengths, seen), np.full_like(panel.lengths, seen), notes)


def _plan(panel: Panel, horizon: int, first: np.ndarray, seen: np.ndarray, notes: tuple[str, ...]) -> Plan:
    """All windows from a row of each series on, those left out that a gap runs through."""
    counts = np.maximum(0, panel.lengths - horizon - first + 1)
    series = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    origins = first[series] + number
    rows = panel.offsets[series] + origins
    crossed = np.searchsorted(panel.breaks, rows, side="left") != np.searchsorted(
        panel.breaks, rows + horizon, side="left"
    )
    kept = ~crossed & (origins - stretch_starts(panel, series, origins) >= np.minimum(seen[series], origins))
    if not kept.any():
        raise DataError(f"no window to score: a gap in time lies in every one of {horizon} steps")
    split = Split(first, first, first)
    block = Block(split, series[kept], origins[kept], number[kept])
    return Plan(horizon, (block,), first.astype(np.int64), None, notes)
