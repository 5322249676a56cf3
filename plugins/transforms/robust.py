"""Zero median and unit interquartile range per channel, as with scikit-learn's RobustScaler: outliers do not matter."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tsformer.plugin import Config, Field, State, TransformPlugin


class RobustConfig(Config):
    """Between which quantiles the spread is taken."""

    low: float = Field(25.0, ge=0, le=100, description="lower quantile of the range that becomes 1, in percent")
    high: float = Field(75.0, ge=0, le=100, description="upper quantile of it, in percent")

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        if self.low >= self.high:
            yield f"low must be less than high (got {self.low} and {self.high})"


class Robust:
    """`(x - median) / (upper quantile - lower quantile)` of the training rows.

    Where the two quantiles are equal, as in a channel that is zero on most days, the standard deviation takes the
    place of their distance (scikit-learn leaves such a channel unscaled); a constant channel is only shifted.
    """

    pointwise = True
    lost_rows = 0
    takes_missing = True

    def __init__(self, config: RobustConfig) -> None:
        self.quantiles = config.low, 50.0, config.high

    def fit(self, rows: np.ndarray) -> State:
        lower, median, upper = np.nanpercentile(rows, self.quantiles, axis=0)
        largest = np.nanmax(np.abs(rows), axis=0)
        rounding = 10 * np.finfo(np.float64).eps * largest
        # of values about 1, for squares of very small ones are zero
        deviation = largest * np.nanstd(rows / np.where(largest > 0, largest, 1.0), axis=0)
        scale = np.where(upper - lower > rounding, upper - lower, deviation)
        return {"median": median.tolist(), "scale": np.where(scale > rounding, scale, 1.0).tolist()}

    def forward(self, values: np.ndarray, state: State) -> np.ndarray:
        return (values - np.array(state["median"])) / np.array(state["scale"])

    def inverse(self, path: np.ndarray, state: State, anchor: np.ndarray) -> np.ndarray:
        channels = path.shape[-1]  # targets come first; a path holds no covariates
        return path * np.array(state["scale"][:channels]) + np.array(state["median"][:channels])


plugin = TransformPlugin(config=RobustConfig, build=Robust, example=RobustConfig(), scaler=True)
