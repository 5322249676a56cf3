"""Which checks a model passes for each task that it declares."""

from __future__ import annotations

import functools
from collections.abc import Callable

from tsformer.plugin import ModelPlugin, Task
from tsformer.testing import forecasts, sequences
from tsformer.testing.covariates import check_future_covariates, check_static_covariates
from tsformer.testing.fit_hook import check_fit, check_fit_hook
from tsformer.testing.learning import check_gradients, check_overfits_one_batch
from tsformer.testing.outputs import check_outputs
from tsformer.testing.state import (
    check_batch_invariance,
    check_leaves_rng_alone,
    check_repeats_itself,
    check_save_and_load,
)
from tsformer.testing.text_at_steps import check_text_at_steps

ModelCheck = Callable[[ModelPlugin], str | None]
"""Raises `CheckFailedError`; what it returns, if anything, is why it does not apply."""


def _of(task: Task, *checks: Callable[[ModelPlugin, Task], str | None]) -> tuple[ModelCheck, ...]:
    """Checks of any task as checks of that one, called by its name: "check_classify_padding"."""

    def named(check: Callable[[ModelPlugin, Task], str | None]) -> ModelCheck:
        @functools.wraps(check)
        def of_task(plugin: ModelPlugin) -> str | None:
            return check(plugin, task)

        if task is not Task.FORECAST:
            of_task.__name__ = f"check_{task}_{check.__name__.removeprefix('check_')}"
        return of_task

    return tuple(map(named, checks))


_LEARNING = (check_gradients, check_overfits_one_batch)
_STATE = (check_save_and_load, check_repeats_itself, check_leaves_rng_alone)
_READING = (sequences.check_shapes, sequences.check_padding, sequences.check_nothing_to_read, check_batch_invariance)

CHECKS_BY_TASK: dict[Task, tuple[ModelCheck, ...]] = {
    Task.FORECAST: (
        forecasts.check_shapes,
        check_outputs,
        forecasts.check_causality,
        forecasts.check_mask_invariance,
        check_text_at_steps,
        check_future_covariates,
        check_static_covariates,
        *_of(Task.FORECAST, check_batch_invariance, *_LEARNING),
        check_fit_hook,
        *_of(Task.FORECAST, *_STATE),
    ),
    Task.CLASSIFY: _of(Task.CLASSIFY, *_READING, sequences.check_no_label, *_LEARNING, check_fit, *_STATE),
    Task.SEQUENCE: _of(Task.SEQUENCE, *_READING, sequences.check_causality, *_LEARNING, check_fit, *_STATE),
    Task.PRETRAIN: _of(Task.PRETRAIN, *_READING, sequences.check_hidden, *_LEARNING, check_fit, *_STATE),
}
"""The first check of each task is the one that the others stand on."""

MODEL_CHECKS = CHECKS_BY_TASK[Task.FORECAST]
"""Those of forecasts; `checks_of(plugin)` gives the checks of all tasks of a model."""
