"""The numbers of a table by their part: targets, what goes with them, what is known of each series, and the rest."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from tsformer.data.cells import listed, place
from tsformer.data.columns import is_time_name, kind_of, part_of_time, tells_time_again
from tsformer.data.table_options import TableOptions
from tsformer.errors import DataError
from tsformer.findings import Finding
from tsformer.tables.ids import may_be_id
from tsformer.tables.numbers import as_numbers, merged
from tsformer.tables.time_numbers import are_whole, is_counter, reads_as_date

_ROW_NUMBERS = {
    "no",
    "nr",
    "num",
    "number",
    "row",
    "rowid",
    "rowno",
    "rownum",
    "index",
    "idx",
    "id",
    "instant",
    "record",
}
_PARTS = ("year", "quarter", "month", "day", "hour", "minute")
_TURNS = {"Y": np.inf, "q": 3, "m": 11, "V": 51, "d": 27, "j": 364}
"""Parts of a time, as `part_of_time` names them, and how far apart two of them may be that follow each other."""
_SIX_DIGITS = 999_999
"""The largest number of six digits, which may well be a measurement though it reads as a month."""
_KINDS = {
    "text": "that are not numbers",
    "empty": "without a value",
    "unnamed": "without a name",
    "date": "of dates",
    "time": "that tell the time again (--target takes them)",
    "number": "that number the rows (--target takes them)",
    "static": "with one value for each series (--static-covariates takes them)",
    "constant": "with one and the same number throughout (--target takes them)",
}


@dataclass
class Columns:
    """The columns of a table as numbers, read with one decimal mark.

    Attributes:
        frame: a row for each time (and series).
        times: of each row, `[rows]`.
        codes: the series of each row, int64 `[rows]`.
        done: what was done to the cells, column by column, so far.
        said: which columns were left out, and why.
    """

    frame: pd.DataFrame
    times: pd.Index
    codes: np.ndarray
    options: TableOptions
    decimal: str
    source: str
    done: list[Finding] = field(default_factory=list)
    said: list[Finding] = field(default_factory=list)

    def numbers(self, name: str, *, named: bool) -> np.ndarray | None:
        """A column as float64 `[rows]`, NaN where a value is missing; None where it holds words.

        Raises:
            DataError: when a cell is no number, in a column of numbers or one that the user named.
        """
        found = as_numbers(self.frame[name], name, self.options, self.source, named=named, decimal=self.decimal)
        self.done.extend(found.notes)
        return found.values

    def named(self, name: str) -> np.ndarray:
        """A column that the user or the model names, float64 `[rows]`, NaN where a value is missing."""
        column = self.numbers(name, named=True)
        return np.full(len(self.frame), np.nan) if column is None else column

    def targets(self, taken: Collection[str]) -> dict[str, np.ndarray]:
        """The columns to forecast: those that the user names, else all numbers that are neither taken nor of no use.

        Raises:
            DataError: when there is none, or one cannot be taken.
        """
        if self.options.target:
            return {name: self.named(name) for name in self.options.target}
        chosen: dict[str, np.ndarray] = {}
        ignored: dict[str, list[str]] = {kind: [] for kind in _KINDS}
        for name in (column for column in self.frame.columns if column not in taken):
            values = self.numbers(name, named=False)
            kind = self._kind(name, values)
            if kind:
                ignored[kind].append(name)
            elif values is not None:
                chosen[name] = values
        for kind, flat in (("static", self._is_static), ("constant", _is_constant)):
            still = [name for name, values in chosen.items() if flat(values)]
            if len(still) < len(chosen):
                ignored[kind] = still
                chosen = {name: values for name, values in chosen.items() if name not in still}
        if not chosen:
            hint = ": name one with --target" if ignored["time"] else ""
            columns = listed(list(self.frame.columns))
            text = f"{self.source} has no column of numbers to forecast, it has {columns}{hint}"
            raise DataError(text, finding=Finding("no_numbers", text, "fault", remedy="--target" if hint else None))
        self.said += [
            Finding("ignored", f"ignored columns {_KINDS[kind]}: {listed(names)}", count=len(names))
            for kind, names in ignored.items()
            if names
        ]
        parted = [name for name in ignored["text"] if not self.codes.any() and may_be_id(self.frame[name])]
        if parted:
            text = (
                f"taken as one series, though words stand in blocks in {listed(parted)}: if they tell series apart, "
                f"--id {parted[0]}"
            )
            self.said.append(
                Finding("id", text, "doubt", column=parted[0], count=len(parted), remedy=f"--id {parted[0]}")
            )
        timely = [name for name, column in chosen.items() if is_time_name(name) and are_whole(column)]
        if timely:
            text = f"forecast like any other, though called like times: {listed(timely)} (--target chooses)"
            self.said.append(Finding("target", text, count=len(timely)))
        return chosen

    def covariates(self, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Columns that go with the targets, as numbers; true and false as 1 and 0.

        Raises:
            DataError: for a column of words, among others.
        """
        return {name: self.covariate(name) for name in names}

    def covariate(self, name: str) -> np.ndarray:
        flags = _flags(self.frame[name])
        if flags is not None:
            return flags
        try:
            return self.named(name)
        except DataError as error:
            if self.numbers(name, named=False) is not None:
                raise
            text = (
                f"{self.source}: column {name!r} holds words ({self.frame[name].dropna().iloc[0]!s}, ...), and a "
                "covariate is a number at each time: write a column of 0 and 1 for each word, or name it with "
                "--static-covariates if a series has one word throughout"
            )
            raise DataError(
                text, finding=replace(error.finding, text=text, options={}) if error.finding else None
            ) from None

    def told(self) -> list[Finding]:
        """What was done to cells, one note for all columns of a kind, and what was left out."""
        return [*merged(self.done), *self.said]

    def _kind(self, name: str, values: np.ndarray | None) -> str:
        """Why a column is not to be forecast; "" for one that is."""
        if values is None:
            return "text"
        if np.isnan(values).all():
            return "empty"
        if name.startswith("Unnamed: "):
            return "unnamed"
        if reads_as_date(values) and (values.max() > _SIX_DIGITS or self._is_in_order(values)):
            return "date"
        if _tells_time_again(self.times, name, values):
            return "time"
        return "number" if _plain(name) in _ROW_NUMBERS and is_counter(values, several=True) else ""

    def _is_in_order(self, values: np.ndarray) -> bool:
        """Whether numbers rise, or fall, from row to row of a series."""
        steps = np.diff(values)[np.diff(self.codes) == 0]
        return len(steps) > 1 and bool((steps >= 0).all() or (steps <= 0).all())

    def _is_static(self, values: np.ndarray) -> bool:
        """Whether numbers have one value in each of several series, and different ones among them."""
        if not len(self.codes) or self.codes.max() < 1 or _is_constant(values):
            return False
        return bool(pd.Series(values).groupby(self.codes).nunique().max() <= 1)


def static_table(columns: Columns, names: Sequence[str], ids: Sequence[str], id: str | None) -> pd.DataFrame:
    """One value for each series `[series, names]`, numbers or words, in the order of `ids`.

    Raises:
        DataError: when a column has several values in one series.
    """
    frame = columns.frame
    codes = np.zeros(len(frame), dtype=np.int64)
    if id is not None:
        codes = pd.Index(ids).get_indexer(pd.Index(frame[id].map(str)))
    table = pd.DataFrame(index=pd.Index(ids))
    for name in names:
        found = columns.numbers(name, named=False)
        cells = frame[name].astype(object).to_numpy() if found is None else found
        distinct = pd.DataFrame({"code": codes, "cell": cells})[codes >= 0].dropna().drop_duplicates()
        repeated = distinct["code"].duplicated().to_numpy()
        if repeated.any():
            row = int(distinct.index[int(repeated.argmax())])
            before = distinct["cell"][distinct["code"] == codes[row]].iloc[0]
            where = place(frame, row)
            text = (
                f"{columns.source}: static covariate {name!r} changes within series {ids[codes[row]]!r}, from {before} "
                f"to {cells[row]} in {where}: a number that changes belongs to --past-covariates or --future-covariates"
            )
            raise DataError(
                text, finding=Finding("static", text, "fault", column=name, row=where, example=str(cells[row]))
            )
        table[name] = distinct.set_index("code")["cell"].reindex(range(len(ids))).to_numpy(dtype=cells.dtype)
    return table


def _tells_time_again(times: pd.Index, name: str, values: np.ndarray) -> bool:
    """Whether numbers `[rows]` are times as well: a part of the dates that are known, or what the name makes likely."""
    if not isinstance(times, pd.DatetimeIndex):
        return tells_time_again(name, values)
    return kind_of(name, values) in ("years", "epoch", "counter") or _is_part_of(times, name, values)


def _is_part_of(times: pd.Index, name: str, values: np.ndarray) -> bool:
    """Whether numbers `[rows]` in a column of that name are the year, month, hour ... of the times, from any start."""
    plain = _plain(name)
    if not isinstance(times, pd.DatetimeIndex) or not are_whole(values):
        return False
    if plain == "time":  # perhaps the hour in another zone
        return bool(values.min() >= 0 and values.max() <= 24 and np.ptp(times.hour) > 0)
    if part_of_time(name) is None and "week" not in plain and plain not in ("dow", "wday"):
        return False
    away = [values - getattr(times, part).to_numpy() for part in _PARTS]
    week = (values - times.day_of_week.to_numpy()) % 7
    return any(bool((since == since[0]).all()) for since in (*away, week)) or _is_nearly(times, name, values)


def _is_nearly(times: pd.DatetimeIndex, name: str, values: np.ndarray) -> bool:
    """Whether numbers `[rows]` are what the column is called of the times in another zone, or weeks by another rule."""
    part = part_of_time(name) or _plain(name)
    if part in ("H", "weekday", "dayofweek"):  # the same number off throughout, but for changes of the clock
        own, length = (times.hour, 24) if part == "H" else (times.day_of_week, 7)
        return bool(np.ptp(times.hour) > 0) and len(np.unique((values - own.to_numpy()) % length)) <= 2
    if part not in _TURNS:
        return False
    parts = {"Y": "year", "q": "quarter", "m": "month", "d": "day", "j": "day_of_year"}
    own = pd.Index(times.isocalendar()["week"]) if part == "V" else getattr(times, parts[part])
    off = np.abs(values - own.to_numpy(dtype=np.int64))
    return bool(((off <= 1) | (off >= _TURNS[part])).all())


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _is_constant(values: np.ndarray) -> bool:
    real = values[~np.isnan(values)]
    return len(real) > 1 and bool((real == real[0]).all())


def _flags(column: pd.Series) -> np.ndarray | None:
    """True and false as 1.0 and 0.0 `[rows]`, NaN where missing; None for other columns."""
    cells = column.astype(object)
    distinct = pd.unique(cells.dropna())
    words = {cell: str(cell).strip().lower() for cell in distinct}
    if not len(distinct) or not set(words.values()) <= {"true", "false"}:
        return None
    return cells.map({cell: float(word == "true") for cell, word in words.items()}).to_numpy(dtype=np.float64)
