"""What a person sees: on stderr, so that stdout carries data only."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from tsformer.__main__ import leave
from tsformer.errors import ResourceError, TsformerError, UsageError, in_one_line, in_words, out_of_memory
from tsformer.folder import same_folder

if TYPE_CHECKING:
    from tsformer.results import Result
    from tsformer.training.loop import Progress


def say(line: str, *, quiet: bool = False) -> None:
    """One line on stderr."""
    if not quiet:
        with contextlib.suppress(OSError):  # a full or closed stderr must not cost a fit
            print(in_one_line(line), file=sys.stderr, flush=True)


def report(error: TsformerError, *, as_json: bool) -> None:
    """An error, a line for each fault; or one object, also on stderr."""
    if as_json:
        kind = type(error).__name__.removesuffix("Error").lower()
        message = {"schema": 1, "error": {"kind": kind, "exit_code": error.exit_code, "message": str(error)}}
        say(json.dumps(message))
        return
    for line in str(error).splitlines():
        say(f"error: {line}")


def print_json(document: Any) -> None:
    """One object on stdout."""
    print(json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False))


@contextmanager
def guarded(*, as_json: bool = False) -> Iterator[None]:
    """Turn every exception into one line on stderr and the right exit code; a traceback only with TSFORMER_DEBUG=1."""
    try:
        yield
        sys.stdout.flush()
    except TsformerError as error:
        if os.environ.get("TSFORMER_DEBUG") and error.__cause__ is not None:
            traceback.print_exception(error.__cause__)
        report(error, as_json=as_json)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # what is still buffered must not be flushed into the closed pipe at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except KeyboardInterrupt:
        say("interrupted")
        sys.exit(130)
    except OSError as error:
        if os.environ.get("TSFORMER_DEBUG"):
            raise
        what = f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
        report(ResourceError(what[0].lower() + what[1:]), as_json=as_json)
        sys.exit(ResourceError.exit_code)
    except Exception as error:
        if hasattr(error, "format_message"):  # typer's own errors of usage; it vendors click, whose names are private
            report(UsageError(" ".join(error.format_message().split())), as_json=as_json)
            sys.exit(UsageError.exit_code)
        if os.environ.get("TSFORMER_DEBUG"):
            raise
        if out_of_memory(error):
            words = " ".join(str(error).split())[:200]
            line = f"out of memory; try a smaller --train.batch-size or model{f' ({words})' if words else ''}"
            report(ResourceError(line), as_json=as_json)
            sys.exit(ResourceError.exit_code)
        hint = "a fault of tsformer or of a plugin; TSFORMER_DEBUG=1 shows all of it"
        report(TsformerError(f"unexpected {in_words(error)}: {hint}"), as_json=as_json)
        sys.exit(1)


@contextmanager
def data_only() -> Iterator[None]:
    """Within this, what a plugin prints goes to stderr: stdout is for data. Its change of folder is undone."""
    with same_folder(), _descriptor_to_stderr(), contextlib.redirect_stdout(sys.stderr):
        yield


@contextmanager
def _descriptor_to_stderr() -> Iterator[None]:
    """Within this, descriptor 1 is stderr's, for what writes below Python: C, and programs that a plugin starts."""
    if not _is_open(1):  # nothing to protect
        yield
        return
    _flush()
    other = os.dup(2) if _is_open(2) else os.open(os.devnull, os.O_WRONLY)
    kept = os.dup(1)
    os.dup2(other, 1)
    try:
        yield
    finally:
        _flush()
        os.dup2(kept, 1)
        os.close(kept)
        os.close(other)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _flush() -> None:
    """What Python and C have buffered for descriptor 1 goes where the descriptor leads now."""
    for stream in (sys.stdout, sys.__stdout__):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):  # full or closed
                stream.flush()
    with contextlib.suppress(AttributeError, OSError, TypeError):  # a system where C's buffers are not found like this
        ctypes.CDLL(None).fflush(None)


class Stop:
    """Set by the first SIGINT or SIGTERM; the second one ends the process at once.

    Attributes:
        number: of the signal; 0 when there was none.
        heeded: somebody has asked whether to stop, as training does before each step.
    """

    def __init__(self) -> None:
        self.number, self.heeded = 0, False

    @property
    def exit_code(self) -> int:
        return 128 + self.number

    def __call__(self) -> bool:
        self.heeded = True
        return self.number != 0


@contextmanager
def graceful_stop(becomes: str = "the best weights so far are being saved") -> Iterator[Stop]:
    """Within this, once training has begun, the first signal only asks: the best weights so far are saved.

    Before that, and in a fit that takes no steps, there is nothing to save and nobody to ask: it ends the process.

    Args:
        becomes: what the user is told of what there is so far.
    """
    stop = Stop()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.number or not stop.heeded:
            leave(number, frame)
        stop.number = number
        say(f"stopping: {becomes} (once more to stop at once)")

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """A bar with loss, best validation loss, rate and time left; only on a terminal."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield lambda progress: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[losses]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("training", total=None, losses="")

        def update(progress: Progress) -> None:
            task_speed = bar.tasks[0].finished_speed or bar.tasks[0].speed
            speed = f" {task_speed:.1f} steps/s" if task_speed else ""
            best = f"{progress.best:.4g}" if progress.best < float("inf") else "-"
            losses = f"loss {progress.loss:.4g} best {best} lr {progress.learning_rate:.1e}{speed}"
            bar.update(task, completed=progress.step, total=progress.steps, losses=losses)

        yield update


def targets_named(targets: Sequence[str]) -> str:
    """How many targets there are, and the names of the first: "2 targets (a, b)"."""
    from tsformer.data.cells import listed

    return f"{len(targets)} target{'s' if len(targets) > 1 else ''} ({listed(targets)})"


def cautions(result: Result) -> list[str]:
    """What the user should not overlook about a fit."""
    return [f"warning: {line}" for line in result.cautions()]
