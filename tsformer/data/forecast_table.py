"""Forecasts as a table that looks like the user's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from tsformer.data.clock import write_times
from tsformer.data.identity import split_id
from tsformer.data.panel import Schema


def forecast_frame(
    schema: Schema, ids: Sequence[str], times: Sequence[pd.Index], forecasts: np.ndarray, *, written: bool = True
) -> pd.DataFrame:
    """Forecasts with the columns of ids (if any), the time (if any) in the user's own writing, then the targets.

    Args:
        schema: of the panel that the forecasts come from.
        ids: names of the series, `[series]`.
        times: the times of each series' forecast, `[series]` indices of `[horizon]`.
        forecasts: float64 `[series, horizon, targets]` in the user's units.
        written: dates as the user writes them; False keeps them, for files that can hold dates.
    """
    horizon = forecasts.shape[1]
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
    for channel, name in enumerate(schema.targets):
        columns[name] = forecasts[:, :, channel].reshape(-1)
    return pd.DataFrame(columns)
