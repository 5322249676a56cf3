"""A long table of labelled series: a row for each step, grouped by an id, in order of time.

Nothing is filled or guessed: values may be missing, but ids, times and labels have to go together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from tsformer.data.cells import LARGEST, MISSING, as_text, listed, parsed, place, require
from tsformer.data.columns import is_time_name
from tsformer.data.ragged import Ragged, offsets_of
from tsformer.data.sequences import Sequences, SequenceSchema
from tsformer.data.table_options import TableOptions
from tsformer.data.wall import as_numbers
from tsformer.errors import DataError, UsageError
from tsformer.tables.times import read_time


def series_from_frame(
    frame: pd.DataFrame,
    *,
    id: str,
    label: str | None = None,
    time: str | None = None,
    channels: Sequence[str] = (),
    text: str | None = None,
    time_format: str | None = None,
    source: str = "table",
) -> Sequences:
    """A table as series to learn from.

    Args:
        frame: one row for each step of each series, in any order; ids, labels and texts as text.
        id: the column that tells series apart.
        label: the column of labels, the same in all rows of a series; series without are left out.
        time: the column by which steps are ordered; None keeps the order of the rows.
        channels: the columns of numbers; none takes all numbers that are nothing else.
        text: the column with a text at each step.
        time_format: `strftime` format of times that do not begin with the year.
        source: what messages call the table.

    Raises:
        DataError: one line that says what is wrong, where, and what to do. UsageError: a column is named twice.
    """
    named = [name for name in (id, label, time, text, *channels) if name is not None]
    repeated = next((name for number, name in enumerate(named) if name in named[:number]), None)
    if repeated is not None:
        raise UsageError(
            f"column {repeated!r} is named twice: id, label, time, text and channels are different columns"
        )
    require(frame, named, source)
    if len(frame) > 2 and frame[id].nunique() == len(frame):
        raise DataError(
            f"{source}: column {id!r} names {len(frame)} series of one row each, but a row for each step of a series "
            "is needed: DataFrame.melt in pandas turns a table that has a series in each row"
        )
    chosen, notes = _channels(frame, named, channels, source)
    schema = SequenceSchema(text=text, label=label, channels=tuple(chosen), id=id, time=time)
    return _assembled(frame, np.column_stack([*chosen.values()]), schema, time_format, notes, source, new=False)


def series_with_schema(
    frame: pd.DataFrame, schema: SequenceSchema, *, time_format: str | None = None, source: str = "table"
) -> Sequences:
    """New series in the columns of a table that is known; labels are kept where every series has one.

    Raises:
        DataError: when a column is missing, or rows do not go together.
    """
    require(frame, [name for name in (schema.id, schema.time, schema.text, *schema.channels) if name], source)
    values = np.column_stack([_numbers(frame, name, source) for name in schema.channels])
    return _assembled(frame, values, schema, time_format, [], source, new=True)


def _assembled(
    frame: pd.DataFrame,
    values: np.ndarray,
    schema: SequenceSchema,
    time_format: str | None,
    notes: list[str],
    source: str,
    *,
    new: bool,
) -> Sequences:
    codes, ids = _series(frame, str(schema.id), source)
    order = _in_time(frame, codes, schema, time_format, source)
    rows = Ragged(order, offsets_of(np.bincount(codes)))
    labels = None
    if schema.label is not None and schema.label in frame.columns:
        try:
            labels = _labels(frame, rows, ids, schema.label, source)
        except DataError:
            if not new:
                raise
            labels = np.full(len(ids), "", dtype=object)  # which nothing reads
        labelled = np.flatnonzero(labels != "")
        if not new and not len(labelled):
            raise DataError(f"{source}: column {schema.label!r} has no label in any row: choose another --label")
        if not new and len(labelled) < len(ids):
            notes = [*notes, f"{len(ids) - len(labelled)} series without a label are left out"]
            rows, ids, labels = rows.take(labelled), ids[labelled], labels[labelled]
    texts = None
    if schema.text is not None:
        cells = frame[schema.text].astype(object).to_numpy()[rows.values]
        texts = tuple("" if pd.isna(cell) else str(cell) for cell in cells)
    return Sequences(
        schema=schema,
        ids=tuple(ids),
        texts=texts,
        series=Ragged(values[rows.values], rows.offsets),
        labels=None if labels is None or (labels == "").any() else tuple(labels),
        notes=tuple(notes),
    )


def _series(frame: pd.DataFrame, id: str, source: str) -> tuple[np.ndarray, np.ndarray]:
    """The series of each row `[rows]`, numbered in order of appearance, and their names `[series]`."""
    if not len(frame):
        raise DataError(f"{source} has no rows")
    codes, distinct = pd.factorize(frame[id])
    names = np.array([as_text(name, "series", source).strip() for name in distinct], dtype=object)
    blank = (codes < 0) | np.isin(codes, np.flatnonzero(names == ""))
    if blank.any():
        raise DataError(
            f"{source}: column {id!r} names no series in {int(blank.sum())} row(s), the first in "
            f"{place(frame, int(blank.argmax()))}: complete or remove them"
        )
    again = next((name for name, number in zip(*np.unique(names, return_counts=True), strict=True) if number > 1), None)
    if again is not None:
        raise DataError(
            f"{source}: column {id!r} writes {again!r} in several ways, with and without spaces: choose one"
        )
    return codes, names


def _in_time(
    frame: pd.DataFrame, codes: np.ndarray, schema: SequenceSchema, time_format: str | None, source: str
) -> np.ndarray:
    """The rows series by series, in order of time, int64 `[rows]`."""
    if schema.time is None:
        return np.argsort(codes, kind="stable")
    keys = as_numbers(read_time(frame, (schema.time,), TableOptions(time_format=time_format), source).times)
    order = np.lexsort((keys, codes))
    repeated = (np.diff(codes[order]) == 0) & (np.diff(keys[order]) == 0)
    if repeated.any():
        at = int(repeated.argmax())
        first, second = (place(frame, int(order[row])) for row in (at, at + 1))
        raise DataError(
            f"{source}: series {frame[schema.id].iloc[order[at]]!r} has the time "
            f"{frame[schema.time].iloc[order[at]]} in {first} and in {second} ({int(repeated.sum())} such row(s)): "
            "keep one of them, or name the right --id"
        )
    return order


def _labels(frame: pd.DataFrame, rows: Ragged, ids: np.ndarray, label: str, source: str) -> np.ndarray:
    """The label of each series `[series]`, "" where it has none."""
    codes, distinct = pd.factorize(frame[label])  # -1 where a value is missing
    words = np.array([*(str(word).strip() for word in distinct), ""], dtype=object)
    sorted_codes, first = codes[rows.values], rows.offsets[:-1]
    differs = words[sorted_codes] != np.repeat(words[sorted_codes[first]], rows.lengths)
    if differs.any():
        at = int(differs.argmax())
        series = int(np.searchsorted(rows.offsets, at, side="right")) - 1
        one, other = words[sorted_codes[first[series]]], words[sorted_codes[at]]
        raise DataError(
            f"{source}: series {ids[series]!r} has the label {one!r} in "
            f"{place(frame, int(rows.values[first[series]]))} and {other!r} in {place(frame, int(rows.values[at]))}: "
            "all rows of a series have the same one"
        )
    return words[sorted_codes[first]]


def _channels(
    frame: pd.DataFrame, named: Sequence[str], channels: Sequence[str], source: str
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Names and values of the channels, and notes on what is not one."""
    if channels:
        chosen = {name: _numbers(frame, name, source) for name in channels}
        empty = [name for name, values in chosen.items() if np.isnan(values).all()]
        if empty:
            raise DataError(f"{source}: column {empty[0]!r} has no value: choose other --channels")
        return chosen, []
    chosen = {}
    timely = "called like times (--time orders by one, --channels takes it)"
    ignored: dict[str, list[str]] = {"that are not numbers": [], "without a value": [], timely: []}
    for name in (column for column in frame.columns if column not in named):
        values, bad = _parsed(frame[name])
        filled = (~np.isnan(values)).sum()
        if bad.sum() > filled:
            ignored["that are not numbers"].append(name)
        elif not filled and not bad.any():
            ignored["without a value"].append(name)
        elif is_time_name(name) or name.startswith("Unnamed: "):
            ignored[timely].append(name)
        else:
            chosen[name] = _numbers(frame, name, source)
    if not chosen:
        raise DataError(
            f"{source} has no column of numbers, it has {listed(list(frame.columns))}: name them with --channels; "
            "texts without numbers are for --data text"
        )
    return chosen, [f"ignored columns {kind}: {listed(names)}" for kind, names in ignored.items() if names]


def _numbers(frame: pd.DataFrame, name: str, source: str) -> np.ndarray:
    """A column as float64 `[rows]`, NaN where a value is missing."""
    values, bad = _parsed(frame[name])
    large = ~bad & (np.abs(values) > LARGEST)
    for wrong, what, remedy in (
        (bad, "cell(s) that are not numbers", "complete or empty them, or choose other --channels"),
        (large, f"value(s) beyond {LARGEST:g}", "bring the column to a sensible unit, or empty them"),
    ):
        if wrong.any():
            row = int(wrong.argmax())
            (cell,) = frame[name].iloc[[row]].tolist()  # no NumPy number, which would say so
            raise DataError(
                f"{source}: column {name!r} has {int(wrong.sum())} {what}, the first {cell!r} in "
                f"{place(frame, row)}: {remedy}"
            )
    return values


def _parsed(column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Cells `[rows]` as float64, NaN where there is none, and whether they are neither number nor missing."""
    if column.dtype.kind in "iuf":
        return column.to_numpy(dtype=np.float64, na_value=np.nan), np.zeros(len(column), dtype=bool)
    cells = column.astype(object).reset_index(drop=True)
    text = cells.map(lambda cell: "" if pd.isna(cell) else str(cell).strip())
    values = parsed(text).astype(np.float64)
    return values, np.isnan(values) & ~text.isin(MISSING).to_numpy()
