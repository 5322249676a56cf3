"""A forecaster on the test part: forecasts, errors beside naive ones, and how well its intervals cover."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tsformer.calibration import calibrate, with_forecasts
from tsformer.dependence import rolls_out
from tsformer.errors import DivergedError, UsageError
from tsformer.evaluation.baselines import BASELINES
from tsformer.evaluation.conformal import Calibration
from tsformer.evaluation.metrics import Errors, Score
from tsformer.evaluation.scales import seasonal_scale
from tsformer.fitted import Fitted
from tsformer.levels import Intervals
from tsformer.nn.outputs import output_of
from tsformer.predictive import Ask, predictive
from tsformer.preparation import Prepared, rows_of

SCORED_AT_ONCE = 2**20
"""Numbers of a forecast that are compared with the truth at a time: errors take several arrays of that size."""
LEVELS = (80.0, 95.0)
MOST_DRAWN = 2**24
"""Numbers of sample paths from which intervals of the test part are found, and of windows that are rolled out for them:
of more windows some are taken, evenly spaced."""
MOST_ROLLED = 2**12
SAMPLES = 100
"""Paths of each window, of which the ends of the intervals are found here."""


@dataclass(frozen=True)
class HeldOut:
    """What came of the test part.

    Attributes:
        forecast: of all test windows, in the user's units, float64 `[windows, horizon, targets]`.
        test: errors, with coverage and width of intervals.
        baselines: errors of each naive forecast.
        intervals: where the intervals come from; None without any.
        calibration: errors of validation and test windows, of which later conformal intervals are made.
    """

    forecast: np.ndarray
    test: Score
    baselines: Mapping[str, Score]
    intervals: Intervals | None
    calibration: Calibration


def held_out(fitted: Fitted, prepared: Prepared) -> HeldOut:
    """Forecast and score the test part. Conformal intervals there are made of errors of the validation part only.

    Raises:
        DivergedError: a forecast is not finite.
    """
    forecast = backcast(fitted, prepared)
    calibration = calibrate(fitted, prepared)
    probabilistic = output_of(fitted.problem).probabilistic
    covered = _coverage(fitted, prepared, forecast, None if probabilistic else calibration)
    intervals: Intervals | None = None
    if covered is not None:
        intervals = "native" if probabilistic else "conformal"
    test, baselines = _errors(prepared, forecast, covered)
    return HeldOut(forecast, test, baselines, intervals, with_forecasts(calibration, prepared, forecast))


def backcast(fitted: Fitted, prepared: Prepared) -> np.ndarray:
    """Forecasts of all test windows in the user's units, float64 `[windows, horizon, targets]`."""
    forecast = predictive(fitted, prepared.test, prepared.data).point
    if not np.isfinite(forecast).all():
        raise DivergedError(f"{fitted.settings.model} predicts values that are not finite; nothing usable was learned")
    return forecast


def _coverage(
    fitted: Fitted, prepared: Prepared, forecast: np.ndarray, calibration: Calibration | None
) -> Score | None:
    """The score of intervals: native ones, or conformal ones of a calibration; None where there can be none."""
    panel, problem = prepared.panel, prepared.problem
    levels = tuple(level for level in LEVELS if calibration is None or calibration.enough(level))
    if not levels:
        return None
    ask = Ask(levels, samples=SAMPLES, seed=fitted.settings.train.seed)
    errors = Errors(*_scales(prepared), ask.probabilities)
    windows = prepared.test
    if calibration is None:
        windows = windows.thin(_most(fitted, ask))
    size = max(1, SCORED_AT_ONCE // (problem.horizon * problem.targets * len(ask.probabilities)))
    for start in range(0, len(windows), size):
        some = windows.part(start, start + size)
        rows = rows_of(prepared, some)[:, None] + np.arange(problem.horizon)
        try:
            if calibration is None:
                said = predictive(fitted, some, prepared.data, ask)
                point, quantiles = said.point, said.quantiles
            else:
                point = forecast[start : start + size]
                scale = calibration.scale_of(panel, problem.season)[some.series.numpy()]
                quantiles = calibration.intervals(point, levels, scale)
        except UsageError:  # quantiles that do not reach as far
            return None
        errors.add(point, panel.values[rows, : problem.targets], some.series.numpy(), quantiles)
    return errors.score()


def _most(fitted: Fitted, ask: Ask) -> int:
    """How many windows intervals are found of, where they are found from sample paths."""
    problem = fitted.problem
    if rolls_out(fitted.module):
        return max(1, MOST_ROLLED // ask.samples)
    if not fitted.chain.pointwise(problem.targets):
        return max(1, MOST_DRAWN // (ask.samples * problem.horizon * problem.targets))
    return 2**62


def _scales(prepared: Prepared) -> tuple[np.ndarray, tuple[str, ...]]:
    before, season = prepared.split.validation, prepared.problem.season
    return seasonal_scale(prepared.panel, before, season), prepared.panel.schema.targets


def _errors(prepared: Prepared, forecast: np.ndarray, covered: Score | None) -> tuple[Score, dict[str, Score]]:
    """The model's score, with that of its intervals, and those of the naive forecasts."""
    panel, problem = prepared.panel, prepared.problem
    series, origin = prepared.test.series.numpy(), rows_of(prepared, prepared.test)
    scale, targets = _scales(prepared)
    squared = seasonal_scale(panel, prepared.split.validation, problem.season, squared=True)
    own = Errors(scale, targets, squared=squared)
    naive = {name: Errors(scale, targets, squared=squared) for name in BASELINES}
    size = max(1, SCORED_AT_ONCE // (problem.horizon * problem.targets))
    for start in range(0, len(series), size):
        part = slice(start, start + size)
        truth = panel.values[origin[part, None] + np.arange(problem.horizon), : problem.targets]
        own.add(forecast[part], truth, series[part])
        for name, errors in naive.items():
            path = BASELINES[name](panel, series[part], origin[part], problem.horizon, problem.season)
            errors.add(path, truth, series[part])
    test = own.score()
    if covered is not None:  # of some of the windows, maybe
        of_targets = {name: covered.by_target[name] | metrics for name, metrics in test.by_target.items()}
        test = replace(test, overall=covered.overall | test.overall, by_target=of_targets)
    return test, {name: errors.score() for name, errors in naive.items()}
