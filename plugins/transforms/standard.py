"""Zero mean and unit variance per channel, as scikit-learn's StandardScaler (a constant channel keeps scale 1)."""

import numpy as np

from tsformer.plugin import Config, State, TransformPlugin


class StandardConfig(Config):
    """It has no options."""


class Standard:
    """`(x - mean) / std` with the training rows' mean and population standard deviation."""

    pointwise = True
    lost_rows = 0
    takes_missing = True

    def fit(self, rows: np.ndarray) -> State:
        # By hand, for StandardScaler takes ten times as long, which counts with thousands of series.
        mean = np.nanmean(rows, axis=0)
        variance = np.nanmean((rows - mean) ** 2, axis=0)
        rounding = len(rows) * np.finfo(np.float64).eps  # what it may make of a constant channel, as in scikit-learn
        constant = variance <= rounding * variance + (rounding * mean) ** 2
        return {"mean": mean.tolist(), "scale": np.where(constant, 1.0, np.sqrt(variance)).tolist()}

    def forward(self, values: np.ndarray, state: State) -> np.ndarray:
        return (values - np.array(state["mean"])) / np.array(state["scale"])

    def inverse(self, path: np.ndarray, state: State, anchor: np.ndarray) -> np.ndarray:
        channels = path.shape[-1]  # targets come first; a path holds no covariates
        return path * np.array(state["scale"][:channels]) + np.array(state["mean"][:channels])


plugin = TransformPlugin(config=StandardConfig, build=lambda config: Standard(), example=StandardConfig(), scaler=True)
