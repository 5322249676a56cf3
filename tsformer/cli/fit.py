"""`tsformer fit`: train a model, score it beside the naive forecasts, leave a run folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tsformer import registry
from tsformer.cli.console import data_only, graceful_stop, guarded, print_json, print_score, progress_bar, say, warnings
from tsformer.cli.options import given, parameters, sections, with_signature
from tsformer.config import Layer, name_in, read_file, resolve, transform_names
from tsformer.errors import TsformerError, in_words
from tsformer.registry import Kind
from tsformer.settings import TrainConfig, WindowConfig

if TYPE_CHECKING:
    from tsformer.fitting import Fitted

PLUGIN_HELP = "A Python file with a plugin; its name is the file's stem. May be given several times, anywhere."


def command(words: Sequence[str]) -> Callable[..., None]:
    """The command with the options of the plugins that a command line names."""
    layers = _named(words)
    model, data = name_in(layers, "model"), name_in(layers, "data")
    added = []
    if model is not None:
        added += parameters("model", registry.get(Kind.MODEL, model).config, f"Model {model}")
    if data is not None:
        added += parameters("data", registry.get(Kind.DATA, data).config, f"Data {data}")
    named = model is not None or data is not None or transform_names(layers)
    for key, name in _chain(layers) if named else ():
        added += parameters(f"transform.{name}", registry.get(Kind.TRANSFORM, name).config, f"Transform {name}", key)
    added += parameters("window", WindowConfig, "Window") + parameters("train", TrainConfig, "Training")
    return with_signature(fit, added)


def fit(
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The model plugin; adds its options to --help.",
            autocompletion=lambda: list(registry.entries(Kind.MODEL)),
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The data plugin; adds its options to --help.",
            autocompletion=lambda: list(registry.entries(Kind.DATA)),
        ),
    ] = None,
    transform: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A transform of the targets, undone in the forecast; several act in the order given.",
            autocompletion=lambda: list(registry.entries(Kind.TRANSFORM)),
        ),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The scaler that follows the transforms, or none. (default: standard)"),
    ] = None,
    config: Annotated[
        str | None, typer.Option(metavar="FILE", help="TOML or JSON file, or an earlier run; flags win over it.")
    ] = None,
    plugin: Annotated[list[str] | None, typer.Option(metavar="FILE", help=PLUGIN_HELP)] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The run folder. (default: a new folder in runs/)")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the picture of the last test forecast here.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only warnings and errors on stderr.")] = False,
    **options: Any,
) -> None:
    """Train a model on data, score it on the held-out part beside naive forecasts, and keep it in a run folder.

    Name a model and a data source to see their options: tsformer fit --model tcn_transformer --data csv --help
    """
    with guarded(as_json=json):
        flags: dict[str, Any] = {"model": {"name": model}, "data": {"name": data}, "scale": {"name": scale}}
        if transform:
            flags["transform"] = transform
        layers = [read_file(config)] if config else []
        chain = dict(_chain([*layers, Layer(flags)]))
        for section, values in sections(options).items():
            if section in chain:
                flags.setdefault("transform_options", {}).setdefault(chain[section], {}).update(values)
            else:
                flags.setdefault(section, {}).update(values)
        out, plot = (path and Path(os.path.expanduser(path)) for path in (out, plot))
        _run(layers=[*layers, Layer(flags)], out=out, plot=plot, as_json=json, quiet=quiet)


def _run(*, layers: Sequence[Layer], out: Path | None, plot: Path | None, as_json: bool, quiet: bool) -> None:
    with data_only():
        settings = resolve(layers)
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
        writer = Writer(folder)

        def start(fitted: fitting.Fitted) -> None:
            writer.start(fitted)
            say(_outline(fitted, len(panel.values)), quiet=quiet)

        with graceful_stop() as stop, progress_bar(quiet=quiet) as on_step:
            result = fitting.fit(
                settings, panel, on_start=start, on_step=on_step, on_evaluation=writer.log, interrupted=stop
            )
            if stop() and not result.history.steps:
                sys.exit(stop.exit_code)  # nothing was learned: the run stays incomplete
            writer.finish(result.fitted, result.summary())
        if not quiet:
            print_score(result)
        for line in warnings(result):
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


def _outline(fitted: Fitted, rows: int) -> str:
    """What is about to be fitted, in one line."""
    window, targets = fitted.settings.window, fitted.schema.targets
    named = ", ".join(targets[:8]) + (", ..." if len(targets) > 8 else "")
    return (
        f"{fitted.settings.model.name}: {rows} rows, {len(targets)} target{'s' if len(targets) > 1 else ''} ({named}), "
        f"lookback {window.lookback}, horizon {window.horizon}, season {window.season}, "
        f"{sum(p.numel() for p in fitted.module.parameters()):,} parameters"
    )


def _named(words: Sequence[str]) -> list[Layer]:
    """The plugins that a command line names, before it is parsed."""
    files = [read_file(path) for path in given(words, "--config")[-1:]]
    names = {section: given(words, f"--{section}") for section in ("model", "data", "scale")}
    flags: dict[str, Any] = {section: {"name": values[-1]} for section, values in names.items() if values}
    flags["transform"] = given(words, "--transform")
    return [*files, Layer(flags)]


def _chain(layers: Sequence[Layer]) -> list[tuple[str, str]]:
    """A key and a name for each transform in use, the scaler last."""
    scale = name_in(layers, "scale") or "standard"
    names = [*transform_names(layers), *([scale] if scale != "none" else [])]
    return [(f"transform.{number}", name) for number, name in enumerate(dict.fromkeys(names))]
