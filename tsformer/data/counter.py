"""Times that are numbers: their step, and the numbers that come next."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from tsformer.data.step import commonest


def numeric_step(values: np.ndarray) -> float:
    """The step that most of ascending numbers `[rows]` take, int for whole ones; whether all do is not said."""
    steps = np.diff(values)
    if values.dtype.kind == "i":
        return commonest(steps)
    rough = float(np.median(steps))
    with np.errstate(over="ignore"):
        count = float(np.rint(steps / rough).sum())
        step = float(values[-1] - values[0]) / max(count, 1.0)
    if not 0 < step < np.inf:  # numbers too far apart to compute with
        return rough
    short = float(f"{step:.10g}")
    # 0.09999999999999999 is 0.1; 1/60 stays what it is.
    return short if abs(short - step) * len(values) <= 1e-9 * step else step


def next_numbers(last: float, step: float, periods: int) -> np.ndarray:
    """The numbers after `last`, `[periods]`."""
    later = last + step * np.arange(1, periods + 1)
    places = max(-int(Decimal(repr(float(number))).as_tuple().exponent) for number in (last, step))
    # 0.2 + 0.1 is 0.3 in the user's table, not 0.30000000000000004; a sixtieth keeps all its digits.
    return np.round(later, places) if later.dtype.kind == "f" and places <= 12 else np.asarray(later)
