"""What can go wrong for a user, one class per exit code.

A message says what is wrong, where, and what to do, in one line; the command line prints it without a traceback.
"""

import difflib
import os
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


class TsformerError(Exception):
    """Base of every error that is meant for the user."""

    exit_code = 1


class UsageError(TsformerError):
    """A wrong option or configuration. Several faults are reported at once, one line each."""

    exit_code = 2


class DataError(TsformerError):
    """Input data that cannot be taken as it is: names column, row and count."""

    exit_code = 3


class RunError(TsformerError):
    """A run folder that is missing, incomplete, damaged or from a newer version."""

    exit_code = 4


class PluginError(TsformerError):
    """A plugin that is unknown, broken, or clashes with another."""

    exit_code = 5


class DivergedError(TsformerError):
    """Training produced a loss that is not finite."""

    exit_code = 6


class ResourceError(TsformerError):
    """Memory, disk, permission or a device that is not there."""

    exit_code = 7


class InvalidValuesError(ValueError):
    """Values outside a transform's domain. Transforms raise it; the chain adds column, row and date.

    Args:
        bad: boolean array `[time, channels]`, True where a value is invalid.
        what: how the values fail, for example "not positive".
        remedy: what the user can do.
    """

    def __init__(self, bad: object, what: str, remedy: str) -> None:
        super().__init__(what)
        self.bad, self.what, self.remedy = bad, what, remedy


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The hint "; did you mean 'x'?" for a mistyped name, or nothing."""
    found = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean '{found[0]}'?" if found else ""


def in_words(error: BaseException) -> str:
    """An exception of somebody's code in one line, with the place in their file."""
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error.msg} ({Path(error.filename or '?').name}, line {error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if _is_somebodys(frame.filename)]
    place = (theirs or list(frames))[-1:]
    where = f" ({Path(place[0].filename).name}, line {place[0].lineno})" if place else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())}{where}"


def _is_somebodys(file: str) -> bool:
    """Whether a file is a plugin's: neither tsformer's nor Python's own, nor a library's that plugins call."""
    _, installed, package = file.replace(os.sep, "/").rpartition("/site-packages/")
    if installed:
        return package.partition("/")[0] not in ("tsformer", *_LIBRARIES)
    return not file.startswith((str(Path(__file__).parent), str(Path(os.__file__).parent), "<frozen"))


_LIBRARIES = ("torch", "numpy", "pandas", "scipy", "sklearn", "pydantic", "pydantic_core")


def out_of_memory(error: BaseException) -> bool:
    """Whether it is Python's or torch's word for that; torch need not be imported."""
    names = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return names or (isinstance(error, RuntimeError) and "can't allocate memory" in str(error))


@contextmanager
def at_fault(plugin: object, doing: str) -> Iterator[None]:
    """Within this, what goes wrong is the plugin's fault and said so, with the place in its file.

    Errors that are meant for the user pass, and so does what a transform says of values outside its domain.

    Args:
        plugin: what the message calls it; made into text only when it is needed.
        doing: what it was asked to do.

    Raises:
        PluginError: for any other exception, and for `sys.exit`.
    """
    try:
        yield
    except (TsformerError, InvalidValuesError):
        raise
    except (Exception, SystemExit) as error:
        if out_of_memory(error):
            raise
        raise PluginError(f"{plugin} fails in {doing}: {in_words(error)}") from error
