"""Tables of scores for a person at a terminal: on stderr, for stdout carries data only."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tsformer.errors import in_one_line
from tsformer.evaluation.answers import NAIVE, AnswerScore
from tsformer.evaluation.classes import ClassScore, Metrics
from tsformer.evaluation.hidden import HiddenScore
from tsformer.evaluation.metrics import Score
from tsformer.plugin import Problem

MOST_TARGETS = 8  # that have rows of their own
MOST_CLASSES = 60  # that have rows of their own
MOST_CONFUSED = 12  # classes that have a confusion matrix
LONGEST = 32  # columns that a name may take


def forecast(model: str, test: Score, baselines: Mapping[str, Score], problem: Problem) -> Table:
    """Errors on the test part beside those of the naive forecasts, by target where there are several."""
    table = Table(title=f"test part: {test.overall['windows']} windows of {problem.horizon} steps", title_style="")
    table.add_column("")
    for name in ("MAE", "RMSE", f"MASE (season {problem.season})", "sMAPE %"):
        table.add_column(name, justify="right")
    scores = {model: test, **baselines}
    targets, keys = list(test.by_target), ("mae", "rmse", "mase", "smape")
    for target in targets[:MOST_TARGETS] if len(targets) > 1 else ():
        for name, score in scores.items():
            table.add_row(Text(f"{target}: {name}"), *_cells(score.by_target[target], *keys))
        table.add_section()
    for name, score in scores.items():
        title = f"all {len(targets)}: {name}" if len(targets) > 1 else name
        table.add_row(Text(title), *_cells(score.overall, *keys))
    return table


def coverage(test: Score, intervals: str | None) -> Iterator[str]:
    """How many of the true values the intervals hold, and what they are worth, a line each; none without intervals."""
    names = [name for name in test.overall if name.startswith("coverage_")]
    parts = [
        f"{name.removeprefix('coverage_')} % intervals hold {100 * value:.1f} %"
        for name in names
        if (value := test.overall[name]) is not None
    ]
    if parts:
        yield f"{', '.join(parts)} of the true values ({intervals})"
        worth = {"WQL": test.overall.get("wql")}
        for level in (name.removeprefix("coverage_") for name in names):
            worth[f"MSIS of {level} %"] = test.overall.get(f"msis_{level}")
        if known := [f"{name} {value:.4g}" for name, value in worth.items() if value is not None]:
            yield ", ".join(known)


class PatientConsole(Console):
    """Stderr as a console that does not end the process when nobody reads what it prints."""

    def __init__(self) -> None:
        super().__init__(stderr=True)

    def on_broken_pipe(self) -> None:
        self.quiet = True


def classes(
    console: Console, model: str, score: ClassScore, baseline: ClassScore, part: str = "test"
) -> Iterator[Table | str]:
    """The score beside that of the majority class, then each class, then which is taken for which if there is room.

    Args:
        part: of the data that was scored.
    """
    yield compared(model, score, baseline, part)
    count = len(score.names)
    if count > MOST_CLASSES:
        yield f"the first {MOST_CLASSES} of {count} classes"
    yield report(score)
    table = confusion(score)
    free = console.options.update(max_width=sys.maxsize)  # or it would be said to fit, by being cut
    if count <= MOST_CONFUSED and console.measure(table, options=free).maximum <= console.width:
        yield "truth in rows, prediction in columns"
        yield table


def answers(model: str, score: AnswerScore) -> Table:
    """How many answers are right, and how far they are off, beside naive answers."""
    table = Table(title=f"test part: {score.overall['examples']} answers", title_style="")
    table.add_column("")
    for name in ("all right", "words right", "edit distance", "words"):
        table.add_column(name, justify="right")
    keys = ("sequence_accuracy", "token_accuracy", "edit_distance", "mean_length")
    for name, metrics in {model: score.overall, **score.baselines}.items():
        table.add_row(literal(NAIVE.get(name, name)), *_cells(metrics, *keys))
    return table


def hidden(model: str, score: HiddenScore) -> Table:
    """The loss on hidden steps beside that of a guess."""
    table = Table(title=f"test part: hidden steps of {score.examples} examples", title_style="")
    table.add_column("")
    table.add_column({"mse": "MSE", "cross_entropy": "cross-entropy"}[score.kind], justify="right")
    table.add_row(literal(model), f"{score.loss:.4g}")
    table.add_row("mean of the window" if score.kind == "mse" else "how often each occurs", f"{score.baseline:.4g}")
    return table


def compared(model: str, score: ClassScore, baseline: ClassScore, part: str = "test") -> Table:
    """The model and the majority class, a row each."""
    table = Table(
        title=f"{part} part: {score.overall['examples']} examples of {len(score.names)} classes", title_style=""
    )
    table.add_column("")
    for name in ("accuracy", "macro-F1", "log loss"):
        table.add_column(name, justify="right")
    for name, each in ((model, score), ("majority class", baseline)):
        table.add_row(literal(name), *_cells(each.overall, "accuracy", "macro_f1", "log_loss"))
    return table


def report(score: ClassScore) -> Table:
    """Precision, recall, F1 and number of examples of each class, of the first ones if there are many."""
    table = Table()
    table.add_column("class", no_wrap=True, max_width=LONGEST)
    for name in ("precision", "recall", "F1", "examples"):
        table.add_column(name, justify="right")
    for name, metrics in list(score.by_class.items())[:MOST_CLASSES]:
        table.add_row(literal(name), *_cells(metrics, "precision", "recall", "f1"), str(metrics["support"]))
    return table


def confusion(score: ClassScore) -> Table:
    """Counts: a row for each true class, a column for each prediction; columns are numbered as rows are."""
    table = Table()
    table.add_column("", justify="right")
    table.add_column("", no_wrap=True, max_width=LONGEST // 2)
    for number in range(1, len(score.names) + 1):
        table.add_column(str(number), justify="right", no_wrap=True)
    for number, (name, row) in enumerate(zip(score.names, score.confusion, strict=True), start=1):
        table.add_row(str(number), literal(name), *map(str, row))
    return table


def literal(name: str) -> Text:
    """A name as it is: rich's markup in it is text, and control characters are escaped."""
    return Text(in_one_line(name))


def _cells(metrics: Metrics, *keys: str) -> list[str]:
    values = [metrics[key] for key in keys]
    return ["-" if value is None else f"{value:.4g}" for value in values]
