"""Percent and currency signs in a column: all cells are in one unit, or nobody can tell what they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from tsformer.data.cells import place
from tsformer.errors import DataError
from tsformer.findings import Finding

_SIGNS = {"USD": "$", "US$": "$", "EUR": "€", "GBP": "£"}


class Units:
    """The signs beside the numbers of a column, by the places of its distinct cells."""

    def __init__(self) -> None:
        self._places: dict[str, list[int]] = {}

    def add(self, sign: str | None, place: int) -> None:
        if sign:
            self._places.setdefault(_SIGNS.get(sign, sign), []).append(place)

    def check(self, values: np.ndarray, cells: Sequence[str], column: pd.Series, codes: np.ndarray, where: str) -> None:
        """Raise DataError where a currency stands beside another, or 0.03 beside 3%; $ need not be repeated.

        Args:
            values: of the distinct `cells` `[cells]`, NaN where one is missing.
            column: of the table, which names rows; `codes` `[rows]` are the places of its cells.
            where: what messages call the column.
        """
        if not self._places:
            return
        sign, *others = self._places
        if others:
            strange, how = self._places[others[0]][0], f"with another sign than {cells[self._places[sign][0]]!r}"
        elif sign == "%":
            bare = np.setdiff1d(np.flatnonzero(np.isfinite(values) & (values % 1 != 0)), self._places[sign])
            if not len(bare):
                return
            strange, how = int(bare[0]), "without the sign % that others have"
        else:
            return
        row = place(column.to_frame(), int((codes == strange).argmax()))
        remedy = "write the whole column in one unit, or choose other columns with --target"
        text = f"{where} mixes units, {cells[strange]!r} in {row} is written {how}: {remedy}"
        raise DataError(
            text, finding=Finding("units", text, "fault", str(column.name), row, None, cells[strange], remedy)
        )
