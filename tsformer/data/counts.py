"""Whether targets are counts: whole numbers from 0 on, as a distribution of counts needs them."""

from __future__ import annotations

import numpy as np

from tsformer.data.clock import show
from tsformer.data.panel import Panel
from tsformer.errors import DataError
from tsformer.findings import Finding

MOST = 2.0**24
"""Above it single precision, in which models compute, skips whole numbers."""


def check_counts(panel: Panel) -> None:
    """Raises DataError when a target has values that are no counts; names column, row, date and how many there are."""
    for column, name in enumerate(panel.schema.targets):
        values = panel.values[:, column]
        bad = ~np.isnan(values) & ((values < 0) | (values > MOST) | (values != np.round(values)))
        if not bad.any():
            continue
        row = int(np.argmax(bad))
        series = int(np.searchsorted(panel.offsets, row, side="right")) - 1
        where = f"row {row - int(panel.offsets[series]) + 1} of the series"
        whose = f"series {panel.ids[series]!r}: " if panel.schema.id else ""
        text = (
            f"{whose}column {name!r} has {int(bad.sum())} value(s) that are no whole numbers from 0 to {MOST:,.0f}, "
            f"first {values[row]:.10g} at {show(panel.times[row])} ({where}); output negative_binomial is for counts: "
            "take --train.output student_t or quantiles"
        )
        raise DataError(
            text,
            finding=Finding(
                "counts",
                text,
                "fault",
                column=name,
                row=where,
                count=int(bad.sum()),
                example=f"{values[row]:.10g}",
                remedy="take --train.output student_t or quantiles",
            ),
        )
