"""Labels from Python: the classes in the type of their owner, and as text for a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tsformer.errors import DataError

TYPES: dict[str, Any] = {"bool": np.bool_, "int": np.int64, "float": np.float64, "text": object}
"""What classes come back as from a run, by the word that it keeps."""

_KINDS = {"b": "bool", "i": "int", "u": "int", "f": "float", "U": "text", "O": "text"}
_INFERRED = {"boolean": np.bool_, "integer": np.int64, "floating": np.float64, "string": object}


def labels_from(y: Any, examples: int) -> np.ndarray:
    """Labels `[examples]`: bool, whole numbers, or text.

    Raises:
        DataError: another number of them, some missing, or something that is no class.
    """
    if isinstance(y, np.ma.MaskedArray):
        mask, y = np.ma.getmaskarray(y), y.data.astype(object)
        y[mask] = None
    # numpy would make text of numbers among text, and of what is missing
    labels = np.array(y, dtype=object) if isinstance(y, list | tuple) else np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:  # a table of one column
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise DataError(f"y is one label for each example, not an array of shape {labels.shape}")
    if len(labels) != examples:
        raise DataError(f"X has {examples} examples and y {len(labels)} labels")
    missing = pd.isna(labels)
    if missing.any():
        raise DataError(f"y has {missing.sum()} missing label(s), the first is y[{missing.argmax()}]: leave them out")
    if labels.dtype == np.uint64 and (labels > np.iinfo(np.int64).max).any():
        labels = labels.astype(object)
    if labels.dtype == object:
        inferred = pd.api.types.infer_dtype(labels, skipna=False)
        if inferred not in _INFERRED:
            raise DataError(f"y holds {inferred} values: labels are all text, all whole numbers or all bool")
        try:
            labels = labels.astype(_INFERRED[inferred])
        except OverflowError:
            raise DataError("y holds whole numbers beyond 64 bits: give such labels as text") from None
    if labels.dtype == object:
        _check_text(labels)
    if labels.dtype.kind not in _KINDS:
        raise DataError(f"y holds {labels.dtype} values: labels are text, whole numbers or bool")
    if labels.dtype.kind == "f" and (labels % 1 != 0).any():
        raise DataError(f"y holds {labels[labels % 1 != 0][0]:g}, a measurement and no class: cut it into ranges first")
    return labels


def _check_text(labels: np.ndarray) -> None:
    """Raises DataError for text that no file can hold."""
    for place, label in enumerate(labels.tolist()):
        try:
            str(label).encode()
        except UnicodeEncodeError:
            raise DataError(f"y[{place}] is {label!r}, half a character that no file can hold: correct it") from None


def kind_of(classes: np.ndarray) -> str:
    """The word that a run keeps for their type, a key of `TYPES`."""
    return _KINDS[classes.dtype.kind]


def classes_from(names: Sequence[str], kind: str) -> np.ndarray:
    """Classes from their names in a run, in order, as `np.unique` sorts them. Raises KeyError or ValueError."""
    if kind == "bool":
        return np.array(sorted(name == "True" for name in names))
    return np.unique(np.array(names, dtype=object).astype(TYPES[kind]))
