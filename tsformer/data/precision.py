"""Whether single precision, in which models compute, still tells the rows of a column apart."""

from __future__ import annotations

import numpy as np

from tsformer.data.clock import show
from tsformer.data.panel import Panel
from tsformer.data.transforms import Chain, Transformed
from tsformer.errors import DataError
from tsformer.findings import Finding

LOST = 4
"""Values are lost when all of them lie within so many steps of a float32."""

NOISE = 1e-12
"""Values that differ by less than this part of their size are one value and the rounding errors of the data."""

OUTLIERS = 100
"""One row in so many, at least one, may stand out at either end of a series."""


def check_precision(panel: Panel, chain: Chain, data: Transformed) -> None:
    """Refuse columns whose values become all the same after the transforms: one huge value does that to a scaler.

    Judged by what lies between the outliers of a series, in what goes into the last transform and in what comes out.

    Args:
        panel: what `data` was made of by `chain`.

    Raises:
        DataError: the values of a column are lost in some series; names the value that stands out.
    """
    before, offsets = data.inputs[-1] if data.inputs else (data.values, data.offsets)
    if len(before) != len(data.values):  # the last transform loses rows: it takes differences
        before, offsets = data.values, data.offsets
    for column in range(before.shape[1]):
        spread, size = _middle(before[:, column], offsets)
        real = spread > NOISE * size
        spread, size = _middle(data.values[:, column], data.offsets)
        lost = np.flatnonzero(real & (size > 0) & (spread <= LOST * np.spacing(size.astype(np.float32))))
        if len(lost):
            raise _lost(panel, chain, lost, column)


def _middle(values: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Range and largest size of what lies between the outliers, `[series]` each, of values `[rows]`."""
    lengths = np.diff(offsets)
    low, high = np.zeros(len(lengths)), np.zeros(len(lengths))  # a series without any value has no size
    for length in np.unique(lengths[lengths > 0]):  # few, however many series there are
        mine = np.flatnonzero(lengths == length)
        ordered = np.sort(values[offsets[mine, None] + np.arange(length)], axis=1)  # NaN stands last
        real = (~np.isnan(ordered)).sum(axis=1)
        outside = np.minimum(np.maximum(1, real // OUTLIERS), (real - 1) // 2)
        for end, at in ((low, outside), (high, real - 1 - outside)):
            picked = np.take_along_axis(ordered, np.maximum(at, 0)[:, None], axis=1)[:, 0]
            end[mine] = np.where(real > 0, picked, 0.0)
    return high - low, np.maximum(np.abs(low), np.abs(high))


def _lost(panel: Panel, chain: Chain, series: np.ndarray, column: int) -> DataError:
    first = int(series[0])
    values = panel.values[panel.rows(first), column]
    away = np.abs(values - np.nanmedian(values))
    row = int(np.nanargmax(away))
    steps = np.abs(np.diff(values))
    typical = np.median(steps[steps > 0])
    whose = f"series {panel.ids[first]!r}: " if panel.schema.id else ""
    others = f" (so {len(series)} of {len(panel.ids)} series)" if len(panel.ids) > 1 else ""
    name, time = panel.schema.columns[column], show(panel.times[panel.rows(first).start + row])
    names = ", ".join(f"'{link.name}'" for link in chain.links)
    after = f" after {names}" if names else ""
    if away[row] * np.finfo(np.float32).eps < typical / LOST:
        text = (
            f"{whose}column {name!r} changes by {typical:.4g} from row to row beside values of {values[row]:.4g}: "
            f"single precision cannot tell these apart{after}; take --scale standard"
        )
        return DataError(text, finding=Finding("precision", text, "fault", column=name, remedy="take --scale standard"))
    taken = [link.name for link in chain.links]
    remedies = [", or take --scale robust"] if "robust" not in taken else []
    if not (values <= 0).any() and "log" not in taken:
        remedies.append(", or take --transform log")
    remedy = (
        f"correct that value, or hide it (--sentinel {values[row]:g})"
        f"{', or leave the series out' if panel.schema.id else ''}{''.join(remedies)}"
    )
    text = (
        f"{whose}column {name!r} has the value {values[row]:.6g} at {time} (row {row + 1} of the series), so large "
        f"that single precision cannot tell the other rows apart{after}{others}: {remedy}"
    )
    finding = Finding(
        "precision",
        text,
        "fault",
        column=name,
        row=f"row {row + 1} of the series",
        count=int((values == values[row]).sum()),
        example=f"{values[row]:g}",
        remedy=remedy,
        options={"data.sentinel": [float(values[row])], "data.missing": "mask"},
    )
    return DataError(text, finding=finding)
