"""Examples from Python: arrays of numbers, lists of series of unequal length, texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from tsformer.data.cells import LARGEST
from tsformer.data.ragged import ragged
from tsformer.data.sequences import Sequences, SequenceSchema
from tsformer.errors import DataError, UsageError

Layout = Literal["NTC", "NCT"]
"""The order of the axes of an array: examples, time, channels or examples, channels, time."""


def examples_from(data: Any, layout: Layout | None = None) -> Sequences:
    """Examples without labels; those that `tsformer.read` gave stay as they are.

    Args:
        data: texts; an array `[examples, time]`; a list of series `[time]` of any length; an array of three dimensions,
            or a list of arrays of two, in the layout. NaN = missing.
        layout: of what has channels.

    Raises:
        DataError, UsageError: what is wrong and where, in one line; examples are counted from 0.
    """
    if isinstance(data, Sequences):
        return data
    if layout not in (None, "NTC", "NCT"):
        raise UsageError(f"layout is 'NTC' (examples, time, channels) or 'NCT', not {layout!r}")
    if isinstance(data, str | bytes | dict) or not hasattr(data, "__len__"):
        raise UsageError(
            f"X is an array, a list of series or texts, or what tsformer.read gives, not {type(data).__name__}"
        )
    if hasattr(data, "toarray"):
        raise UsageError("X is a sparse matrix: give X.toarray()")
    items = list(data.to_numpy() if isinstance(data, pd.DataFrame | pd.Series) else data)
    if not items:
        raise DataError("X has no examples")
    if any(isinstance(item, str) for item in items):
        return Sequences(SequenceSchema(text="text"), _ids(items), texts=_texts(items))
    arrays = _with_channels([_numbers(item, place) for place, item in enumerate(items)], layout)
    width = arrays[0].shape[1]
    channels = ("value",) if width == 1 else tuple(f"channel_{number}" for number in range(1, width + 1))
    return Sequences(SequenceSchema(channels=channels), _ids(items), series=ragged(arrays, np.float64))


def _ids(items: Sequence[Any]) -> tuple[str, ...]:
    return tuple(str(number) for number in range(len(items)))


def _texts(items: Sequence[Any]) -> tuple[str, ...]:
    for place, item in enumerate(items):
        if not isinstance(item, str):
            raise DataError(f"X[{place}] is no text but {item!r}: complete or remove it")
    return tuple(map(str, items))


def _numbers(item: Any, place: int) -> np.ndarray:
    """One series as float64, `[time]` or two axes; NaN where a mask says that a value is missing."""
    kind = np.asarray(item).dtype.kind if isinstance(item, np.ndarray) else ""
    if kind in "cmM" and kind:
        raise DataError(f"X[{place}] holds {item.dtype} values: numbers are real ones")
    if isinstance(item, np.ma.MaskedArray):
        item = np.where(np.ma.getmaskarray(item), np.nan, item.data)
    try:
        values = np.asarray(item, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(
            f"X[{place}] holds something that is no number; texts are given one for each example, a column of a table"
        ) from None
    if values.ndim not in (1, 2):
        found = "one number" if values.ndim == 0 else f"an array {values.shape}"
        raise DataError(f"X[{place}] is {found}, not a series: X is [examples, time], or has channels and a layout")
    if not values.size:
        raise DataError(f"X[{place}] has no steps: remove it")
    return values


def _with_channels(arrays: list[np.ndarray], layout: Layout | None) -> list[np.ndarray]:
    """All series as `[time, channels]`, checked."""
    axes = arrays[0].ndim
    if axes == 2 and layout is None:
        rows, columns = arrays[0].shape
        raise UsageError(
            f"X[0] has the shape {(rows, columns)}: give layout='NTC' if that is {rows} step(s) of {columns} "
            f"channel(s), layout='NCT' if it is {rows} channel(s) of {columns} step(s), as in aeon and sktime"
        )
    found: list[np.ndarray] = []
    for place, values in enumerate(arrays):
        if values.ndim != axes:
            raise DataError(f"X[{place}] has {values.ndim} axes, X[0] has {axes}")
        values = values[:, None] if axes == 1 else values.T if layout == "NCT" else values
        if found and values.shape[1] != found[0].shape[1]:
            said = f" by layout={layout!r}" if axes == 2 else ""
            raise DataError(f"X[{place}] has {values.shape[1]} channel(s){said}, X[0] has {found[0].shape[1]}")
        bad = np.argwhere(np.abs(values) > LARGEST)
        if len(bad):
            step, channel = bad[0].tolist()
            raise DataError(
                f"X[{place}] holds {values[step, channel]:g} at step {step}, channel {channel} (counted from 0): only "
                "NaN stands for a missing value"
            )
        found.append(values)
    return found
