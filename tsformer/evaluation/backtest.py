"""A backtest: models fitted as of earlier origins, and measured by what came after, beside naive forecasts.

A fit is given a panel that is cut at the first of its origins, so that nothing later can reach it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tsformer.calibration import clock
from tsformer.data.frequency import season_of
from tsformer.data.panel import Panel, Schema
from tsformer.errors import DataError, TsformerError, UsageError, in_words
from tsformer.evaluation.baselines import YARDSTICKS
from tsformer.evaluation.entries import Entry, Tally, Truth
from tsformer.evaluation.origin_intervals import with_intervals
from tsformer.evaluation.outlook import Outlook, outlooks
from tsformer.evaluation.parts import Folder, Part, print_of_model, prints_of_data
from tsformer.evaluation.plan import Block, Plan
from tsformer.evaluation.refits import fit_before
from tsformer.fitted import Fitted
from tsformer.history import in_columns_of
from tsformer.intervals import kind_of_intervals
from tsformer.plugin import Task
from tsformer.predictive import Ask, Predictive
from tsformer.settings import Settings
from tsformer.training.loop import Progress as Training

Candidate = Settings | Fitted
"""Settings to fit by, as of each block of origins; or a model that is fitted already, and stays as it is."""


@dataclass(frozen=True)
class Progress:
    """How far a backtest is.

    Attributes:
        name: of the model at work.
        part: which of `parts`, from 1: a block of origins for each model.
        training: where its fit is; None before and after.
    """

    name: str
    part: int
    parts: int
    training: Training | None = None


@dataclass(frozen=True)
class Backtest:
    """What became of a plan.

    Attributes:
        plan: origins and blocks.
        panel: the data.
        season: steps in one season, of MASE and of the naive forecasts.
        ask: what was asked for beside points.
        entries: by name, the candidates first.
    """

    plan: Plan
    panel: Panel
    season: int
    ask: Ask
    entries: Mapping[str, Entry]

    @property
    def origins(self) -> int:
        """How many origins the plan has."""
        return 1 + max(int(block.number.max()) for block in self.plan.blocks)

    @property
    def reference(self) -> str:
        """The naive forecast that skill is measured against."""
        return "seasonal_naive" if self.season > 1 else "last_value"


def backtest(
    candidates: Mapping[str, Candidate],
    panel: Panel,
    plan: Plan,
    *,
    ask: Ask | None = None,
    intervals: str | None = None,
    season: int | None = None,
    folder: Path | None = None,
    keep: bool = True,
    by_origin: bool = True,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Backtest:
    """Measure models by a plan: each is fitted for each block, and forecasts all its origins in one pass.

    A model without a forecast for some windows, because its fit fails or its rows are too few, does not end the
    backtest: these windows count nowhere in its errors, and its entry says why.

    Args:
        candidates: by name. One that is called like a naive forecast takes its place, if it is the plugin of that name.
        panel: all rows, those that are forecast included.
        plan: see `origins.rolling_plan` and `protocols`.
        ask: levels of intervals.
        intervals: where they come from, see `intervals.kind_of_intervals`.
        season: steps in one season; None is that of the first candidate.
        folder: where finished parts are kept, so that a backtest that was stopped goes on; see `parts.Folder`.
        keep: whether the forecasts are kept in the result.
        by_origin: whether losses are kept by series and origin, for a leaderboard; by series alone takes less memory.
        on_progress: told of what is being done.

    Raises:
        UsageError: a name that is taken, a candidate that does not forecast, or a folder of another backtest.
        TsformerError: that of the first candidate, when none of them has any forecast.
    """
    ask = ask or Ask()
    _check(candidates, panel, plan)
    season = season or _season(candidates, panel)
    work = _Work(panel, plan, ask, intervals, season, by_origin=by_origin)
    kept = None
    if folder is not None:
        asked = f"{ask.levels} {ask.samples} {ask.seed} {intervals}"
        about = prints_of_data(panel, plan) | {"intervals": asked}
        kept = Folder(folder, about, {name: print_of_model(each) for name, each in candidates.items()})
    entries = {}
    for place, (name, candidate) in enumerate(candidates.items()):
        tally = Tally(work.truth, ask.probabilities, keep=keep)
        for number, block in enumerate(plan.blocks):
            at = Progress(name, place * len(plan.blocks) + number + 1, len(candidates) * len(plan.blocks))
            on_progress(at)
            part = kept.read(name, number) if kept else None
            if part is None:
                part = work.of_candidate(candidate, block, _training(on_progress, at))
                part = kept.recorded(name, number, part) if kept else part
            tally.take(block, part)
        entries[name] = tally.entry(name)
    _refuse_empty(entries)
    for name in YARDSTICKS:
        if name not in candidates and name in _usable(plan, season):
            tally = Tally(work.truth, ask.probabilities, keep=keep)
            for block in plan.blocks:
                tally.take(block, work.of_baseline(name, block))
            entries[name] = tally.entry(name, yardstick=True)
    return Backtest(plan, panel, season, ask, entries)


class _Work:
    """What all models of a backtest share; arguments as of `backtest`."""

    def __init__(
        self, panel: Panel, plan: Plan, ask: Ask, intervals: str | None, season: int, *, by_origin: bool
    ) -> None:
        self._panel, self._plan, self._ask, self._intervals, self._season = panel, plan, ask, intervals, season
        self.truth = Truth(panel, plan, season, by_origin=by_origin)

    def of_candidate(self, candidate: Candidate, block: Block, on_step: Callable[[Training], None]) -> Part:
        """The forecasts of a model; nothing but a reason where it cannot be fitted."""
        started, notes, horizon = time.perf_counter(), list[str](), self._plan.horizon
        fits = int(isinstance(candidate, Settings))
        try:
            if isinstance(candidate, Settings):
                fitted = fit_before(candidate, self._panel, block, horizon, notes.append, on_step)
            else:
                fitted = candidate
                notes += _flattered(fitted, self._panel, block)
            said = self._said(fitted, block, notes.append)
        except (TsformerError, MemoryError, RuntimeError) as error:
            ours = error if isinstance(error, TsformerError) else TsformerError(in_words(error))
            said = iter([Outlook(np.arange(len(block.series)), None, ours)])
        return Part(said, time.perf_counter() - started, fits, notes)

    def _said(self, fitted: Fitted, block: Block, note: Callable[[str], None]) -> Iterator[Outlook]:
        assert isinstance(fitted.schema, Schema)
        panel = in_columns_of(self._panel, fitted.schema)
        if fitted.schema.targets != self._panel.schema.targets:
            own, wanted = (", ".join(schema.targets) for schema in (fitted.schema, self._panel.schema))
            raise DataError(f"the model predicts {own}, and the backtest is of {wanted}: choose them with --target")
        kind = kind_of_intervals(fitted, self._ask, self._intervals)
        ask = self._ask if kind == "native" else replace(self._ask, levels=())
        said = outlooks(fitted, panel, block.series, block.origins, block.number, self._plan.horizon, ask)
        if kind is None or kind == "native":
            return said
        if fitted.calibration is None:
            raise UsageError("the run holds no errors from which intervals could be made: fit it again")
        adaptive, season, levels = kind == "adaptive", fitted.problem.season, self._ask.levels
        return with_intervals(said, fitted.calibration, panel, block, levels, season, adaptive=adaptive, note=note)

    def of_baseline(self, name: str, block: Block) -> Part:
        """A naive forecast."""
        return Part(self._naive(name, block))

    def _naive(self, name: str, block: Block) -> Iterator[Outlook]:
        first, size = self._panel.offsets[block.series] + block.origins, self.truth.at_once
        for start in range(0, len(first), size):
            some = np.arange(start, min(start + size, len(first)))
            point = YARDSTICKS[name](self._panel, block.series[some], first[some], self._plan.horizon, self._season)
            yield Outlook(some, Predictive(point))


def _flattered(fitted: Fitted, panel: Panel, block: Block) -> list[str]:
    """A note on forecasts of times on which a run was fitted, as far as that can be known: errors tell when they began
    to be held out."""
    calibration = fitted.calibration
    if calibration is None or not len(calibration.begins):
        return ["whether the run was fitted on some of these rows is not known: its errors are too small then"]
    known = np.isin(panel.ids, list(calibration.scales)) if panel.schema.id else np.ones(len(panel.ids), dtype=bool)
    begins = clock(panel)[panel.offsets[block.series] + block.origins]
    before = int((known[block.series] & (begins < calibration.begins[0])).sum())
    if not before:
        return []
    return [
        f"{before} of {len(begins)} forecasts are of times on which the run was fitted: errors there are too small; "
        "give later rows"
    ]


def _usable(plan: Plan, season: int) -> tuple[str, ...]:
    """The naive forecasts that a plan is read against: without a season they are all the last value."""
    if season == 1:
        return ("last_value",)
    return ("last_value", "seasonal_naive") if plan.scale is not None else tuple(YARDSTICKS)


def _training(on_progress: Callable[[Progress], None], at: Progress) -> Callable[[Training], None]:
    return lambda training: on_progress(replace(at, training=training))


def _season(candidates: Mapping[str, Candidate], panel: Panel) -> int:
    """Steps in one season: what the first candidate says that says anything, else from the data."""
    for candidate in candidates.values():
        given = candidate.problem.season if isinstance(candidate, Fitted) else candidate.window.season
        if given is not None:
            return given
    return panel.defaults.season or season_of(panel.schema.frequency)


def _check(candidates: Mapping[str, Candidate], panel: Panel, plan: Plan) -> None:
    """Raises UsageError for candidates that cannot be measured by the plan."""
    faults = []
    for name, candidate in candidates.items():
        settings = candidate.settings if isinstance(candidate, Fitted) else candidate
        if name in YARDSTICKS and settings.model.name != name:
            faults.append(f"{name} is the name of a naive forecast that is always there: give the model another one")
        if settings.task is not Task.FORECAST:
            faults.append(f"{name}: a backtest is of forecasts, and its task is {settings.task}")
        own = settings.window.horizon
        if isinstance(candidate, Settings) and own not in (None, plan.horizon):
            faults.append(f"{name}: its horizon is {own}, and that of the backtest {plan.horizon}")
    if faults:
        raise UsageError(*faults)


def _refuse_empty(entries: Mapping[str, Entry]) -> None:
    """Raise what the first candidate failed of, when no candidate has any forecast."""
    if entries and not any(entry.score.left_out < entry.score.values for entry in entries.values()):
        first = next(iter(entries.values()))
        failure = first.failures[0] if first.failures else None
        if failure is not None:
            error = TsformerError(f"{first.name}: {failure.reason}")
            error.exit_code = failure.exit_code
            raise error


def _as_ours(error: BaseException) -> TsformerError:
    return error if isinstance(error, TsformerError) else TsformerError(in_words(error))
