"""Exponential smoothing with additive errors (Holt 1957, Winters 1960; Hyndman et al. 2008), from statsmodels.

Fitted to the lookback of each window by itself, trend and season chosen by the corrected Akaike criterion unless they
are given. It acts on transformed values; seasons by ratios need positive ones (`--scale none`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from tsformer.nn.local import Local, enough_seasons, require_statsmodels
from tsformer.plugin import Config, Field, ModelPlugin, Problem

Trend = Literal["auto", "none", "additive", "damped"]
Seasonal = Literal["auto", "none", "additive", "multiplicative"]


class ETSConfig(Config):
    """Options of exponential smoothing."""

    trend: Trend = Field("auto", description="of the level; auto: by AICc, none or damped")
    seasonal: Seasonal = Field(
        "auto", description="of the season; auto: by AICc, none, additive, or multiplicative where all is positive"
    )


class ETS(Local):
    """Of a history without two seasons no season is learned; with fewer than eight steps the last one is repeated.

    A candidate that cannot be fitted is left out; where none can, the last value is repeated.
    """

    def __init__(self, config: ETSConfig, problem: Problem) -> None:
        require_statsmodels("ets")
        super().__init__(problem)
        self.config = config

    def one(self, history: np.ndarray) -> np.ndarray:
        best, path = np.inf, np.repeat(history[-1], self.problem.horizon)
        if len(history) < 8 or np.ptp(history) == 0.0:
            return path
        # in units of the history's own spread, for what an optimiser takes for converged is absolute
        size = float(np.abs(history).max())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for options in self._candidates(history):
                found = _fitted(history / size, options, self.problem.horizon)
                if found is not None and found[0] < best:
                    best, path = found[0], found[1] * size
        return path

    def _candidates(self, history: np.ndarray) -> Iterator[dict[str, Any]]:
        """The arguments of each model that is tried."""
        season, positive = self.problem.season, bool((history > 0).all())
        trends = ("none", "damped") if self.config.trend == "auto" else (self.config.trend,)
        seasons: tuple[str, ...] = (self.config.seasonal,)
        if self.config.seasonal == "auto":
            seasons = ("none", "additive", "multiplicative")
        if season == 1 or len(history) < 2 * season:
            seasons = ("none",)
        elif not positive:
            seasons = tuple(dict.fromkeys("additive" if each == "multiplicative" else each for each in seasons))
        for trend in trends:
            for seasonal in seasons:
                yield {
                    "trend": None if trend == "none" else "add",
                    "damped_trend": trend == "damped",
                    "seasonal": None if seasonal == "none" else seasonal,
                    "seasonal_periods": None if seasonal == "none" else season,
                }


def _fitted(history: np.ndarray, options: dict[str, Any], horizon: int) -> tuple[float, np.ndarray] | None:
    """The criterion and the forecast `[horizon]` of one model; None where it cannot be fitted."""
    from statsmodels.tsa.holtwinters import ExponentialSmoothing

    try:
        fit = ExponentialSmoothing(history, initialization_method="heuristic", **options).fit()
        path = np.asarray(fit.forecast(horizon))
    except (ValueError, np.linalg.LinAlgError, ZeroDivisionError):
        return None
    # few steps leave the correction of the criterion undefined
    criterion = float(fit.aicc) if np.isfinite(fit.aicc) else float(fit.aic)
    return (criterion, path) if np.isfinite(path).all() and not np.isnan(criterion) else None


plugin = ModelPlugin(
    config=ETSConfig,
    build=ETS,
    example=ETSConfig(trend="none", seasonal="none"),
    outputs={"point"},
    lookback=enough_seasons,
)
