"""Where the intervals of a forecast come from: what its model says, or the errors that it made on rows apart."""

from __future__ import annotations

import numpy as np

from tsformer.data.panel import Panel
from tsformer.errors import UsageError
from tsformer.fitted import Fitted
from tsformer.levels import Intervals, read_intervals
from tsformer.nn.outputs import output_of
from tsformer.predictive import Ask


def kind_of_intervals(fitted: Fitted, ask: Ask, asked: str | None) -> Intervals | None:
    """Where intervals come from; None when there are to be none.

    Args:
        asked: "native": what the model says of how values scatter. "conformal": its errors on rows that it did not
            learn from. "adaptive": these, the later ones of more weight. None: native where the model says anything of
            it, else conformal.

    Raises:
        UsageError: intervals or paths that the model cannot give.
    """
    probabilistic = output_of(fitted.problem).probabilistic
    if ask.paths and not probabilistic:
        raise UsageError(
            "sample paths need a model that says how values scatter, and this one gives points only; "
            "fit with --train.output normal or quantiles"
        )
    if not ask.levels:
        return None
    kind = read_intervals(asked) or ("native" if probabilistic else "conformal")
    if kind == "native" and not probabilistic:
        raise UsageError(
            "--intervals native needs a model that says how values scatter, and this one gives points only; "
            "take --intervals conformal, or fit with --train.output normal or quantiles"
        )
    return kind


def calibrated(
    fitted: Fitted, panel: Panel, point: np.ndarray, levels: tuple[float, ...], *, adaptive: bool
) -> np.ndarray:
    """The ends of conformal intervals around what follows a panel, float64 `[series, horizon, targets, 2 * levels]`.

    Args:
        panel: the rows that are followed.
        point: float64 `[series, horizon, targets]`.
        adaptive: whether later errors are of more weight.

    Raises:
        UsageError: no errors are known, or too few.
    """
    if fitted.calibration is None:
        raise UsageError(
            "this run holds no errors from which intervals could be made: too few rows were left after the training "
            "part, or it was fitted by an earlier version; fit again, or with --train.output normal or quantiles"
        )
    scale = fitted.calibration.scale_of(panel, fitted.problem.season)
    return fitted.calibration.intervals(point, levels, scale, adaptive=adaptive)
