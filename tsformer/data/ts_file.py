"""Files of labelled series as the UCR and UEA archives have them (.ts).

A line for each series: its dimensions parted by colons, their values by commas, "?" where one is missing, and the class
last. Above them is what `@` tells of the file. The format is described at https://www.timeseriesclassification.com.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tsformer.data.ragged import Ragged, ragged
from tsformer.errors import DataError

_MISSING = {"?", "", "nan"}


@dataclass(frozen=True)
class TsFile:
    """What a file holds.

    Attributes:
        series: float64 `[rows, channels]`, NaN where a value is missing.
        labels: class of each series, "" where it is missing; None in a file without classes.
        numbers: int64 `[series]`, place of each series in the file, from 1.
    """

    series: Ragged
    labels: tuple[str, ...] | None
    numbers: np.ndarray

    def labelled(self) -> TsFile:
        """Only the series that have a class; all of them in a file without classes."""
        if self.labels is None or all(self.labels):
            return self
        kept = np.array([place for place, label in enumerate(self.labels) if label], dtype=np.int64)
        return TsFile(self.series.take(kept), tuple(filter(None, self.labels)), self.numbers[kept])


@dataclass
class _Header:
    """What `@` tells of the file, names in small letters; and the line on which `@data` stands."""

    words: dict[str, list[str]] = field(default_factory=dict)
    line: int = 0

    def says(self, name: str) -> bool:
        return [word.lower() for word in self.words.get(name, [])[:1]] == ["true"]

    def number(self, name: str) -> int | None:
        words = self.words.get(name, [])
        return int(words[0]) if words and words[0].isdecimal() else None


def parse_ts(text: str, source: str) -> TsFile:
    """The series in a file's text.

    Raises:
        DataError: it is no such file, has time stamps or numbers for classes, or a line does not go with the others.
    """
    lines = text.split("\n")
    header = _header(lines, source)
    classes = header.words.get("classlabel", [])[1:] if header.says("classlabel") else None
    series: list[np.ndarray] = []
    labels: list[str] = []
    for number, line in enumerate(lines[header.line :], header.line + 1):
        if not (line := line.strip()) or line[0] in "#%":
            continue
        where = f"{source} line {number}"
        dimensions = line.split(":")
        if classes is not None:
            labels.append(_label(dimensions.pop().strip(), classes, where))
        series.append(_values(dimensions, header, where))
        if series[-1].shape[1] != series[0].shape[1]:
            raise DataError(
                f"{where} has {series[-1].shape[1]} dimension(s), the first series has {series[0].shape[1]}: correct it"
            )
    if not series:
        raise DataError(f"{source} has no series below @data")
    numbers = np.arange(1, len(series) + 1)
    return TsFile(ragged(series, np.float64), None if classes is None else tuple(labels), numbers)


def _header(lines: Sequence[str], source: str) -> _Header:
    header = _Header()
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0][0] in "#%":
            continue
        if words[0][0] != "@":
            raise DataError(f"{source} line {number} stands above @data, but does not begin with @ or #: no .ts file")
        name = words[0][1:].lower()
        if name == "data":
            header.line = number
            break
        header.words[name] = words[1:]
    else:
        raise DataError(f"{source} has no line @data: it is no .ts file, or only a part of one")
    if header.says("timestamps"):
        raise DataError(
            f"{source} has time stamps (@timeStamps true), which are not read: --data series takes long tables"
        )
    if header.says("targetlabel"):
        raise DataError(f"{source} has numbers to be predicted (@targetLabel true), not classes: it cannot be used")
    return header


def _label(label: str, classes: Sequence[str], where: str) -> str:
    if label in ("", "?"):
        return ""
    if classes and label not in classes:
        raise DataError(f"{where} ends with {label[:40]!r}, but @classLabel names the classes {', '.join(classes[:8])}")
    return label


def _values(dimensions: Sequence[str], header: _Header, where: str) -> np.ndarray:
    """One series, `[length, channels]`."""
    wanted = 1 if header.says("univariate") else header.number("dimensions")
    if not dimensions or (wanted is not None and len(dimensions) != wanted):
        hint = "" if header.says("classlabel") else " (@classLabel true if the last is a class)"
        raise DataError(f"{where} has {len(dimensions)} dimension(s), not {wanted or 'any'} as said above @data{hint}")
    values = [_numbers(cells, where) for cells in dimensions]
    lengths = [len(one) for one in values]
    odd = next((place for place, length in enumerate(lengths) if length != lengths[0]), None)
    if odd is not None:
        raise DataError(
            f"{where}: dimension {odd + 1} has {lengths[odd]} value(s), the first has {lengths[0]}: correct it"
        )
    length = header.number("serieslength") if header.says("equallength") else None
    if length is not None and lengths[0] != length:
        raise DataError(f"{where} has {lengths[0]} value(s), not {length} as @seriesLength says: is the line whole?")
    return np.stack(values, axis=1)


def _numbers(cells: str, where: str) -> np.ndarray:
    words = cells.split(",")
    odd = next((word for word in words if "_" in word), None)
    if odd is not None:  # which Python would read as a number
        raise DataError(f"{where}: {odd.strip()[:40]!r} is no number (? stands for one that is missing)")
    try:
        values = np.array(words, dtype=np.float64)
    except ValueError:
        values = np.array([_number(word.strip(), where) for word in words])
    if np.isinf(values).any():
        raise DataError(f"{where} holds a value that is infinite: write ? where a value is missing")
    return values


def _number(word: str, where: str) -> float:
    if word.lower() in _MISSING:
        return np.nan
    try:
        return float(word)
    except ValueError:
        raise DataError(f"{where}: {word[:40]!r} is no number (? stands for one that is missing)") from None
