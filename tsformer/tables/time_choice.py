"""Whether two columns of times tell the same."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tsformer.data.step import DAY, MICROSECONDS

_FARTHEST = DAY + 14 * MICROSECONDS["h"]
"""A moment in UTC is at most so far after the start of its day anywhere."""


def tell_the_same(one: pd.Index, other: pd.Index) -> bool:
    """Whether times `[rows]` are equal, always equally far apart, within one step, or the dates of the first."""
    if not (isinstance(one, pd.DatetimeIndex) and isinstance(other, pd.DatetimeIndex)):
        return False
    first, second = (times.tz_localize(None).as_unit("us") for times in (one, other))
    apart = np.asarray((second - first).asi8 // 10**3 if (second - first).unit == "ns" else (second - first).asi8)
    if (apart == apart[0]).all():
        return True
    if (second == second.normalize()).all() and (first != first.normalize()).any():
        return bool((np.abs(apart) <= _FARTHEST).all())
    steps = np.diff(np.unique(first.asi8))
    one_way = (apart >= 0).all() or (apart <= 0).all()
    return bool(one_way and len(steps) and np.abs(apart).max() <= np.median(steps))
