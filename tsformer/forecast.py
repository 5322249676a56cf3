"""A run and rows make a forecast: a table in the user's own units, with the dates that really come next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from tsformer.building import device_in_use, rebuilt
from tsformer.data.cells import listed
from tsformer.data.clock import names_offset
from tsformer.data.empty_columns import without_unlearned
from tsformer.data.extension import extended, known_ahead
from tsformer.data.forecast_table import forecast_frame, paths_frame
from tsformer.data.frequency import next_times
from tsformer.data.panel import Panel, Schema
from tsformer.data.precision import check_precision
from tsformer.data.selection import blaming, named, selected
from tsformer.data.transforms import Chain, Transformed
from tsformer.data.wall import as_numbers, usual_clocks
from tsformer.data.windows import Windows
from tsformer.errors import DataError, DivergedError, UsageError
from tsformer.fitted import Fitted
from tsformer.history import forecastable, in_columns_of, last_stretches
from tsformer.intervals import calibrated, kind_of_intervals
from tsformer.levels import Intervals, ends_of
from tsformer.prediction import free_name
from tsformer.predictive import Ask, predictive
from tsformer.preparation import model_rows, model_statics, tokens_at_steps
from tsformer.settings import MOST_STEPS


@dataclass(frozen=True)
class Forecast:
    """What comes after the last row of each series.

    Attributes:
        values: float64 `[series, horizon, targets]`, in the user's units.
        times: for each series the `horizon` times that come next.
        history: the rows that it follows, of the series that could be forecast.
        notes: what the user should hear of, one line each.
        levels: of the intervals, in percent, ascending; none when they were not asked for.
        quantiles: float64 `[series, horizon, targets, 2 * levels]`, the ends of the intervals, ascending; None without.
        paths: float64 `[series, paths, horizon, targets]`, possible futures; None when they were not asked for.
    """

    values: np.ndarray
    times: Sequence[pd.Index]
    history: Panel
    notes: tuple[str, ...] = ()
    levels: tuple[float, ...] = ()
    quantiles: np.ndarray | None = None
    paths: np.ndarray | None = None

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """The ends of an interval that was asked for, float64 `[series, horizon, targets]` each."""
        assert self.quantiles is not None
        return ends_of(self.quantiles, self.levels, level)

    def to_frame(self, *, written: bool = True) -> pd.DataFrame:
        """The table: id column if there is one, time column, then each target under its own name, followed by the ends
        of its intervals, `sales_lo_80` and `sales_hi_80`; dates `written` as the user writes them, or kept."""
        intervals = {level: self.interval(level) for level in self.levels}
        return forecast_frame(
            self.history.schema, self.history.ids, self.times, self.values, written=written, intervals=intervals
        )

    def to_paths_frame(self, *, written: bool = True) -> pd.DataFrame:
        """The sample paths: id column if there is one, time column, `sample` (1, 2, ...), then each target; a row for
        each step of each path.

        Raises:
            UsageError: when none were asked for.
        """
        if self.paths is None:
            raise UsageError("no sample paths were asked for")
        return paths_frame(self.history.schema, self.history.ids, self.times, self.paths, written=written)

    def with_history(self, *, written: bool = True) -> pd.DataFrame:
        """For each series the targets of its history, then the forecast; a column `kind` tells "history" and
        "forecast" apart (`kind_` where a column of the table is called so). The history has no intervals."""
        panel = self.history
        each = np.repeat(np.arange(len(panel.ids)), panel.lengths)
        targets = panel.values[:, None, : len(panel.schema.targets)]
        names = np.array(panel.ids, dtype=object)[each].tolist()
        past = forecast_frame(panel.schema, names, [panel.times], targets, written=written)
        ahead = self.to_frame(written=written)
        table = pd.concat([past, ahead], ignore_index=True)[list(ahead.columns)]
        series = np.concatenate([each, np.repeat(np.arange(len(panel.ids)), self.values.shape[1])])
        table[free_name(table, "kind")] = np.where(np.arange(len(table)) < len(past), "history", "forecast")
        return table.iloc[np.argsort(series, kind="stable")].reset_index(drop=True)


def forecast(
    fitted: Fitted,
    panel: Panel,
    horizon: int | None = None,
    future: Panel | None = None,
    *,
    ask: Ask | None = None,
    intervals: str | None = None,
) -> Forecast:
    """Predict what follows the last row of every series, each one as if it were alone.

    A series that was not in the fit gets its transforms from its own rows; the notes name it, and series that cannot
    be forecast where others can, with the first reason.

    Args:
        fitted: the model.
        panel: rows in the columns of `fitted.schema`; at least one lookback for each series.
        horizon: steps to predict; the trained horizon when None.
        future: rows with the future covariates of these steps, where the model needs any; see `known_ahead`.
        ask: the levels of intervals, and how many sample paths.
        intervals: where they come from, see `kind_of_intervals`.

    Raises:
        DataError: too few rows, values outside a transform's domain, or what is known ahead is missing, in all series.
        UsageError: a horizon that the model cannot do, or intervals or paths that it cannot give.
        DivergedError: the model's answer is not finite, in all series.
    """
    horizon = fitted.problem.horizon if horizon is None else horizon
    if not isinstance(horizon, Integral) or isinstance(horizon, bool) or not 1 <= horizon <= MOST_STEPS:
        raise UsageError(f"--horizon must be a whole number from 1 to {MOST_STEPS}, not {horizon!r}")
    horizon, ask = int(horizon), ask or Ask()
    kind = kind_of_intervals(fitted, ask, intervals)
    panel, notes = forecastable(fitted, in_columns_of(panel, fitted.schema))
    while True:
        try:
            made = _forecast(fitted, panel, horizon, future, ask, kind)
        except (DataError, DivergedError) as error:
            bad = error.series
            if bad is None or bad.all() or not bad.any():
                raise
            notes += (f"not forecast: {named(panel, bad)}: {error.sentence()}",)
            panel = selected(panel, ~bad)
        else:
            return replace(made, notes=notes + made.notes)


def _forecast(
    fitted: Fitted, panel: Panel, horizon: int, future: Panel | None, ask: Ask, kind: Intervals | None
) -> Forecast:
    """The forecast of series that have enough to look back on. An error names those at fault, where it is not all."""
    problem = fitted.problem
    notes: tuple[str, ...] = ()
    module, steps = fitted.module, problem.horizon
    if horizon > problem.horizon:
        module, steps = with_horizon(fitted, horizon), horizon

    rows, ahead = panel, 0
    times = blaming(lambda some: _times_ahead(some, steps if problem.future_covariates else horizon), panel)
    if problem.future_covariates:
        known, more = known_ahead(panel, times, future, *steps_needed(fitted, horizon, steps))
        rows, ahead, notes = extended(panel, times, known), steps, more
    elif future is not None:
        notes = ("the future table is not looked at: the model was fitted without future covariates",)
    chain, data = blaming(lambda *both: _transformed(fitted.chain, *both), panel, rows)
    series, origins = np.arange(len(panel.ids)), data.offsets[1:] - ahead
    tensor, mask = model_rows(rows, chain, data)
    numbers, codes = model_statics(panel, fitted.statics)
    windows = Windows(
        tensor,
        torch.from_numpy(data.offsets[:-1] + last_stretches(panel)),
        torch.from_numpy(origins),
        torch.from_numpy(series),
        problem.lookback,
        steps,
        problem.targets,
        problem.future_covariates,
        future=False,
        tokens=tokens_of(fitted, rows),
        mask=mask,
        static=numbers,
        static_codes=codes,
    )
    own = ask if kind == "native" else replace(ask, levels=())
    made = predictive(fitted, windows, data, own, chain=chain, module=module, horizon=horizon)
    _check_finite(panel, made.point, made.quantiles, made.paths)
    quantiles = made.quantiles
    if kind is not None and kind != "native":
        quantiles = calibrated(fitted, panel, made.point, ask.levels, adaptive=kind == "adaptive")
    times = [some[:horizon] for some in times]
    notes = (*notes, *_notes(fitted, panel), *_about_hours(times, panel.schema))
    return Forecast(made.point, times, panel, notes, ask.levels if kind else (), quantiles, made.paths)


def _check_finite(panel: Panel, *forecasts: np.ndarray | None) -> None:
    """Raises DivergedError that names the series with a value that is not finite, in any of some arrays."""
    parts = [each.reshape(len(panel.ids), -1) for each in forecasts if each is not None]
    bad = ~np.isfinite(np.concatenate(parts, axis=1)).all(axis=1)
    if bad.any():
        whose = f" of series {panel.ids[int(bad.argmax())]!r}" if panel.schema.id else ""
        error = DivergedError(
            f"the forecast{whose} is not finite; are the rows on the scale of those that the model was fitted on?"
        )
        error.series = bad
        raise error


def _transformed(chain: Chain, panel: Panel, rows: Panel) -> tuple[Chain, Transformed]:
    """The chain with the states of all series, and rows after it: those of the panel, and maybe some ahead of them."""
    if chain.links:  # what is known ahead cannot be scaled where nothing was learned of its column
        new = np.isin(panel.ids, chain.unseen(panel))
        rows, _ = without_unlearned(rows, np.where(new, panel.lengths, rows.lengths))
    chain = _with_new(chain, panel)
    data = chain.forward(rows)
    check_precision(rows, chain, data)
    return chain, data


def steps_needed(fitted: Fitted, horizon: int, steps: int) -> tuple[int, str]:
    """Of how many steps ahead covariates have to be known, and why where it is more than are predicted."""
    model = fitted.settings.model
    if "future" in model.unread(fitted.problem):
        return 0, ""
    if model.steps_apart or horizon == steps:
        return horizon, ""
    name = fitted.settings.model.name
    return steps, f" (model '{name}' reads those of all {steps} steps that it was fitted for to predict any of them)"


def tokens_of(fitted: Fitted, panel: Panel) -> Tensor | None:
    """The text of each row in tokens, where the model was fitted with texts."""
    if fitted.words.tokenizer is None or panel.texts is None:
        return None
    coded = fitted.words.tokenizer.encode(panel.texts)
    return tokens_at_steps(panel, coded, fitted.chain.lost, fitted.problem.text_length)


def _times_ahead(panel: Panel, horizon: int) -> list[pd.Index]:
    times, frequency = panel.times, panel.schema.frequency
    clocks = usual_clocks(times, panel.offsets) if isinstance(times, pd.DatetimeIndex) else [0] * len(panel.ids)
    ends = list(zip(as_numbers(times)[panel.offsets[1:] - 1].tolist(), clocks, strict=True))
    # Many series end alike: what follows a last time is found once for each time of day that summer time hides in it.
    ahead: dict[tuple[float, int], pd.Index] = {}
    for series, end in enumerate(ends):
        if end not in ahead:
            ahead[end] = next_times(times[panel.rows(series)], frequency, horizon, panel.schema.holidays)
    return [ahead[end] for end in ends]


def _about_hours(times: Sequence[pd.Index], schema: Schema) -> tuple[str, ...]:
    """A note where two steps show the same time on the wall: the hour that comes twice when clocks go back."""
    if schema.zone is None or (schema.time_format is not None and names_offset(schema.time_format)):
        return ()
    if not any(isinstance(each, pd.DatetimeIndex) and each.tz_localize(None).has_duplicates for each in times):
        return ()
    return (
        f"the forecast holds the hour that comes twice when clocks in {schema.zone} go back: the earlier one first",
    )


def _notes(fitted: Fitted, panel: Panel) -> tuple[str, ...]:
    notes = fitted.statics.notes(panel)
    new = fitted.chain.unseen(panel)
    if new:
        fitted_on = "; their transforms are fitted on their own rows" if fitted.chain.links else ""
        notes += (f"new to the model: {listed(new)} ({len(new)} of {len(panel.ids)} series){fitted_on}",)
    return notes


def _with_new(chain: Chain, panel: Panel) -> Chain:
    """The chain with states for the series that it does not know, from their rows up to now and nothing ahead."""
    new = np.isin(panel.ids, chain.unseen(panel))
    if not new.any():
        return chain
    rows, own = selected(panel, new), Chain(chain.links)
    own.fit(rows, rows.lengths)
    return Chain(chain.links, {**chain.states, **own.states})


def with_horizon(fitted: Fitted, horizon: int) -> nn.Module:
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
