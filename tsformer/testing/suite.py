"""The checks of a plugin, one after another, with what each says."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tsformer.errors import PluginError, in_words
from tsformer.plugin import DataPlugin, ModelPlugin, Plugin, Task, TransformPlugin
from tsformer.testing.data import DATA_CHECKS
from tsformer.testing.models import MODEL_CHECKS
from tsformer.testing.transforms import TRANSFORM_CHECKS
from tsformer.testing.trials import CheckFailedError


@dataclass(frozen=True)
class Outcome:
    """What came of one check.

    Attributes:
        check: its name: "check_shapes".
        about: what it looks at, one sentence.
        passed: None when it was not run, since the first check failed, on which the others stand.
        explanation: what is wrong and what to look for; empty when it passed.
    """

    check: str
    about: str
    passed: bool | None
    explanation: str = ""


def checks_of(plugin: Plugin) -> tuple[Callable[[Any], None], ...]:
    """The checks of a plugin's kind; each takes the plugin and raises `CheckFailedError`.

    Raises:
        PluginError: it is no plugin, or one for other tasks than forecasts.
    """
    tasks = getattr(plugin, "tasks", {Task.FORECAST})
    if Task.FORECAST not in tasks:
        raise PluginError(f"there are checks for forecasts only, not for: {', '.join(sorted(tasks)) or 'no task'}")
    if isinstance(plugin, ModelPlugin):
        return MODEL_CHECKS
    if isinstance(plugin, DataPlugin):
        return DATA_CHECKS
    if isinstance(plugin, TransformPlugin):
        return TRANSFORM_CHECKS
    raise PluginError(f"{type(plugin).__name__} is no plugin: ModelPlugin, DataPlugin or TransformPlugin")


def outcomes(plugin: Plugin) -> Iterator[Outcome]:
    """Run the checks one by one. Any exception of the plugin is a failure, told with the place in its file."""
    stands = True
    for number, check in enumerate(checks_of(plugin)):
        about = " ".join((inspect.getdoc(check) or "").partition("\n\n")[0].split())
        if not stands:
            yield Outcome(check.__name__, about, None, "not run, since the first check failed")
            continue
        explanation = _failure(check, plugin)
        stands = number > 0 or not explanation
        yield Outcome(check.__name__, about, not explanation, explanation)


def check(plugin: Plugin) -> dict[str, str]:
    """Run all checks of any plugin; what failed, by the check's name, with the explanation."""
    return {outcome.check: outcome.explanation for outcome in outcomes(plugin) if outcome.passed is False}


def check_model(plugin: ModelPlugin) -> dict[str, str]:
    """`check` for a model."""
    return check(plugin)


def check_data(plugin: DataPlugin) -> dict[str, str]:
    """`check` for a data source."""
    return check(plugin)


def check_transform(plugin: TransformPlugin) -> dict[str, str]:
    """`check` for a transform."""
    return check(plugin)


def _failure(check: Callable[[Any], None], plugin: Plugin) -> str:
    try:
        check(plugin)
    except CheckFailedError as failure:
        return str(failure)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit() of a plugin, too
        return in_words(error)
    return ""
