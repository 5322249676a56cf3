"""Checks of a data plugin, each a plain function that explains what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pandas as pd

from tsformer.data.frequency import check_steps
from tsformer.data.panel import Schema
from tsformer.errors import DataError
from tsformer.findings import Finding
from tsformer.plugin import DataPlugin
from tsformer.testing.data_leakage import check_split, check_statistics, fault_of, recommended
from tsformer.testing.data_read import check_missing_file, check_read, loaded
from tsformer.testing.failure import CheckFailedError
from tsformer.testing.generators import generators, seeded


def check_panel(plugin: DataPlugin) -> None:
    """load returns a Panel: finite values, or NaN where it is masked, times that ascend at the schema's frequency, a
    schema that is true.
    """
    panel = loaded(plugin)
    schema, times = panel.schema, panel.times
    bad = np.isinf(panel.values) if panel.masked else ~np.isfinite(panel.values)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise CheckFailedError(
            f"column {schema.columns[column]!r} is not finite in row {row}; raise DataError for missing values, fill "
            "them and say so in `notes`, or let them be NaN in a Panel that is masked"
        )
    if len(panel.ids) > 1 and schema.id is None:
        raise CheckFailedError(
            f"there are {len(panel.ids)} series, but schema.id names no column that tells them apart"
        )
    if not all(isinstance(name, str) for name in panel.ids):
        raise CheckFailedError("ids are not all text")
    if not all(isinstance(note, str | Finding) and "\n" not in str(note) for note in panel.notes):
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
        breaks = panel.breaks[(panel.breaks > panel.offsets[series]) & (panel.breaks < panel.offsets[series + 1])]
        for stretch in np.split(np.arange(len(mine)), breaks - panel.offsets[series]):
            try:
                check_steps(mine[stretch], schema.frequency)
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
        fault = fault_of(plugin.defaults(panel))
        if fault:
            raise CheckFailedError(fault)
    try:
        recommended(plugin, panel)
    except DataError as error:
        what = "recommended window does not fit" if plugin.defaults else "general window does not fit the example"
        raise CheckFailedError(f"the {what}: {error}") from error


DATA_CHECKS: tuple[Callable[[DataPlugin], str | None], ...] = (
    check_panel,
    check_same_again,
    check_leaves_rng_alone,
    check_defaults,
    check_split,
    check_statistics,
    check_missing_file,
    check_read,
)
