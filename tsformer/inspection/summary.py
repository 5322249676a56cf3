"""What a table holds: its columns, times and series, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from tsformer.data.clock import show
from tsformer.data.irregular import span_in_words
from tsformer.data.panel import Panel, Schema
from tsformer.data.table_options import TableOptions
from tsformer.data.wall import passed
from tsformer.errors import DataError
from tsformer.settings import WindowConfig
from tsformer.tables.decimals import decimal_of
from tsformer.tables.files import RawTable
from tsformer.tables.numbers import as_numbers
from tsformer.tables.times import read_time

MOST_IDS = 5  # that are listed
MOST_STEPS = 6


@dataclass(frozen=True)
class Column:
    """One column of the file.

    Attributes:
        role: "time", "id", "target", "past covariate", "future covariate", "static covariate", "text", or what keeps
            it out: "constant", "empty", "words", "not used".
        missing: cells without a value.
        least, greatest: of its numbers.
        example: its first cell with a value, as written.
    """

    name: str
    role: str
    missing: int
    least: float | None = None
    greatest: float | None = None
    example: str | None = None


@dataclass(frozen=True)
class Summary:
    """A table of which everything may be unknown.

    Attributes:
        form: how the file is written: "container", "encoding", "separator", as far as it has them.
        rows: of the file.
        columns: of the file, in its order.
        time: `name`, `format`, `zone`, `frequency`, `first`, `last`, `steps` (the histogram, the commonest first).
        series: `count`, `rows` (shortest, median, longest), `ids` (the first), `id` (names of columns).
        window: `lookback`, `horizon`, `season` that a fit would take.
    """

    form: Mapping[str, str] = field(default_factory=dict)
    rows: int | None = None
    columns: tuple[Column, ...] = ()
    time: Mapping[str, Any] | None = None
    series: Mapping[str, Any] | None = None
    window: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        rest = {name: value for name, value in asdict(self).items() if name != "form"}
        form = {name: self.form.get(name) for name in ("container", "encoding", "separator")}
        return {**form, **rest, "columns": [asdict(column) for column in self.columns]}


def summary_of(raw: RawTable, panel: Panel | None, options: TableOptions, window: WindowConfig) -> Summary:
    """What there is to say of a table, and of the panel that it became, if it did."""
    roles = {} if panel is None else _roles(panel.schema)
    decimal = decimal_of(raw.frame, options)
    columns = tuple(_column(raw.frame, name, roles, options, decimal) for name in raw.frame.columns)
    found = Summary(form=raw.form, rows=len(raw.frame), columns=columns)
    if panel is None:
        return found
    time = _time(panel, raw.frame, options)
    return replace(found, time=time, series=_series(panel), window=_window(window))


def _roles(schema: Schema) -> dict[str, str]:
    listed = {
        "target": schema.targets,
        "past covariate": schema.past_covariates,
        "future covariate": schema.future_covariates,
        "static covariate": schema.static_covariates,
        "id": _id_columns(schema),
        "time": _time_columns(schema),
        "text": (schema.text,) if schema.text else (),
    }
    return {name: role for role, names in listed.items() for name in names}


def _column(frame: pd.DataFrame, name: str, roles: Mapping[str, str], options: TableOptions, decimal: str) -> Column:
    cells = frame[name]
    real = cells[cells.notna()]
    example = str(real.iloc[0]) if len(real) else None
    numbers = None if roles.get(name) in ("time", "id", "text") else _numbers(cells, name, options, decimal)
    if numbers is None:
        role = "empty" if real.empty else "constant" if real.nunique() == 1 else "words"
        return Column(name, roles.get(name, role), len(cells) - len(real), example=example)
    known = numbers[~np.isnan(numbers)]
    finite = known[np.isfinite(known)]
    least, greatest = (float(finite.min()), float(finite.max())) if len(finite) else (None, None)
    role = "empty" if least is None else "constant" if least == greatest else "not used"
    return Column(name, roles.get(name, role), len(numbers) - len(known), least, greatest, example)


def _numbers(cells: pd.Series, name: str, options: TableOptions, decimal: str) -> np.ndarray | None:
    """The column as the reader of tables takes it; None for words."""
    try:
        found = as_numbers(cells, name, options, "table", named=False, decimal=decimal)
    except DataError:
        return None
    return None if found is None else found.values


def _time_columns(schema: Schema) -> tuple[str, ...]:
    return schema.time_columns or ((schema.time,) if schema.time else ())


def _id_columns(schema: Schema) -> tuple[str, ...]:
    return schema.id_columns or ((schema.id,) if schema.id else ())


def _time(panel: Panel, frame: pd.DataFrame, options: TableOptions) -> dict[str, Any]:
    schema, times = panel.schema, panel.times
    return {
        "name": schema.time,
        "format": schema.time_format,
        "zone": schema.zone,
        "frequency": schema.frequency,
        "first": show(times.min()),
        "last": show(times.max()),
        "steps": _steps(frame, schema, options),
    }


def _steps(frame: pd.DataFrame, schema: Schema, options: TableOptions) -> list[list[Any]]:
    """The commonest steps from row to row of a series and how many there are, where options mend the times."""
    names, ids = _time_columns(schema), _id_columns(schema)
    mended = options.freq or options.gaps != "error" or options.duplicates != "error"
    if not mended or not names or not {*names, *ids} <= set(frame.columns):
        return []
    times = read_time(frame, names, options, "table").times
    series = frame.groupby(list(ids), sort=False).ngroup().to_numpy() if ids else np.zeros(len(frame), dtype=np.int64)
    keys = passed(times) if isinstance(times, pd.DatetimeIndex) else times.to_numpy()
    order = np.lexsort((keys, series))
    steps, counts = np.unique(np.diff(keys[order])[np.diff(series[order]) == 0], return_counts=True)
    most = np.argsort(-counts, kind="stable")[:MOST_STEPS]
    words = span_in_words if isinstance(times, pd.DatetimeIndex) else "{:.6g}".format
    return [[words(steps[i]), int(counts[i])] for i in most]


def _series(panel: Panel) -> dict[str, Any]:
    schema, lengths = panel.schema, panel.lengths
    return {
        "count": len(panel.ids),
        "id": list(_id_columns(schema)),
        "ids": list(panel.ids[:MOST_IDS]),
        "rows": {"shortest": int(lengths.min()), "median": int(np.median(lengths)), "longest": int(lengths.max())},
    }


def _window(window: WindowConfig) -> dict[str, Any]:
    return {"lookback": window.lookback, "horizon": window.horizon, "season": window.season}
