"""What optuna proposes next, and which trials it would end early."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
from optuna.trial import TrialState, create_trial

from tsformer.errors import PluginError, UsageError
from tsformer.tuning.record import Trial
from tsformer.tuning.space import SearchSpace

RANDOM = 8
"""Trials at the beginning that are drawn by chance, the first one not counted."""
COMPARED_FROM = 5
"""Finished trials before one is ended early, and twentieths of its training that it has at least."""
ATTEMPTS = 200
"""Draws by chance, after which it is taken that nothing new is left."""
STATES = {"complete": TrialState.COMPLETE, "pruned": TrialState.PRUNED, "failed": TrialState.FAIL}


@dataclass(frozen=True)
class Proposal:
    """Options to try, by key, and what optuna drew for them."""

    options: Mapping[str, Any]
    drawn: Mapping[str, Any]


class Proposals:
    """Tree-structured Parzen estimators (Bergstra et al. 2011) over the finished trials.

    A trial is ended early when its best score so far is worse than the median of the others at the same share of their
    training (Golovin et al. 2017, the median stopping rule).

    Args:
        space: what is chosen.
        seed: with the number of a trial, it is all that proposals depend on beside the trials.
        trials: that are finished.
    """

    def __init__(self, space: SearchSpace, seed: int, trials: Sequence[Trial]) -> None:
        self._space, self._seed = space, seed
        self._distributions = space.distributions()
        self._pruner = optuna.pruners.MedianPruner(n_startup_trials=COMPARED_FROM, n_warmup_steps=COMPARED_FROM)
        with _quiet():
            self._study = optuna.create_study(direction="minimize", sampler=self._sampler(0), pruner=self._pruner)
        self._tried: list[Mapping[str, Any]] = []
        for trial in trials:
            self.told(trial)

    def told(self, trial: Trial) -> None:
        """Count a finished trial."""
        self._tried.append(dict(trial.options))
        self._study.add_trial(self._frozen(trial.state, trial.drawn, trial.curve, trial.score))

    def next(self, allowed: Callable[[Mapping[str, Any]], bool]) -> Proposal | None:
        """Options that have not been tried; None when no more are found.

        Args:
            allowed: raises UsageError or PluginError for options that do not go together.
        """
        place = len(self._tried)
        if not place:
            start = self._space.start()
            return Proposal(start, self._space.nearest(start))
        with _quiet():
            self._study.sampler = self._sampler(place)
            asked = self._study.ask(self._distributions)
            drawn = dict(asked.params)
            self._study.tell(asked, state=TrialState.FAIL)
        generator = np.random.default_rng([self._seed, place])
        for _ in range(ATTEMPTS):
            options = self._space.options(drawn)
            if options not in self._tried and _goes(allowed, options):
                return Proposal(options, drawn)
            drawn = self._space.draw(generator)
        return None

    def pruned(self, curve: Mapping[int, float]) -> bool:
        """Whether a trial with these scores on the way is to be ended."""
        if not curve:
            return False
        # optuna asks the trial for its own number, which one that is not in the study has none of
        trial = self._frozen("pruned", {}, curve, None)
        return bool(self._pruner.prune(self._study, trial))

    def _sampler(self, place: int) -> optuna.samplers.BaseSampler:
        seed = int(np.random.SeedSequence([self._seed, place]).generate_state(1)[0])
        return optuna.samplers.TPESampler(seed=seed, n_startup_trials=RANDOM)

    def _frozen(
        self, state: str, drawn: Mapping[str, Any], curve: Mapping[int, float], score: float | None
    ) -> optuna.trial.FrozenTrial:
        return create_trial(
            state=STATES[state],
            params=dict(drawn),
            distributions={key: self._distributions[key] for key in drawn},
            intermediate_values=dict(curve),
            value=score,
        )


def _goes(allowed: Callable[[Mapping[str, Any]], bool], options: Mapping[str, Any]) -> bool:
    try:
        return allowed(options)
    except (UsageError, PluginError):
        return False


@contextmanager
def _quiet() -> Iterator[None]:
    """Within this, optuna says nothing but errors."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
