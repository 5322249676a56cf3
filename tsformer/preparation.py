"""From a data source to windows: read, choose the window, split, fit the transforms, cut."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tsformer import registry
from tsformer.config import validate_options
from tsformer.data.frames import read_panel
from tsformer.data.frequency import hours_in_week, season_of
from tsformer.data.panel import Panel, Schema
from tsformer.data.precision import check_precision
from tsformer.data.split import Split, check_split, split_by_time
from tsformer.data.transforms import Chain, Link, Transformed
from tsformer.data.windows import Windows, cut_windows
from tsformer.errors import DataError, PluginError, UsageError
from tsformer.nn.outputs import OUTPUTS
from tsformer.plugin import Problem, State, Task
from tsformer.registry import Kind
from tsformer.settings import Chosen, Settings, WindowConfig

MOST_LOST = 2**31
"""Rows that a transform may lose."""


@dataclass(frozen=True)
class Prepared:
    """A panel, split, transformed and cut into windows."""

    panel: Panel
    split: Split
    chain: Chain
    data: Transformed
    problem: Problem
    train: Windows
    validation: Windows
    test: Windows


def read(name: str, **options: Any) -> Panel:
    """Load data by a data plugin's name: `read("csv", path="air_passengers")`.

    Raises:
        PluginError: unknown plugin.
        UsageError: options that it does not take.
        DataError: data that cannot be taken.
    """
    plugin = registry.get(Kind.DATA, name)
    return load_data(Chosen(Kind.DATA, name, plugin, validate_options(plugin.config, "data", options)))


def load_data(data: Chosen | None) -> Panel:
    """The panel of a data plugin, with the windows that it recommends.

    Raises:
        UsageError: None, as in a run that was fitted on rows from Python.
        DataError: data that cannot be taken.
    """
    if data is None:
        raise UsageError("this run was fitted on rows from Python; give rows to predict: --input FILE, predict(table)")
    with data.at_fault("load"), _missing_file_named():
        panel = data.plugin.load(data.config)
    panel = _checked(panel, data)
    if not data.plugin.defaults:
        return panel
    with data.at_fault("defaults"):
        return replace(panel, defaults=data.plugin.defaults(panel))


def read_rows(settings: Settings, source: str | None, schema: Schema) -> Panel:
    """New rows in the columns of a schema: from a file or "-" (stdin), or the run's own data when None.

    Raises:
        DataError: rows that cannot be taken.
    """
    data = settings.data
    try:
        if data is not None and data.plugin.read is not None:
            with data.at_fault("read"), _missing_file_named():
                panel = data.plugin.read(data.config, source, schema)
            return _checked(panel, data)
        return load_data(data) if source is None else read_panel(source, schema)
    except DataError as error:
        if source is not None:
            raise
        raise DataError(f"the run's own data cannot be read again, give rows with --input ({error})") from None


@contextmanager
def _missing_file_named() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(f"no file '{error.filename}'" if error.filename else str(error)) from error


def _checked(panel: object, data: Chosen) -> Panel:
    if not isinstance(panel, Panel):
        raise PluginError(f"{data} returned {type(panel).__name__}, not a Panel")
    if not np.isfinite(panel.values).all():
        raise DataError(f"{data} returned values that are not finite")
    return panel


def complete(settings: Settings, panel: Panel) -> Settings:
    """Fill in the windows that the user left open: from the data plugin, else from frequency and number of rows."""
    # the middle series decides, so that one short series does not cut the windows of all; the split will name it
    window, defaults, rows = settings.window, panel.defaults, int(np.median(panel.lengths))
    season = window.season or defaults.season or season_of(panel.schema.frequency)
    horizon = window.horizon or defaults.horizon
    if horizon is None:
        horizon = max(1, min(season if 1 < season <= 24 else 12, rows // 10))
    lookback = window.lookback or defaults.lookback
    if lookback is None:
        wanted = max(2 * season, 2 * horizon, 24, hours_in_week(panel.schema.frequency))
        # at least half of the training rows stay targets
        known = replace(settings, window=window.model_copy(update={"season": season}))
        rows -= build_chain(known, panel.schema).lost
        lookback = max(1, min(wanted, rows * 7 // 20 - horizon))
    stride = window.stride or defaults.stride or 1
    return replace(settings, window=WindowConfig(lookback=lookback, horizon=horizon, season=season, stride=stride))


def prepare(settings: Settings, panel: Panel, split: Split | None = None) -> Prepared:
    """Split, fit the transforms on training rows, cut windows.

    Args:
        settings: with a complete window.
        split: where the parts end, for a published split; by default 70/10/20. Rows after `split.lengths` are not used.

    Raises:
        DataError: too few rows, or values outside a transform's domain.
        UsageError: a split that does not fit the panel.
    """
    window = settings.window
    lookback, horizon, season = window.lookback, window.horizon, window.season
    if lookback is None or horizon is None or season is None:
        raise UsageError("the window is not complete; see complete")
    targets = len(panel.schema.targets)
    chain = build_chain(settings, panel.schema)
    ids = panel.ids if panel.schema.id else None
    if split is None:
        split = split_by_time(panel.lengths, horizon, lookback, chain.lost, ids)
    else:
        check_split(split, panel.lengths, horizon, lookback, chain.lost, ids)
    chain.fit(panel, split.train)
    data = chain.forward(panel)
    tensor = data.tensor()
    check_precision(panel, chain, data)

    def windows(first: np.ndarray, stop: np.ndarray, stride: int = 1) -> Windows:
        return cut_windows(
            tensor,
            data.offsets,
            first - chain.lost,
            stop - chain.lost,
            lookback=lookback,
            horizon=horizon,
            targets=targets,
            known=len(panel.schema.future_covariates),
            stride=stride,
        )

    problem = Problem(
        task=Task.FORECAST,
        lookback=lookback,
        horizon=horizon,
        targets=targets,
        past_covariates=len(panel.schema.past_covariates),
        future_covariates=len(panel.schema.future_covariates),
        season=season,
        output=settings.train.output,
        outputs=OUTPUTS[settings.train.output](settings.train.loss, settings.train.huber_delta).outputs,
    )
    first = np.full_like(split.train, lookback + chain.lost)
    return Prepared(
        panel=panel,
        split=split,
        chain=chain,
        data=data,
        problem=problem,
        train=windows(first, split.train, window.stride or 1),
        validation=windows(split.train, split.validation),
        test=windows(split.validation, split.lengths),
    )


def build_chain(settings: Settings, schema: Schema, states: Mapping[str, list[State]] | None = None) -> Chain:
    """The chain of transforms: those named act on the targets, the scaler on every column."""
    wanted = [(chosen, (0, len(schema.targets))) for chosen in settings.transforms]
    if settings.scale is not None:
        wanted.append((settings.scale, (0, len(schema.columns))))
    built = []
    for chosen, columns in wanted:
        with chosen.at_fault("build"):
            with_season, config = chosen.plugin.with_season, chosen.config
            transform = chosen.plugin.build(with_season(config, settings.window.season or 1) if with_season else config)
        lost = getattr(transform, "lost_rows", None)
        if not isinstance(lost, int) or isinstance(lost, bool) or not 0 <= lost <= MOST_LOST:
            raise PluginError(f"{chosen}: what build returns needs lost_rows, a whole number from 0 to {MOST_LOST}")
        built.append(Link(chosen.name, transform, columns))
    return Chain(built, states)


def origin_rows(prepared: Prepared) -> np.ndarray:
    """Row in `panel.values` of the first predicted step of each test window, int64 `[windows]`."""
    series = prepared.test.series.numpy()
    within = prepared.test.origins.numpy() - prepared.data.offsets[series]
    return np.asarray(prepared.panel.offsets[series] + within + prepared.chain.lost)
