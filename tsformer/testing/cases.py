"""What the checks of a model try for each task: the kinds of input that it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor, nn

from tsformer.data.examples import Examples
from tsformer.data.windows import Batch
from tsformer.errors import PluginError, UsageError
from tsformer.nn.objective import Objective
from tsformer.nn.outputs import output_of
from tsformer.plugin import ModelPlugin, Problem, Task
from tsformer.testing import sequence_cases
from tsformer.testing.failure import CheckFailedError
from tsformer.testing.problem import PROBLEM, batch_of, build, fitted, windows, with_covariates

SIZE = 8
FORECAST = "a forecast of numbers"


@dataclass(frozen=True)
class Case:
    """A kind of input, as a model of one task is given it.

    Attributes:
        kind: in words, for messages.
        problem, objective: what is asked.
        train, validation: examples for a `fit` hook.
        batch: of `SIZE` examples.
    """

    kind: str
    problem: Problem
    objective: Objective
    train: Examples
    validation: Examples
    batch: Batch

    @property
    def truths(self) -> tuple[float, ...]:
        """Probabilities that the truth is fed, where the task feeds anything."""
        return (1.0, 0.5, 0.0) if self.problem.task in (Task.FORECAST, Task.SEQUENCE) else (1.0,)

    @property
    def about(self) -> str:
        """For the end of a message: " (tokens)"; nothing for a forecast of numbers alone."""
        return "" if self.kind == FORECAST else f" ({self.kind})"

    def rows(self, count: int) -> Batch:
        """The first examples of the batch."""
        return rows(self.batch, slice(0, count))

    def build(self, plugin: ModelPlugin, seed: int = 0) -> nn.Module:
        return build(plugin, seed, self.problem)

    def fitted(self, plugin: ModelPlugin, seed: int = 0) -> nn.Module:
        return fitted(plugin, seed, self.problem, (self.train, self.validation))


def cases(plugin: ModelPlugin, task: Task) -> list[Case]:
    """The kinds of input that a model takes for a task; those that its build refuses in words are left out.

    Raises:
        CheckFailedError: it refuses all of them.
    """
    possible, refusals = [], []
    for case in _CASES[task](plugin):
        try:
            case.build(plugin)
        except (PluginError, UsageError) as refusal:
            refusals.append(f"{case.kind}: {refusal}")
        else:
            possible.append(case)
    if not possible:
        raise CheckFailedError(
            f"tasks has {task}, but build refuses every kind of input ({'; '.join(refusals)}); let it take one, leave "
            "the task out, or give an example that can do it"
        )
    return possible


def _forecasts(plugin: ModelPlugin) -> Iterator[Case]:
    yield Case(FORECAST, PROBLEM, output_of(PROBLEM), *windows(), batch_of(SIZE))
    if plugin.covariates:
        problem = with_covariates(plugin)
        yield Case("with covariates", problem, output_of(problem), *windows(problem), batch_of(SIZE, problem))


def _of(parts: Callable[[], Iterator[sequence_cases.Part]]) -> Callable[[ModelPlugin], Iterator[Case]]:
    def made(plugin: ModelPlugin) -> Iterator[Case]:
        for part in parts():
            batch = part.train.batch(torch.arange(SIZE))
            yield Case(part.kind, part.problem, part.objective, part.train, part.validation, batch)

    return made


_CASES: dict[Task, Callable[[ModelPlugin], Iterator[Case]]] = {
    Task.FORECAST: _forecasts,
    Task.CLASSIFY: _of(sequence_cases.classes),
    Task.SEQUENCE: _of(sequence_cases.answers),
    Task.PRETRAIN: _of(sequence_cases.hidden_steps),
}


def tensors(batch: Batch) -> dict[str, Tensor]:
    """What there is in a batch, by name."""
    found = {field.name: getattr(batch, field.name) for field in fields(batch)}
    return {name: tensor for name, tensor in found.items() if tensor is not None}


def rows(batch: Batch, some: slice) -> Batch:
    """Some of the examples."""
    return Batch(**{name: tensor[some] for name, tensor in tensors(batch).items()})


def without_answer(batch: Batch) -> Batch:
    """As it is at predict time: nothing of what is asked for."""
    return replace(batch, future=None, future_mask=None, target_tokens=None, target_token_mask=None, label=None)


def masked(batch: Batch, row: int, steps: slice = slice(None)) -> Batch:
    """The same with nothing to read in an example, or in some of its steps; zeros stand there, which is `PAD`."""
    changed = {name: tensor.clone() for name, tensor in tensors(batch).items()}
    for name, mask in (("past", "past_mask"), ("tokens", "token_mask"), ("hidden", "hidden")):
        if name in changed:
            changed[name][row, steps] = 0
            changed[mask][row, steps] = False
    return Batch(**changed)
