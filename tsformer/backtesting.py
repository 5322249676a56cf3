"""Backtests from Python: models measured as of earlier moments, beside naive forecasts."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from tsformer import run as runs
from tsformer.data.panel import Panel
from tsformer.errors import UsageError
from tsformer.evaluation import backtest as backtests
from tsformer.evaluation import protocols
from tsformer.evaluation.backtest import Backtest, Candidate, Progress
from tsformer.evaluation.leaderboard import Leaderboard, leaderboard
from tsformer.evaluation.origin_table import forecasts_table
from tsformer.evaluation.origins import ORIGINS, needs, rolling_plan
from tsformer.forecaster import Forecaster
from tsformer.predictive import asked
from tsformer.report.leaderboard import leaderboard_frame


@dataclass(frozen=True)
class Backtested:
    """What a backtest found.

    Attributes:
        leaderboard: a row for each model and naive forecast, the best first; what is undefined is NaN.
        forecasts: every forecast, a row for each model, origin, series, step and target, with the true value `y`.
        verdict: in words, whether the best is really better than the naive forecast and than the runner-up.
        notes: what was left out, and why, one line each.
        details: all of it, for programs.
    """

    leaderboard: pd.DataFrame
    forecasts: pd.DataFrame
    verdict: tuple[str, ...]
    notes: tuple[str, ...]
    details: tuple[Backtest, Leaderboard]


def backtest(
    models: Mapping[str, Any] | Iterable[Any] | Any,
    data: Any,
    *,
    horizon: int | None = None,
    origins: int = ORIGINS,
    step: int | None = None,
    refit: Literal["never", "every"] | int = "never",
    protocol: str | None = None,
    levels: str | Iterable[float] = (),
    intervals: str | None = None,
    samples: int | None = None,
    metric: str | None = None,
    out: str | Path | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Backtested:
    """Fit models as of earlier moments, forecast what came after, and say who was right.

    Naive forecasts are always beside them.

    Args:
        models: by name, or several, or one: a `Forecaster`, whose settings are fitted anew; the name of a model plugin;
            or the folder of a run (a `Path`), which is not fitted again.
        data: a table, or what `tsformer.read` returned; a table's columns are those of the first `Forecaster`.
        horizon: steps of each forecast; None is that of the models, or chosen from the frequency.
        origins, step: how many moments to forecast from, and rows from one to the next (None: the horizon).
        refit: "never", "every" or every so many origins.
        protocol: "ltsf" in place of origins, see `evaluation.protocols`.
        levels: of intervals, in percent, "80,95" or [80, 95].
        intervals: where they come from, "native", "conformal" or "adaptive".
        samples: paths to draw where intervals have to be found from them.
        metric: by which models are sorted and compared; None is MASE.
        out: a folder that keeps what is finished; the same call once more goes on from there.
        on_progress: told of what is being done.

    Raises:
        DataError, UsageError, PluginError: what is wrong, in one line.

    Warns:
        UserWarning: a model has no forecast for some windows.
    """
    chosen = _named(models)
    forecasters = {
        name: Forecaster(each, horizon=horizon) if isinstance(each, str) else each for name, each in chosen.items()
    }
    candidates: dict[str, Candidate] = {}
    for name, each in forecasters.items():
        if isinstance(each, Forecaster):
            candidates[name] = each._settings()
        elif isinstance(each, os.PathLike):
            candidates[name] = runs.load(Path(each))[0]
        else:
            raise UsageError(
                f"{name}: a model is a Forecaster, the name of a plugin, or the Path of a run, not {each!r}"
            )
    first = next((each for each in forecasters.values() if isinstance(each, Forecaster)), None) or Forecaster()
    panel = data if isinstance(data, Panel) else first._panel(data)
    steps, season, seen = needs(candidates, panel)
    steps = horizon or steps
    if protocol is None:
        plan = rolling_plan(panel, steps, origins, step, refit, seen=seen)
    elif protocol in protocols.PROTOCOLS:
        plan = protocols.ltsf(panel, steps)
    else:
        raise UsageError(f"protocol must be {' or '.join(protocols.PROTOCOLS)}, not {protocol!r}")
    found = backtests.backtest(
        candidates,
        panel,
        plan,
        ask=asked(levels, samples=samples),
        intervals=intervals,
        season=season,
        folder=None if out is None else Path(out),
        on_progress=on_progress,
    )
    board = leaderboard(found, metric)
    for name, entry in found.entries.items():
        for failure in entry.failures:
            warnings.warn(
                f"{name} has no forecast of {failure.windows} window(s) at {failure.at()}: {failure.reason}",
                stacklevel=2,
            )
    notes = (*map(str, panel.notes), *plan.notes)
    return Backtested(leaderboard_frame(board), forecasts_table(found), board.verdict, notes, (found, board))


def _named(models: Any) -> dict[str, Any]:
    """Models by name; those of a list are called like their plugin or folder."""
    if isinstance(models, Mapping):
        return {str(name): each for name, each in models.items()}
    several: Sequence[Any]
    several = [models] if isinstance(models, str | os.PathLike | Forecaster) else list(models)
    found: dict[str, Any] = {}
    for each in several:
        name = (
            each.model if isinstance(each, Forecaster) else Path(each).name if isinstance(each, os.PathLike) else each
        )
        if name in found:
            raise UsageError(f"two models are called {name!r}: give them names, {{'first': ..., 'second': ...}}")
        found[str(name)] = each
    if not found:
        raise UsageError("nothing to measure: give at least one model")
    return found
