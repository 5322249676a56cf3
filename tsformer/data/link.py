"""One transform of the chain: a plugin's, held to what it promises, and kept away from what is missing."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from tsformer.data.carry import filled
from tsformer.errors import DivergedError, PluginError, at_fault
from tsformer.plugin import State, Transform

STAND_IN = 1.0
"""What a channel without any value is taken for in a fit: a constant within the domain of logarithms, too."""


@dataclass(frozen=True)
class Link:
    """One transform of the chain.

    A transform that `takes_missing` is given NaN where values are missing, but never a channel that has none at all.
    For any other one the last value before, or the first after, takes the place of one that is missing.

    Attributes:
        name: the plugin's name.
        transform: what its `build` returned.
        columns: the columns of the panel that it changes, `(start, stop)`.
    """

    name: str
    transform: Transform
    columns: tuple[int, int]

    def __str__(self) -> str:
        return f"transform '{self.name}'"

    @property
    def takes_missing(self) -> bool:
        return getattr(self.transform, "takes_missing", False) is True

    @property
    def relative(self) -> bool:
        return getattr(self.transform, "relative", False) is True

    @property
    def anchor_step(self) -> int:
        """How many rows earlier stands what an anchor that is missing is taken from: 1, or a season."""
        return int(getattr(self.transform, "anchor_step", 1))

    def fit(self, rows: np.ndarray) -> State:
        """The state of training rows `[time, channels]`, as it will come back from a run folder.

        Raises:
            InvalidValuesError: values outside the domain.
        """
        with at_fault(self, "fit"), np.errstate(all="ignore"):
            return self._plain(self.transform.fit(self._given(rows)))

    def forward(self, rows: np.ndarray, state: State) -> np.ndarray:
        """`[time, channels]` to `[time - lost_rows, channels]`, NaN where the value of that step is missing.

        Raises:
            InvalidValuesError: values outside the domain.
        """
        lost = self.transform.lost_rows
        with at_fault(self, "forward"), np.errstate(all="ignore"):
            changed = self.transform.forward(self._given(rows), state)
        changed = self._promised("forward", changed, (len(rows) - lost, rows.shape[1]))
        missing = np.isnan(rows[lost:])
        return np.where(missing, np.nan, changed) if missing.any() else changed

    def may_lack(self, rows: np.ndarray) -> np.ndarray:
        """Where `forward` of these rows may give NaN: where one of the values that a result is made of is missing."""
        lost, missing = self.transform.lost_rows, np.isnan(rows)
        if not self.takes_missing or not lost:
            return missing[lost:]
        counts = np.cumsum(np.concatenate([np.zeros_like(missing[:1]), missing]), axis=0)
        return counts[lost + 1 :] > counts[: -lost - 1]

    def inverse(self, path: np.ndarray, state: State, anchor: np.ndarray, *, unbounded: bool = False) -> np.ndarray:
        """Paths `[windows, horizon, channels]` brought back.

        Args:
            unbounded: what is too large is infinite in the result.

        Raises:
            PluginError: finite values become NaN.
            DivergedError: finite values are too large for the inverse.
        """
        with at_fault(self, "inverse"), np.errstate(all="ignore"):
            back = self.transform.inverse(path.copy(), state, anchor)
        values = self._promised("inverse", back, path.shape)
        if np.isfinite(values).all():
            return values
        # a window's steps may depend on each other; what was not finite before is no fault of the transform
        finite = np.isfinite(path).all(axis=(1, 2))
        if np.isnan(values[finite]).any():
            raise PluginError(f"{self}: inverse returned NaN for finite values")
        if not unbounded and not np.isfinite(values[finite]).all():
            raise DivergedError(
                f"the model predicts values so large that the {self} cannot bring them back to the data's unit: "
                "are the rows on the scale of those that it was fitted on? A smaller --lr may help, or another "
                "transform"
            )
        return values

    def _given(self, rows: np.ndarray) -> np.ndarray:
        """A copy of rows, as the transform takes them."""
        missing = np.isnan(rows)
        if not missing.any():
            return rows.copy()
        return np.where(missing.all(axis=0), STAND_IN, rows) if self.takes_missing else filled(rows, STAND_IN)

    def _promised(self, method: str, values: object, shape: tuple[int, ...]) -> np.ndarray:
        """A plugin's array, refused when it is none of the promised shape: numpy would stretch it silently."""
        if not isinstance(values, np.ndarray):
            raise PluginError(f"{self}: {method} returned {type(values).__name__}, not an array {shape}")
        if values.shape != shape or values.dtype.kind not in "fiu":
            got = f"an array {values.shape} of {values.dtype}"
            raise PluginError(f"{self}: {method} returned {got}, not an array {shape} of numbers")
        return values

    def _plain(self, state: object) -> State:
        """A state as it will come back from a run folder."""
        try:
            plain = json.loads(json.dumps(state, allow_nan=False, ensure_ascii=False).encode())
        except (TypeError, ValueError) as error:
            raise PluginError(f"{self}: fit returned what is not plain JSON ({error})") from None
        if not isinstance(plain, dict):
            raise PluginError(f"{self}: fit returned {type(state).__name__}, not a dictionary")
        return plain
