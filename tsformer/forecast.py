"""A run and rows make a forecast: a table in the user's own units, with the dates that really come next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from tsformer.building import device_in_use, rebuilt
from tsformer.data.cells import listed
from tsformer.data.frames import forecast_frame
from tsformer.data.frequency import next_times
from tsformer.data.panel import Panel, Schema
from tsformer.data.precision import check_precision
from tsformer.data.split import too_short
from tsformer.data.wall import as_numbers, usual_clocks
from tsformer.data.windows import Windows
from tsformer.errors import DataError, DivergedError, UsageError, did_you_mean
from tsformer.fitted import Fitted
from tsformer.nn.outputs import output_of
from tsformer.preparation import tokens_at_steps
from tsformer.settings import MOST_STEPS
from tsformer.training.loop import predict


@dataclass(frozen=True)
class Forecast:
    """What comes after the last row of each series.

    Attributes:
        values: float64 `[series, horizon, targets]`, in the user's units.
        times: for each series the `horizon` times that come next.
        ids: the series.
        schema: the user's table.
        notes: what the user should hear of, one line each.
    """

    values: np.ndarray
    times: Sequence[pd.Index]
    ids: Sequence[str]
    schema: Schema
    notes: tuple[str, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """The table: id column if there is one, time column, then each target under its own name."""
        return forecast_frame(self.schema, self.ids, self.times, self.values)


def forecast(fitted: Fitted, panel: Panel, horizon: int | None = None) -> Forecast:
    """Predict what follows the last row of every series, each one as if it were alone.

    A series that was not in the fit gets its transforms from its own rows; the notes name it.

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
    if not isinstance(horizon, Integral) or isinstance(horizon, bool) or not 1 <= horizon <= MOST_STEPS:
        raise UsageError(f"--horizon must be a whole number from 1 to {MOST_STEPS}, not {horizon!r}")
    panel = in_columns_of(panel, fitted.schema)
    horizon = int(horizon)
    _check_rows(panel, problem.lookback + fitted.chain.lost)
    module, steps = fitted.module, problem.horizon
    if horizon > problem.horizon:
        module, steps = _with_horizon(fitted, horizon), horizon

    times = _times_ahead(panel, horizon)  # before the model runs: the calendar may end
    data = fitted.chain.forward(panel)
    check_precision(panel, fitted.chain, data)
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
        tokens=_tokens(fitted, panel),
    )
    with fitted.settings.model.at_fault("prediction"):
        path = predict(module, windows, output_of(problem), device_in_use(module))
    values = fitted.chain.inverse(path[:, :horizon], data, series, data.offsets[1:])
    if not np.isfinite(values).all():
        bad = panel.ids[int(np.argwhere(~np.isfinite(values))[0][0])]
        raise DivergedError(
            f"the forecast{f' of series {bad!r}' if panel.schema.id else ''} is not finite; "
            "are the rows on the scale of those that the model was fitted on?"
        )
    return Forecast(values, times, panel.ids, panel.schema, _notes(fitted, panel))


def _tokens(fitted: Fitted, panel: Panel) -> Tensor | None:
    """The text of each row in tokens, where the model was fitted with texts."""
    if fitted.words.tokenizer is None or panel.texts is None:
        return None
    coded = fitted.words.tokenizer.encode(panel.texts)
    return tokens_at_steps(panel, coded, fitted.chain.lost, fitted.problem.text_length)


def in_columns_of(panel: Panel, schema: Schema) -> Panel:
    """The panel with the columns of a schema, in its order.

    Raises:
        DataError: a column is missing, or frequency, zone or the way of telling series apart is another one.
    """
    have = panel.schema
    if schema.text is not None and have.text != schema.text:
        raise DataError(f"the model reads the texts of the column '{schema.text}', which the data do not have")
    if schema.text is None and have.text is not None:
        have = replace(have, text=None)
        panel = replace(panel, texts=None, schema=have)
    missing = [name for name in schema.columns if name not in have.columns]
    if missing:
        hint = did_you_mean(missing[0], have.columns)
        raise DataError(f"the model needs the column '{missing[0]}'{hint}; the data have {', '.join(have.columns)}")
    for what, own, known in (
        ("frequency", have.frequency, schema.frequency),
        ("time zone", have.zone, schema.zone),
        ("id column", have.id, schema.id),
    ):
        close = isinstance(own, float) and isinstance(known, float) and math.isclose(own, known, rel_tol=1e-6)
        if own != known and not close:
            raise DataError(f"the data have {what} {own}, the model was fitted with {known}")
    if have.columns == schema.columns:
        return panel
    order = [have.columns.index(name) for name in schema.columns]
    return replace(panel, values=np.ascontiguousarray(panel.values[:, order]), schema=schema)


def _check_rows(panel: Panel, needed: int) -> None:
    short = np.flatnonzero(panel.lengths < needed)
    if len(short):
        ids = panel.ids if panel.schema.id else None
        raise too_short(panel.lengths, short, ids, f"the model looks back {needed} rows", "give more history")


def _times_ahead(panel: Panel, horizon: int) -> list[pd.Index]:
    times, frequency = panel.times, panel.schema.frequency
    clocks = usual_clocks(times, panel.offsets) if isinstance(times, pd.DatetimeIndex) else [0] * len(panel.ids)
    ends = list(zip(as_numbers(times)[panel.offsets[1:] - 1].tolist(), clocks, strict=True))
    # Many series end alike: what follows a last time is found once for each time of day that summer time hides in it.
    ahead: dict[tuple[float, int], pd.Index] = {}
    for series, end in enumerate(ends):
        if end not in ahead:
            ahead[end] = next_times(times[panel.rows(series)], frequency, horizon)
    return [ahead[end] for end in ends]


def _notes(fitted: Fitted, panel: Panel) -> tuple[str, ...]:
    new = fitted.chain.unseen(panel)
    if not new:
        return ()
    fitted_on = "; their transforms are fitted on their own rows" if fitted.chain.links else ""
    return (f"new to the model: {listed(new)} ({len(new)} of {len(panel.ids)} series){fitted_on}",)


def _with_horizon(fitted: Fitted, horizon: int) -> nn.Module:
    """The same weights in a module that predicts further, for models whose shapes allow it."""
    trained = fitted.problem.horizon
    options = fitted.settings.model.config.model_dump()
    hint = ""
    learned = options.get("positions") == "learned"
    if options.get("decoder") == "direct":
        positions = " and other positions than learned" if learned else ""
        hint = f" (or with --model.decoder autoregressive{positions}, which goes on beyond its horizon)"
    elif learned:
        hint = " (or with other positions than learned, whose table ends with the horizon)"
    module = rebuilt(fitted.settings.model, replace(fitted.problem, horizon=horizon))
    try:
        # as it is, not through `weights`: a model that cannot be saved can forecast, too
        module.load_state_dict(fitted.module.state_dict())
    except RuntimeError:  # shapes that depend on the horizon
        raise UsageError(
            f"model '{fitted.settings.model.name}' was fitted for a horizon of {trained} steps and cannot predict "
            f"{horizon}; ask for at most {trained}, or fit again with --horizon {horizon}{hint}"
        ) from None
    return module.to(device_in_use(fitted.module)).eval()
