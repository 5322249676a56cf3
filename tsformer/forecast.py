"""A run and rows make a forecast: a table in the user's own units, with the dates that really come next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch
from torch import nn

from tsformer.data.frames import forecast_frame
from tsformer.data.frequency import next_times
from tsformer.data.panel import Panel, Schema
from tsformer.data.windows import Windows
from tsformer.errors import DataError, DivergedError, UsageError
from tsformer.fitting import Fitted, build_module
from tsformer.nn.outputs import output_of
from tsformer.training.loop import predict


@dataclass(frozen=True)
class Forecast:
    """What comes after the last row of each series.

    Attributes:
        values: float64 `[series, horizon, targets]`, in the user's units.
        times: for each series the `horizon` times that come next.
        ids: the series.
        schema: the user's table.
    """

    values: np.ndarray
    times: Sequence[pd.Index]
    ids: Sequence[str]
    schema: Schema

    def to_frame(self) -> pd.DataFrame:
        """The table: id column if there is one, time column, then each target under its own name."""
        return forecast_frame(self.schema, self.ids, self.times, self.values)


def forecast(fitted: Fitted, panel: Panel, horizon: int | None = None) -> Forecast:
    """Predict what follows the last row of every series.

    Args:
        fitted: the model.
        panel: rows in the columns of `fitted.schema`; at least one lookback for each series.
        horizon: steps to predict; the trained horizon when None.

    Raises:
        DataError: too few rows, or values outside a transform's domain.
        UsageError: a horizon that the model cannot do.
        DivergedError: the model's answer is not finite.
    """
    problem = fitted.problem
    horizon = problem.horizon if horizon is None else horizon
    if horizon < 1:
        raise UsageError(f"--horizon must be at least 1, not {horizon}")
    _check_rows(panel, problem.lookback + fitted.chain.lost)
    module, steps = fitted.module, problem.horizon
    if horizon > problem.horizon:
        module, steps = _with_horizon(fitted, horizon), horizon

    data = fitted.chain.forward(panel)
    series = np.arange(len(panel.ids))
    windows = Windows(
        data.tensor(),
        torch.from_numpy(data.offsets[:-1]),
        torch.from_numpy(data.offsets[1:]),
        torch.from_numpy(series),
        problem.lookback,
        steps,
        problem.targets,
        future=False,
    )
    device = next((p.device for p in module.parameters()), torch.device("cpu"))
    path = predict(module, windows, output_of(problem), device)
    values = fitted.chain.inverse(path[:, :horizon], data, series, data.offsets[1:])
    if not np.isfinite(values).all():
        bad = panel.ids[int(np.argwhere(~np.isfinite(values))[0][0])]
        raise DivergedError(
            f"the forecast{f' of series {bad!r}' if panel.schema.id else ''} is not finite; "
            "are the rows on the scale of those that the model was fitted on?"
        )
    last = panel.offsets[1:] - 1
    times = [next_times(panel.times[int(row)], panel.schema.frequency, horizon) for row in last]
    return Forecast(values, times, panel.ids, panel.schema)


def _check_rows(panel: Panel, needed: int) -> None:
    short = np.flatnonzero(panel.lengths < needed)
    if len(short):
        first = int(short[0])
        name = f"series '{panel.ids[first]}'" if panel.schema.id else "the input"
        count = f" ({len(short)} of {len(panel.ids)} series are too short)" if len(panel.ids) > 1 else ""
        raise DataError(
            f"{name} has {int(panel.lengths[first])} rows; the model looks back {needed} rows{count}; give more history"
        )


def _with_horizon(fitted: Fitted, horizon: int) -> nn.Module:
    """The same weights in a module that predicts further, for models whose shapes allow it."""
    trained = fitted.problem.horizon
    with torch.random.fork_rng(devices=[]):
        module = build_module(fitted.settings.model, replace(fitted.problem, horizon=horizon))
    try:
        module.load_state_dict(fitted.module.state_dict())
    except RuntimeError:
        raise UsageError(
            f"model '{fitted.settings.model.name}' was fitted for a horizon of {trained} steps and cannot predict "
            f"{horizon}; ask for at most {trained}, or fit again with --horizon {horizon} "
            "(a model with --model.decoder autoregressive goes on beyond its horizon)"
        ) from None
    device = next((p.device for p in fitted.module.parameters()), torch.device("cpu"))
    return module.to(device).eval()
