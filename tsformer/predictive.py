"""What a model says of windows, in the user's units: points, and where asked for, quantiles and sample paths.

Forecasts, scores, backtests and calibrations all come through here, so that an interval means the same everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from tsformer.building import device_in_use
from tsformer.data.transforms import Chain, Transformed
from tsformer.data.windows import Windows
from tsformer.fitted import Fitted
from tsformer.nn.outputs import output_of
from tsformer.training.loop import PREDICTED_AT_ONCE, predictions


@dataclass(frozen=True)
class Ask:
    """What is asked for beside points.

    Attributes:
        levels: central intervals, in percent, ascending: (80.0, 95.0).
        paths: sample paths to return of each window.
        samples: paths to draw where quantiles have to be found from paths.
        seed: of what is drawn.
    """

    levels: tuple[float, ...] = ()
    paths: int = 0
    samples: int = 400
    seed: int = 0

    @property
    def probabilities(self) -> tuple[float, ...]:
        """Of the ends of all intervals, ascending: of 80 and 95 % 0.025, 0.1, 0.9, 0.975."""
        lower = sorted((100 - level) / 200 for level in self.levels)
        return (*lower, *(round(1 - p, 12) for p in reversed(lower)))


@dataclass(frozen=True)
class Predictive:
    """What a model says of windows, in the user's units.

    Attributes:
        point: float64 `[windows, horizon, targets]`.
        quantiles: float64 `[windows, horizon, targets, probabilities]`, ascending in the last axis; None when none are
            asked for, or the model says nothing of how values scatter.
        paths: float64 `[windows, paths, horizon, targets]`; None like `quantiles`.
    """

    point: np.ndarray
    quantiles: np.ndarray | None = None
    paths: np.ndarray | None = None


def predictive(
    fitted: Fitted,
    windows: Windows,
    data: Transformed,
    ask: Ask | None = None,
    *,
    chain: Chain | None = None,
    module: nn.Module | None = None,
    horizon: int | None = None,
) -> Predictive:
    """Forecast windows; nothing is checked for being finite.

    Args:
        windows: over what `data` became.
        data: the rows after the chain.
        ask: what is wanted beside points.
        chain: that made `data`; the fitted one when None.
        module: the fitted one when None.
        horizon: steps of the forecast that are kept; all when None.
    """
    ask, chain, module = ask or Ask(), chain or fitted.chain, module or fitted.module
    output = output_of(fitted.problem)
    points, quantiles = [], []
    probabilities = ask.probabilities if output.probabilistic else ()
    with fitted.settings.model.at_fault("prediction"):
        for prediction, _ in predictions(module, windows, device_in_use(module), PREDICTED_AT_ONCE):
            points.append(output.point(prediction).cpu().double())
            if probabilities:
                quantiles.append(output.quantiles(prediction.cpu().double(), probabilities))
    series, origins = windows.series.numpy(), windows.origins.numpy()

    def own_units(path: torch.Tensor) -> np.ndarray:
        return chain.inverse(path[:, :horizon].numpy(), data, series, origins)

    point = own_units(torch.cat(points))
    if not quantiles:
        return Predictive(point)
    each = torch.cat(quantiles).unbind(-1)
    return Predictive(point, np.sort(np.stack([own_units(path) for path in each], axis=-1), axis=-1))
