"""What a fit shows and leaves behind beside its run: tables on stderr, pictures and tables as files."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.table import Table

from tsformer.atomic import write_atomically
from tsformer.report import plots, tables
from tsformer.report.confusion import confusion_frame, plot_confusion, report_frame
from tsformer.results import AnswerResult, ClassResult, ForecastResult, HiddenResult, Result, SequenceResult


def print_result(result: Result) -> None:
    """The score on the test part beside naive answers, on stderr."""
    with contextlib.suppress(OSError):  # a full or closed stderr must not cost a fit
        console = tables.PatientConsole()
        for item in _tables(console, result):
            console.print(item)


def files_of(result: Result, folder: Path, plot: Path | None) -> dict[Path, Callable[[Path], None]]:
    """What is written for a person to look at: files, and what writes each.

    Args:
        folder: of the run.
        plot: where the picture goes, too.
    """
    files: dict[Path, Callable[[Path], None]] = {}
    draw: Callable[[Path], None] | None = None
    if isinstance(result, ForecastResult):
        draw, picture = partial(plots.plot_test, result), "forecast.png"
    elif isinstance(result, ClassResult):
        draw, picture = partial(plot_confusion, result.score), "confusion.png"
        files[folder / "confusion.csv"] = partial(_write_table, confusion_frame(result.score))
        files[folder / "report.csv"] = partial(_write_table, report_frame(result.score))
    if draw is not None:
        drawn = ([folder / picture] if plots.available() else []) + ([plot] if plot else [])
        files |= dict.fromkeys(drawn, draw)
    return files


def _tables(console: Console, result: Result) -> Iterator[Table | str]:
    model = result.fitted.settings.model.name
    if isinstance(result, ForecastResult):
        yield tables.forecast(model, result.test, result.baselines, result.fitted.problem)
        yield from tables.coverage(result.test, result.held_out.intervals)
    elif isinstance(result, ClassResult):
        yield from tables.classes(console, model, result.score, result.baseline, result.part)
    elif isinstance(result, AnswerResult):
        yield tables.answers(model, result.score)
    elif isinstance(result, HiddenResult):
        yield tables.hidden(model, result.score)
    if isinstance(result, SequenceResult) and result.padding is not None and result.padding.shuffled > 0:
        used, other = result.padding.bucketed, result.padding.shuffled
        if result.bucketing:
            yield f"padding: {used:.1%} of all steps, {other:.1%} if batches were not of like lengths"
        else:
            yield f"padding: {other:.1%} of all steps, {used:.1%} if batches were of like lengths (--train.bucketing)"


def _write_table(table: pd.DataFrame, file: Path) -> None:
    write_atomically(file, table.to_csv().encode())
