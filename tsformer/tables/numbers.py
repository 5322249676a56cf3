"""Cells as numbers, on evidence of the whole column: separators, signs, sizes, and words for what is missing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tsformer.data.cells import MISSING, listed, parsed, place
from tsformer.data.table_options import TableOptions
from tsformer.errors import DataError
from tsformer.findings import Finding
from tsformer.tables.decimals import comma_or_point, without_groups
from tsformer.tables.markers import is_marker
from tsformer.tables.units import Units

_WRITTEN = re.compile(
    r"(?P<open>\()?\s*(?P<sign>[+\-\u2212\u2013]?)\s*(?P<currency>[$€£¥₩₹₽]|R\$|US\$|USD|EUR|GBP|CHF)?\s?(?P<inner>[+\-\u2212]?)"
    r"(?P<digits>\d[\d.,'\u2019 \u00a0\u202f]*|[.,]\d+)(?P<power>[eE][+-]?\d+)?\s?"
    r"(?:(?P<percent>%)|(?P<size>[KkMBT]|[Mm]n|[Bb]n|[Mm]io|[Mm]rd)|(?P<after>[$€£¥₩₹₽]|USD|EUR|GBP|CHF|kr|zł|Kč))?(?P<close>\))?"
)
_SIZES = {"k": 1e3, "m": 1e6, "mn": 1e6, "mio": 1e6, "b": 1e9, "bn": 1e9, "mrd": 1e9, "t": 1e12}
_SAID = {
    "thousands": "thousands separators removed",
    "decimal": "decimal commas read",
    "percent": "percent signs removed (7 % is 7)",
    "size": "K, M, B and T read as thousands, millions, billions and trillions",
    "currency": "currency signs removed",
    "accounting": "numbers in parentheses read as negative",
    "truth": "TRUE and FALSE read as 1 and 0",
}
_TRUTH = {"true": 1.0, "false": 0.0}
_FEW = 3  # distinct words that may be meant as missing, or numbers that may be codes


@dataclass(frozen=True)
class Numbers:
    """A column.

    Attributes:
        values: float64 `[rows]`, NaN where one is missing; None when the column holds no numbers but text.
        notes: what was removed, or read as missing.
    """

    values: np.ndarray | None
    notes: tuple[Finding, ...] = ()


def as_numbers(
    column: pd.Series, name: str, options: TableOptions, source: str, *, named: bool, decimal: str = ""
) -> Numbers:
    """A column of a table as numbers.

    Args:
        column: numbers, or text as it is written; its index names the rows.
        name: of the column.
        options: what the user says of numbers: decimal mark, words and numbers that stand for a missing value.
        source: what messages call the table.
        named: the user chose the column: when it holds no numbers that is an error, and TRUE and FALSE are 1 and 0.
        decimal: the mark that other columns use, see `decimal_of`; "" when they do not tell.

    Raises:
        DataError: most cells are numbers and some cannot be read as such; or the decimal mark cannot be told.
    """
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind in ("integer", "floating", "mixed-integer-float", "decimal", "empty"):
        return _without_sentinels(column, parsed(column).astype(np.float64), name, options, [])
    if kind == "boolean":
        if not named:
            return Numbers(None)
        return Numbers(column.astype(object).map(lambda cell: np.nan if pd.isna(cell) else float(cell)).to_numpy(float))
    if kind not in ("string", "mixed", "mixed-integer", "categorical"):
        if named:
            raise DataError(f"{source}: column {name!r} holds {kind} values, not numbers: choose another --target")
        return Numbers(None)
    objects = column.astype(object)
    codes, distinct = pd.factorize(objects.map(str, na_action="ignore") if kind == "mixed" else objects)
    cells = [str(cell).strip() for cell in distinct]
    counts = np.bincount(codes[codes >= 0], minlength=len(cells))
    read = _Reading(cells, counts, options, named)
    read.look(decimal)
    bad = np.flatnonzero(read.bad)
    if len(bad):
        if not named and not read.mostly_numbers:
            return Numbers(None)
        raise _not_numbers(column, name, source, codes, cells, read)
    read.units.check(read.values, cells, column.rename(name), codes, f"{source}: column {name!r}")
    values = np.append(read.values, np.nan)[codes]  # a missing cell has the code -1
    notes = [_finding(kind, name, column, codes, cells, which, counts) for kind, which in read.found()]
    return _without_sentinels(column, values, name, options, notes)


def merged(notes: Iterable[Finding]) -> tuple[Finding, ...]:
    """Notes on several columns as one for each kind (and word), in the order in which they come."""
    groups: dict[tuple[str, str | None], list[Finding]] = {}
    for note in notes:
        word = note.example if note.kind in ("marker", "na", "sentinel") else None
        groups.setdefault((note.kind, word), []).append(note)
    return tuple(_merged(group) for group in groups.values())


def _merged(group: Sequence[Finding]) -> Finding:
    if len(group) == 1 or any(note.column is None for note in group):
        return group[0]
    count = sum(note.count or 0 for note in group)
    columns = [note.column for note in group if note.column is not None]
    text = f"{_said(group[0].kind, group[0].example)}: {count} cells in {len(columns)} columns ({listed(columns)})"
    first = group[0]
    return Finding(first.kind, text, column=first.column, row=first.row, count=count, example=first.example)


class _Reading:
    """The distinct cells of a column, each read as a number, as missing, or as neither."""

    def __init__(self, cells: list[str], counts: np.ndarray, options: TableOptions, named: bool) -> None:
        self._cells, self._counts, self._options, self._named = cells, counts, options, named
        self.values = np.full(len(cells), np.nan)
        self.bad = np.zeros(len(cells), dtype=bool)
        self.undecided = False
        self._kinds: dict[str, list[int]] = {}
        self.units = Units()
        self._meant = 0

    @property
    def mostly_numbers(self) -> bool:
        """Whether most cells that are not missing are numbers, or are meant to be."""
        filled = self._counts[~self._missing].sum()
        kinds = np.count_nonzero(~np.isnan(self.values))
        # "0" throughout and an "a" here and there are codes, not measurements.
        codes = 0 < kinds <= _FEW and filled > 10 * _FEW
        return bool(self._meant > filled / 2 and not codes)

    def look(self, decimal: str) -> None:
        """Read all cells; `decimal` is what other columns say."""
        cells, options = self._cells, self._options
        na = {word.strip() for word in options.na}
        self._missing = np.array([cell in MISSING or cell in na for cell in cells], dtype=bool)
        for number, cell in enumerate(cells):
            if cell in na - MISSING:
                self._note(f"na {cell}", [number])
        mark = options.decimal or comma_or_point(cells) or decimal
        plain = (
            parsed(pd.Series(cells, dtype=object)).astype(np.float64) if mark != "," else np.full(len(cells), np.nan)
        )
        pending = [int(number) for number in np.flatnonzero(np.isnan(plain) & ~self._missing)]
        self.values = np.where(self._missing, np.nan, plain)
        markers: list[int] = []
        for number in pending:
            cell = cells[number]
            found = _WRITTEN.fullmatch(cell)
            digits = found and without_groups(found["digits"], mark)
            if found and digits is not None and bool(found["open"]) == bool(found["close"]):
                self._take(number, found, digits)
            elif found and mark == "" and without_groups(found["digits"], ",") is not None:
                self.undecided = True
                self._reject(number, meant=True)
            elif self._named and cell.lower() in _TRUTH:
                self.values[number] = _TRUTH[cell.lower()]
                self._note("truth", [number])
            elif is_marker(cell):
                markers.append(number)
            elif mark == "," and cell.lower().lstrip("+-") in ("inf", "infinity"):
                self.values[number] = float(cell)
            else:
                self._reject(number, meant=found is not None and _is_grouped(found["digits"]))
        self._meant += int(self._counts[~np.isnan(self.values)].sum())
        self._markers(markers)

    def found(self) -> list[tuple[str, list[int]]]:
        """What was done, with the distinct cells that it was done to; each marker is one."""
        return [*self._kinds.items()]

    def _take(self, number: int, found: re.Match[str], digits: str) -> None:
        value = float(digits + (found["power"] or ""))
        if found["size"]:
            value = float(f"{value * _SIZES[found['size'].lower()]:.15g}")  # 1.38M is 1380000, not 1379999.9999999998
        negative = found["open"] or {found["sign"], found["inner"]} & {"-", "\u2212", "\u2013"}
        self.values[number] = -value if negative else value
        separators = re.sub(r"\d", "", found["digits"].strip())
        currency = found["currency"] or found["after"]
        self.units.add(found["percent"] or currency, number)
        point = "." in digits
        if len(separators) > point:
            self._note("thousands", [number])
        if point and separators.endswith(","):
            self._note("decimal", [number])
        for kind, there in (
            ("percent", found["percent"]),
            ("size", found["size"]),
            ("currency", currency),
            ("accounting", found["open"]),
        ):
            if there:
                self._note(kind, [number])

    def _markers(self, places: list[int]) -> None:
        """Words for what is missing are that among numbers only; among words they are words."""
        if not places:
            return
        if self._meant or not self.bad.any():
            self._missing[places] = True
            for number in places:
                self._note(f"marker {self._cells[number]}", [number])
        else:
            self.bad[places] = True

    def _reject(self, number: int, *, meant: bool) -> None:
        self.bad[number] = True
        self._meant += int(self._counts[number]) if meant else 0

    def _note(self, kind: str, places: list[int]) -> None:
        if places:
            self._kinds.setdefault(kind, []).extend(places)


def _is_grouped(digits: str) -> bool:
    """Whether they are a number at all, with one mark or the other: 1.2.2024 is none."""
    return any(without_groups(digits, mark) is not None for mark in ".,")


def _float(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _said(kind: str, word: str | None) -> str:
    return _SAID.get(kind, f"{word!r} read as missing")


def _finding(
    kind: str, name: str, column: pd.Series, codes: np.ndarray, cells: list[str], which: list[int], counts: np.ndarray
) -> Finding:
    kind = kind.partition(" ")[0]
    row = int(np.isin(codes, which).argmax())
    count, example = int(counts[which].sum()), cells[int(codes[row])]
    where = place(column.to_frame(), row)
    text = f"{_said(kind, example)}: {count} cell(s) in column {name!r}, the first in {where}"
    return Finding(kind, text, column=name, row=where, count=count, example=example)


def _without_sentinels(
    column: pd.Series, values: np.ndarray, name: str, options: TableOptions, notes: list[Finding]
) -> Numbers:
    words = [number for number in map(_float, options.na) if number is not None]
    for number in dict.fromkeys((*options.sentinel, *words)):
        there = values == number
        if there.any():
            where, count = place(column.to_frame(), int(there.argmax())), int(there.sum())
            text = f"'{number:g}' read as missing: {count} cell(s) in column {name!r}, the first in {where}"
            notes.append(Finding("sentinel", text, column=name, row=where, count=count, example=f"{number:g}"))
            values = np.where(there, np.nan, values)
    return Numbers(np.ascontiguousarray(values, dtype=np.float64), tuple(notes))


def _not_numbers(
    column: pd.Series, name: str, source: str, codes: np.ndarray, cells: list[str], read: _Reading
) -> DataError:
    bad = np.append(read.bad, False)[codes]
    row, count = int(bad.argmax()), int(bad.sum())
    cell, where = cells[int(codes[row])], place(column.to_frame(), row)
    words = [cells[number] for number in np.flatnonzero(read.bad)]
    options: dict[str, object] = {}
    if read.undecided:
        kind, what = "decimal", "whose comma may be a decimal mark or separate thousands"
        remedy = "--decimal . if it separates thousands, --decimal , if not"
        if len({word.find(",") for word in words}) > 1:  # with so many decimals the size would hardly vary
            options = {"data.decimal": "."}
    elif len(words) <= _FEW and read.mostly_numbers and not any(_WRITTEN.fullmatch(word) for word in words):
        kind, what, options = "not_number", "that are not numbers", {"data.na": words}
        remedy = f"{' '.join(f'--na {word}' for word in words)} takes them as missing, or choose columns with --target"
    else:
        kind, what = "not_number", "that are not numbers"
        remedy = "complete or empty the cells (--na WORD), or choose other columns with --target"
    text = f"{source}: column {name!r} has {count} cell(s) {what}, the first {cell!r} in {where}: {remedy}"
    finding = Finding(
        kind, text, "fault", column=name, row=where, count=count, example=cell, remedy=remedy, options=options
    )
    return DataError(text, finding=finding)
