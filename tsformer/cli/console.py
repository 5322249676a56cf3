"""What a person sees: on stderr, so that stdout carries data only."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from tsformer.__main__ import leave
from tsformer.errors import ResourceError, TsformerError, UsageError, in_words, out_of_memory

if TYPE_CHECKING:
    from tsformer.evaluation.metrics import Metrics
    from tsformer.fitting import Result
    from tsformer.training.loop import Progress


def say(line: str, *, quiet: bool = False) -> None:
    """One line on stderr."""
    if not quiet:
        with contextlib.suppress(OSError):  # a full or closed stderr must not cost a fit
            print(line, file=sys.stderr, flush=True)


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
    """Within this, what a plugin prints goes to stderr: stdout is for data."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


class Stop:
    """Set by the first SIGINT or SIGTERM; the second one ends the process at once."""

    def __init__(self) -> None:
        self.number = 0

    @property
    def exit_code(self) -> int:
        return 128 + self.number

    def __call__(self) -> bool:
        return self.number != 0


@contextmanager
def graceful_stop() -> Iterator[Stop]:
    """Within this, the first signal only asks: the step is finished and the best weights are saved."""
    stop = Stop()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.number:
            leave(number, frame)
        stop.number = number
        say("stopping: the best weights so far are being saved (once more to stop at once)")

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """A bar with loss, best validation loss, rate and time left; only on a terminal."""
    if quiet or not sys.stderr.isatty():
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


def print_score(result: Result) -> None:
    """The table of test errors beside the naive forecasts, and a plain warning when they are not beaten."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    problem, settings = result.fitted.problem, result.fitted.settings
    table = Table(
        title=f"test part: {result.test.overall['windows']} windows of {problem.horizon} steps", title_style=""
    )
    table.add_column("")
    for name in ("MAE", "RMSE", f"MASE (season {problem.season})", "sMAPE %"):
        table.add_column(name, justify="right")
    scores = {settings.model.name: result.test, **result.baselines}
    targets = list(result.test.by_target)
    for target in targets[:MOST_TARGETS] if len(targets) > 1 else ():
        for name, score in scores.items():
            table.add_row(Text(f"{target}: {name}"), *_cells(score.by_target[target]))
        table.add_section()
    for name, score in scores.items():
        table.add_row(Text(f"all {len(targets)}: {name}" if len(targets) > 1 else name), *_cells(score.overall))
    with contextlib.suppress(OSError):
        Console(stderr=True).print(table)


MOST_TARGETS = 8  # with rows of their own


def _cells(metrics: Metrics) -> list[str]:
    values = [metrics[key] for key in ("mae", "rmse", "mase", "smape")]
    return ["-" if value is None else f"{value:.4g}" for value in values]


def warnings(result: Result) -> list[str]:
    """What the user should not overlook about a fit."""
    lines = []
    name, test = result.fitted.settings.model.name, result.test.overall
    for baseline, score in result.baselines.items():
        if name in result.baselines:
            continue  # one of the yardsticks itself
        if baseline == "seasonal_naive" and result.fitted.problem.season == 1:
            continue  # the last value once more
        key = "mase" if test["mase"] is not None and score.overall["mase"] is not None else "mae"
        own, naive = test[key], score.overall[key]
        if own is not None and naive is not None and own >= naive:
            lines.append(
                f"warning: {name} does not beat {baseline} on the test part: "
                f"{key.upper()} {own:.4g} against {naive:.4g}"
            )
    if result.test.series > 1 and result.test.without_mase:
        lines.append(
            f"warning: MASE is undefined for {result.test.series_without_mase} of {result.test.series} series, which "
            "repeat themselves each season or have no more than one before the test part; left out of it"
        )
    elif result.test.without_mase:
        names = ", ".join(result.test.without_mase[:MOST_TARGETS])
        lines.append(f"warning: MASE is undefined where a series repeats itself each season; left out of it: {names}")
    return lines
