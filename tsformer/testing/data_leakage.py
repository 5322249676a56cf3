"""Checks that nothing of the validation and test part of the data gets into what a model is trained with."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from tsformer.config import resolve, validate_options
from tsformer.config_layer import Layer
from tsformer.data.panel import Defaults, Panel
from tsformer.data.windows import Windows
from tsformer.errors import DataError
from tsformer.plugin import DataPlugin
from tsformer.preparation import Prepared, complete, prepare
from tsformer.testing.data_read import file_options, loaded, table_of
from tsformer.testing.failure import CheckFailedError

MOST_SERIES = 50
"""That are looked at for rows in common."""

NEARLY = 1e-7
"""How close a statistic comes to a round number when a scaling has brought it there, in single precision, too."""

FEW = 20
"""Different values up to which a column may be labels or flags."""


def recommended(plugin: DataPlugin, panel: Panel) -> Prepared:
    """Split, scaled and cut as `tsformer fit` does where the user says nothing."""
    return _prepared(replace(panel, defaults=plugin.defaults(panel)) if plugin.defaults else panel)


def prepared(plugin: DataPlugin, panel: Panel) -> Prepared:
    """The same, with the general window if the recommended one does not work, which `check_defaults` tells."""
    if plugin.defaults and fault_of(plugin.defaults(panel)):
        return _prepared(panel)
    try:
        return recommended(plugin, panel)
    except DataError:
        return _prepared(panel)


def fault_of(defaults: object) -> str:
    """What is wrong with a recommended window by itself, whatever the data; empty when nothing is."""
    if not isinstance(defaults, Defaults):
        return f"defaults returns {type(defaults).__name__}, not Defaults"
    for name in ("lookback", "horizon", "stride", "season"):
        value = getattr(defaults, name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            return f"defaults recommends {name} = {value!r}, not a whole number from 1"
    return ""


def _prepared(panel: Panel) -> Prepared:
    settings = resolve([Layer({"model": {"name": "last_value"}})], needs_data=False)
    return prepare(complete(settings, panel), panel)


def check_split(plugin: DataPlugin) -> None:
    """The parts follow each other in time: what is to be predicted in the test part is nowhere in the training part."""
    ready = prepared(plugin, loaded(plugin))
    panel = ready.panel
    for earlier, later in ((ready.train, ready.validation), (ready.validation, ready.test)):
        _, stop = _target_rows(earlier, len(panel.ids))
        start, _ = _target_rows(later, len(panel.ids))
        if (stop > start).any():
            raise CheckFailedError(f"targets of series {panel.ids[int((stop > start).argmax())]!r} are in two parts")
    if panel.schema.time is None:
        return
    times, values, some = panel.times, panel.values, range(min(MOST_SERIES, len(panel.ids)))
    trained: dict[tuple[object, bytes], int] = {}
    for series in some:
        start = panel.rows(series).start
        for row in range(start, start + int(ready.split.train[series])):
            trained.setdefault((times[row], values[row].tobytes()), series)
    for series in some:
        test = range(panel.rows(series).start + int(ready.split.validation[series]), panel.rows(series).stop)
        found = [trained.get((times[row], values[row].tobytes())) for row in test]
        if None not in found and len(np.unique(values[test.start : test.stop, 0])) > 1:
            raise CheckFailedError(
                f"all test rows of series {panel.ids[series]!r} are training rows of series "
                f"{panel.ids[found[0] or 0]!r}, with the same times and values: the test part was seen in training; "
                "give each series once and whole, for tsformer cuts the windows"
            )


def check_statistics(plugin: DataPlugin) -> None:
    """Later rows decide neither values nor the window: garbage there changes nothing, and no scaling has left a trace.

    A source that reads CSV files is given the example's rows in a file, as they are and with garbage behind the
    training part; training rows must be the same bit by bit. What other sources do inside `load` shows only where it
    leaves a trace: a mean, median, standard deviation, interquartile range, maximum or range over all rows that is 0
    or 1 to the last digits. Anything else there cannot be seen from outside, such as a centred moving average.
    """
    panel = loaded(plugin)
    train = prepared(plugin, panel).split.train
    if plugin.defaults and plugin.defaults(_spoiled(panel, train)) != plugin.defaults(panel):
        raise CheckFailedError(
            "defaults takes the window from values of the validation or test part; look at the frequency, or at the "
            "first half of each series"
        )
    for name in file_options(plugin):
        pair = _from_files(plugin, name, panel, train)
        if pair is None:
            continue
        for series, trained in enumerate(train):
            start = panel.rows(series).start
            one, other = (values[start : start + trained] for values in pair)
            if one.tobytes() != other.tobytes():
                row = int(np.argwhere(one != other)[0][0])
                raise CheckFailedError(
                    f"garbage behind the {trained} training rows of series {panel.ids[series]!r}, in the file that "
                    f"{name} names, changes row {row}: load computes with later rows (statistics of all rows, a "
                    "centred average?); give values as they are, --scale and --transform see training rows only"
                )
    whole = [slice(0, len(panel.values)), *map(panel.rows, range(len(panel.ids)))]
    for number, name in enumerate(panel.schema.columns):
        for part in whole:
            column = panel.values[part, number]
            trace = trace_of(column[~np.isnan(column)])
            if trace:
                raise CheckFailedError(
                    f"column {name!r} has {trace} over all its rows: it was scaled with statistics of the test part; "
                    "give values in their own unit, --scale does it with training rows (if it is chance or by design, "
                    "take an example of another length)"
                )


def _spoiled(panel: Panel, train: np.ndarray) -> Panel:
    """The panel with garbage behind the training rows of each series."""
    values = panel.values.copy()
    for series, trained in enumerate(train):
        rows = panel.rows(series)
        later = slice(rows.start + int(trained), rows.stop)
        values[later] = 3.0 * values[later][::-1] + 50.0
    return replace(panel, values=values)


def _from_files(plugin: DataPlugin, name: str, panel: Panel, train: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """What `load` makes of the panel in a CSV file, and of it spoiled; None when it does not read both."""

    def load(rows: Panel, file: Path) -> np.ndarray | None:
        table_of(rows).to_csv(file, index=False)
        config = validate_options(plugin.config, "data", {**plugin.example.model_dump(), name: str(file)})
        found = plugin.load(config)
        if not isinstance(found, Panel) or not np.array_equal(found.offsets, panel.offsets):
            return None
        named = panel.schema.id is None or found.ids == panel.ids  # a single series may be called like its file
        return found.values if named and found.schema.columns == panel.schema.columns else None

    with tempfile.TemporaryDirectory() as folder:
        try:
            one = load(panel, Path(folder) / "rows.csv")
            other = load(_spoiled(panel, train), Path(folder) / "spoiled.csv")
        except Exception:  # it reads files of another kind, whose reader fails in its own words
            return None
    return None if one is None or other is None else (one, other)


def trace_of(column: np.ndarray) -> str:
    """What scaling with statistics of a column leaves in it, in words; empty for values in a unit of their own.

    Values with few decimals are in a unit of their own, and so are few different ones; what is symmetric about 0, such
    as whole waves, has a mean of 0 by nature, and a bound that is reached often belongs to the quantity.
    """
    if len(np.unique(column)) <= FEW or np.array_equal(column, column.round(6)):
        return ""
    return next(traces(column), "")


def traces(column: np.ndarray) -> Iterator[str]:
    """The same of any column whose values are not all equal."""

    def near(statistic: float, value: float) -> bool:
        return abs(statistic - value) < NEARLY

    low, lower, median, upper, high = np.quantile(column, (0, 0.25, 0.5, 0.75, 1))
    scale, ordered = column.std(), np.sort(column)
    symmetric = np.allclose(ordered, -ordered[::-1], rtol=0, atol=NEARLY * scale)
    if not symmetric and near(column.mean() / scale, 0):
        yield "mean 0"
    if not symmetric and near(median / scale, 0) and (column == 0).sum() <= 1:
        yield "median 0"
    if near(scale, 1) or near(column.std(ddof=1), 1):
        yield "standard deviation 1"
    if near(upper - lower, 1):
        yield "interquartile range 1"
    if near(np.abs(column).max(), 1) and (np.abs(np.abs(column) - 1) < NEARLY).sum() == 1:
        yield "largest value 1"
    if near(high, 1) and (near(low, 0) or near(low, -1)) and 1 in ((column == low).sum(), (column == high).sum()):
        yield f"range {low:.0f} to 1"


def _target_rows(windows: Windows, series: int) -> tuple[np.ndarray, np.ndarray]:
    """The first row to be predicted of each series, and the row after the last, int64 `[series]`."""
    first = np.full(series, np.iinfo(np.int64).max)
    stop = np.full(series, np.iinfo(np.int64).min)
    np.minimum.at(first, windows.series.numpy(), windows.origins.numpy())
    np.maximum.at(stop, windows.series.numpy(), windows.origins.numpy() + windows.horizon)
    return first, stop
