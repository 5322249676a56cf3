"""The power of each channel's values that makes them most nearly normal, for any sign (Yeo and Johnson 2000)."""

import numpy as np

from tsformer.data.power import NARROW, STRONGEST, bend, most_likely, unbend
from tsformer.plugin import Config, State, TransformPlugin

LOWEST, HIGHEST = -1.0, 3.0  # the same for values and their negatives; stronger ones only fit outliers


class YeoJohnsonConfig(Config):
    """It has no options."""


class YeoJohnson:
    """Box-Cox of `1 + x` with lambda for `x >= 0`; minus Box-Cox of `1 - x` with `2 - lambda` below.

    Lambda comes from scikit-learn's PowerTransformer, kept within [-1, 3]. Every forecast has an inverse, see
    `tsformer.data.power`: on the side where the curve would have an end, it follows its tangent beyond the training
    value farthest from zero. Values much smaller than 1 hardly change; bring them to a sensible unit, or put a scaler
    first.
    """

    pointwise = True
    lost_rows = 0
    takes_missing = True

    def fit(self, rows: np.ndarray) -> State:
        above, below = (np.log1p(np.nanmax(np.maximum(side, 0.0), axis=0)) for side in (rows, -rows))
        powers = [_power(*channel) for channel in zip(rows.T, above, below, strict=True)]
        return {"lambda": powers, "largest_above": above.tolist(), "largest_below": below.tolist()}

    def forward(self, values: np.ndarray, state: State) -> np.ndarray:
        return np.copysign(bend(np.log1p(np.abs(values)), *_side(values, state)), values)

    def inverse(self, path: np.ndarray, state: State, anchor: np.ndarray) -> np.ndarray:
        return np.copysign(np.expm1(unbend(np.abs(path), *_side(path, state))), path)


def _side(values: np.ndarray, state: State) -> tuple[np.ndarray, np.ndarray]:
    """For each value the exponent and the largest training logarithm on its side of zero, which the curve keeps."""
    channels = values.shape[-1]  # targets come first; a path holds no covariates
    power, above, below = (np.array(state[k][:channels]) for k in ("lambda", "largest_above", "largest_below"))
    return np.where(values >= 0, power, 2.0 - power), np.where(values >= 0, above, below)


def _power(values: np.ndarray, above: float, below: float) -> float:
    spread, largest = np.nanmax(values) - np.nanmin(values), np.nanmax(np.abs(values))
    if spread < NARROW * (1.0 + largest):
        return 1.0
    lowest = max(LOWEST, -STRONGEST / above) if above > 0 else LOWEST
    highest = min(HIGHEST, 2.0 + STRONGEST / below) if below > 0 else HIGHEST
    return float(np.clip(most_likely(values, "yeo-johnson"), lowest, highest))


plugin = TransformPlugin(config=YeoJohnsonConfig, build=lambda config: YeoJohnson(), example=YeoJohnsonConfig())
