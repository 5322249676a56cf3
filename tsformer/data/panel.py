"""The panel: many series in one contiguous array with offsets, and the schema of the table that they came from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from tsformer.data.clock import check_format
from tsformer.data.frequency import normalise
from tsformer.data.table_options import TableOptions
from tsformer.errors import UsageError
from tsformer.findings import Finding


@dataclass(frozen=True)
class Schema:
    """The user's table: column names, frequency, time zone and the way that times are written.

    Attributes:
        targets: names of the target columns, in channel order.
        time: name of the time column; None when the rows are only in order.
        id: name of the column that tells series apart; None for a single series.
        past_covariates, future_covariates: names of further numeric columns.
        frequency: a pandas offset alias ("D", "MS", "B", "15min"), a number for a numeric time column, None if unknown.
        zone: time zone of a datetime column, None for local time.
        time_format: `strftime` format in which the user's file writes times, with %3f for milliseconds; None for
            datetime columns in memory.
        text: name of the column of texts; None when there is none.
        id_columns: the columns that tell series apart together, joined in `id` as `data.identity` does; none where
            `id` is a column of the table.
        time_columns: the columns of which `time` is made, a date and an hour; none where it is a column of the table.
        read_format: format of these columns joined by blanks, for `time_format` writes the time as one.
        static_covariates: columns that hold one value for each series, numbers or words.
        calendar: features of the time that a model knows ahead, see `data.calendar`.
        holidays: country or exchange whose holidays are among them, and which steps of weekdays leave out.
        decimal: decimal mark of the table, "." or ",", where new rows leave it open; "" where it is open here, too.
        policies: in JSON what was said of the table beyond its columns, see `TableOptions.policies`.
    """

    targets: tuple[str, ...]
    time: str | None = None
    id: str | None = None
    past_covariates: tuple[str, ...] = ()
    future_covariates: tuple[str, ...] = ()
    frequency: str | float | None = None
    zone: str | None = None
    time_format: str | None = None
    text: str | None = None
    id_columns: tuple[str, ...] = ()
    static_covariates: tuple[str, ...] = ()
    calendar: tuple[str, ...] = ()
    holidays: str | None = None
    time_columns: tuple[str, ...] = ()
    decimal: str = ""
    read_format: str | None = None
    policies: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """Numeric columns in the order of `Panel.values`."""
        return self.targets + self.past_covariates + self.future_covariates

    def to_json(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Schema:
        """Raises TypeError or ValueError when the document is not a schema."""
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in document.items()}
        schema = cls(**fields)
        words = (*_named(schema), schema.zone, schema.time_format, schema.read_format, schema.holidays)
        names = (*schema.columns, *schema.id_columns, *schema.time_columns, *schema.static_covariates, *schema.calendar)
        frequency = schema.frequency
        named = all(isinstance(name, str) for name in names) and all(isinstance(word, str | None) for word in words)
        named = named and schema.decimal in ("", ".", ",")
        TableOptions.model_validate(schema.policies)
        if not named or isinstance(frequency, bool) or not isinstance(frequency, str | int | float | None):
            raise ValueError("the schema does not hold names and a frequency")
        _check_calendar(schema)
        return schema


def _named(schema: Schema) -> tuple[str | None, ...]:
    return schema.time, schema.id, schema.text


def _check_calendar(schema: Schema) -> None:
    """Raises ValueError when frequency, zone or way of writing times are none."""
    if isinstance(schema.frequency, int | float) and not (math.isfinite(schema.frequency) and schema.frequency > 0):
        raise ValueError(f"the frequency is {schema.frequency}")
    try:
        normalise(schema.frequency)
        if schema.zone is not None:
            pd.Timestamp(0, tz=schema.zone)
        for time_format in (schema.time_format, schema.read_format):
            if time_format is not None:
                check_format(time_format)
    except (KeyError, UsageError) as error:
        raise ValueError(f"the schema's frequency, zone or times cannot be: {error}") from None


@dataclass(frozen=True)
class Defaults:
    """What suits the data where the user says nothing; None leaves it to the general rule."""

    lookback: int | None = None
    horizon: int | None = None
    stride: int | None = None
    season: int | None = None


@dataclass(frozen=True)
class Panel:
    """Series one after another. Raises ValueError or TypeError when the parts do not fit together.

    Attributes:
        values: float64 `[rows, columns]`: targets, then past covariates, then future covariates. All finite, or NaN
            where a value is missing, if the panel is masked.
        offsets: int64 `[series + 1]`; series i is rows `offsets[i]:offsets[i + 1]`.
        times: the time of each row, a DatetimeIndex (aware when the schema has a zone) or numbers.
        ids: a name for each series, as text.
        schema: the user's table.
        defaults: windows that suit the data.
        notes: what was done on reading that the user should hear of, one line each.
        texts: the text of each row, "" where there is none; None without texts.
        masked: values that are missing are NaN, and hidden from models by masks; False promises that there are none.
        breaks: int64, rows at which a new stretch begins inside a series, ascending: between it and the row before
            time is missing, so that no window holds both. Empty where series have no gaps.
        static: a row for each series in the order of `ids`, a column for each of the schema's static covariates; None
            without.
    """

    values: np.ndarray
    offsets: np.ndarray
    times: pd.Index
    ids: tuple[str, ...]
    schema: Schema
    defaults: Defaults = field(default_factory=Defaults)
    notes: tuple[Finding | str, ...] = ()
    texts: tuple[str, ...] | None = None
    masked: bool = False
    breaks: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    static: pd.DataFrame | None = None

    def __post_init__(self) -> None:
        if self.values.dtype != np.float64 or not self.values.flags["C_CONTIGUOUS"]:
            raise TypeError("Panel.values must be a contiguous float64 array")
        if self.values.ndim != 2:
            raise ValueError(f"Panel.values must be [rows, columns], not of shape {self.values.shape}")
        if self.offsets.ndim != 1 or self.offsets.dtype != np.int64:
            raise ValueError(f"Panel.offsets must be int64 [series + 1], not {self.offsets.dtype}")
        if len(self.offsets) < 2:
            raise ValueError("Panel has no series")
        if self.offsets[0] != 0 or (self.lengths < 1).any():
            raise ValueError("Panel.offsets must ascend from 0: a series without rows cannot be in it")
        if not self.schema.targets:
            raise ValueError("Panel has no target: its schema names none")
        rows, columns = self.values.shape
        if columns != len(self.schema.columns) or rows != len(self.times) or rows != self.offsets[-1]:
            raise ValueError(
                f"Panel does not fit together: values {self.values.shape}, {len(self.times)} times, "
                f"{len(self.schema.columns)} columns in the schema, last offset {self.offsets[-1]}"
            )
        if len(self.ids) != len(self.offsets) - 1:
            raise ValueError(f"Panel has {len(self.ids)} ids for {len(self.offsets) - 1} series")
        if (self.texts is None) != (self.schema.text is None):
            raise ValueError("Panel has texts of no name in its schema, or a name of texts that it has not")
        if self.texts is not None and len(self.texts) != rows:
            raise ValueError(f"Panel has {len(self.texts)} texts for {rows} rows")
        if not all(isinstance(text, str) for text in self.texts or ()):
            raise TypeError("Panel.texts must hold text only")
        self._check_stretches()
        self._check_static()
        named = (*_named(self.schema), *self.schema.columns)
        names = [name for name in (*named, *self.schema.static_covariates) if name is not None]
        for what, found in (("id", self.ids), ("column", names)):
            repeated = next((name for name, count in Counter(found).items() if count > 1), None)
            if repeated is not None:
                raise ValueError(f"Panel has the {what} {repeated!r} twice")

    def _check_stretches(self) -> None:
        if self.breaks.ndim != 1 or self.breaks.dtype != np.int64:
            raise ValueError(f"Panel.breaks must be int64 [breaks], not {self.breaks.dtype}")
        inside = (self.breaks > 0) & (self.breaks < len(self.values)) & ~np.isin(self.breaks, self.offsets)
        if not inside.all() or (np.diff(self.breaks) <= 0).any():
            raise ValueError("Panel.breaks must ascend, each inside a series")
        if not self.masked and np.isnan(self.values).any():
            raise ValueError("Panel has values that are NaN: masked=True says that they stand for what is missing")

    def _check_static(self) -> None:
        if (self.static is None) != (not self.schema.static_covariates):
            raise ValueError("Panel has static covariates of no name in its schema, or names of some that it has not")
        if self.static is None:
            return
        if len(self.static) != len(self.ids) or tuple(self.static.columns) != self.schema.static_covariates:
            raise ValueError(
                f"Panel.static is {self.static.shape}, not a row for each of {len(self.ids)} series with the columns "
                f"{', '.join(self.schema.static_covariates)}"
            )

    @property
    def lengths(self) -> np.ndarray:
        """Rows of each series, int64 `[series]`."""
        return np.diff(self.offsets)

    def rows(self, series: int) -> slice:
        """Where a series lies in `values` and `times`."""
        return slice(int(self.offsets[series]), int(self.offsets[series + 1]))


def by_series(series: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """Group windows by their series: each series in `series` int64 `[windows]`, with the positions of its windows."""
    order = np.argsort(series, kind="stable")
    found, first = np.unique(series[order], return_index=True)
    return [(int(index), mine) for index, mine in zip(found, np.split(order, first[1:]), strict=True)]
