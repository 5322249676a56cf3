"""Columns that hold nothing that could be learned."""

from __future__ import annotations

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
