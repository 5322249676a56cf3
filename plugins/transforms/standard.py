"""Zero mean and unit variance per channel, as scikit-learn's StandardScaler (a constant channel keeps scale 1)."""

import numpy as np

from tsformer.plugin import Config, State, TransformPlugin


class StandardConfig(Config):
    """It has no options."""


class Standard:
    """`(x - mean) / std` with the training rows' mean and population standard deviation."""

    pointwise = True
    lost_rows = 0

    def fit(self, rows: np.ndarray) -> State:
        from sklearn.preprocessing import StandardScaler  # a second of import that --help need not wait for

        scaler = StandardScaler().fit(rows)
        return {"mean": scaler.mean_.tolist(), "scale": scaler.scale_.tolist()}

    def forward(self, values: np.ndarray, state: State) -> np.ndarray:
        return (values - np.array(state["mean"])) / np.array(state["scale"])

    def inverse(self, path: np.ndarray, state: State, anchor: np.ndarray) -> np.ndarray:
        channels = path.shape[-1]  # targets come first; a path holds no covariates
        return path * np.array(state["scale"][:channels]) + np.array(state["mean"][:channels])


plugin = TransformPlugin(config=StandardConfig, build=lambda config: Standard(), example=StandardConfig(), scaler=True)
