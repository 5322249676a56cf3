"""The power curve that Box-Cox and Yeo-Johnson share, and its inverse, which is defined for every number.

For `u > 0` the curve is `(u^p - 1) / p`, and `ln u` for `p = 0` (Box and Cox 1964, eq. 1). Here it is a function of
`t = ln u`, so that values near 1 lose no digits. It has an end in two cases, and a forecast may lie beyond it:

* `p > 0`: below `-1/p` there is no inverse. The limit is taken, `u = 0`.
* `p < 0`: above `-1/p` there is no inverse either, and the limit is infinite. The curve therefore follows its tangent
  beyond the largest training value, and with it has no end.
"""

from __future__ import annotations

import math
import warnings
from typing import Literal

import numpy as np

STRONGEST = math.log(1e4)
"""Exponents below 0 are kept so weak that `u^p` stays above 1e-4 in training: a flatter curve loses too many digits."""

NARROW = 1e-3
"""Rows within 0.1 % of each other look alike through every curve; nothing can be learned of `p`."""


def bend(t: np.ndarray, p: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """The curve at `t = ln u`.

    Args:
        t: logarithms, any shape.
        p: exponents, `t`'s shape or one that numpy stretches to it.
        largest: like `p`, the largest `t` of the training rows, where the tangent begins for `p < 0`.
    """
    within = np.minimum(t, np.where(p < 0, largest, np.inf))
    return _curve(within, p) + _slope(p, largest) * np.expm1(t - within)


def unbend(y: np.ndarray, p: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """`t` of which `bend` makes `y`; minus infinity, the logarithm of zero, below the end of a curve with `p > 0`."""
    within = np.minimum(y, np.where(p < 0, _curve(largest, p), np.inf))
    with np.errstate(divide="ignore"):
        t = np.where(p == 0, within, np.log1p(np.maximum(p * within, -1.0)) / np.where(p == 0, 1.0, p))
    return t + np.log1p((y - within) / _slope(p, largest))


def _curve(t: np.ndarray, p: np.ndarray) -> np.ndarray:
    return np.where(p == 0, t, np.expm1(p * t) / np.where(p == 0, 1.0, p))


def _slope(p: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """What the curve rises by for each step of `ln u` where its tangent begins; 1 where there is no tangent."""
    return np.exp(np.minimum(p * largest, 0.0))


def most_likely(values: np.ndarray, method: Literal["box-cox", "yeo-johnson"]) -> float:
    """Lambda by maximum likelihood (scikit-learn's PowerTransformer), 1 where the search finds none.

    Args:
        values: one channel's training rows `[time]`, not constant.
    """
    from sklearn.preprocessing import PowerTransformer  # a second of import that --help need not wait for

    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # of an optimum too far away, which the caller's bounds see to
            found = PowerTransformer(method=method, standardize=False).fit(values[:, None]).lambdas_[0]
    except (ValueError, RuntimeError):  # scipy brackets no maximum
        return 1.0
    return float(found) if math.isfinite(found) else 1.0
