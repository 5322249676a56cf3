"""Training of an ensemble: its members one after another, each as it would be trained alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tsformer import transfer
from tsformer.building import build_module, torch_seeded, without_effect
from tsformer.data.windows import Windows
from tsformer.ensemble import Ensemble
from tsformer.errors import DivergedError, PluginError
from tsformer.members import Member, train_options
from tsformer.nn.outputs import build_output
from tsformer.parameters import by_gradients
from tsformer.settings import TransferConfig
from tsformer.training.loop import History, Progress

if TYPE_CHECKING:
    from tsformer.fitting import Ready, Watch


def members_of(ready: Ready) -> tuple[Ready, ...]:
    """The fits of the members of a model, with their initial weights; none where it has no members.

    A member is what a fit of that model alone would be with the same origins, its own lookback, and its own seed: that
    of its training options, or `seed_of`.

    Raises:
        PluginError: a model that says it has members is no `Ensemble` of them.
        UsageError: training options of a member do not go with those of the whole.
    """
    model, module = ready.fitted.settings.model, ready.fitted.module
    if not model.members:
        return ()
    if not isinstance(module, Ensemble) or module.models != model.members:
        raise PluginError(f"{model} says what it is made of, and build returns no Ensemble of it")
    return tuple(_member(ready, module, place, member) for place, member in enumerate(module.models))


def seed_of(seed: int, number: int) -> int:
    """The seed of a member, counted from 1, that names none."""
    return int(np.random.SeedSequence((seed, number)).generate_state(1)[0])


def _member(ready: Ready, ensemble: Ensemble, place: int, member: Member) -> Ready:
    fitted, parts = ready.fitted, ready.prepared.parts
    problem, module = ensemble.problems[place], ensemble.members[place]
    train = train_options(member, fitted.settings.train, seed_of(fitted.settings.train.seed, member.number))
    window = fitted.settings.window.model_copy(update={"lookback": problem.lookback})
    settings = replace(fitted.settings, model=member, train=train, window=window)
    weights, order, draws = np.random.SeedSequence(train.seed).spawn(3)
    with torch_seeded(weights):
        module.load_state_dict(build_module(member, problem).state_dict())
    narrowed: dict[str, Any] = {
        name: replace(windows, lookback=problem.lookback)
        for name in ("train", "validation", "test")
        if isinstance(windows := getattr(parts, name), Windows)
    }
    output = build_output(train.output, train.loss, train.huber_delta, train.quantile_levels())
    own = replace(parts, problem=problem, objective=output, **narrowed)
    fed = any(option.startswith("truth_") for option in member.train)
    told = without_effect(member, module, own, train) if fed else ()
    return replace(
        ready,
        fitted=replace(fitted, settings=settings, problem=problem, module=module),
        prepared=replace(ready.prepared, parts=own),
        groups=transfer.parameter_groups(module, TransferConfig()),
        order=order,
        draws=draws,
        notes=tuple(line for line in told if line.startswith("train.")),
        members=(),
    )


@dataclass
class Joint:
    """What becomes of the histories of members.

    Attributes:
        watch: who is told of all of them, as of one fit.
        history: of those so far: steps are those of all.
        planned: steps of the members so far, taken or not.
        learned: places of members that have learned something, or had nothing to learn step by step.
    """

    watch: Watch
    members: tuple[Ready, ...]
    history: History = field(default_factory=History)
    planned: int = 0
    learned: list[int] = field(default_factory=list)

    def run(self, train: Callable[[Ready, Watch], History]) -> None:
        """Train one after another.

        Raises:
            DivergedError: a member learned nothing usable; it is named.
        """
        for place, ready in enumerate(self.members):
            stepwise = by_gradients(ready.fitted.settings.model.plugin, ready.fitted.module)
            with torch_seeded(ready.draws):
                found = train(ready, self._watch_of(ready))
            model, error = ready.fitted.settings.model, found.error
            if error is not None and found.best_step == 0:
                raise DivergedError(f"{model}: {error}")
            if found.best_step or not stepwise:
                self.learned.append(place)
            if error is not None and self.history.error is None:
                self.history.error = DivergedError(f"{model}: {error}")
            self.history.steps += found.steps
            self.history.best_step += found.best_step
            self.history.stopped = max(self.history.stopped, found.stopped, key=_SERIOUS.index)
            self.planned += steps_of(ready)

    def _watch_of(self, ready: Ready) -> Watch:
        model = ready.fitted.settings.model
        title = model.title if isinstance(model, Member) else model.name
        before, total = self.planned, sum(map(steps_of, self.members))

        def step(progress: Progress) -> None:
            self.watch.step(replace(progress, step=before + progress.step, steps=total))

        def evaluation(record: dict[str, Any]) -> None:
            self.log({"member": title, **record})

        return replace(self.watch, step=step, evaluation=evaluation)

    def log(self, record: dict[str, Any]) -> None:
        """Remember an evaluation, and tell of it."""
        self.history.evaluations.append(record)
        self.watch.evaluation(record)


_SERIOUS = ("finished", "early", "interrupted", "diverged")


def steps_of(ready: Ready) -> int:
    """Optimiser steps of a fit at most; 0 of a model that is fitted without gradients."""
    settings, examples = ready.fitted.settings, ready.prepared.parts.train
    stepwise = by_gradients(settings.model.plugin, ready.fitted.module)
    return settings.train.steps_for(len(examples)) if stepwise else 0


def train_members(
    ready: Ready, watch: Watch, train: Callable[[Ready, Watch], History], judge: Callable[[], dict[str, Any]]
) -> History:
    """Train the members of an ensemble and set its weights.

    Where training was interrupted, members that had learned nothing yet get no weight.

    Args:
        train: trains one.
        judge: the record of an evaluation of the whole.

    Returns:
        Steps and best steps are the sums of those of the members; evaluations say whose they are, and the last is that
        of the whole, with its weights.
    """
    joint, module = Joint(watch, ready.members), ready.fitted.module
    joint.run(train)
    assert isinstance(module, Ensemble)
    validation = ready.prepared.parts.validation
    assert isinstance(validation, Windows)
    places = joint.learned or range(len(ready.members))
    module.weigh(places, validation.thin(ready.fitted.settings.train.eval_windows), ready.device)
    module.eval()
    weights = [round(weight, 6) for weight in module.weights.tolist()]
    joint.log({"member": None, **judge(), "step": joint.history.steps, "weights": weights})
    return joint.history
