"""The power of each channel's values that makes them most nearly normal, for positive ones (Box and Cox 1964)."""

import numpy as np

from tsformer.data.power import NARROW, STRONGEST, bend, most_likely, unbend
from tsformer.errors import InvalidValuesError
from tsformer.plugin import Config, State, TransformPlugin

LOWEST, HIGHEST = -1.0, 2.0  # as in R's forecast::BoxCox.lambda; stronger ones only fit outliers


class BoxCoxConfig(Config):
    """It has no options."""


class BoxCox:
    """`(u^lambda - 1) / lambda`, `ln u` for lambda = 0, with `u = x / geometric mean`.

    Lambda comes from scikit-learn's PowerTransformer, kept within [-1, 2]. The geometric mean changes neither it nor,
    but for a shift and a factor, the result: it keeps rounding errors small. Every forecast has an inverse, see
    `tsformer.data.power`: zero below the end of the curve for lambda > 0; for lambda < 0 the curve follows its tangent
    beyond the largest training value.
    """

    pointwise = True
    lost_rows = 0
    takes_missing = True

    def fit(self, rows: np.ndarray) -> State:
        t = np.log(_positive(rows))
        mean = np.nanmean(t, axis=0)
        t -= mean
        powers = [_power(channel) for channel in t.T]
        return {"lambda": powers, "log_mean": mean.tolist(), "largest": np.nanmax(t, axis=0).tolist()}

    def forward(self, values: np.ndarray, state: State) -> np.ndarray:
        t = np.log(_positive(values)) - np.array(state["log_mean"])
        return bend(t, np.array(state["lambda"]), np.array(state["largest"]))

    def inverse(self, path: np.ndarray, state: State, anchor: np.ndarray) -> np.ndarray:
        power, mean, largest = (np.array(state[name][: path.shape[-1]]) for name in ("lambda", "log_mean", "largest"))
        return np.exp(unbend(path, power, largest) + mean)


def _power(t: np.ndarray) -> float:
    largest = np.nanmax(t)
    if largest - np.nanmin(t) < NARROW:
        return 1.0
    return float(np.clip(most_likely(np.exp(t), "box-cox"), max(LOWEST, -STRONGEST / largest), HIGHEST))


def _positive(values: np.ndarray) -> np.ndarray:
    bad = values <= 0
    if bad.any():
        what = "are not positive and have no Box-Cox transform"
        raise InvalidValuesError(bad, what, "take yeo_johnson or asinh instead, or --transform none")
    return values


plugin = TransformPlugin(config=BoxCoxConfig, build=lambda config: BoxCox(), example=BoxCoxConfig())
