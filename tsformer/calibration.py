"""The errors that conformal intervals are made of: of windows that no gradient saw."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from tsformer.data.panel import Panel
from tsformer.data.wall import passed
from tsformer.data.windows import Windows
from tsformer.evaluation.conformal import Calibration, series_scale
from tsformer.fitted import Fitted
from tsformer.predictive import predictive
from tsformer.preparation import Prepared, rows_of

MOST_WINDOWS = 1000
MOST_NUMBERS = 10**6
LEAST_WINDOWS = 200
"""Enough for intervals of 99 %, however many steps and targets there are."""


def calibrate(fitted: Fitted, prepared: Prepared) -> Calibration:
    """From the validation windows, at most `eval_windows` of them.

    The model was chosen on that part, so that errors there are a little too small.
    """
    panel, problem = prepared.panel, prepared.problem
    scale = series_scale(panel, prepared.split.train, problem.season)
    names = panel.ids if panel.schema.id else ("",)
    nothing = Calibration(
        np.zeros((0, problem.horizon, problem.targets)),
        np.zeros(0),
        np.zeros((0, problem.horizon)),
        dict(zip(names, scale, strict=True)),
        fitted.chain.relative(problem.targets),
    )
    windows = prepared.validation.thin(min(_most(prepared), fitted.settings.train.eval_windows))
    return _with(nothing, prepared, windows, predictive(fitted, windows, prepared.data).point)


def with_forecasts(calibration: Calibration, prepared: Prepared, forecast: np.ndarray) -> Calibration:
    """With the errors of the test windows.

    Args:
        forecast: of all of them, float64 `[windows, horizon, targets]`.
    """
    thin = prepared.test.thin(_most(prepared))
    return _with(calibration, prepared, thin, forecast[_kept(prepared.test, thin)])


def _most(prepared: Prepared) -> int:
    numbers = prepared.problem.horizon * prepared.problem.targets
    return min(MOST_WINDOWS, max(LEAST_WINDOWS, MOST_NUMBERS // numbers))


def _with(calibration: Calibration, prepared: Prepared, windows: Windows, point: np.ndarray) -> Calibration:
    panel, problem = prepared.panel, prepared.problem
    rows = rows_of(prepared, windows)[:, None] + np.arange(problem.horizon)
    scale = calibration.scale_of(panel, problem.season)[windows.series.numpy()]
    errors, time = calibration.errors_of(point, panel.values[rows, : problem.targets], scale), clock(panel)
    return calibration.extended(errors, time[rows[:, 0]], time[rows])


def clock(panel: Panel) -> np.ndarray:
    """The time of each row as a number, float64: what is earlier is smaller, in every series of the panel."""
    times = panel.times
    if isinstance(times, pd.DatetimeIndex):
        return passed(times).astype(np.float64)
    return times.to_numpy(dtype=np.float64)


def _kept(windows: Windows, thin: Windows) -> np.ndarray:
    """The places of the windows that were kept."""
    if len(thin) == len(windows):
        return np.arange(len(windows))
    every, some = (torch.stack([each.series, each.origins]).numpy() for each in (windows, thin))
    size = int(every[1].max()) + 1
    return np.asarray(np.searchsorted(every[0] * size + every[1], some[0] * size + some[1]))
