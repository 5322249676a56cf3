"""Rolling origins: the last ones of each series, as far apart as asked for, and what may be learned before them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from tsformer.data.panel import Panel
from tsformer.data.selection import named
from tsformer.data.split import Split
from tsformer.errors import DataError, UsageError
from tsformer.evaluation.plan import Block, Plan
from tsformer.fitted import Fitted
from tsformer.preparation import build_chain, complete
from tsformer.settings import Settings, WindowConfig

ORIGINS = 8
VALIDATION = 10
"""One row of so many before the first origin is for validation, at least a horizon of them."""


def rolling_plan(
    panel: Panel,
    horizon: int,
    origins: int = ORIGINS,
    step: int | None = None,
    refit: Literal["never", "every"] | int = "never",
    *,
    seen: int = 1,
) -> Plan:
    """The last origins of each series (Tashman 2000): from the last one the steps reach to the series' last row.

    What is learned for an origin, or for several, are the rows before the first of them, in each series by itself. The
    last tenth of these, a horizon at least, is the validation part. Origins are left out of a series that has too few
    rows before them, and where the steps that follow hold a gap in time.

    Args:
        panel: the data.
        horizon: steps of each forecast.
        origins: of each series.
        step: rows from one origin to the next; the horizon when None.
        refit: whether models are fitted again: never, before every origin, or before every so many.
        seen: rows that a window of every model has to see, those included that transforms lose.

    Raises:
        UsageError: numbers that are none.
        DataError: no series is long enough; says how many rows are needed.
    """
    step = horizon if step is None else step
    for flag, value in (("--horizon", horizon), ("--origins", origins), ("--step", step)):
        if not _is_count(value):
            raise UsageError(f"{flag} must be a whole number from 1, not {value!r}")
    if refit not in ("never", "every") and not _is_count(refit):
        raise UsageError(f"--refit must be never, every, or a number of origins, not {refit!r}")
    each = panel.lengths[:, None] - horizon - step * np.arange(origins - 1, -1, -1)  # [series, origins]
    enough = each - _validation(each, horizon) >= seen + horizon
    if not enough.any():
        raise DataError(
            f"{'the longest series' if len(panel.ids) > 1 else 'the table'} has {int(panel.lengths.max())} rows; one "
            f"origin with horizon {horizon}, a validation part as long and a window of {seen} + {horizon} rows to "
            f"learn from need {_shortest(horizon, seen)}: use a smaller --horizon or --lookback, or more data"
        )
    first = panel.offsets[:-1, None] + each
    crossed = np.searchsorted(panel.breaks, first) != np.searchsorted(panel.breaks, first + horizon)
    used = enough & ~crossed
    if not used.any():
        raise DataError(
            f"the {horizon} steps after each origin hold a gap in time: use another --step, or fill the gaps: "
            "--gaps fill"
        )
    numbers = np.flatnonzero(used.any(axis=0))
    size = len(numbers) if refit == "never" else 1 if refit == "every" else int(refit)
    parts = [numbers[start : start + size] for start in range(0, len(numbers), size)]
    blocks = tuple(_block(each, used, part, int(numbers[0]), horizon) for part in parts)
    before = np.where(used.any(axis=1), np.where(used, each, panel.lengths[:, None]).min(axis=1), panel.lengths)
    return Plan(horizon, blocks, before.astype(np.int64), None, _notes(panel, enough, crossed, step, refit, horizon))


def needs(
    candidates: Mapping[str, Settings | Fitted], panel: Panel, window: WindowConfig | None = None
) -> tuple[int, int, int]:
    """Horizon and season of a backtest, and how many rows a window has to see for every model that is to be fitted.

    Horizon and season are those that the settings name, else those of a run, else what suits the data.

    Args:
        candidates: by name; one at least.
        panel: the data.
        window: whose horizon and season come before all others, where it names any.

    Raises:
        UsageError: candidates of different horizons.
    """
    windows = {
        name: each.settings.window if isinstance(each, Fitted) else each.window for name, each in candidates.items()
    }
    to_fit = {name: each for name, each in candidates.items() if isinstance(each, Settings)}
    asked = {name: windows[name].horizon for name in to_fit if windows[name].horizon is not None}
    if window is not None and window.horizon is not None:
        asked = {"": window.horizon}
    horizons = asked or {name: window.horizon for name, window in windows.items() if window.horizon is not None}
    if len(set(horizons.values())) > 1:
        said = ", ".join(f"{name} {horizon}" for name, horizon in horizons.items())
        raise UsageError(f"the models forecast different numbers of steps ({said}): give one --horizon for all")
    seasons = (each.season for each in ([window] if window else []) + list(windows.values()))
    season = next((season for season in seasons if season is not None), None)
    usual = None
    seen = 1
    for settings in to_fit.values():
        usual = complete(settings, panel)
        lookback = settings.window.lookback or 1
        seen = max(seen, lookback + build_chain(usual, panel.schema).lost)
    horizon = next(iter(horizons.values()), None) or (usual.window.horizon if usual else None)
    season = season or (usual.window.season if usual else None)
    assert horizon is not None
    assert season is not None
    return horizon, season, seen


def _block(each: np.ndarray, used: np.ndarray, numbers: np.ndarray, earliest: int, horizon: int) -> Block:
    """Some of the origins, with a split that ends before the first one of each series."""
    own = used[:, numbers]
    place, column = np.nonzero(own.T)[::-1]  # by origin, then by series
    there = own.any(axis=1)
    border = np.where(there, each[np.arange(len(each)), numbers[own.argmax(axis=1)]], 0).astype(np.int64)
    validation = np.where(there, _validation(border, horizon), 0)
    origins = each[place, numbers[column]].astype(np.int64)
    return Block(Split(border - validation, border, border), place, origins, numbers[column] - earliest)


def _validation(rows: np.ndarray, horizon: int) -> np.ndarray:
    return np.asarray(np.maximum(rows // VALIDATION, horizon))


def _shortest(horizon: int, seen: int) -> int:
    """The fewest rows with one origin."""
    rows = np.arange(4 * (horizon + seen) + 20)
    enough = rows - _validation(rows, horizon) >= seen + horizon
    return int(enough.argmax()) + horizon


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _notes(
    panel: Panel, enough: np.ndarray, crossed: np.ndarray, step: int, refit: str | int, horizon: int
) -> tuple[str, ...]:
    origins = enough.shape[1]
    apart = f", {step} rows apart" if origins > 1 else ""
    often = {"never": "fitted once, before the first", "every": "fitted anew before each"}
    how = often.get(str(refit), f"fitted anew before every {refit}")
    notes = [f"{origins} origin{'s' if origins > 1 else ''}{apart}, horizon {horizon}, {how}"]
    none = np.asarray(~enough.any(axis=1))
    some = np.asarray(~none & ~enough.all(axis=1))
    if none.any():
        notes.append(f"left out, too short for any origin: {named(panel, none)}")
    if some.any():
        lost = int((~enough[some]).sum())
        notes.append(f"{lost} of {origins * int(some.sum())} origins left out of {named(panel, some)}, too short there")
    gaps = int((enough & crossed).sum())
    if gaps:
        notes.append(f"{gaps} origin(s) left out, for gaps in the steps that follow")
    return tuple(notes)
