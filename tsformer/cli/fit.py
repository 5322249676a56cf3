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
    print_score,
    progress_bar,
    say,
    targets_named,
)
from tsformer.cli.dry_run import rehearse
from tsformer.cli.line_config import Data, File, Model, PluginFiles, Scale, Transforms, read_layers, with_plugin_options
from tsformer.cli.places import place, require_writable
from tsformer.config import resolve
from tsformer.errors import TsformerError, in_words
from tsformer.settings import Settings

if TYPE_CHECKING:
    from tsformer.data.panel import Panel
    from tsformer.fitting import Fitted


def command(words: Sequence[str] | None) -> Callable[..., None]:
    """The command with the options of the plugins that a line names; None when the line is another command's."""
    return with_plugin_options(fit, words, needs_data=True)


def fit(
    model: Model = None,
    data: Data = None,
    transform: Transforms = None,
    scale: Scale = None,
    config: File = None,
    plugin: PluginFiles = None,
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="The run folder. (default: a new folder in runs/)")
    ] = None,
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also write the picture of the last test forecast here.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, print windows, parameters and memory, and stop.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only warnings and errors on stderr.")] = False,
    **options: Any,
) -> None:
    """Train a model on data, score it on the held-out part beside naive forecasts, and keep it in a run folder.

    Name a model and a data source to see their options: tsformer fit --model tcn_transformer --data csv --help
    """
    with guarded(as_json=json):
        layers = read_layers(config=config, model=model, data=data, transform=transform, scale=scale, options=options)
        with data_only():
            settings = resolve(layers)
        folder, picture = place("--out", out), place("--plot", plot)
        if folder is not None:
            require_writable(f"--out {folder}", folder, folder=True)
        else:
            require_writable("the folder runs", Path("runs"), folder=True)
        if picture is not None:
            require_writable(f"--plot {picture}", picture)
        if dry_run:
            rehearse(settings, out=folder, plot=picture, as_json=json, quiet=quiet)
        else:
            _run(settings, out=folder, plot=picture, as_json=json, quiet=quiet)


def _run(settings: Settings, *, out: Path | None, plot: Path | None, as_json: bool, quiet: bool) -> None:
    with data_only():
        # torch only from here on: what is wrong with the options is said at once
        from tsformer import fitting, preparation
        from tsformer.report import plots
        from tsformer.run import Writer, new_folder

        if plot is not None:
            plots.require(plot)
        panel = preparation.load_data(settings.data)
        for note in panel.notes:
            say(f"note: {note}", quiet=quiet)
        folder = out or new_folder(settings)
        writer = Writer(folder.absolute())  # it is written to while a plugin may have changed the folder

        def start(fitted: fitting.Fitted) -> None:
            writer.start(fitted)
            say(_outline(fitted, panel), quiet=quiet)

        with graceful_stop() as stop, progress_bar(quiet=quiet) as on_step:
            result = fitting.fit(
                settings,
                panel,
                on_note=lambda line: say(f"note: {line}", quiet=quiet),
                on_start=start,
                on_step=on_step,
                on_evaluation=writer.log,
                interrupted=stop,
            )
            if result.history.stopped == "interrupted" and not result.history.steps:
                sys.exit(stop.exit_code)  # nothing was learned: the run stays incomplete
            writer.finish(result.fitted, result.summary())
        if not quiet:
            print_score(result)
        for line in cautions(result):
            say(line)
        for picture in ([folder / "forecast.png"] if plots.available() else []) + ([plot] if plot else []):
            try:
                plots.plot_test(result, picture)
            except Exception as error:  # a finished fit does not fail for its picture
                say(f"warning: no picture {picture}: {error if isinstance(error, TsformerError) else in_words(error)}")
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


def _outline(fitted: Fitted, panel: Panel) -> str:
    """What is about to be fitted, in one line."""
    from tsformer.parameters import parameters_of

    window = fitted.settings.window
    rows = f"{len(panel.values)} rows" + (f" in {len(panel.ids)} series" if panel.schema.id else "")
    return (
        f"{fitted.settings.model.name}: {rows}, {targets_named(fitted.schema.targets)}, "
        f"lookback {window.lookback}, horizon {window.horizon}, season {window.season}, "
        f"{parameters_of(fitted.module):,} parameters"
    )
