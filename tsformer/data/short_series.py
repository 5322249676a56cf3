"""Series and stretches between gaps that are too short for a window: what is done about them, and what is said."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tsformer.data.panel import Panel
from tsformer.data.selection import named, selected
from tsformer.data.split import long_enough
from tsformer.data.windows import Windows
from tsformer.errors import DataError
from tsformer.findings import Finding
from tsformer.settings import WindowConfig


def stretches(panel: Panel) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the longest and of the last stretch without a break in each series, int64 `[series]` each."""
    begins = np.union1d(panel.offsets[:-1], panel.breaks)
    lengths = np.diff(begins, append=panel.offsets[-1])
    first = np.searchsorted(begins, panel.offsets[:-1])
    return np.maximum.reduceat(lengths, first), lengths[np.append(first[1:], len(lengths)) - 1]


def without_short(panel: Panel, window: WindowConfig, lost: int) -> tuple[Panel, np.ndarray, tuple[str, ...]]:
    """The series that are long enough for a complete window, or can be padded.

    Args:
        lost: rows that transforms lose at the start of a series.

    Returns:
        The panel; int64 `[series]`, the rows that a window of each must see; notes on what was left out and padded.
        Where nothing would be left, or with `short` error, everything is as it was: the split says what is too short.
    """
    assert window.lookback is not None
    assert window.horizon is not None
    fewest = np.full_like(panel.lengths, window.lookback)
    if window.short == "error":
        return panel, fewest, ()
    stay, fewest = long_enough(panel.lengths, window.horizon, window.lookback, lost, window.short)
    if not stay.any():
        return panel, fewest, ()
    padded = stay & (fewest < window.lookback)
    notes = [f"left out {named(panel, ~stay)}, which are too short"] if not stay.all() else []
    if padded.any():
        notes.append(f"padded what windows see of {named(panel, padded)}, which are short")
    return selected(panel, stay), fewest[stay], tuple(notes)


def check_windows(parts: Mapping[str, Windows], panel: Panel) -> tuple[str, ...]:
    """Notes on the series that gaps and missing values leave without a window in some part.

    Args:
        parts: by name.

    Raises:
        DataError: there is no window at all in some part.
    """
    notes = []
    for name, windows in parts.items():
        if not len(windows):
            raise _no_windows(name, windows, panel)
        without = np.bincount(windows.series.numpy(), minlength=len(panel.ids)) == 0
        if without.any():
            notes.append(f"no {name} window in {named(panel, without)}, for gaps or missing values")
    return tuple(notes)


def _no_windows(part: str, windows: Windows, panel: Panel) -> DataError:
    lookback, horizon = windows.lookback, windows.horizon
    gaps = f" and no gap (the longest stretch has {int(stretches(panel)[0].max())})" if len(panel.breaks) else ""
    text = (
        f"there is no {part} window: none has {lookback} + {horizon} rows with a target to predict{gaps}; use a "
        "smaller --lookback or --horizon, or fill the gaps: --gaps fill"
    )
    smaller = {"window.lookback": max(1, lookback // 2), "window.horizon": max(1, horizon // 2)}
    options = smaller if gaps and lookback + horizon > 2 else {}
    remedy = "smaller windows: --lookback, --horizon"
    return DataError(text, finding=Finding("windows", text, "fault", remedy=remedy, options=options))
