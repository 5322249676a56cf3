"""Values that are missing: refused, filled from their neighbours, left to masks, or left out with their rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tsformer.data.cells import LARGEST, SMALLEST, listed
from tsformer.data.sorted_rows import Rows
from tsformer.data.table_options import Missing
from tsformer.errors import DataError
from tsformer.findings import Finding

_HIDE = {"data.missing": "mask"}


def check_columns(rows: Rows) -> None:
    """Raise DataError for a column that nothing can be computed with: it is empty, infinite, or tiny."""
    for channel in range(len(rows.schema.columns)):
        values = np.abs(rows.values[:, channel])
        most = float(np.nanmax(values)) if not np.isnan(values).all() else np.nan
        if np.isnan(most):
            _refuse_column(rows, channel, "empty_column", "has no value at all", "leave it out")
        unit = "bring the column to a sensible unit"
        for bad, what, remedy in (
            (np.isinf(values), "infinite value(s)", "correct or empty them"),
            (values > LARGEST, f"value(s) beyond {LARGEST:g}, too large to compute with", unit),
        ):
            if bad.any():
                first = int(np.flatnonzero(bad)[rows.origin[bad].argmin()])
                what = f"has {int(bad.sum())} {what}, the first in {rows.place(first)}"
                _refuse_column(rows, channel, "infinite", what, remedy)
        if 0.0 < most < SMALLEST:
            what = f"has no value beyond {most:g}; below {SMALLEST:g} they are too small to compute with"
            _refuse_column(rows, channel, "tiny", what, unit)


def leave_out(rows: Rows) -> tuple[Rows, tuple[Finding, ...]]:
    """Without the rows that lack a target, and without series that have no other."""
    lacking: np.ndarray = np.isnan(rows.values[:, : len(rows.schema.targets)]).any(axis=1)
    if not lacking.any():
        return rows, ()
    count, first = int(lacking.sum()), rows.place(int(lacking.argmax()))
    _require_some(rows, ~lacking)
    kept = rows.take(np.flatnonzero(~lacking))
    text = f"left out {count} row(s) that lack a target, the first {first}{_lost(rows, kept)}"
    return kept, (Finding("missing", text, row=first, count=count),)


def settle_missing(rows: Rows, policy: Missing) -> tuple[Rows, tuple[Finding, ...]]:
    """Rows whose values are all there, or NaN where masks are to hide them.

    Args:
        rows: at regular steps, but for `fresh` rows.
        policy: with "drop" rows without a target are gone, and what is missing are covariates, which is an error.

    Raises:
        DataError: something is missing, and the policy is "error" or cannot fill it.
    """
    missing: np.ndarray = np.isnan(rows.values)
    if not missing.any():
        return rows, ()
    if policy == "mask":
        return _trimmed(rows, missing)
    values = rows.values
    if policy in ("ffill", "linear"):
        values = _filled(rows, missing, straight=policy == "linear")
    left = np.isnan(values)
    if left.any():
        _refuse(rows, left, policy)
    how = "with the value before" if policy == "ffill" else "on a straight line between neighbours"
    text = f"{int(missing.sum())} missing value(s) in {_columns(rows, missing)} were filled {how}"
    return replace(rows, values=values), (Finding("missing", text, count=int(missing.sum())),)


def _trimmed(rows: Rows, missing: np.ndarray) -> tuple[Rows, tuple[Finding, ...]]:
    """Without the rows at either end of a series that hold nothing; what else is missing is for masks."""
    real = np.asarray(~missing.all(axis=1))
    _require_some(rows, real)
    at, starts = np.arange(len(real)), rows.offsets[:-1]
    first = np.minimum.reduceat(np.where(real, at, len(at)), starts)
    last = np.maximum.reduceat(np.where(real, at, -1), starts)
    inner = np.flatnonzero((at >= first[rows.series]) & (at <= last[rows.series]))
    kept = rows.take(inner) if len(inner) < len(at) else rows
    count = int(np.isnan(kept.values).sum())
    notes = []
    if count:
        share = f"{100 * count / kept.values.size:.2g} %"
        text = f"{count} missing value(s) in {_columns(rows, missing)} are hidden from the model ({share})"
        notes.append(Finding("missing", text, count=count))
    if kept is not rows:
        cut = len(at) - len(inner)
        text = f"left out {cut} row(s) without any value at the start or end of series{_lost(rows, kept)}"
        notes.append(Finding("missing", text, count=cut))
    return kept, tuple(notes)


def _filled(rows: Rows, missing: np.ndarray, *, straight: bool) -> np.ndarray:
    """Values filled from the neighbours in the same stretch; NaN where it has none."""
    begins = rows.fresh.copy()
    begins[rows.offsets[:-1]] = True
    stretch = np.cumsum(begins)
    at = np.arange(len(begins))[:, None]
    before = np.maximum.accumulate(np.where(missing, -1, at), axis=0)
    behind = np.minimum.accumulate(np.where(missing, len(at), at)[::-1], axis=0)[::-1]
    values = rows.values.copy()
    row, column = np.nonzero(missing)
    low, high = before[row, column], behind[row, column]
    has_low = (low >= 0) & (stretch[low] == stretch[row])
    if not straight:
        values[row, column] = np.where(has_low, rows.values[low, column], np.nan)
        return values
    inside = np.minimum(high, len(at) - 1)
    has_both = has_low & (high < len(at)) & (stretch[inside] == stretch[row])
    start, end = rows.values[low, column], rows.values[inside, column]
    values[row, column] = np.where(has_both, start + (end - start) * ((row - low) / (high - low)), np.nan)
    return values


def _refuse(rows: Rows, left: np.ndarray, policy: Missing) -> None:
    """Raise DataError for what is `left` missing, bool `[rows, columns]`."""
    channel = int(left.any(axis=0).argmax())
    column = left[:, channel]
    first = _first(rows, column)
    name, count, at = rows.schema.columns[channel], int(column.sum()), rows.place(first)
    others = int(left.any(axis=0).sum()) - 1
    also = f" (so have {others} other column(s), {int(left.sum())} in all)" if others else ""
    filled = int((rows.origin[column] < 0).sum())
    also += f", {filled} of them in rows that were filled in" if filled else ""
    if policy == "error" or (policy == "drop" and filled):
        remedy = "fill them, or --missing mask hides them from the model (ffill and linear fill, drop leaves out rows)"
        cause = ""
    elif policy == "drop":
        remedy, cause = "it is no target, whose rows are left out: --missing mask hides them from the model", ""
    else:
        beside = "before" if policy == "ffill" else "on both sides of"
        cause = f" that {policy} cannot fill, for no value stands {beside} them in their series or stretch"
        remedy = "--missing mask hides them from the model, drop leaves out their rows"
    text = (
        f"{rows.source}: column {name!r} has {count} missing value(s){also}{cause}, the first in "
        f"{at}{_series_of(rows, first)}: {remedy}"
    )
    finding = Finding("missing", text, "fault", name, at, int(left.sum()), remedy=remedy, options=_HIDE)
    raise DataError(text, finding=finding)


def _refuse_column(rows: Rows, channel: int, kind: str, what: str, remedy: str) -> None:
    """Raise DataError; where there are other columns of the same role, these are the remedy."""
    schema, name = rows.schema, rows.schema.columns[channel]
    roles = {"target": schema.targets, "past_covariates": schema.past_covariates}
    roles["future_covariates"] = schema.future_covariates
    role = next(role for role, names in roles.items() if name in names)
    usable = [other for other in roles[role] if other != name and _is_usable(rows, other)]
    options: dict[str, object] = {f"data.{role}": usable} if usable or role != "target" else {}
    flag = f"--{role.replace('_', '-')}"
    hint = f"; or choose columns without: {flag} {','.join(usable[:3])}" if usable else ""
    text = f"{rows.source}: column {name!r} {what}: {remedy}{hint}"
    raise DataError(text, finding=Finding(kind, text, "fault", name, remedy=remedy, options=options))


def _is_usable(rows: Rows, name: str) -> bool:
    values = rows.values[:, rows.schema.columns.index(name)]
    real = np.abs(values[~np.isnan(values)])
    return bool(len(real) and real.max() <= LARGEST and (real.max() == 0 or real.max() >= SMALLEST))


def _require_some(rows: Rows, real: np.ndarray) -> None:
    """Raise DataError unless some of the rows `[rows]` are real."""
    if not real.any():
        text = f"{rows.source}: no row has values for {listed(rows.schema.targets)}: give rows that do"
        raise DataError(text, finding=Finding("empty", text, "fault", count=len(real)))


def _first(rows: Rows, bad: np.ndarray) -> int:
    """The first of the bad rows `[rows]` in the order of the table; one that was filled in only if all are."""
    at = np.flatnonzero(bad)
    origin = rows.origin[at]
    return int(at[np.where(origin < 0, len(rows.frame), origin).argmin()])


def _series_of(rows: Rows, row: int) -> str:
    return rows.of(int(rows.series[row]))


def _columns(rows: Rows, missing: np.ndarray) -> str:
    """The columns in which something is missing, bool `[rows, columns]`."""
    names = [name for name, any_ in zip(rows.schema.columns, np.asarray(missing.any(axis=0)), strict=True) if any_]
    return names[0] if len(names) == 1 else f"{len(names)} columns ({listed(names)})"


def _lost(rows: Rows, kept: Rows) -> str:
    """What to say of series of which nothing was kept."""
    left = set(kept.ids)
    lost = [name for name in rows.ids if name not in left]
    return f"; nothing is left of {len(lost)} series: {listed(lost)}" if lost else ""
