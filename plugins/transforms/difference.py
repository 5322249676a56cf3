"""Differences from one step to the next, which have no trend. Paths start at the last known value."""

import numpy as np

from tsformer.plugin import Config, Field, State, TransformPlugin


class DifferenceConfig(Config):
    """How often differences are taken."""

    order: int = Field(1, ge=1, le=3, description="times that differences are taken; 2 for differences of differences")


class Difference:
    """`x[t] - x[t-1]`, `order` times; the inverse cumulates as often."""

    pointwise = False
    takes_missing = True

    def __init__(self, config: DifferenceConfig) -> None:
        self.lost_rows = config.order

    def fit(self, rows: np.ndarray) -> State:
        return {}

    def forward(self, values: np.ndarray, state: State) -> np.ndarray:
        return np.diff(values, n=self.lost_rows, axis=0)

    def inverse(self, path: np.ndarray, state: State, anchor: np.ndarray) -> np.ndarray:
        for below in reversed(range(self.lost_rows)):
            last = np.diff(anchor, n=below, axis=-2)[..., -1:, :]
            path = last + np.cumsum(path, axis=-2)
        return path


plugin = TransformPlugin(config=DifferenceConfig, build=Difference, example=DifferenceConfig())
