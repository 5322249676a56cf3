"""What can go wrong for a user, one class per exit code.

A message says what is wrong, where, and what to do, in one line; the command line prints it without a traceback.
"""

from __future__ import annotations

import difflib
import os
import re
import signal
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tsformer.findings import Finding
from tsformer.folder import same_folder

if TYPE_CHECKING:
    import numpy as np


class TsformerError(Exception):
    """Base of every error that is meant for the user.

    Args:
        faults: what is wrong, usually one; as text, each is one line, whatever the names in it hold.

    Attributes:
        series: which of several series are at fault, boolean `[series]`, where that is known.
    """

    exit_code = 1
    series: np.ndarray | None = None

    def __init__(self, *faults: object) -> None:
        super().__init__(*faults)

    def __str__(self) -> str:
        return "\n".join(in_one_line(str(fault)) for fault in self.args)

    def sentence(self) -> str:
        """All faults in one line, for a message around them."""
        return "; ".join(str(self).split("\n"))


class UsageError(TsformerError):
    """A wrong option or configuration. Several faults are reported at once, one line each."""

    exit_code = 2


class DataError(TsformerError):
    """Input data that cannot be taken as it is: names column, row and count.

    Args:
        finding: the same for programs, with the options that would settle it; an error around another one passes on
            its finding.
    """

    exit_code = 3

    def __init__(self, *faults: object, finding: Finding | None = None) -> None:
        super().__init__(*faults)
        self.finding = finding


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


def in_one_line(text: str) -> str:
    """The text with its line ends and other control characters escaped."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


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


def from_keyboard(error: BaseException) -> bool:
    """Whether somebody pressed Ctrl-C; where that is handled otherwise, as on the command line, some code raised it."""
    return isinstance(error, KeyboardInterrupt) and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def is_nobodys(error: BaseException) -> bool:
    """Whether it says nothing of the code that it comes from: memory is short, or somebody pressed Ctrl-C."""
    return out_of_memory(error) or from_keyboard(error)


@contextmanager
def at_fault(plugin: object, doing: str) -> Iterator[None]:
    """Within this, what goes wrong is the plugin's fault and said so, with the place in its file.

    A folder that it changes to is left again.

    Errors that are meant for the user pass, and so does what a transform says of values outside its domain.

    Args:
        plugin: what the message calls it; made into text only when it is needed.
        doing: what it was asked to do.

    Raises:
        PluginError: for any other exception, `sys.exit` included; only Ctrl-C and a lack of memory pass.
    """
    try:
        with same_folder():
            yield
    except (TsformerError, InvalidValuesError):
        raise
    except BaseException as error:  # sys.exit, and what extensions derive from BaseException, such as a Rust panic
        if is_nobodys(error):
            raise
        raise PluginError(f"{plugin} fails in {doing}: {in_words(error)}") from error
