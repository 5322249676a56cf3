"""The rows that a forecast follows: in the columns of the model, and of the series that can be forecast."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tsformer.data.cells import listed
from tsformer.data.panel import Panel, Schema
from tsformer.data.selection import named, selected
from tsformer.data.split import too_short
from tsformer.errors import DataError, did_you_mean
from tsformer.fitted import Fitted


def in_columns_of(panel: Panel, schema: Schema) -> Panel:
    """The panel with the columns of a schema, in its order.

    Raises:
        DataError: a column is missing, or frequency, zone or the way of telling series apart is another one.
    """
    have = panel.schema
    if schema.text is not None and have.text != schema.text:
        raise DataError(f"the model reads the texts of the column '{schema.text}', which the data do not have")
    texts = panel.texts if schema.text is not None else None
    for names, known in ((schema.columns, have.columns), (schema.static_covariates, have.static_covariates)):
        missing = [name for name in names if name not in known]
        if missing:
            hint = did_you_mean(missing[0], known)
            raise DataError(
                f"the model needs the column '{missing[0]}'{hint}; the data have {', '.join(known) or 'none such'}"
            )
    for what, own, wanted in (
        ("frequency", have.frequency, schema.frequency),
        ("time zone", have.zone, schema.zone),
        ("id column", have.id, schema.id),
    ):
        close = isinstance(own, float) and isinstance(wanted, float) and math.isclose(own, wanted, rel_tol=1e-6)
        if own != wanted and not close:
            raise DataError(f"the data have {what} {own}, the model was fitted with {wanted}")
    order = [have.columns.index(name) for name in schema.columns]
    # How times are written, and of which columns they are made, is the new table's own business.
    columns = replace(
        have,
        targets=schema.targets,
        past_covariates=schema.past_covariates,
        future_covariates=schema.future_covariates,
        static_covariates=schema.static_covariates,
        calendar=schema.calendar,
        holidays=schema.holidays,
        text=schema.text,
    )
    static = None
    if panel.static is not None and schema.static_covariates:
        static = panel.static[list(schema.static_covariates)]
    return replace(
        panel,
        values=np.ascontiguousarray(panel.values[:, order]),
        schema=columns,
        texts=texts,
        static=static,
    )


def last_stretches(panel: Panel) -> np.ndarray:
    """Where the last stretch without a break begins in each series, counted from its start, int64 `[series]`."""
    starts = panel.offsets[:-1]
    before = np.searchsorted(panel.breaks, panel.offsets[1:])  # breaks up to the end of each series
    last = np.concatenate([[0], panel.breaks])[before]
    return np.asarray(np.maximum(last, starts) - starts)


def forecastable(fitted: Fitted, panel: Panel) -> tuple[Panel, tuple[str, ...]]:
    """The series that have enough to look back on, and notes on the others.

    Series are too short where their last stretch without a break does not hold a lookback; with `--short pad` one row
    will do.

    Raises:
        DataError: none of the series has enough, or one has too few rows and the run was fitted with `--short error`.
    """
    lookback, lost, short = fitted.problem.lookback, fitted.chain.lost, fitted.settings.window.short
    ids = panel.ids if panel.schema.id else None
    rows = panel.lengths - last_stretches(panel)
    few = rows < lost + (1 if short == "pad" else lookback)
    if few.any() and (short == "error" or few.all()):
        since = " since the last gap" if len(panel.breaks) else ""
        needs = f"the model looks back {lookback + lost} rows{since}"
        raise too_short(rows, np.flatnonzero(few), ids, needs, "give more history")
    seen = _seen(panel, np.minimum(rows, lookback + lost))
    blind = np.asarray(~seen.any(axis=1))
    if blind[~few].all():
        raise DataError(
            f"the last {lookback + lost} rows hold no value of {listed(panel.schema.targets)}: give more history, or "
            "rows in which the values are there"
        )
    notes = []
    for left_out, why in ((few, "too few rows"), (blind & ~few, f"no value in the last {lookback + lost} rows")):
        if left_out.any():
            notes.append(f"not forecast, with {why}: {named(panel, left_out)}")
    padded = (rows < lost + lookback) & ~few & ~blind
    if padded.any():
        notes.append(f"padded what the model sees of {named(panel, padded)}, with fewer than {lookback + lost} rows")
    for channel, name in enumerate(panel.schema.targets):
        unseen = ~seen[:, channel] & ~blind & ~few
        if unseen.any():
            notes.append(f"'{name}' has no value in the last {lookback + lost} rows of {named(panel, unseen)}")
    return selected(panel, ~few & ~blind), tuple(notes)


def _seen(panel: Panel, rows: np.ndarray) -> np.ndarray:
    """Which targets have a value in the last `rows[i]` rows of each series, boolean `[series, targets]`."""
    targets = len(panel.schema.targets)
    if not panel.masked:
        return np.ones((len(panel.ids), targets), dtype=bool)
    counts = np.concatenate([np.zeros((1, targets)), np.cumsum(np.isfinite(panel.values[:, :targets]), axis=0)])
    stops = panel.offsets[1:]
    return np.asarray(counts[stops] > counts[stops - rows])
