"""`tsformer predict`: a run and new rows make a forecast table, or texts and series their labels and answers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tsformer.cli.console import data_only, guarded, print_json, say
from tsformer.cli.interval_options import IntervalsFrom, Levels, Samples, Seed, ask_for, check_levels, refuse_idle
from tsformer.cli.line_config import PluginFiles
from tsformer.cli.places import place, require_apart, require_named, require_writable
from tsformer.errors import UsageError
from tsformer.levels import read_intervals

if TYPE_CHECKING:
    import pandas as pd

    from tsformer.data.sequences import Sequences
    from tsformer.fitted import Fitted
    from tsformer.forecast import Forecast
    from tsformer.plugin import Task
    from tsformer.predictive import Ask

PATHS = 100
"""Sample paths of each series, where nothing is said."""


def predict(
    run: Annotated[str, typer.Argument(metavar="[RUN]", help="A run folder; the newest one if left out.")] = "latest",
    input: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="New rows or texts, - for stdin. (default: the data that the run was fitted on)"
        ),
    ] = None,
    future: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="What is known ahead: the future covariates of the steps to predict, - for stdin."
        ),
    ] = None,
    output: Annotated[
        str,
        typer.Option(
            metavar="FILE", help="The table of forecasts or answers, - for stdout; .parquet and .csv.gz are known."
        ),
    ] = "-",
    append: Annotated[
        bool, typer.Option("--append", help="The history, too, before the forecast; a column kind tells them apart.")
    ] = False,
    plot: Annotated[str | None, typer.Option(metavar="FILE", help="A picture of history and forecast.")] = None,
    horizon: Annotated[
        int | None, typer.Option(metavar="INTEGER", help="Steps to predict. (default: as fitted)")
    ] = None,
    levels: Levels = None,
    intervals: IntervalsFrom = None,
    samples: Samples = None,
    output_paths: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A table of sample paths, possible futures of each series."),
    ] = None,
    paths: Annotated[
        int | None, typer.Option(metavar="INTEGER", min=1, help="How many paths of each series. (default: 100)")
    ] = None,
    seed: Seed = None,
    beam: Annotated[
        int | None,
        typer.Option(metavar="INTEGER", min=1, help="Answers to a text followed at a time. (default: 1)"),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps.")] = "auto",
    plugin: PluginFiles = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only warnings and errors on stderr.")] = False,
) -> None:
    """Forecast what follows the last row of the input, in its own units and with the dates that come next.

    A classifier says the label of each text or series and how probable it is; a model of sequences answers each.
    """
    with guarded(as_json=json):
        for flag, path in (("--input", input), ("--future", future), ("RUN", run)):
            require_named(flag, path)
        if input == future == "-":
            raise UsageError("--input - and --future -: stdin can be only one of them, name a file for the other")
        picture = place("--plot", plot)
        _check_tables(output, output_paths, {"--input": input, "--future": future})
        if paths is not None and output_paths is None:
            raise UsageError(f"--paths {paths}: say where the paths go, with --output-paths FILE")
        refuse_idle(levels, output_paths is not None, intervals=intervals, samples=samples, seed=seed)
        wanted, source = check_levels(levels), read_intervals(intervals)
        from tsformer import run as runs
        from tsformer import sources
        from tsformer.building import device_of
        from tsformer.data.frames import write_table
        from tsformer.data.panel import Panel, Schema
        from tsformer.forecast import forecast as forecasts_of
        from tsformer.intervals import kind_of_intervals
        from tsformer.plugin import Task
        from tsformer.report import plots
        from tsformer.tables.output import keeps_dates, require

        for file in (output, output_paths):
            if file is not None:
                require(Path(file))
        if picture is not None:
            require_writable(f"--plot '{plot}'", picture)
            plots.require(picture)
        folder = runs.find(run)
        with data_only():
            fitted, summary = runs.load(folder)
            if summary["status"] != "complete":
                say(f"note: the fit of {folder} was {summary['status']}", quiet=quiet)
            for note in runs.other_plugins(folder, fitted):
                say(f"note: {note}", quiet=quiet)
            forecasts = fitted.problem.task is Task.FORECAST
            _refuse(
                fitted.problem.task,
                beam=beam,
                plot=plot,
                horizon=horizon,
                future=future,
                append=append or None,
                levels=levels,
                output_paths=output_paths,
            )
            fitted.module.to(device_of(device))
            data = sources.read_rows(fitted.settings, input, fitted.schema)
            ahead = drawn = None
            if future is not None and isinstance(fitted.schema, Schema):
                if fitted.schema.future_covariates:
                    ahead = sources.read_future(fitted.settings, future, fitted.schema)
                else:
                    say("note: --future is not read: the model was fitted without future covariates", quiet=quiet)
            for told in dict.fromkeys(map(str, (*data.notes, *(ahead.notes if ahead else ())))):
                say(f"note: {told}", quiet=quiet)
            if isinstance(data, Panel):
                count = 0 if output_paths is None else paths or PATHS
                ask = ask_for(wanted, paths=count, samples=samples, seed=seed)
                kind = kind_of_intervals(fitted, ask, source)
                forecast = forecasts_of(fitted, data, horizon, ahead, ask=ask, intervals=kind)
                if picture is not None:
                    plots.plot_forecast(forecast.history, forecast, picture, fitted.settings.model.name)
                made = _table(forecast, ask, kind, append=append, written=not keeps_dates(Path(output)))
                if output_paths is not None:
                    drawn = forecast.to_paths_frame(written=not keeps_dates(Path(output_paths)))
            else:
                made = _answer(fitted, data, beam)
            for note in made.notes:
                say(f"note: {note}", quiet=quiet)
        if json:
            if output != "-":
                write_table(made.table, output)
            print_json(
                {
                    "schema": 1,
                    "task": fitted.problem.task.value,
                    "run": str(folder),
                    **made.about,
                    "output": None if output == "-" else output,
                    ("forecast" if forecasts else "answers"): made.rows(),
                }
            )
        else:
            write_table(made.table, output)
        if drawn is not None and output_paths is not None:
            write_table(drawn, output_paths)
            say(f"{len(drawn)} rows of sample paths in {output_paths}", quiet=quiet)
        if picture is not None:
            say(f"picture: {picture}", quiet=quiet)
        if output != "-":
            say(f"{len(made.table)} rows of {folder} in {output}", quiet=quiet)


@dataclass(frozen=True)
class _Made:
    """What was predicted, ready to be written."""

    table: pd.DataFrame
    notes: tuple[str, ...]
    about: dict[str, Any]
    probabilities: Sequence[Mapping[str, float]] | None = None

    def rows(self) -> list[dict[str, Any]]:
        """As JSON has them; with the probabilities of all classes where there are any."""
        rows = [{str(name): _plain(cell) for name, cell in row.items()} for row in self.table.to_dict("records")]
        if self.probabilities is None:
            return rows
        from tsformer.prediction import free_name

        name = free_name(self.table, "probabilities")
        return [row | {name: dict(each)} for row, each in zip(rows, self.probabilities, strict=True)]


def _check_tables(output: str, paths: str | None, read: Mapping[str, str | None]) -> None:
    """Raises UsageError or ResourceError when the tables cannot be written where they are to go."""
    require_named("--output", output)
    require_named("--output-paths", paths)
    if paths == "-":
        raise UsageError("--output-paths -: stdout is for the forecasts, name a file for the paths")
    for flag, path in (("--output", output), ("--output-paths", paths)):
        if path is not None and path != "-":
            require_writable(f"{flag} '{path}'", Path(os.path.expanduser(path)))
            require_apart(flag, path, read)
    if paths is not None and Path(os.path.expanduser(output)).absolute() == Path(os.path.expanduser(paths)).absolute():
        raise UsageError(f"--output and --output-paths are both {paths}: name another place for the paths")


def _table(forecast: Forecast, ask: Ask, kind: str | None, *, append: bool, written: bool) -> _Made:
    table = forecast.with_history(written=written) if append else forecast.to_frame(written=written)
    about: dict[str, Any] = {"horizon": forecast.values.shape[1]}
    if ask.levels:
        about |= {"levels": list(ask.levels), "intervals": kind}
    return _Made(table, forecast.notes, about)


def _answer(fitted: Fitted, data: Sequences, beam: int | None) -> _Made:
    from tsformer.prediction import answer

    made, names = answer(fitted, data, beam=beam or 1), fitted.words.classes
    if made.probabilities is None:
        return _Made(made.table, made.notes, {"beam": beam or 1})
    each = [dict(zip(names, row, strict=True)) for row in made.probabilities.tolist()]
    return _Made(made.table, made.notes, {"classes": list(names)}, each)


def _refuse(task: Task, *, beam: int | None, **of_forecasts: Any) -> None:
    """Raises UsageError for a task that predicts nothing, and for options that have no meaning for it."""
    from tsformer.plugin import Task
    from tsformer.prediction import require_answers

    require_answers(task)
    given = {f"--{name}": value for name, value in of_forecasts.items()} if task is not Task.FORECAST else {}
    given |= {"--beam": beam} if task is not Task.SEQUENCE else {}
    unread = [flag.replace("_", "-") for flag, value in given.items() if value is not None]
    if unread:
        raise UsageError(f"{' and '.join(unread)} has no meaning for a run whose task is {task}; leave it out")


def _plain(cell: Any) -> Any:
    """A cell as JSON has it; None for a value of the history that is missing."""
    plain = cell.isoformat() if hasattr(cell, "isoformat") else cell.item() if hasattr(cell, "item") else cell
    return None if plain != plain else plain
