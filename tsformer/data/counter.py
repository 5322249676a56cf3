"""Times that are numbers: their step, and the numbers that come next."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd

from tsformer.data.irregular import refuse_gaps, refuse_steps
from tsformer.data.step import commonest


def numeric_step(values: np.ndarray) -> float:
    """The step of numbers `[rows]`, int for whole ones; raises DataError unless there is one throughout."""
    steps = np.diff(values)
    if values.dtype.kind == "i":
        step: float = commonest(steps)
        check_numbers(values, step)
        return step
    check_numbers(values, float(np.median(steps)))
    step = float(values[-1] - values[0]) / (len(values) - 1)
    short = float(f"{step:.10g}")
    # 0.09999999999999999 is 0.1; 1/60 stays what it is.
    return short if abs(short - step) * len(values) <= 1e-9 * step else step


def check_numbers(values: np.ndarray, step: float) -> None:
    """Raise DataError unless ascending numbers `[rows]` are one step apart."""
    steps = np.diff(values)
    jumps = np.rint(steps / step)
    # A thousandth of a step covers what a table's rounding does to numbers, and nothing that a user would notice.
    slack = 1e-3 * step + 4 * np.finfo(np.float64).eps * float(np.abs(values).max())
    if (jumps < 1).any() or (np.abs(steps - jumps * step) > slack).any():
        refuse_steps(pd.Index(values), step, np.ones(len(values), dtype=bool))
    if (jumps > 1).any():
        refuse_gaps(pd.Index(values), jumps.astype(np.int64) - 1, step)


def next_numbers(last: float, step: float, periods: int) -> np.ndarray:
    """The numbers after `last`, `[periods]`."""
    later = last + step * np.arange(1, periods + 1)
    places = max(-int(Decimal(repr(float(number))).as_tuple().exponent) for number in (last, step))
    # 0.2 + 0.1 is 0.3 in the user's table, not 0.30000000000000004; a sixtieth keeps all its digits.
    return np.round(later, places) if later.dtype.kind == "f" and places <= 12 else np.asarray(later)
