"""Rows of a table by series and time, on their way to a panel."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tsformer.data.cells import place
from tsformer.data.clock import show
from tsformer.data.panel import Schema


@dataclass(frozen=True)
class Rows:
    """Series one after another, each in order of time.

    Attributes:
        frame: the table that they come from, for messages.
        source: what messages call it.
        schema: its columns.
        ids: `[series]`.
        offsets: int64 `[series + 1]`.
        times: `[rows]`.
        values: float64 `[rows, columns]`, NaN where one is missing.
        origin: int64 `[rows]`, where each row is in the frame; -1 for one that was filled in.
        fresh: bool `[rows]`, rows that begin a stretch after a gap.
    """

    frame: pd.DataFrame
    source: str
    schema: Schema
    ids: tuple[str, ...]
    offsets: np.ndarray
    times: pd.Index
    values: np.ndarray
    origin: np.ndarray
    fresh: np.ndarray

    @property
    def series(self) -> np.ndarray:
        """The series of each row, int64 `[rows]`."""
        return np.repeat(np.arange(len(self.ids)), np.diff(self.offsets))

    @property
    def where(self) -> str:
        """What messages call the column of times."""
        return self.source if self.schema.time is None else f"{self.source}: column {self.schema.time!r}"

    def of(self, series: int) -> str:
        """What messages add for a series, if there are several."""
        return "" if self.schema.id is None else f", series {self.ids[series]!r}"

    def place(self, row: int) -> str:
        """What messages call a row."""
        at = int(self.origin[row])
        return place(self.frame, at) if at >= 0 else f"the row that was filled in at {show(self.times[row])}"

    def part(self, series: int) -> slice:
        """Where a series lies."""
        return slice(int(self.offsets[series]), int(self.offsets[series + 1]))

    def take(self, rows: np.ndarray) -> Rows:
        """Some of the rows, ascending positions; a series without any is left out."""
        lengths = np.bincount(self.series[rows], minlength=len(self.ids))
        return replace(
            self,
            ids=tuple(name for name, length in zip(self.ids, lengths, strict=True) if length),
            offsets=np.concatenate(([0], np.cumsum(lengths[lengths > 0]))).astype(np.int64),
            times=self.times[rows],
            values=self.values[rows],
            origin=self.origin[rows],
            fresh=self.fresh[rows],
        )

    def with_more(self, after: np.ndarray, times: pd.Index) -> Rows:
        """Rows without values put in: `[more]` times, each behind a row that `after` tells, ascending."""
        order = np.argsort(np.concatenate((np.arange(len(self.times)), after)), kind="stable")
        lengths = np.diff(self.offsets) + np.bincount(self.series[after], minlength=len(self.ids))
        empty = np.full((len(after), self.values.shape[1]), np.nan)
        return replace(
            self,
            offsets=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
            times=self.times.append(times)[order],
            values=np.concatenate((self.values, empty))[order],
            origin=np.concatenate((self.origin, np.full(len(after), -1)))[order],
            fresh=np.concatenate((self.fresh, np.zeros(len(after), dtype=bool)))[order],
        )
