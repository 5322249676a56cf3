"""Logarithmic returns, for prices: `ln(x[t] / x[t-1])`. Paths are brought back from the last observed price."""

import numpy as np

from tsformer.errors import InvalidValuesError
from tsformer.plugin import Config, State, TransformPlugin


class LogReturnConfig(Config):
    """It has no options."""


class LogReturn:
    """Differences of logarithms; the inverse cumulates them from the last observed price."""

    pointwise = False
    lost_rows = 1
    takes_missing = True
    relative = True

    def fit(self, rows: np.ndarray) -> State:
        return {}

    def forward(self, values: np.ndarray, state: State) -> np.ndarray:
        bad = values <= 0
        if bad.any():
            remedy = "take difference instead, or asinh, or --transform none"
            raise InvalidValuesError(bad, "are not positive and have no log return", remedy)
        return np.diff(np.log(values), axis=0)

    def inverse(self, path: np.ndarray, state: State, anchor: np.ndarray) -> np.ndarray:
        return anchor[..., -1:, :] * np.exp(np.cumsum(path, axis=-2))


plugin = TransformPlugin(config=LogReturnConfig, build=lambda config: LogReturn(), example=LogReturnConfig())
