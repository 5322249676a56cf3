"""Checks of a data plugin, each a plain function that explains what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import torch

from tsformer.config import resolve
from tsformer.data.frequency import check_steps
from tsformer.data.panel import Defaults, Panel, Schema
from tsformer.data.windows import Windows
from tsformer.errors import DataError
from tsformer.layers import Layer
from tsformer.plugin import DataPlugin
from tsformer.preparation import Prepared, complete, prepare
from tsformer.testing.sources import check_missing_file, check_read, loaded
from tsformer.testing.trials import CheckFailedError, generators, seeded


def recommended(plugin: DataPlugin, panel: Panel) -> Prepared:
    """Split, scaled and cut as `tsformer fit` does where the user says nothing."""
    return _prepared(replace(panel, defaults=plugin.defaults(panel)) if plugin.defaults else panel)


def prepared(plugin: DataPlugin, panel: Panel) -> Prepared:
    """The same, with the general window if the recommended one does not work, which `check_defaults` tells."""
    try:
        return recommended(plugin, panel)
    except Exception:
        return _prepared(panel)


def _prepared(panel: Panel) -> Prepared:
    settings = resolve([Layer({"model": {"name": "transformer"}})], needs_data=False)
    return prepare(complete(settings, panel), panel)


def check_panel(plugin: DataPlugin) -> None:
    """load returns a Panel: finite values, times that ascend at the schema's frequency, a schema that is true."""
    panel = loaded(plugin)
    schema, times = panel.schema, panel.times
    if not np.isfinite(panel.values).all():
        row, column = np.argwhere(~np.isfinite(panel.values))[0]
        raise CheckFailedError(
            f"column {schema.columns[column]!r} is not finite in row {row}; raise DataError for missing values, or "
            "fill them and say so in `notes`"
        )
    if len(panel.ids) > 1 and schema.id is None:
        raise CheckFailedError(
            f"there are {len(panel.ids)} series, but schema.id names no column that tells them apart"
        )
    if not all(isinstance(name, str) for name in panel.ids):
        raise CheckFailedError("ids are not all text")
    if not all(isinstance(note, str) and "\n" not in note for note in panel.notes):
        raise CheckFailedError("notes are not all lines of text")
    try:
        again = Schema.from_json(json.loads(json.dumps(schema.to_json(), allow_nan=False)))
    except (TypeError, ValueError) as error:
        raise CheckFailedError(f"the schema cannot be kept in a run folder as JSON: {error}") from error
    if again != schema:
        raise CheckFailedError(f"the schema comes back from JSON as {again}, not as {schema}")
    if schema.time is None:
        return
    dated = isinstance(times, pd.DatetimeIndex)
    zone = times.tz if isinstance(times, pd.DatetimeIndex) else None
    if (zone is None) != (schema.zone is None):
        raise CheckFailedError(f"the times are in zone {zone}, the schema says {schema.zone}")
    if schema.frequency is None or dated != isinstance(schema.frequency, str):
        wanted = "a pandas offset such as 'D'" if dated else "a number"
        raise CheckFailedError(
            f"schema.frequency is {schema.frequency!r}; {wanted} is needed to date a forecast, "
            "see tsformer.data.frequency.infer_frequency"
        )
    for series, name in enumerate(panel.ids):
        mine = times[panel.rows(series)]
        if len(mine) > 1 and not (mine.is_monotonic_increasing and mine.is_unique):
            raise CheckFailedError(f"the times of series {name!r} do not ascend; sort the rows of each series by time")
        try:
            check_steps(mine, schema.frequency)
        except DataError as error:
            raise CheckFailedError(f"series {name!r} is not at the schema's frequency: {error}") from error


def check_same_again(plugin: DataPlugin) -> None:
    """The same configuration gives the same data, bit for bit, whatever the state of the random generators."""
    panels = []
    for seed in (1, 2):
        with seeded(seed):
            panels.append(loaded(plugin))
    first, second = panels
    same = first.values.tobytes() == second.values.tobytes() and first.times.equals(second.times)
    if not same or first.ids != second.ids or first.schema != second.schema:
        raise CheckFailedError(
            "loading twice gives other data; where numbers are drawn, use np.random.default_rng(config.seed), and "
            "sort what comes in no order, as files of a folder do"
        )


def check_leaves_rng_alone(plugin: DataPlugin) -> None:
    """Loading neither seeds nor draws from the caller's random generators."""
    with seeded(20201):
        before = generators()
        panel = loaded(plugin)
        if plugin.defaults:
            plugin.defaults(panel)
        for name, state in generators().items():
            if state != before[name]:
                raise CheckFailedError(
                    f"{name} global random generator is changed; use np.random.default_rng(config.seed)"
                )


def check_defaults(plugin: DataPlugin) -> None:
    """The recommended window, or the general one where there is none, fits the data of the example."""
    panel = loaded(plugin)
    if plugin.defaults:
        defaults = plugin.defaults(panel)
        if not isinstance(defaults, Defaults):
            raise CheckFailedError(f"defaults returns {type(defaults).__name__}, not Defaults")
        for name in ("lookback", "horizon", "stride", "season"):
            value = getattr(defaults, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise CheckFailedError(f"defaults recommends {name} = {value!r}, not a whole number from 1")
    try:
        recommended(plugin, panel)
    except DataError as error:
        what = "recommended window does not fit" if plugin.defaults else "general window does not fit the example"
        raise CheckFailedError(f"the {what}: {error}") from error


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


MOST_SERIES = 50
"""That are looked at for rows in common."""


def check_statistics(plugin: DataPlugin) -> None:
    """Nothing that a model is trained with is taken from validation or test rows: garbage there changes nothing."""
    panel = loaded(plugin)
    ready = prepared(plugin, panel)
    garbage = panel.values.copy()
    for series in range(len(panel.ids)):
        rows = panel.rows(series)
        first = rows.start + int(ready.split.train[series])
        garbage[first : rows.stop] = 3.0 * garbage[first : rows.stop][::-1] + 50.0
    spoiled = replace(panel, values=garbage)
    if plugin.defaults and plugin.defaults(spoiled) != plugin.defaults(panel):
        raise CheckFailedError(
            "defaults takes the window from values of the validation or test part; look at the frequency, or at the "
            "first half of each series"
        )
    again = prepared(plugin, spoiled)
    one, other = ready.train.thin(64).batch(), again.train.thin(64).batch()
    if ready.chain.to_json() != again.chain.to_json() or not torch.equal(one.past, other.past):
        raise CheckFailedError("garbage in validation and test rows changes what a model is trained with")
    for number, name in enumerate(panel.schema.columns):
        for start, stop in {
            (0, len(panel.values)),
            *((r.start, r.stop) for r in map(panel.rows, range(len(panel.ids)))),
        }:
            column = panel.values[start:stop, number]
            spread = float(column.std())
            if (
                len(column) > 20
                and abs(column.mean()) < 1e-9
                and min(abs(spread - 1), abs(column.std(ddof=1) - 1)) < 1e-9
            ):
                raise CheckFailedError(
                    f"column {name!r} has mean 0 and standard deviation 1 over all its rows: it was standardised with "
                    "statistics of the test part; give values in their own unit, --scale does it with training rows"
                )


def _target_rows(windows: Windows, series: int) -> tuple[np.ndarray, np.ndarray]:
    """The first row to be predicted of each series, and the row after the last, int64 `[series]`."""
    first = np.full(series, np.iinfo(np.int64).max)
    stop = np.full(series, np.iinfo(np.int64).min)
    np.minimum.at(first, windows.series.numpy(), windows.origins.numpy())
    np.maximum.at(stop, windows.series.numpy(), windows.origins.numpy() + windows.horizon)
    return first, stop


DATA_CHECKS: tuple[Callable[[DataPlugin], None], ...] = (
    check_panel,
    check_same_again,
    check_leaves_rng_alone,
    check_defaults,
    check_split,
    check_statistics,
    check_missing_file,
    check_read,
)
