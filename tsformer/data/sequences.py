"""Examples for classes and tokens: texts, series, or series with a text at each step, with a label or an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tsformer.data.ragged import Ragged

TRAIN, VALIDATION, TEST = 0, 1, 2
"""What `Sequences.parts` holds."""


@dataclass(frozen=True)
class SequenceSchema:
    """The user's table: names of columns, which new rows are read by and answers are written under.

    Raises TypeError when they are no names.

    Attributes:
        text: column of the texts; None when there are none.
        label: column of the labels; None when there are none.
        target: column of the answers, for pairs of texts; None when there are none.
        channels: names of the numeric channels, in order.
        id: column that tells series apart in a long table; None when each row or line is an example.
        time: column of times in a long table, by which steps are ordered; None when rows are in order.
    """

    text: str | None = None
    label: str | None = None
    target: str | None = None
    channels: tuple[str, ...] = ()
    id: str | None = None
    time: str | None = None

    def __post_init__(self) -> None:
        words = (self.text, self.label, self.target, self.id, self.time)
        named = isinstance(self.channels, tuple) and all(isinstance(name, str) for name in self.channels)
        if not named or not all(isinstance(word, str | None) for word in words):
            raise TypeError("the schema does not hold names")

    def to_json(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> SequenceSchema:
        """Raises TypeError or ValueError when the document is not a schema."""
        fields: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in document.items()}
        return cls(**fields)


@dataclass(frozen=True)
class Sequences:
    """Examples one after another. Raises ValueError or TypeError when the parts do not fit together.

    An example is a text, a series of numbers, or both: then there is a text at each step of the series.

    Attributes:
        schema: the user's table.
        texts: one for each example; one for each row of `series` when there are series. None without texts.
        series: float64 `[rows, channels]`, not yet scaled; NaN = missing. None without numbers.
        labels: the class of each example, as text; None when unlabelled.
        targets: the answer to each text, for pairs of texts; None when there are none.
        parts: int8 `[examples]` of `TRAIN`, `VALIDATION` and `TEST`, where the source says which part an example
            belongs to; one without validation gets it out of its training part, and one of classes without test is
            scored on validation. None leaves the split to the toolkit.
        ids: a name for each example as the user knows it: its line ("1", "2", ...) or the id of the series.
        notes: what was done on reading that the user should hear of, one line each.
    """

    schema: SequenceSchema
    ids: tuple[str, ...]
    texts: tuple[str, ...] | None = None
    series: Ragged | None = None
    labels: tuple[str, ...] | None = None
    targets: tuple[str, ...] | None = None
    parts: np.ndarray | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        count, series, schema = len(self.ids), self.series, self.schema
        if not count:
            raise ValueError("Sequences has no example")
        if series is not None and (series.values.dtype != np.float64 or series.values.ndim != 2):
            raise TypeError("Sequences.series must hold float64 [rows, channels]")
        width = 0 if series is None else series.values.shape[1]
        if width != len(schema.channels):
            raise ValueError(f"Sequences has {width} channels, and {len(schema.channels)} in its schema")
        if series is not None and np.isinf(series.values).any():
            raise ValueError("Sequences holds values that are infinite")
        texts = count if series is None else len(series.values)
        wanted = {"texts": texts, "series": count, "labels": count, "targets": count, "parts": count}
        for name, length in wanted.items():
            found = getattr(self, name)
            if found is not None and len(found) != length:
                raise ValueError(f"Sequences has {len(found)} {name} for {count} examples, not {length}")
        for name in ("ids", "texts", "labels", "targets"):
            found = getattr(self, name)
            odd = next((word for word in found or () if not isinstance(word, str)), None)
            if odd is not None or (found and None in found):
                raise TypeError(f"Sequences.{name} holds {odd!r}, which is no text")
        if self.parts is not None and (
            self.parts.dtype != np.int8 or not np.isin(self.parts, (TRAIN, VALIDATION, TEST)).all()
        ):
            raise TypeError("Sequences.parts must hold int8 numbers, TRAIN, VALIDATION or TEST")
        if series is None and self.texts is None:
            raise ValueError("Sequences has neither texts nor series")
        for name, there in (("text", self.texts), ("label", self.labels), ("target", self.targets)):
            if there is not None and getattr(schema, name) is None:
                raise ValueError(f"Sequences has a {name} of no name in its schema")
        repeated = next((name for name, times in Counter(self.ids).items() if times > 1), None)
        if repeated is not None:
            raise ValueError(f"Sequences has the id {repeated!r} twice")

    def __len__(self) -> int:
        return len(self.ids)
