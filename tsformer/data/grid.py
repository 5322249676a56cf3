"""Where the rows of series stand in a count of steps: which lie on a frequency, and how many steps lack after each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from tsformer.data.step import DAY, LONGEST_CLOSURE, Step
from tsformer.data.wall import calendar, exists, from_passed, from_wall, passed, shown

Frequency = str | float

_UNCOUNTED = 2.0**53
"""Steps beyond which whole numbers are no longer exact."""


@dataclass(frozen=True)
class Grid:
    """Rows of series, one after another, in a count of steps.

    Attributes:
        frequency: the step; a number for times that are numbers.
        ordinals: int64 `[rows]`, in what `Step.ordinals` counts; whole steps from the first row for numbers.
        fits: bool `[rows]`, whether a row lies on the frequency at all.
        missing: int64 `[rows - 1]`, steps that lack between a row and the next one of its series; -1 where they are no
            whole number of steps apart, 0 from one series to the next and where days are closed.
        clocks: microseconds of the day `[rows]` at which a step of days stands; None for any other.
    """

    frequency: Frequency
    ordinals: np.ndarray
    fits: np.ndarray
    missing: np.ndarray
    clocks: np.ndarray | None = None

    @property
    def off(self) -> np.ndarray:
        """Rows that do not fit, or do not follow the row before them by whole steps: bool `[rows]`."""
        return ~self.fits | np.concatenate(([False], self.missing < 0))


def grid_of(times: pd.Index, offsets: np.ndarray, frequency: Frequency, *, closures: bool = True) -> Grid:
    """Lay a frequency over the ascending times of series.

    Args:
        times: `[rows]`, dates for a frequency that is text, numbers for one that is a number.
        offsets: int64 `[series + 1]`.
        closures: weekdays without a row are holidays, as long as no closure is longer than `LONGEST_CLOSURE`.
    """
    inside = inside_series(offsets)
    if not isinstance(times, pd.DatetimeIndex) or not isinstance(frequency, str):
        ordinals, missing = _counted(times.to_numpy(), offsets, inside, float(frequency))
        return Grid(frequency, ordinals, np.ones(len(times), dtype=bool), missing)
    step = Step.parse(frequency)
    ordinals, fits, clocks = stand(times, offsets, step)
    jumps, rest = np.divmod(np.diff(ordinals), step.span)
    missing = np.where(inside, jumps - 1, 0)
    missing[inside & ((rest != 0) | (jumps < 1))] = -1
    if step.closes and closures:
        missing[(missing > 0) & (missing <= LONGEST_CLOSURE)] = 0
    single = np.flatnonzero(missing == 1)
    if len(single) and not step.absolute:
        missing[single] = exists(step.days(ordinals[single] + step.span), times.tz)
    return Grid(frequency, ordinals, fits, missing, clocks)


def inside_series(offsets: np.ndarray) -> np.ndarray:
    """Whether each row but the last is followed by one of its own series, bool `[rows - 1]`."""
    inside = np.ones(max(int(offsets[-1]) - 1, 0), dtype=bool)
    inside[offsets[1:-1] - 1] = False
    return inside


def stand(times: pd.DatetimeIndex, offsets: np.ndarray, step: Step) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Ordinals and fits of rows as in `Grid`, and the time of day that each series keeps if the step is of days."""
    if step.absolute:
        return passed(times), np.ones(len(times), dtype=bool), None
    days, clock = np.divmod(shown(times), DAY)
    lengths = np.diff(offsets)
    starts = offsets[:-1][lengths > 0]
    clocks, keeps = np.repeat(clock[starts], lengths[lengths > 0]), np.ones(len(times), dtype=bool)
    uneven = np.unique(np.searchsorted(offsets, np.flatnonzero(clock != clocks), side="right") - 1)
    for part in (slice(int(offsets[series]), int(offsets[series + 1])) for series in uneven):
        wall = calendar(times[part])
        clocks[part], keeps[part] = wall.clock, wall.keeps_clock
    ordinals, fits = step.ordinals(days)
    return ordinals, fits & keeps, clocks


def missing_times(grid: Grid, times: pd.Index) -> tuple[np.ndarray, pd.Index]:
    """The times that lack: the row that each comes after `[times]`, and the times themselves, in order."""
    count = np.maximum(grid.missing, 0)
    after = np.repeat(np.arange(len(count)), count)
    nth = np.arange(len(after)) - np.repeat(np.cumsum(count) - count, count) + 1
    if not isinstance(times, pd.DatetimeIndex) or not isinstance(grid.frequency, str):
        values = times.to_numpy()
        between = values[after] + (values[after + 1] - values[after]) * (nth / (count[after] + 1))
        return after, pd.Index(np.rint(between).astype(values.dtype) if values.dtype.kind == "i" else between)
    step = Step.parse(grid.frequency)
    ordinals = grid.ordinals[after] + step.span * nth
    if grid.clocks is None:
        return after, from_passed(ordinals, times.tz)
    days = step.days(ordinals)
    there = exists(days, times.tz)
    return after[there], from_wall(days[there] * DAY + grid.clocks[after[there]], times.tz)


def _counted(values: np.ndarray, offsets: np.ndarray, inside: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Whole steps of numbers `[rows]` from the first of their series, and what lacks after each as in `Grid`."""
    lengths = np.diff(offsets)
    first = np.repeat(values[np.minimum(offsets[:-1], max(len(values) - 1, 0))], lengths)
    with np.errstate(over="ignore"):  # what is too far apart to count is far enough
        steps = np.diff(values)
        jumps = np.clip(np.rint(steps / step), -_UNCOUNTED, _UNCOUNTED)
        ordinals = np.clip(np.rint((values - first) / step), -_UNCOUNTED, _UNCOUNTED)
    # A thousandth of a step covers what a table's rounding does to numbers, and nothing that a user would notice.
    slack = 1e-3 * step + 4 * np.finfo(np.float64).eps * float(np.abs(values).max(initial=0.0))
    missing = np.where(inside, jumps - 1, 0).astype(np.int64)
    missing[inside & ((jumps < 1) | (np.abs(steps - jumps * step) > slack))] = -1
    return ordinals.astype(np.int64), missing
