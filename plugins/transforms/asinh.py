"""The inverse hyperbolic sine: as the logarithm for large values, of either sign, and linear near zero."""

from __future__ import annotations

import numpy as np

from tsformer.plugin import Config, Field, State, TransformPlugin


class AsinhConfig(Config):
    """Where linear ends and logarithmic begins."""

    scale: float | None = Field(
        None,
        gt=1e-100,
        le=1e100,
        description="values well below it stay linear (default: the mean absolute value of the training rows)",
    )


class Asinh:
    """`arcsinh(x / scale)`."""

    pointwise = True
    lost_rows = 0
    takes_missing = True

    def __init__(self, config: AsinhConfig) -> None:
        self.scale = config.scale

    def fit(self, rows: np.ndarray) -> State:
        mean = np.nanmean(np.abs(rows), axis=0)
        own = np.where(mean > 0, mean, 1.0)
        return {"scale": own.tolist() if self.scale is None else [self.scale] * rows.shape[1]}

    def forward(self, values: np.ndarray, state: State) -> np.ndarray:
        return np.arcsinh(values / np.array(state["scale"]))

    def inverse(self, path: np.ndarray, state: State, anchor: np.ndarray) -> np.ndarray:
        return np.sinh(path) * np.array(state["scale"][: path.shape[-1]])


plugin = TransformPlugin(config=AsinhConfig, build=Asinh, example=AsinhConfig())
