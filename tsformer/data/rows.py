"""Rows whose columns are known, put together as a panel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from tsformer.data.cells import listed
from tsformer.data.panel import Panel, Schema
from tsformer.data.series import assemble
from tsformer.data.wall import as_numbers
from tsformer.findings import Finding
from tsformer.tables.roles import Columns, static_table
from tsformer.tables.sentinels import suspected_sentinels


def finish(
    columns: Columns,
    values: Sequence[np.ndarray],
    schema: Schema,
    notes: Sequence[Finding],
    *,
    infer: bool,
) -> Panel:
    """Rows as series, with what is known of each series, and what is doubtful about them.

    Args:
        values: one float64 `[rows]` for each of the schema's columns.
        infer: whether the frequency is to be found, or is the schema's.
    """
    frame, times, static = columns.frame, columns.times, schema.static_covariates
    schema = replace(schema, static_covariates=())
    ahead = _ahead(values, times, columns.codes, schema)
    if ahead.any():
        frame, times = frame[~ahead], times[~ahead]
        values = [column[~ahead] for column in values]
        text = f"{int(ahead.sum())} row(s) after the last value of the targets left out: predict --future takes them"
        notes = [*notes, Finding("ahead", text, count=int(ahead.sum()))]
    notes = [*notes, *columns.told()]
    panel = assemble(frame, list(values), times, schema, notes, columns.source, infer=infer, options=columns.options)
    if static:
        table = static_table(columns, static, panel.ids, schema.id)
        panel = replace(panel, static=table, schema=replace(panel.schema, static_covariates=tuple(static)))
    if not infer:
        return panel
    doubts = suspected_sentinels(dict(zip(schema.columns, values, strict=True)), frame)
    return replace(panel, notes=(*panel.notes, *doubts, *_constant_series(panel)))


def _ahead(values: Sequence[np.ndarray], times: pd.Index, codes: np.ndarray, schema: Schema) -> np.ndarray:
    """Which rows [rows] are of the future: after all that was measured of their series, and with future covariates."""
    none = np.zeros(len(times), dtype=bool)
    if not schema.future_covariates:
        return none
    known = np.column_stack(values[-len(schema.future_covariates) :])
    blank = np.isnan(np.column_stack(values[: -len(schema.future_covariates)])).all(axis=1)
    if not blank.any() or blank.all():
        return none
    keys = pd.Series(as_numbers(times))
    last = keys.mask(blank).groupby(codes).transform("max").to_numpy()
    return blank & (keys.to_numpy() > last) & ~np.isnan(known).all(axis=1)


def _constant_series(panel: Panel) -> list[Finding]:
    """A doubt about series of three rows or more in which a target never changes."""
    targets = panel.values[:, : len(panel.schema.targets)]
    start = panel.offsets[:-1]
    low = np.minimum.reduceat(np.where(np.isnan(targets), np.inf, targets), start)
    high = np.maximum.reduceat(np.where(np.isnan(targets), -np.inf, targets), start)
    series, channel = np.nonzero((low == high) & (panel.lengths > 2)[:, None])
    if not len(series):
        return []
    name = panel.schema.targets[channel[0]]
    if panel.schema.id is None:
        text = f"constant throughout: {listed([panel.schema.targets[i] for i in channel])}"
    else:
        text = f"{len(set(series))} series never change, the first {panel.ids[series[0]]!r} in column {name!r}"
    return [
        Finding(
            "constant", text, "doubt", column=name, count=len(set(series)), example=f"{low[series[0], channel[0]]:g}"
        )
    ]
