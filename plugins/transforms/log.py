"""The natural logarithm, for positive values whose changes are relative."""

import numpy as np

from tsformer.errors import InvalidValuesError
from tsformer.plugin import Config, State, TransformPlugin


class LogConfig(Config):
    """It has no options."""


class Log:
    """`ln x`."""

    pointwise = True
    lost_rows = 0
    takes_missing = True
    relative = True

    def fit(self, rows: np.ndarray) -> State:
        return {}

    def forward(self, values: np.ndarray, state: State) -> np.ndarray:
        bad = values <= 0
        if bad.any():
            remedy = "take asinh or yeo_johnson instead, or difference, or --transform none"
            raise InvalidValuesError(bad, "are not positive and have no logarithm", remedy)
        return np.log(values)

    def inverse(self, path: np.ndarray, state: State, anchor: np.ndarray) -> np.ndarray:
        return np.exp(path)


plugin = TransformPlugin(config=LogConfig, build=lambda config: Log(), example=LogConfig())
