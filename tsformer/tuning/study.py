"""A study: trials one after another, each with options that optuna proposes from the trials before it.

Proposals depend on the finished trials, their number and the seed alone, so that a study which was stopped and goes on
has the same trials as one that was not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tsformer import fitting
from tsformer.config import Resolved, trace
from tsformer.config_layer import Layer
from tsformer.data.panel import Panel
from tsformer.data.sequences import Sequences
from tsformer.errors import DivergedError, ResourceError, TsformerError, UsageError, in_words, out_of_memory
from tsformer.evaluation.parts import print_of_model, prints_of_data
from tsformer.evaluation.plan import Block, Plan
from tsformer.fitted import Fitted
from tsformer.parameters import by_gradients, parameters_of
from tsformer.plugin import Task
from tsformer.preparation import build_chain, prepare, rows_of
from tsformer.search import Choices, Range
from tsformer.settings import Settings
from tsformer.training.loop import Progress
from tsformer.tuning.judge import Judge, Known, known_part, lookbacks
from tsformer.tuning.proposals import Proposals
from tsformer.tuning.record import Record, Trial, opened
from tsformer.tuning.space import LOOKBACK, SearchSpace, layer_of, plain, search_space, with_options

TRIALS = 30
MOST_OF = 0.8
"""Of the validation windows that the usual lookback can see."""
RUNGS = 20
"""Parts of a training after which trials are compared; those of another number of steps at the same share of it."""


@dataclass(frozen=True)
class Watch:
    """Who is told of a study, and may end it.

    Attributes:
        note: told of what the user should hear, one line each.
        begin: told of the study before its first trial, with the trials that it has already.
        step: told of the training of the trial at work.
        trial: told of each trial that is finished.
        interrupted: asked before each step; True ends the study, without the trial at work.
    """

    note: Callable[[str], None] = lambda line: None
    begin: Callable[[Study], None] = lambda study: None
    step: Callable[[Progress], None] = lambda progress: None
    trial: Callable[[Trial], None] = lambda trial: None
    interrupted: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class Study:
    """What is searched, and by what it is judged.

    Attributes:
        layers: the configuration that all trials share.
        settings: of the first trial, with a complete window.
        space: what is chosen.
        judge: of the trials.
        naive: a naive forecast and its score on the same windows, None where it is undefined.
        trained: whether trials can be compared while they are trained.
        trials: that are finished.
    """

    layers: tuple[Layer, ...]
    settings: Settings
    space: SearchSpace
    judge: Judge
    naive: tuple[str, float | None]
    trained: bool
    trials: tuple[Trial, ...] = ()

    @property
    def best(self) -> Trial | None:
        """The trial with the least error; None before one is complete."""
        complete = [trial for trial in self.trials if trial.score is not None]
        return min(complete, key=lambda trial: (trial.score, trial.number), default=None)

    def settings_of(self, options: Mapping[str, Any]) -> Settings:
        """The settings of a trial, with a complete window. Raises UsageError."""
        return self._complete(with_options(self.layers, options))

    def resolved(self, trial: Trial) -> Resolved:
        """The configuration of a trial with a complete window, and where each value comes from."""
        found = trace([*self.layers, layer_of(trial.options, "tuned")], needs_data=False)
        return replace(found, settings=self._complete(found.settings))

    def _complete(self, settings: Settings) -> Settings:
        own, window = settings.window, self.settings.window
        found = {
            "lookback": own.lookback or window.lookback,
            "horizon": window.horizon,
            "season": window.season,
            "stride": own.stride or window.stride,
        }
        return replace(settings, window=own.model_copy(update=found))


def tune(
    layers: Sequence[Layer],
    data: Panel | Sequences,
    *,
    search: Mapping[str, Any] | None = None,
    only: bool = False,
    fix: Sequence[str] = (),
    trials: int = TRIALS,
    timeout: float | None = None,
    path: Path | None = None,
    watch: Watch | None = None,
) -> Study:
    """Search for options with the least error on the validation part. The test part is not looked at.

    Args:
        layers: what is given; options in them are searched only if `search` names them.
        data: a panel.
        search: spaces by option, `{"model.d_model": (16, 256)}`, as `Field(search=...)` declares them or in words.
        only: search nothing but that.
        fix: options that are left as they are.
        trials: in the whole study, with those that its file has already.
        timeout: seconds after which no trial is begun, and the one at work is ended unless there is none before it.
        path: a file in which the study is kept, so that it can go on.
        watch: who is told of it.

    Raises:
        TsformerError: what is wrong with options or data; or that of the first trial, when none succeeds.
        ResourceError: optuna is not there.
    """
    if not isinstance(trials, int) or isinstance(trials, bool) or trials < 1:
        raise UsageError(f"--trials must be a whole number from 1 on, not {trials!r}")
    if timeout is not None and not (isinstance(timeout, int | float) and 0 < timeout < math.inf):
        raise UsageError(f"--timeout must be a number of seconds above 0, not {timeout!r}")
    watch, started = watch or Watch(), time.monotonic()
    require_optuna()
    study = begun(layers, data, search or {}, fix, watch.note, only=only)
    with opened(path, _about(study)) as record:
        study = replace(study, trials=tuple(record.trials))
        watch.begin(study)
        proposals = Proposals(study.space, study.settings.train.seed, record.trials)
        runner = _Runner(study, record, proposals, watch, None if timeout is None else started + timeout)
        while len(record.trials) < trials and not runner.ended():
            if not runner.run():
                break
        study = replace(study, trials=tuple(record.trials))
    _refuse_without_success(study)
    return study


def require_optuna() -> None:
    """Raises ResourceError without it."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise ResourceError("tune needs optuna: pip install 'tsformer[tune]'") from None


def begun(
    layers: Sequence[Layer],
    data: Panel | Sequences,
    search: Mapping[str, Any],
    fix: Sequence[str],
    note: Callable[[str], None] = lambda line: None,
    *,
    only: bool = False,
) -> Study:
    """A study before its first trial: everything has been checked, and nothing learned. Raises as `tune` does."""
    found = trace(layers, needs_data=False)
    settings = found.settings
    if settings.task is not Task.FORECAST or not isinstance(data, Panel):
        raise UsageError(f"tune is of forecasts, and the task is {settings.task}")
    lost = build_chain(settings, data.schema).lost
    known = known_part(settings, data, None, lost)
    with settings.model.at_fault("lookback"):
        least = settings.model.least_lookback(known.season)
    usual = lookbacks(known, lost, least)
    ready = fitting.make_ready(_with_window(settings, known), known.panel, known.split)
    for line in ready.notes:
        note(line)
    model = settings.model
    trained = by_gradients(model.plugin, ready.fitted.module)
    space = search_space(layers, found, search, fix, only=only, trained=trained, lookback=usual)
    own = any(plain(key) == LOOKBACK for key in search)
    any_decoder = any(each.key == "model.decoder" for each in space.dimensions)
    while True:  # a lookback that is not asked for leaves most windows to be judged by, in spite of gaps
        longest = _longest(space)
        known = known_part(settings, data, longest, lost)
        first = _with_window(with_options(layers, space.start()), known)
        prepared = prepare(_with_window(settings, known, longest), known.panel, known.split)
        few = len(prepared.validation) < MOST_OF * len(ready.prepared.parts.validation)
        if own or longest in (None, known.lookback) or not few:
            break
        space = _without(space, longest)
    for line in known.notes:
        note(line)
    judge = Judge.of(known, prepared, ready.fitted, any_decoder=any_decoder)
    return Study(tuple(layers), first, space, judge, judge.naive(), trained and not model.members)


def _with_window(settings: Settings, known: Known, lookback: int | None = None) -> Settings:
    found = {
        "lookback": lookback or settings.window.lookback or known.lookback,
        "horizon": known.horizon,
        "season": known.season,
        "stride": settings.window.stride or known.panel.defaults.stride or 1,
    }
    return replace(settings, window=settings.window.model_copy(update=found))


def _longest(space: SearchSpace) -> int | None:
    for each in space.dimensions:
        if each.key == LOOKBACK:
            found = each.space
            return int(found.high if isinstance(found, Range) else max(found.values))
    return None


def _without(space: SearchSpace, longest: int | None) -> SearchSpace:
    """The space without its longest lookback."""
    found = []
    for each in space.dimensions:
        if each.key == LOOKBACK and isinstance(each.space, Choices):
            left = Choices(tuple(value for value in each.space.values if value != longest))
            each = replace(each, space=left)
        found.append(each)
    return SearchSpace(tuple(found))


def _about(study: Study) -> dict[str, str]:
    """Fingerprints of what has to be the same when a study goes on."""
    judge = study.judge
    windows = judge.windows
    series, panel = windows.series.numpy(), judge.known.panel
    rows = rows_of(judge.prepared, windows) - panel.offsets[series]
    split = judge.known.split
    block = Block(split, series, rows, np.zeros(len(rows), dtype=np.int64))
    prints = prints_of_data(panel, Plan(windows.horizon, (block,), split.train))
    return {
        "data": prints["data"],
        "windows": prints["origins"],
        "model or training options": print_of_model(study.settings),
        "search space": str(study.space),
        "metric": judge.metric,
    }


class _Runner:
    """Runs one trial after another; arguments as of `tune`, and when to end, on the clock of `time.monotonic`."""

    def __init__(self, study: Study, record: Record, proposals: Proposals, watch: Watch, until: float | None) -> None:
        self._study, self._record, self._proposals, self._watch, self._until = study, record, proposals, watch, until

    def ended(self) -> bool:
        """Whether somebody ended the study, or its time is over."""
        late = self._until is not None and time.monotonic() >= self._until
        return self._watch.interrupted() or (late and any(trial.score is not None for trial in self._record.trials))

    def run(self) -> bool:
        """One trial; False when there is nothing left to try, or when it was ended from outside."""
        study, started = self._study, time.perf_counter()
        proposed = self._proposals.next(lambda options: bool(study.settings_of(options)))
        if proposed is None:
            self._watch.note("every combination that is allowed has been tried")
            return False
        trial = Trial(len(self._record.trials) + 1, proposed.options, proposed.drawn, "failed")
        curve: dict[int, float] = {}
        try:
            learned = self._learned(proposed.options, curve)
            if learned.history.stopped == "interrupted" and not self._proposals.pruned(curve):
                return False
            trial = replace(
                trial,
                steps=learned.history.steps,
                best_step=learned.history.best_step,
                parameters=parameters_of(learned.fitted.module),
            )
            if learned.history.error is not None:
                raise learned.history.error
            if learned.history.stopped == "interrupted":
                trial = replace(trial, state="pruned")
            else:
                trial = replace(trial, state="complete", score=study.judge.score(learned.fitted))
        except TsformerError as error:
            trial = replace(trial, reason=error.sentence(), exit_code=error.exit_code)
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            trial = replace(trial, reason=f"out of memory ({in_words(error)})", exit_code=ResourceError.exit_code)
        trial = replace(trial, curve=curve, seconds=round(time.perf_counter() - started, 3))
        self._record.add(trial)
        self._proposals.told(trial)
        self._watch.trial(trial)
        return True

    def _learned(self, options: Mapping[str, Any], curve: dict[int, float]) -> fitting.Learned:
        study, judge = self._study, self._study.judge
        at_work: list[Fitted] = []
        steps, stop = 0, False

        def step(progress: Progress) -> None:
            nonlocal steps
            steps = progress.steps
            self._watch.step(progress)

        def evaluation(record: Mapping[str, Any]) -> None:
            nonlocal stop
            rung = RUNGS * int(record["step"]) // steps if steps else 0
            if not study.trained or not rung or rung >= RUNGS or rung <= max(curve, default=0):
                return
            try:
                score = judge.score_on_the_way(at_work[0])
            except DivergedError:
                return  # it may yet recover; the end will tell
            curve[rung] = min([score, *curve.values()])
            stop = self._proposals.pruned(curve)

        return fitting.learn(
            study.settings_of(options),
            judge.known.panel,
            split=judge.known.split,
            watch=fitting.Watch(
                start=at_work.append,
                step=step,
                evaluation=evaluation,
                interrupted=lambda: stop or self.ended(),
            ),
        )


def _refuse_without_success(study: Study) -> None:
    """Raise what the first trial failed of, when none succeeded."""
    if study.trials and study.best is None:
        first = study.trials[0]
        error = TsformerError(f"no trial of {len(study.trials)} succeeded; the first: {first.reason}")
        error.exit_code = first.exit_code or 1
        raise error
