"""What separates the cells of a text table: what splits its lines alike, and into values."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence

from tsformer.errors import UsageError
from tsformer.tables.markers import VALUES, kind_of

BLANKS = " "
"""Separator of tables that are aligned by blanks, however many."""

_SEPARATORS = (",", ";", "\t", "|")


def check_dialect(sep: str | None, decimal: str | None = None) -> str | None:
    """The separator as one character. Raises UsageError for options that make no sense."""
    if sep is not None:
        sep = {"tab": "\t", r"\t": "\t", "space": BLANKS}.get(sep, sep)
        if len(sep) != 1 or sep.isalnum() or sep in '\r\n"':
            raise UsageError(f"--data.sep {sep!r} cannot separate columns: one of , ; | tab or space")
    if decimal not in (None, ".", ","):
        raise UsageError(f"--data.decimal {decimal!r} is no decimal mark: . or ,")
    if decimal is not None and decimal == sep:
        raise UsageError(f"--data.sep and --data.decimal are both {sep!r}: give the right --data.sep, for example ';'")
    return sep


def find_separator(lines: Sequence[str]) -> str:
    """The separator of lines at the head of a table, comments left out; "," when they have one cell each."""
    scores = {sep: _score(_split(lines, sep)) for sep in _SEPARATORS}
    best = max(_SEPARATORS, key=lambda sep: scores[sep])
    if scores[best] > (0.0, 0.0):
        return best
    rows = [line.split() for line in lines if line.strip()]
    consistent, values = _score(rows)
    whole = bool(rows) and consistent >= 0.9 * (1 - 1 / max(len(rows[-1]), 1))
    return BLANKS if whole and len(rows[-1]) > 1 and values > 0.5 else ","


def _split(lines: Sequence[str], sep: str) -> list[list[str]]:
    try:
        return [row for row in csv.reader(lines, delimiter=sep, skipinitialspace=True) if any(row)]
    except csv.Error:  # a cell beyond the limit of the csv module
        return []


def _score(rows: Sequence[Sequence[str]]) -> tuple[float, float]:
    """How well rows go together, then how many of their cells are values.

    The share of rows with the usual number of cells counts, and more cells are better than fewer: where decimal commas
    stand between semicolons, both split rows alike, but not the line of names.
    """
    if not rows:
        return 0.0, 0.0
    width, usual = Counter(map(len, rows)).most_common(1)[0]
    if width < 2 or usual < 0.5 * len(rows):
        return 0.0, 0.0
    cells = [kind_of(cell) for row in rows[-20:] for cell in row]
    return usual / len(rows) * (1 - 1 / width), sum(kind in VALUES for kind in cells) / len(cells)
