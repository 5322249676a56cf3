"""Which task a model and a source of data are put together for, and which options that task reads."""

from __future__ import annotations

from collections.abc import Iterator

from tsformer import registry
from tsformer.errors import PluginError, UsageError, did_you_mean
from tsformer.plugin import Config, Task, changed
from tsformer.registry import Kind
from tsformer.settings import Chosen

Tasks = frozenset[Task] | set[Task]
OF_ROWS = frozenset({Task.FORECAST, Task.PRETRAIN})
"""Tasks that may cut windows from rows, after transforms; others take whole sequences."""
_FORECAST = frozenset({Task.FORECAST})
_WITH_DECODER = frozenset({Task.FORECAST, Task.SEQUENCE})
_PRETRAIN = frozenset({Task.PRETRAIN})
READ_BY: dict[str, dict[str, frozenset[Task]]] = {
    "window": {"horizon": OF_ROWS, "season": OF_ROWS, "stride": OF_ROWS, "short": OF_ROWS},
    "train": {
        "output": _FORECAST,
        "loss": _FORECAST,
        "huber_delta": _FORECAST,
        "label_smoothing": frozenset({Task.CLASSIFY, Task.SEQUENCE}),
        "class_weights": frozenset({Task.CLASSIFY}),
        "hidden_share": _PRETRAIN,
        "hidden_span": _PRETRAIN,
        "bucketing": frozenset(Task) - _FORECAST,
        "truth_start": _WITH_DECODER,
        "truth_end": _WITH_DECODER,
        "truth_schedule": _WITH_DECODER,
        "truth_decay": _WITH_DECODER,
    },
}
"""Options by section that only some tasks read; all others are for every task."""


def settle_task(model: Chosen, data: Chosen | None, wanted: Task | None = None) -> Task:
    """What a model and data are put together for: the wish, or the first task that both can do.

    Args:
        data: None when rows come from Python; then the model alone decides.

    Raises:
        UsageError: they have no task in common, or not the wanted one; says what goes together.
    """
    chosen = [model] if data is None else [model, data]
    shared = shared_tasks(model, data)
    if wanted is None and shared:
        return shared[0]
    if wanted in shared:
        return wanted
    unable = [one for one in chosen if wanted not in one.plugin.tasks]
    parts = [f"{one.kind} '{one.name}' is for {_listed(one.plugin.tasks, 'or')}" for one in unable]
    if wanted is not None:
        remedies = [_named(one.kind, str(wanted), {wanted}) for one in unable]
        if shared:
            remedies.append(f"without a task it is {shared[0]}")
        raise UsageError("; ".join([f"task {wanted}: " + ", and ".join(parts), *remedies]))
    if data is None:
        raise UsageError(f"{parts[0]}; take another model")
    remedies = [
        _named(Kind.MODEL, f"'{data.name}'", data.plugin.tasks),
        _named(Kind.DATA, f"'{model.name}'", model.plugin.tasks),
    ]
    raise UsageError("; ".join([", and ".join(parts), *remedies]))


def shared_tasks(model: Chosen, data: Chosen | None) -> list[Task]:
    """What both can do, in the order of `Task`."""
    return [task for task in Task if task in model.plugin.tasks and (data is None or task in data.plugin.tasks)]


def task_of(word: str) -> Task:
    """Raises UsageError for an unknown word."""
    try:
        return Task(word)
    except ValueError:
        known = ", ".join(Task)
        raise UsageError(f"unknown task '{word}'{did_you_mean(word, Task)} (known: {known})") from None


def unread(section: str, config: Config, task: Task) -> Iterator[tuple[str, str]]:
    """Options of a section that are not at their default though the task never reads them, each with the reason."""
    for name, tasks in READ_BY.get(section, {}).items():
        if task not in tasks:
            for option in changed(config, name):
                yield name, f"{option} is for {_listed(tasks, 'and')}, and the task is {task}"


def partners(kind: Kind, tasks: Tasks) -> dict[str, list[str]]:
    """The plugins of a kind that go with one of such tasks, by task. Broken ones are left out."""
    able = list(_able(kind, tasks))
    return {task.value: [name for name, theirs in able if task in theirs] for task in Task if task in tasks}


def _able(kind: Kind, tasks: Tasks) -> Iterator[tuple[str, Tasks]]:
    for name in registry.entries(kind):
        try:
            theirs = registry.get(kind, name).tasks
        except PluginError:
            continue
        if theirs & tasks:
            yield name, theirs


def _named(kind: Kind, purpose: str, tasks: Tasks) -> str:
    names = ", ".join(name for name, _ in _able(kind, tasks)) or "none is here"
    return f"{'models' if kind is Kind.MODEL else kind} for {purpose}: {names}"


def _listed(tasks: Tasks, word: str) -> str:
    return f" {word} ".join(task for task in Task if task in tasks) or "no task"
