"""What is known of each series as a whole: numbers, standardised, and words, coded; learned from the fitted series."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from tsformer.data.cells import listed
from tsformer.data.panel import Panel
from tsformer.errors import DataError


@dataclass(frozen=True)
class Statics:
    """How static covariates become numbers that a model takes.

    Attributes:
        scales: of each column of numbers, mean and standard deviation over the fitted series; 1 where they are all
            equal.
        words: of each column of words, those of the fitted series in order; their codes count from 1, and 0 is any
            other word, or none.
    """

    scales: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def fit(cls, panel: Panel) -> Statics:
        """Learn from all series of a panel; a column is one of numbers when its type says so.

        Raises:
            DataError: a column is infinite somewhere, or empty.
        """
        scales: dict[str, tuple[float, float]] = {}
        words: dict[str, tuple[str, ...]] = {}
        for name in panel.schema.static_covariates:
            column = _column(panel, name)
            if column.isna().all():
                raise DataError(f"the static covariate '{name}' has no value in any series: leave it out")
            if pd.api.types.is_numeric_dtype(column):
                values = _finite(column.to_numpy(dtype=np.float64, na_value=np.nan), name, panel)
                mean, scale = float(np.nanmean(values)), float(np.nanstd(values))
                rounding = len(values) * np.finfo(np.float64).eps * abs(mean)  # what is left of equal values
                scales[name] = (mean, scale if scale > rounding else 1.0)
            else:
                words[name] = tuple(sorted(set(_texts(column).dropna())))
        return cls(scales, words)

    def __bool__(self) -> bool:
        return bool(self.scales or self.words)

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """Codes that each column of words may have, the 0 of unknown words included."""
        return tuple(len(words) + 1 for words in self.words.values())

    def numbers(self, panel: Panel) -> np.ndarray:
        """Standardised numbers, float32 `[series, columns of numbers]`; 0, the mean, where one is missing.

        Raises:
            DataError: a column is not there, or holds what is no number.
        """
        table = np.zeros((len(panel.ids), len(self.scales)), dtype=np.float32)
        for place, (name, (mean, scale)) in enumerate(self.scales.items()):
            column = _column(panel, name)
            values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
            bad = np.isnan(values) & ~column.isna().to_numpy()
            if bad.any():
                at = int(bad.argmax())
                raise DataError(
                    f"the static covariate '{name}' of series {panel.ids[at]!r} is {column.iloc[at]!r}, "
                    "and the model was fitted on numbers there"
                )
            table[:, place] = np.nan_to_num((_finite(values, name, panel) - mean) / scale)
        return table

    def codes(self, panel: Panel) -> np.ndarray:
        """Codes of the words, int64 `[series, columns of words]`.

        Raises:
            DataError: a column is not there.
        """
        table = np.zeros((len(panel.ids), len(self.words)), dtype=np.int64)
        for place, (name, words) in enumerate(self.words.items()):
            table[:, place] = pd.Index(words, dtype=object).get_indexer(pd.Index(_texts(_column(panel, name)))) + 1
        return table

    def notes(self, panel: Panel) -> tuple[str, ...]:
        """A line for each column with words that no fitted series had."""
        lines = []
        for name, words in self.words.items():
            new = sorted(set(_texts(_column(panel, name)).dropna()) - set(words))
            if new:
                lines.append(f"static covariate '{name}': unknown to the model are {listed(new)}")
        return tuple(lines)

    def to_json(self) -> dict[str, Any]:
        return {
            "scales": {name: list(scale) for name, scale in self.scales.items()},
            "words": {name: list(words) for name, words in self.words.items()},
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Statics:
        """Raises KeyError, TypeError or ValueError when the document holds no statics."""
        scales = {name: (float(mean), float(scale)) for name, (mean, scale) in document["scales"].items()}
        words = {name: tuple(some) for name, some in document["words"].items()}
        if not all(math.isfinite(mean) and 0 < scale < math.inf for mean, scale in scales.values()):
            raise ValueError("a scale of static covariates is none")
        for some in words.values():
            if not all(isinstance(word, str) for word in some) or len(set(some)) < len(some):
                raise ValueError("the words of static covariates are not different texts")
        if set(scales) & set(words):
            raise ValueError("a static covariate is of numbers and of words")
        return cls(scales, words)


def _column(panel: Panel, name: str) -> pd.Series:
    """A value for each series."""
    if panel.static is None or name not in panel.static:
        raise DataError(f"the model needs the static covariate '{name}', a column with one value for each series")
    return panel.static[name]


def _texts(column: pd.Series) -> pd.Series:
    """Each cell as a text, of type object; missing ones stay so."""
    return column.astype(object).map(str, na_action="ignore")


def _finite(values: np.ndarray, name: str, panel: Panel) -> np.ndarray:
    infinite = np.isinf(values)
    if infinite.any():
        raise DataError(
            f"the static covariate '{name}' of series {panel.ids[int(infinite.argmax())]!r} is infinite: "
            "correct it, or leave the column out"
        )
    return values
