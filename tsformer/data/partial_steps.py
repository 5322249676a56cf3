"""Steps that hold several rows, and those at either end of a series that hold too few: a day that is not over yet."""

from __future__ import annotations

import numpy as np

from tsformer.data.sorted_rows import Rows
from tsformer.findings import Finding

WHOLE = 0.95
"""Share of the usual number of rows with which a step is whole: a day may have 23 hours."""
_USUAL = 0.1
"""Quantile of the rows in steps that counts as usual: months are unequal, and some steps have gaps."""


def without_partial(rows: Rows) -> tuple[Rows, tuple[Finding, ...]]:
    """Without the first and last step of each series where it holds fewer rows than its steps usually do.

    Args:
        rows: in order, with times that were brought to a step, so that rows of one step have the same time.
    """
    begins = np.flatnonzero(np.append(True, (rows.times[1:] != rows.times[:-1]) | (np.diff(rows.series) != 0)))
    counts, series = np.diff(np.append(begins, len(rows.times))), rows.series[begins]
    firsts = np.append(True, np.diff(series) != 0)
    edge = firsts | np.append(firsts[1:], True)
    if edge.all() or np.median(counts[~edge]) < 2:
        return rows, ()
    usual = np.quantile(counts[~edge], _USUAL)
    partial = edge & (counts < WHOLE * usual)
    gone = np.repeat(partial, counts)
    if not partial.any() or gone.all():
        return rows, ()
    first = int(gone.argmax())
    text = (
        f"left out {int(gone.sum())} row(s) of {int(partial.sum())} step(s) at either end that are not whole, the "
        f"first in {rows.place(first)}: steps usually hold {usual:g} rows or more"
    )
    finding = Finding("partial", text, column=rows.schema.time, row=rows.place(first), count=int(gone.sum()))
    return rows.take(np.flatnonzero(~gone)), (finding,)
