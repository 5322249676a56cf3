"""Rows of one series and one time: refused with what may tell them apart, or made one."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd

from tsformer.data.clock import show
from tsformer.data.columns import is_time_name, part_of_time
from tsformer.data.grid import Frequency, inside_series
from tsformer.data.irregular import zone_remedy
from tsformer.data.sorted_rows import Rows
from tsformer.data.table_options import Duplicates
from tsformer.data.wall import as_numbers
from tsformer.errors import DataError
from tsformer.findings import Finding
from tsformer.tables.zones import clock_changes

_CLOCKS = {"time", "hour", "hr", "clock"}

_MOSTLY = 0.3
"""Share of rows with the time of another one, beyond which they are no duplicates: several series, or half a time."""


def settle_duplicates(
    rows: Rows, policy: Duplicates, *, step: Frequency | None, fitted: bool
) -> tuple[Rows, tuple[Finding, ...]]:
    """Each time of a series once.

    Args:
        rows: several of which may have the time of the row before them.
        policy: which of them count, or "mean" and "sum" of the values that are there; the text is the first's.
        step: the frequency to which times were brought, so that rows of one step are meant; None for times as written.
        fitted: the columns are those of a model, and cannot be changed by another --id.

    Raises:
        DataError: there are some, and the policy is "error".
    """
    again = _again(rows)
    if not again.any():
        return rows, ()
    alike = _alike(rows.values[:-1][again], rows.values[1:][again])
    if policy == "error":
        _refuse(rows, again, alike, step, fitted=fitted)
    count = int(again.sum())
    what = {"first": "the first of them was kept", "last": "the last of them was kept"}.get(
        policy, f"their {policy} was taken"
    )
    text = f"{count} row(s) {_shared(step)}: {what}"
    begins = np.flatnonzero(np.concatenate(([True], ~again)))
    ends = np.append(begins[1:], len(rows.times)) - 1
    made = rows.take(ends if policy == "last" else begins)
    if policy in ("mean", "sum"):
        made = replace(made, values=_joined(rows.values, begins, policy))
    return made, (Finding("duplicates", text, column=rows.schema.time, count=count),)


def refuse_series_in_one(rows: Rows, *, fitted: bool) -> None:
    """Raise DataError where so many rows have the time of another one, and other values, that they are several series.

    To be asked before times are brought to a step, in which rows of one series may meet as well.
    """
    again = _again(rows)
    if again.sum() > _MOSTLY * len(rows.times):
        alike = _alike(rows.values[:-1][again], rows.values[1:][again])
        if not alike:
            _refuse(rows, again, alike, None, fitted=fitted)


def _again(rows: Rows) -> np.ndarray:
    """Which rows, but for the last, have the time of the next one."""
    return inside_series(rows.offsets) & (np.diff(as_numbers(rows.times)) == 0)


def _joined(values: np.ndarray, begins: np.ndarray, policy: Duplicates) -> np.ndarray:
    """Mean or sum of the values that are there, of rows from one of `begins` to the next; NaN where none is."""
    real = ~np.isnan(values)
    sums = np.add.reduceat(np.where(real, values, 0.0), begins, axis=0)
    counts = np.add.reduceat(real, begins, axis=0, dtype=np.int64)
    made = np.where(counts > 0, sums / np.maximum(counts, 1) if policy == "mean" else sums, np.nan)
    # A row by itself keeps its values to the last bit.
    alone = np.diff(np.append(begins, len(values))) == 1
    made[alone] = values[begins[alone]]
    return made


def _alike(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(((one == other) | (np.isnan(one) & np.isnan(other))).all())


def _shared(step: Frequency | None) -> str:
    return f"are in one step of {step} with the row before" if step else "repeat the time of the row before"


def _refuse(rows: Rows, again: np.ndarray, alike: bool, step: Frequency | None, *, fitted: bool) -> None:
    """Raise DataError, with what would tell the rows apart.

    Args:
        again: which rows, but for the last, have the time of the next one.
        alike: whether the values of all of them are the same as well.
    """
    at, count = int(again.argmax()), int(again.sum())
    time, name, schema = rows.times[at], rows.schema.time, rows.schema
    series = "" if schema.id is None else f" in series {rows.ids[int(rows.series[at])]!r}"
    if step:
        message = f"{rows.where} has {count} row(s) that fall into a step of {step} with another one{series}"
    else:
        message = f"{rows.where} repeats {count} time(s){series}"
    message += f", the first {show(time)} in {rows.place(at)} and {rows.place(at + 1)}"
    remedy, options = _remedy(rows, again, alike, step, fitted=fitted)
    message = f"{message}: {remedy}"
    kind = "clock_change" if "data.tz" in options else "duplicates"
    raise DataError(
        message,
        finding=Finding(
            kind, message, "fault", name, rows.place(at), count, show(time), remedy=remedy, options=options
        ),
    )


def _remedy(
    rows: Rows, again: np.ndarray, alike: bool, step: Frequency | None, *, fitted: bool
) -> tuple[str, dict[str, object]]:
    if step:
        return "--duplicates mean joins them (or sum, first, last)", {"data.duplicates": "mean"}
    told_apart = _told_apart(rows, again, fitted=fitted)
    if told_apart:
        return told_apart
    times = rows.times
    if isinstance(times, pd.DatetimeIndex) and times.tz is None:
        part = rows.part(int(rows.series[int(again.argmax())]))
        zone = clock_changes(times[part])
        if zone:
            return zone_remedy(zone), {"data.tz": zone}
    if alike:
        remedy = "the rows are the same: --duplicates first, or keep one row for each time"
        return remedy, {"data.duplicates": "first"}
    if again.sum() > _MOSTLY * len(times):
        told = "the rows of another series" if fitted else "a column that tells series apart, to be named with --id,"
        remedy = (
            f"these are too many for duplicates: {told} or a part of the time is missing; if they are to be joined all "
            "the same, --duplicates mean (or first, last, sum)"
        )
        return remedy, {}
    other = "" if rows.schema.id or fitted else ", or name the column that tells series apart with --id"
    remedy = f"their values differ: --duplicates mean (or first, last, sum){other}, or keep one row for each time"
    return remedy, {"data.duplicates": "mean"}


def _told_apart(rows: Rows, again: np.ndarray, *, fitted: bool) -> tuple[str, dict[str, object]] | None:
    """The columns that would make the times of each series unique, if some do."""
    frame, schema = rows.frame, rows.schema
    known = [schema.id] if schema.id is not None else []
    rest = [c for c in frame.columns if c not in (schema.time, *known, *schema.id_columns, schema.text)]
    if len(rows.times) < len(frame):  # some rows were left out
        return None
    times = pd.Series(as_numbers(rows.times)[np.argsort(rows.origin)], index=frame.index)

    def unique_with(*names: str) -> bool:
        return not pd.concat([times, frame[list(names)]], axis=1).duplicated().any()

    clock = next((c for c in rest if c.lower() in _CLOCKS or str(frame[c].iloc[0]).count(":")), None)
    if clock is not None and schema.time is not None and unique_with(*known, clock):
        both = [schema.time, clock]
        return f"--time {schema.time},{clock} joins the two columns into one of times", {"data.time": both}
    # In a long table most times repeat, and what tells its series apart comes again and again.
    if again.sum() <= _MOSTLY * len(frame):
        return None
    rest = [c for c in rest if frame[c].dtype.kind != "f" and frame[c].nunique() <= len(frame) / 3]
    rest = [c for c in rest if part_of_time(c) is None and not is_time_name(c)]
    rest = [*known, *sorted(rest, key=lambda c: frame[c].dtype.kind in "iu")[:6]]
    for names in (chosen for size in (1, 2) for chosen in itertools.combinations(rest, size)):
        if not unique_with(*names):
            continue
        parts = [part for name in names for part in (schema.id_columns if name == schema.id else ()) or (name,)]
        flag, verb = f"--id {','.join(parts)}", "s" if len(parts) == 1 else ""
        if fitted:
            what = "other series" if known else "a single series"
            remedy = (
                f"the model was fitted on {what}, and {' and '.join(map(repr, parts))} seem{verb} to tell several "
                f"apart: keep the rows of one, or fit again with {flag}"
            )
            return remedy, {}
        do = "does" if len(parts) == 1 else "do"
        return f"{do} {' and '.join(map(repr, parts))} tell the series apart? {flag}", {"data.id": parts}
    return None
