"""Columns that hold nothing that could be learned, in all series or in some."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tsformer.data.declarations import join_names
from tsformer.data.panel import Panel
from tsformer.errors import DataError
from tsformer.findings import Finding


def refuse_empty(panel: Panel, train: np.ndarray) -> None:
    """Raises DataError when a column has no value in the training rows of any series."""
    lengths, columns = panel.lengths, panel.schema.columns
    within = np.arange(len(panel.values)) - np.repeat(panel.offsets[:-1], lengths)
    real = ~np.isnan(panel.values[within < np.repeat(train, lengths)])
    empty = [name for name, any_real in zip(columns, real.any(axis=0), strict=True) if not any_real]
    if not empty:
        return
    name, schema = empty[0], panel.schema
    roles = ("target", schema.targets), ("past_covariates", schema.past_covariates)
    role, names = next(((r, n) for r, n in roles if name in n), ("future_covariates", schema.future_covariates))
    others = [other for other in names if other not in empty]
    text = f"column {name!r} has no value in the training rows{' of any series' if len(lengths) > 1 else ''}"
    options, remedy = {}, "choose another column, or more data"
    if others:
        options, remedy = {f"data.{role}": others}, f"leave it out: --{role.replace('_', '-')} {join_names(others)}"
    text = f"{text}; {remedy}"
    raise DataError(text, finding=Finding("empty_column", text, "fault", column=name, remedy=remedy, options=options))


def without_unlearned(panel: Panel, train: np.ndarray) -> tuple[Panel, np.ndarray]:
    """The panel without the values of those columns of a series that have none in its first `train[i]` rows.

    Transforms would learn nothing of these columns, and the values after them would reach a model in another unit
    than those of other series.

    Returns:
        The panel, and which columns lost values in which series: boolean `[series, columns]`.
    """
    if not panel.masked:
        return panel, np.zeros((len(panel.ids), panel.values.shape[1]), dtype=bool)
    real, starts = ~np.isnan(panel.values), panel.offsets[:-1]
    within = np.arange(len(real)) - np.repeat(starts, panel.lengths)
    inside = within < np.repeat(train, panel.lengths)
    learned = np.logical_or.reduceat(real & inside[:, None], starts, axis=0)
    lost = np.logical_or.reduceat(real, starts, axis=0) & ~learned
    if not lost.any():
        return panel, lost
    return replace(panel, values=np.where(np.repeat(lost, panel.lengths, axis=0), np.nan, panel.values)), lost
