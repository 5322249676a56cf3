"""Times brought to a step: rows on it stay, rows beside it move to the nearest, rows between go back to its beginning.

Weeks, months, quarters and years are called by their own day: days of March are in the "MS" of 1 March and in the "ME"
of 31 March, but if most rows are on such days the others move to the nearest. A Saturday goes to the "B" of its Friday.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from tsformer.data.grid import Frequency, inside_series
from tsformer.data.irregular import span_in_words
from tsformer.data.months import weekday_of
from tsformer.data.step import DAY, Step, commonest
from tsformer.data.wall import calendar, from_passed, from_wall, passed, shown
from tsformer.errors import DataError


def brought_to(times: pd.Index, offsets: np.ndarray, frequency: Frequency) -> pd.Index:
    """The ascending times `[rows]` of series on a frequency, still ascending; several may become the same.

    Raises:
        DataError: the frequency is one of dates and the times are numbers, or the other way round.
    """
    if not len(times):
        return times
    if not isinstance(times, pd.DatetimeIndex):
        if isinstance(frequency, str):
            raise DataError(f"times are numbers, which do not go with --freq {frequency}: give the step as a number")
        values, first = times.to_numpy(), np.repeat(times.to_numpy()[offsets[:-1]], np.diff(offsets))
        return pd.Index((first + np.floor((values - first) / frequency + 0.5) * frequency).astype(values.dtype))
    if not isinstance(frequency, str):
        raise DataError(f"times are dates, which do not go with --freq {frequency:g}: 15min, h, D, W, MS ... are steps")
    step = Step.parse(frequency)
    return _absolute(times, offsets, step.span) if step.absolute else _by_days(times, offsets, step)


def said(before: pd.Index, after: pd.Index, frequency: Frequency) -> tuple[str, int]:
    """What was done to the times `[rows]` in words, and to how many."""
    if isinstance(before, pd.DatetimeIndex) and isinstance(after, pd.DatetimeIndex):
        moved = np.abs(passed(after) - passed(before))
        farthest = span_in_words(int(moved.max()))
    else:
        moved = np.abs(after.to_numpy() - before.to_numpy())
        farthest = f"{float(moved.max()):.6g}"
    count = int((moved > 0).sum())
    return f"{count} of {len(before)} times were brought to steps of {frequency}, by {farthest} at most", count


def _absolute(times: pd.DatetimeIndex, offsets: np.ndarray, span: int) -> pd.DatetimeIndex:
    at = passed(times)
    phases = at % span
    phase = commonest(phases)
    off = phases != phase
    if not off.any():
        return times
    steps = np.diff(at)[inside_series(offsets) & off[1:]]
    finer = len(steps) > 0 and 1.5 * float(np.median(steps)) < span
    if 2 * off.sum() >= len(at):
        full = int((at[0] - shown(times)[0]) % span)  # the full hour of the clock on the wall
        beside = np.abs((at - full + span // 2) % span - span // 2)
        if finer or np.quantile(beside, 0.95) <= span / 4:  # jitter around it, with no phase of its own
            phase = full
    moved = at - phase + (0 if finer else span // 2)
    return from_passed(moved // span * span + phase, times.tz)


def _by_days(times: pd.DatetimeIndex, offsets: np.ndarray, step: Step) -> pd.DatetimeIndex:
    wall = calendar(times)
    clock = wall.clock if 2 * wall.keeps_clock.sum() > len(times) else 0
    days = wall.days
    ordinals, fits = step.ordinals(days)
    alone = (np.diff(ordinals) > 0)[inside_series(offsets)].all()
    if step.unit == "W":
        ordinals = days + (int(step.phase or 0) - weekday_of(days)) % 7
    elif step.phase is not None:
        cycle = 12 if step.count % 12 == 0 else 3
        late = (ordinals - step.phase) % cycle
        ordinals = ordinals - late if step.unit.endswith("S") else ordinals + (-late) % cycle
    first = np.repeat(ordinals[offsets[:-1]], np.diff(offsets))
    begun = first + (ordinals - first) // step.span * step.span
    # A first weekday of the month that holidays put off is on its step as well.
    if alone and (fits & wall.keeps_clock).all() and (begun == ordinals).all():
        return times
    if 2 * fits.sum() > len(days) and step.unit != "D" and not step.open_weekdays:
        around = np.stack([begun - step.span, begun, begun + step.span])
        far = np.abs(step.days(around.reshape(-1)).reshape(around.shape) - days)
        begun = np.take_along_axis(around, far.argmin(axis=0)[None], axis=0)[0]
    return from_wall(step.days(begun) * DAY + clock, times.tz)
