"""The Theta method (Assimakopoulos & Nikolopoulos 2000), winner of the M3 competition, from statsmodels.

Half the slope of a line through the lookback is added to simple exponential smoothing of it; a season that a test finds
(90 %) is taken out before and put back after, by ratios where all values are positive, else by differences. Fitted to
the lookback of each window by itself; it acts on transformed values.
"""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np

from tsformer.nn.local import Local, enough_seasons, require_statsmodels
from tsformer.plugin import Config, Field, ModelPlugin, Problem


class ThetaConfig(Config):
    """Options of the Theta method."""

    theta: float = Field(2.0, gt=1, le=100, description="of the line whose curvature is exaggerated")
    seasonal: Literal["auto", "additive", "multiplicative", "none"] = Field(
        "auto",
        description="how a season is taken out; auto: by ratios where all values are positive (--scale none keeps "
        "them so), else by differences",
    )


class Theta(Local):
    """Of a history without two seasons none is taken out; with fewer than four steps the last one is repeated."""

    def __init__(self, config: ThetaConfig, problem: Problem) -> None:
        require_statsmodels("theta")
        super().__init__(problem)
        self.config = config

    def one(self, history: np.ndarray) -> np.ndarray:
        from pandas import Series
        from statsmodels.tsa.forecasting.theta import ThetaModel

        horizon, season = self.problem.horizon, self.problem.season
        constant = np.repeat(history[-1], horizon)
        if len(history) < 4 or np.ptp(history) == 0.0:
            return constant
        positive = bool((history > 0).all())
        method = self.config.seasonal
        if method == "auto" or (method == "multiplicative" and not positive):
            method = "multiplicative" if positive else "additive"
        seasonal = method != "none" and season > 1 and len(history) >= 2 * season
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                fitted = ThetaModel(
                    Series(history),
                    period=season if seasonal else 1,
                    deseasonalize=seasonal,
                    use_test=seasonal,
                    method=method if seasonal else "auto",
                ).fit()
                path = np.asarray(fitted.forecast(horizon, theta=self.config.theta))
            except (ValueError, np.linalg.LinAlgError):
                return constant
        return path if np.isfinite(path).all() else constant


plugin = ModelPlugin(config=ThetaConfig, build=Theta, example=ThetaConfig(), outputs={"point"}, lookback=enough_seasons)
