"""Some series of a panel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tsformer.data.panel import Panel


def selected(panel: Panel, keep: np.ndarray) -> Panel:
    """The panel of those series that a mask, boolean `[series]`, keeps: one at least."""
    if keep.all():
        return panel
    rows = np.repeat(keep, panel.lengths)
    places = np.cumsum(rows) - 1
    return replace(
        panel,
        values=np.ascontiguousarray(panel.values[rows]),
        offsets=np.concatenate([[0], np.cumsum(panel.lengths[keep])]).astype(np.int64),
        times=panel.times[rows],
        ids=tuple(name for name, kept in zip(panel.ids, keep, strict=True) if kept),
        texts=None if panel.texts is None else tuple(np.array(panel.texts, dtype=object)[rows]),
        breaks=places[panel.breaks[rows[panel.breaks]]],
        static=None if panel.static is None else panel.static[keep].reset_index(drop=True),
    )
