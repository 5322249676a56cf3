"""`tsformer fit`: train a model, score it beside the naive forecasts, leave a run folder."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tsformer.cli.console import (
    cautions,
    data_only,
    graceful_stop,
    guarded,
    print_json,
    progress_bar,
    say,
    targets_named,
)
from tsformer.cli.dry_run import rehearse
from tsformer.cli.line_config import (
    Data,
    File,
    Model,
    PluginFiles,
    Scale,
    TaskName,
    Transforms,
    read_layers,
    with_plugin_options,
)
from tsformer.cli.places import place, require_writable
from tsformer.config import resolve
from tsformer.errors import TsformerError, UsageError, in_words
from tsformer.plugin import Task
from tsformer.settings import Settings

if TYPE_CHECKING:
    from tsformer.data.panel import Panel
    from tsformer.data.sequences import Sequences
    from tsformer.fitted import Fitted


def command(words: Sequence[str] | None) -> Callable[..., None]:
    """The command with the options of the plugins that a line names; None when the line is another command's."""
    return with_plugin_options(fit, words, needs_data=True)


def fit(
    model: Model = None,
    data: Data = None,
    transform: Transforms = None,
    scale: Scale = None,
    task: TaskName = None,
    config: File = None,
    plugin: PluginFiles = None,
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="The run folder. (default: a new folder in runs/)")
    ] = None,
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also write the picture of the test part here.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, print windows, parameters and memory, and stop.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only warnings and errors on stderr.")] = False,
    **options: Any,
) -> None:
    """Train a model on data, score it on the held-out part beside naive answers, and keep it in a run folder.

    Name a model and a data source to see their options: tsformer fit --model tcn_transformer --data csv --help
    """
    with guarded(as_json=json):
        layers = read_layers(
            config=config, model=model, data=data, transform=transform, scale=scale, task=task, options=options
        )
        with data_only():
            settings = resolve(layers)
        folder, picture = place("--out", out), place("--plot", plot)
        if folder is not None:
            require_writable(f"--out {folder}", folder, folder=True)
        else:
            require_writable("the folder runs", Path("runs"), folder=True)
        if picture is not None:
            if settings.task not in (Task.FORECAST, Task.CLASSIFY):
                raise UsageError(f"--plot: there is no picture of a fit whose task is {settings.task}; leave it out")
            require_writable(f"--plot {picture}", picture)
        if dry_run:
            rehearse(settings, out=folder, plot=picture, as_json=json, quiet=quiet)
        else:
            _run(settings, out=folder, plot=picture, as_json=json, quiet=quiet)


def _run(settings: Settings, *, out: Path | None, plot: Path | None, as_json: bool, quiet: bool) -> None:
    with data_only():
        # torch only from here on: what is wrong with the options is said at once
        from tsformer import fitting, sources
        from tsformer.report import plots, results
        from tsformer.run import Writer, new_folder

        if plot is not None:
            plots.require(plot)
        data = sources.load_data(settings.data)
        for note in data.notes:
            say(f"note: {note}", quiet=quiet)
        folder = out or new_folder(settings)
        writer = Writer(folder.absolute())  # it is written to while a plugin may have changed the folder

        def start(fitted: Fitted) -> None:
            writer.start(fitted)
            say(_outline(fitted, data), quiet=quiet)

        with graceful_stop() as stop, progress_bar(quiet=quiet) as on_step:
            result = fitting.fit(
                settings,
                data,
                watch=fitting.Watch(
                    note=lambda line: say(f"note: {line}", quiet=quiet),
                    start=start,
                    step=on_step,
                    evaluation=writer.log,
                    interrupted=stop,
                ),
            )
            if result.history.stopped == "interrupted" and not result.history.steps:
                sys.exit(stop.exit_code)  # nothing was learned: the run stays incomplete
            writer.finish(result.fitted, result.summary())
        if not quiet:
            results.print_result(result)
        for line in cautions(result):
            say(line)
        for file, write in results.files_of(result, folder, plot).items():
            try:
                write(file)
            except Exception as error:  # a finished fit does not fail for its pictures
                kind = "table" if file.suffix == ".csv" else "picture"
                say(f"warning: no {kind} {file}: {error if isinstance(error, TsformerError) else in_words(error)}")
        if result.history.stopped == "early":
            say(f"stopped early at step {result.history.steps}; best at {result.history.best_step}", quiet=quiet)
        say(f"{result.seconds:.1f} s; the run is in", quiet=quiet)
    if as_json:
        print_json(result.to_json(str(folder)))
    else:
        print(folder)
    if result.history.error is not None:
        raise type(result.history.error)(f"{result.history.error} (kept in {folder})")
    if stop():
        sys.exit(stop.exit_code)


def _outline(fitted: Fitted, data: Panel | Sequences) -> str:
    """What is about to be fitted, in one line."""
    import numpy as np

    from tsformer.data.panel import Panel
    from tsformer.parameters import parameters_of

    window, problem = fitted.settings.window, fitted.problem
    if isinstance(data, Panel):
        rows = f"{len(data.values)} rows" + (f" in {len(data.ids)} series" if data.schema.id else "")
        schema = data.schema
        kinds = {
            "past": schema.past_covariates,
            "future": schema.future_covariates,
            "static": schema.static_covariates,
        }
        covariates = [f"{len(n)} {kind} covariate{'s' if len(n) > 1 else ''}" for kind, n in kinds.items() if n]
        calendar = [f"calendar {' '.join(schema.calendar)}"] if schema.calendar else []
        lost = np.isnan(data.values).mean() if data.masked else 0.0
        missing = [f"{100 * lost:.2g} % missing"] if lost else []
        about = ", ".join(
            [
                rows,
                *missing,
                targets_named(schema.targets),
                *covariates,
                *calendar,
                f"lookback {window.lookback}, horizon {window.horizon}, season {window.season}",
            ]
        )
    else:
        channels = [f"{problem.channels} channel{'s' if problem.channels > 1 else ''}"] if problem.channels else []
        words = [f"{problem.vocabulary:,} tokens in the vocabulary"] if problem.vocabulary else []
        classes = [f"{problem.classes} classes"] if problem.classes else []
        about = ", ".join([f"{len(data):,} examples", *channels, *words, *classes, f"lookback {window.lookback}"])
    return f"{fitted.settings.model.name}: {about}, {parameters_of(fitted.module):,} parameters"
