"""The checks of a plugin, one after another, with what each says."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tsformer.errors import PluginError, in_words, is_nobodys
from tsformer.plugin import DataPlugin, ModelPlugin, Plugin, Task, TransformPlugin
from tsformer.testing.data import DATA_CHECKS
from tsformer.testing.failure import CheckFailedError
from tsformer.testing.models import CHECKS_BY_TASK
from tsformer.testing.sequence_data import SEQUENCE_DATA_CHECKS
from tsformer.testing.transforms import TRANSFORM_CHECKS


@dataclass(frozen=True)
class Outcome:
    """What came of one check.

    Attributes:
        check: its name: "check_shapes".
        about: what it looks at, one sentence.
        passed: None when it does not apply to the plugin, or was not run since the first check of its task failed, on
            which the others stand.
        explanation: what is wrong and what to look for, or why there is nothing to say; empty when it passed.
    """

    check: str
    about: str
    passed: bool | None
    explanation: str = ""


NOT_RUN = "not run, since the first check failed"
"""The explanation of checks that stand on the first."""

Check = Callable[[Any], str | None]
"""Takes a plugin and raises `CheckFailedError`; what it returns, if anything, is why it does not apply."""


def checks_of(plugin: Plugin) -> tuple[Check, ...]:
    """The checks of a plugin's kind and tasks.

    Raises:
        PluginError: it is no plugin.
    """
    return tuple(itertools.chain(*_groups(plugin)))


def _groups(plugin: Plugin) -> list[tuple[Check, ...]]:
    """The checks that belong together; in each group the others stand on the first."""
    if isinstance(plugin, ModelPlugin):
        return [CHECKS_BY_TASK[task] for task in Task if task in plugin.tasks]
    if isinstance(plugin, DataPlugin):
        return [DATA_CHECKS if Task.FORECAST in plugin.tasks else SEQUENCE_DATA_CHECKS]
    if isinstance(plugin, TransformPlugin):
        return [TRANSFORM_CHECKS]
    raise PluginError(f"{type(plugin).__name__} is no plugin: ModelPlugin, DataPlugin or TransformPlugin")


def outcomes(plugin: Plugin) -> Iterator[Outcome]:
    """Run the checks one by one. Any exception of the plugin is a failure, told with the place in its file."""
    for group in _groups(plugin):
        stands = True
        for number, check in enumerate(group):
            about = " ".join((inspect.getdoc(check) or "").partition("\n\n")[0].split())
            if not stands:
                yield Outcome(check.__name__, about, None, NOT_RUN)
                continue
            passed, explanation = _result(check, plugin)
            stands = number > 0 or passed is not False
            yield Outcome(check.__name__, about, passed, explanation)


def check(plugin: Plugin) -> dict[str, str]:
    """Run all checks of any plugin; what failed, by the check's name, with the explanation."""
    return {outcome.check: outcome.explanation for outcome in outcomes(plugin) if outcome.passed is False}


def _result(check: Check, plugin: Plugin) -> tuple[bool | None, str]:
    """Whether a check passed, and what is wrong or why it does not apply."""
    try:
        reason = check(plugin)
    except CheckFailedError as failure:
        return False, str(failure)
    except BaseException as error:  # sys.exit() of a plugin, too
        if is_nobodys(error):
            raise
        return False, in_words(error)
    return (None, f"does not apply: {reason}") if reason else (True, "")
