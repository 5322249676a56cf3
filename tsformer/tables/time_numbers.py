"""Numbers that are times: years, dates in digits, seconds since 1970, days of a spreadsheet, counters."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tsformer.data.stamps import UnreadableTimeError, read_written
from tsformer.tables.time_formats import formats_of

_EPOCHS = {"%s": 1.0, "%s%3f": 1e3, "%s%f": 1e6, "%s%f000": 1e9}
_UNITS = {"%s": "seconds", "%s%3f": "milliseconds", "%s%f": "microseconds", "%s%f000": "nanoseconds"}
_EARLIEST, _LATEST = 180000, 2.3e13
"""1800-00 and 2300 in digits."""
_SHEET = 20000, 75000
"""Days of a spreadsheet from 1954 to 2105."""


def are_whole(values: np.ndarray) -> bool:
    """Whether numbers `[rows]` are all finite and whole, however they are stored."""
    return bool(len(values) and np.isfinite(values).all() and (values == np.rint(values)).all())


def are_years(values: np.ndarray) -> bool:
    """Whether numbers `[rows]` may all be years."""
    return are_whole(values) and bool(values.min() >= 1000 and values.max() <= 3000)


def digit_format(values: np.ndarray, *, weeks: bool = False) -> str | None:
    """The format of numbers `[rows]` that are, every one, dates without separators (201701, 20201020), if they are.

    With `weeks` the last two of six digits are a week.
    """
    if not are_whole(values) or values.min() < _EARLIEST or values.max() > _LATEST:
        return None
    distinct = pd.Series(pd.unique(values).astype(np.int64)).astype(str).astype(object)
    if distinct.str.len().nunique() > 1:
        return None
    for time_format in ["%G%V"] if weeks and len(distinct.iloc[0]) == 6 else formats_of(str(distinct.iloc[0])):
        try:
            times = read_written(distinct, time_format)
        except UnreadableTimeError:
            continue
        if times.year.min() >= 1800 and times.year.max() <= 2200:
            return time_format
    return None


def reads_as_date(values: np.ndarray) -> bool:
    """Whether numbers `[rows]` are, every one of them, dates without separators."""
    return digit_format(values) is not None


def epoch_format(values: np.ndarray) -> str | None:
    """The format of numbers `[rows]` that count from 1970 on, if they may all be times between 1980 and 2100."""
    if not len(values) or not np.isfinite(values).all():
        return None
    first, last = float(values.min()), float(values.max())
    found = next((f for f, size in _EPOCHS.items() if 3.1e8 * size <= first and last <= 4.2e9 * size), None)
    if found is None or are_whole(values):
        return found
    return "%s.%f" if found == "%s" else None


def epoch_unit(time_format: str) -> str:
    """What a format from `epoch_format` counts."""
    return _UNITS.get(time_format, "seconds")


def may_be_sheet_days(values: np.ndarray) -> bool:
    """Whether numbers `[rows]` may all be days as spreadsheets count them, 44197 for 2021-01-01."""
    return are_whole(values) and bool(values.min() >= _SHEET[0] and values.max() <= _SHEET[1])


def is_monotonic(values: np.ndarray) -> bool:
    """Whether numbers `[rows]`, three at least, only rise, or only fall."""
    steps = np.diff(values)
    return len(steps) > 1 and bool((steps > 0).all() or (steps < 0).all())


def is_counter(values: np.ndarray, *, several: bool) -> bool:
    """Whether numbers `[rows]` count in one step; with `several` also those of several series in one table."""
    steps = np.diff(values)
    steps = -steps if (steps <= 0).all() else steps
    ahead, other = steps[steps > 0], steps[steps <= 0]
    if len(ahead) < 2 or np.ptp(ahead) > 1e-3 * ahead.min():
        return False
    # By time (0, 0, 1, 1, 2, 2), or one series after another (0, 1, 2, 0, 1, 2); 20, 21, 20, 21 is a measurement.
    one_by_one = len(ahead) > len(steps) / 2 and (other <= -1.9 * ahead.min()).all()
    return not len(other) or (several and bool((other == 0).all() or one_by_one))
