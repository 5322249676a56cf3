"""Whether single precision, in which models compute, still tells the rows of a column apart."""

from __future__ import annotations

import numpy as np

from tsformer.data.clock import show
from tsformer.data.panel import Panel
from tsformer.data.transforms import Chain, Transformed
from tsformer.errors import DataError

LOST = 4
"""A step between rows is lost when it is no longer than so many steps of a float32."""

NOISE = 1e-12
"""Steps shorter than this part of a value are rounding errors of the data, not steps."""


def check_precision(panel: Panel, chain: Chain, data: Transformed) -> None:
    """Refuse columns whose steps from row to row are lost after the transforms: one huge value does that to a scaler.

    Steps that a transform itself takes out (a differenced trend) are not lost: only those count that are too small
    beside the largest value of what goes into the last transform.

    Args:
        panel: what `data` was made of by `chain`.

    Raises:
        DataError: more than half of a column's steps are lost in some series; names the value that stands out.
    """
    before, offsets = data.inputs[-1] if data.inputs else (data.values, data.offsets)
    if len(before) != len(data.values):  # the last transform loses rows: it takes differences
        before, offsets = data.values, data.offsets
    if len(before) < 2:
        return
    starts = offsets[:-1]
    within = np.ones(len(before) - 1, dtype=bool)
    within[starts[1:] - 1] = False  # from one series to the next
    for column in range(before.shape[1]):
        size = np.abs(before[:, column])
        largest = np.repeat(np.maximum.reduceat(size, starts), np.diff(offsets))[:-1]
        steps = np.abs(np.diff(before[:, column]))
        real = within & (steps > NOISE * np.maximum(size[1:], size[:-1]))
        small = real & (steps < LOST * np.finfo(np.float32).eps * largest)
        if not small.any():
            continue
        changed = data.values[:, column]
        coarse = np.spacing(np.maximum(np.abs(changed[1:]), np.abs(changed[:-1])).astype(np.float32))
        lost = small & (np.abs(np.diff(changed)) <= LOST * coarse)
        # one row more than there are steps, so that a last series of one row has its place
        counts = (np.add.reduceat(np.append(what, False).astype(np.int64), starts) for what in (lost, real))
        share = np.subtract(*(weight * count for weight, count in zip((2, 1), counts, strict=True)))
        if (share > 0).any():
            raise _lost(panel, chain, np.flatnonzero(share > 0), column)


def _lost(panel: Panel, chain: Chain, series: np.ndarray, column: int) -> DataError:
    first = int(series[0])
    values = panel.values[panel.rows(first), column]
    away = np.abs(values - np.median(values))
    row = int(away.argmax())
    steps = np.abs(np.diff(values))
    typical = np.median(steps[steps > 0])
    whose = f"series {panel.ids[first]!r}: " if panel.schema.id else ""
    others = f" (so {len(series)} of {len(panel.ids)} series)" if len(panel.ids) > 1 else ""
    name, time = panel.schema.columns[column], show(panel.times[panel.rows(first).start + row])
    names = ", ".join(f"'{link.name}'" for link in chain.links)
    after = f" after {names}" if names else ""
    if away[row] * np.finfo(np.float32).eps < typical / LOST:
        return DataError(
            f"{whose}column {name!r} changes by {typical:.4g} from row to row beside values of {values[row]:.4g}: "
            f"single precision cannot tell these apart{after}; take --scale standard"
        )
    taken = [link.name for link in chain.links]
    remedies = [", or take --scale robust"] if "robust" not in taken else []
    if (values > 0).all() and "log" not in taken:
        remedies.append(", or take --transform log")
    return DataError(
        f"{whose}column {name!r} has the value {values[row]:.6g} at {time} (row {row + 1} of the series), so large "
        f"that single precision cannot tell the other rows apart{after}{others}: "
        f"correct that value{', or leave the series out' if panel.schema.id else ''}{''.join(remedies)}"
    )
