"""Checks of a model's `fit` hook: it learns from what it is given, and from nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tsformer.data.hidden_steps import HiddenSteps
from tsformer.data.ragged import Ragged
from tsformer.data.sequence_set import SequenceSet
from tsformer.nn.outputs import output_of
from tsformer.plugin import ModelPlugin, Task
from tsformer.testing.cases import Case, cases, without_answer
from tsformer.testing.failure import CheckFailedError
from tsformer.testing.generators import seeded
from tsformer.testing.problem import PROBLEM, build, given, spoiled_behind, windows
from tsformer.testing.sequence_cases import UNSEEN

NO_HOOK = "there is no fit hook"


def check_fit_hook(plugin: ModelPlugin) -> str | None:
    """A `fit` hook learns from its windows and from nothing behind them, leaves them alone, and repeats itself."""
    fit = plugin.fit
    if fit is None:
        return NO_HOOK
    train, validation = windows()
    batch = train.batch()

    def after_fit(spoil: bool = False) -> Tensor:
        module = build(plugin)
        parts = [spoiled_behind(part) if spoil else part for part in (train, validation)]
        before = [part.values.clone() for part in parts]
        with seeded(0):
            fit(module, *parts)
        if not all(torch.equal(part.values, values) for part, values in zip(parts, before, strict=True)):
            raise CheckFailedError("fit changes the windows' values in place; work on a copy")
        with torch.no_grad():
            prediction: Tensor = module.eval()(replace(batch, future=None, future_mask=None))
        return prediction

    prediction = after_fit()
    if not torch.equal(after_fit(), prediction):
        raise CheckFailedError("fit on the same windows with the same seed gives another model")
    if not torch.equal(after_fit(spoil=True), prediction):
        raise CheckFailedError(
            "rows behind the last target of the windows change what fit learns: take windows.batch() or "
            "windows.batches(size), not windows.values, which hold the later rows, too"
        )
    future = given(batch.future)
    mean = future.mean(dim=(0, 1), keepdim=True)[..., None].expand_as(prediction)
    output = output_of(PROBLEM)
    own, naive = float(output.loss(prediction, batch)), float(output.loss(mean, batch))
    if not own < 0.5 * naive:
        raise CheckFailedError(
            f"after fit the loss on the training windows, sines with little noise, is {own:.3g}; their mean has "
            f"{naive:.3g}; does fit write what it learns into the module?"
        )
    return None


def check_fit(plugin: ModelPlugin, task: Task) -> str | None:
    """A `fit` hook learns from its examples and from no others, leaves them alone, and repeats itself."""
    if plugin.fit is None:
        return NO_HOOK
    for case in cases(plugin, task):
        examples, batch = case.train, case.train.batch()
        prediction = _fitted_on(plugin, case, case)
        if not torch.equal(_fitted_on(plugin, case, case), prediction):
            raise CheckFailedError(f"fit on the same examples with the same seed gives another model{case.about}")
        spoiled = replace(case, train=_spoiled(case.train), validation=_spoiled(case.validation))
        if not torch.equal(_fitted_on(plugin, case, spoiled), prediction):
            raise CheckFailedError(
                f"examples of neither part change what fit learns{case.about}: take train.batch() or "
                "train.batches(size), not its arrays, which hold the test part, too"
            )
        with torch.no_grad():
            own = float(case.objective.loss(prediction, batch))
            naive = float(case.objective.loss(torch.zeros_like(prediction), batch))
        if not own < 0.5 * naive:
            raise CheckFailedError(
                f"after fit the loss on {len(examples)} examples that are easily told is {own:.3g}, that of zeros "
                f"{naive:.3g}{case.about}; does fit write what it learns into the module?"
            )
    return None


def _fitted_on(plugin: ModelPlugin, case: Case, given_to_fit: Case) -> Tensor:
    """What the training examples get after a fit; raises when fit changed the examples."""
    before = [_arrays(part) for part in (given_to_fit.train, given_to_fit.validation)]
    copies = [[array.copy() for array in arrays] for arrays in before]
    module = given_to_fit.fitted(plugin)
    for arrays, copied in zip(before, copies, strict=True):
        if not all(np.array_equal(*pair, equal_nan=True) for pair in zip(arrays, copied, strict=True)):
            raise CheckFailedError(f"fit changes the examples in place{case.about}; work on a copy")
    with torch.no_grad():
        prediction: Tensor = module.eval()(without_answer(case.train.batch()))
    return prediction


def _set_of(examples: Any) -> Any:
    return examples.examples if isinstance(examples, HiddenSteps) else examples


def _arrays(examples: Any) -> list[np.ndarray]:
    """All numbers that examples are made of."""
    some = _set_of(examples)
    if not isinstance(some, SequenceSet):
        return [some.values.numpy()]
    parts = [some.tokens, some.series, some.targets]
    return [part.values for part in parts if part is not None] + ([] if some.labels is None else [some.labels])


def _spoiled(examples: Any) -> Any:
    """The same examples beside others of which nothing is left as it was."""
    if isinstance(examples, HiddenSteps):
        return replace(examples, examples=_spoiled(examples.examples))
    if not isinstance(examples, SequenceSet):
        return spoiled_behind(examples)
    tokens = examples.tokens
    if examples.series is not None and tokens is not None:  # one text for each row
        first = examples.series.offsets[UNSEEN[0]]
        tokens = _with(tokens, int(tokens.offsets[first]), 4)
    elif tokens is not None:
        tokens = _behind(tokens, 4)
    labels = examples.labels
    return replace(
        examples,
        tokens=tokens,
        series=None if examples.series is None else _behind(examples.series, 1e3),
        targets=None if examples.targets is None else _behind(examples.targets, 4),
        labels=None if labels is None else np.where(np.arange(len(labels)) < UNSEEN[0], labels, 0),
    )


def _behind(sequences: Ragged, value: float) -> Ragged:
    return _with(sequences, int(sequences.offsets[UNSEEN[0]]), value)


def _with(sequences: Ragged, first: int, value: float) -> Ragged:
    """With that value from a row on; examples of neither part come last."""
    values = sequences.values.copy()
    values[first:] = value
    return Ragged(values, sequences.offsets)
