"""Each channel's training range becomes [0, 1] or another range, as with scikit-learn's MinMaxScaler."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tsformer.plugin import Config, Field, State, TransformPlugin


class MinMaxConfig(Config):
    """What the training range becomes."""

    low: float = Field(0.0, ge=-1e6, le=1e6, description="what the smallest training value becomes")
    high: float = Field(1.0, ge=-1e6, le=1e6, description="what the largest training value becomes")

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        if self.low >= self.high:
            yield f"low must be less than high (got {self.low} and {self.high})"


class MinMax:
    """`low + (high - low) (x - min) / (max - min)`, which goes on outside the training range.

    A constant channel is only shifted. A range counts as none relative to the values, so that a channel's unit does not
    matter (scikit-learn takes every range below 2e-15 for none).
    """

    pointwise = True
    lost_rows = 0
    takes_missing = True

    def __init__(self, config: MinMaxConfig) -> None:
        self.low, self.high = config.low, config.high

    def fit(self, rows: np.ndarray) -> State:
        smallest = np.nanmin(rows, axis=0)
        spread = np.nanmax(rows, axis=0) - smallest
        rounding = 10 * np.finfo(np.float64).eps * np.nanmax(np.abs(rows), axis=0)
        scale = np.where(spread > rounding, spread / (self.high - self.low), 1.0)
        return {"min": smallest.tolist(), "scale": scale.tolist()}

    def forward(self, values: np.ndarray, state: State) -> np.ndarray:
        return self.low + (values - np.array(state["min"])) / np.array(state["scale"])

    def inverse(self, path: np.ndarray, state: State, anchor: np.ndarray) -> np.ndarray:
        channels = path.shape[-1]  # targets come first; a path holds no covariates
        return (path - self.low) * np.array(state["scale"][:channels]) + np.array(state["min"][:channels])


plugin = TransformPlugin(config=MinMaxConfig, build=MinMax, example=MinMaxConfig(), scaler=True)
