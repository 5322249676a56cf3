"""Every forecast of a backtest in one tidy table: a row for each model, origin, series, step and target."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from tsformer.data.clock import write_times
from tsformer.data.identity import split_id
from tsformer.evaluation.backtest import Backtest
from tsformer.evaluation.entries import Entry
from tsformer.evaluation.plan import Block
from tsformer.levels import level_name
from tsformer.predictive import Predictive


def forecasts_table(backtest: Backtest, *, written: bool = True) -> pd.DataFrame:
    """The forecasts of a backtest that kept them, in the user's units.

    Columns: those of ids; `origin`, the time of the last row before the forecast, or its number where rows have no
    times; the time; `step` from 1; `target` where there are several; `model`; `y`, the true value; `forecast`; and with
    levels `lo_80`, `hi_80` and the like. A name that the user's table has gets "_" behind it. Where a model has no
    forecast, or there is no true value, the cell is empty.

    Args:
        written: dates as the user writes them; False keeps them, for files that can hold dates.
    """
    parts = [
        part
        for entry in backtest.entries.values()
        for block, said in zip(backtest.plan.blocks, entry.forecasts or (), strict=False)
        for part in _parts(backtest, entry, block, said, written=written)
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _parts(
    backtest: Backtest, entry: Entry, block: Block, said: Predictive, *, written: bool
) -> Iterator[pd.DataFrame]:
    panel, schema, horizon = backtest.panel, backtest.panel.schema, backtest.plan.horizon
    first = panel.offsets[block.series] + block.origins
    rows = (first[:, None] + np.arange(horizon)).reshape(-1)
    last = np.repeat(first - 1, horizon)
    names: dict[str, str] = {}
    taken = {name for name in (schema.time, schema.id, *schema.id_columns) if name is not None}
    for name in ("origin", "step", "target", "model", "y", "forecast"):
        names[name] = name
        while names[name] in taken:
            names[name] += "_"
    keys: dict[str, object] = {}
    of_row = np.repeat(block.series, horizon)
    ids = np.array(panel.ids, dtype=object)
    if schema.id_columns:
        split = [split_id(name) for name in panel.ids]
        for place, name in enumerate(schema.id_columns):
            keys[name] = np.array([each[place] for each in split], dtype=object)[of_row]
    elif schema.id is not None:
        keys[schema.id] = ids[of_row]
    if schema.time is None:
        keys[names["origin"]] = np.repeat(block.origins, horizon)
    else:
        format_ = schema.time_format if written else None
        for name, places in ((names["origin"], last), (schema.time, rows)):
            times = panel.times[places]
            if format_ is not None and isinstance(times, pd.DatetimeIndex):
                keys[name] = write_times(times, format_)
            else:
                keys[name] = times
    keys[names["step"]] = np.tile(np.arange(1, horizon + 1), len(first))
    several = len(schema.targets) > 1
    for channel, target in enumerate(schema.targets):
        columns = dict(keys) | ({names["target"]: target} if several else {})
        columns[names["model"]] = entry.name
        columns[names["y"]] = panel.values[rows, channel]
        columns[names["forecast"]] = said.point[..., channel].reshape(-1)
        levels = backtest.ask.levels
        for number, level in enumerate(levels):
            place = len(levels) - 1 - number
            for side, end in (("lo", place), ("hi", 2 * len(levels) - 1 - place)):
                values = np.nan if said.quantiles is None else said.quantiles[..., channel, end].reshape(-1)
                columns[f"{side}_{level_name(level)}"] = values
        yield pd.DataFrame(columns, index=range(len(rows)))
