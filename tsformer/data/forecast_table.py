"""Forecasts as a table that looks like the user's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from tsformer.data.clock import write_times
from tsformer.data.identity import split_id
from tsformer.data.panel import Schema
from tsformer.levels import level_name


def forecast_frame(
    schema: Schema,
    ids: Sequence[str],
    times: Sequence[pd.Index],
    forecasts: np.ndarray,
    *,
    written: bool = True,
    intervals: Mapping[float, tuple[np.ndarray, np.ndarray]] | None = None,
) -> pd.DataFrame:
    """Forecasts with the columns of ids (if any), the time (if any) in the user's own writing, then the targets.

    Args:
        schema: of the panel that the forecasts come from.
        ids: names of the series, `[series]`.
        times: the times of each series' forecast, `[series]` indices of `[horizon]`.
        forecasts: float64 `[series, horizon, targets]` in the user's units.
        written: dates as the user writes them; False keeps them, for files that can hold dates.
        intervals: by level in percent the lower and the upper ends, shaped like `forecasts`; they follow each target
            as `sales_lo_80` and `sales_hi_80`, with "_" after a name that another column has.
    """
    columns = _keys(schema, ids, times, forecasts.shape[1], written=written)
    taken = {*columns, *schema.targets}
    for channel, name in enumerate(schema.targets):
        columns[name] = forecasts[:, :, channel].reshape(-1)
        for level, ends in (intervals or {}).items():
            for side, end in zip(("lo", "hi"), ends, strict=True):
                free = _free(f"{name}_{side}_{level_name(level)}", taken)
                columns[free] = end[:, :, channel].reshape(-1)
                taken.add(free)
    return pd.DataFrame(columns)


def paths_frame(
    schema: Schema, ids: Sequence[str], times: Sequence[pd.Index], paths: np.ndarray, *, written: bool = True
) -> pd.DataFrame:
    """Sample paths, a row for each step of each path: ids, time, `sample` from 1 on, then the targets.

    Args:
        paths: float64 `[series, paths, horizon, targets]` in the user's units.
        schema, ids, times, written: as of `forecast_frame`.
    """
    series, count, horizon = paths.shape[:3]
    of_path = np.repeat(np.arange(series), count)
    keys = _keys(schema, ids, times, horizon, written=written)
    rows = (of_path[:, None] * horizon + np.arange(horizon)).reshape(-1)
    table = pd.DataFrame(keys, index=range(series * horizon)).take(rows).reset_index(drop=True)
    table[_free("sample", {*keys, *schema.targets})] = np.tile(np.repeat(np.arange(1, count + 1), horizon), series)
    for channel, name in enumerate(schema.targets):
        table[name] = paths[..., channel].reshape(-1)
    return table


def _keys(
    schema: Schema, ids: Sequence[str], times: Sequence[pd.Index], horizon: int, *, written: bool
) -> dict[str, object]:
    """The columns of ids and of time."""
    columns: dict[str, object] = {}
    if schema.id_columns:
        parts = [split_id(name) for name in ids]
        for place, name in enumerate(schema.id_columns):
            columns[name] = np.repeat(np.array([part[place] for part in parts], dtype=object), horizon)
    elif schema.id is not None:
        columns[schema.id] = np.repeat(np.asarray(ids, dtype=object), horizon)
    if schema.time is not None:
        stamps = times[0].append(list(times[1:])) if len(times) else pd.Index([])
        if written and schema.time_format is not None and isinstance(stamps, pd.DatetimeIndex):
            columns[schema.time] = write_times(stamps, schema.time_format)
        else:
            columns[schema.time] = stamps
    return columns


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name = f"{name}_"
    return name
