"""`tsformer inspect`: what a file holds, what is wrong with it, and the `tsformer fit` line that takes it."""

from __future__ import annotations

import inspect as signatures
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from tsformer import registry
from tsformer.cli.console import data_only, guarded, print_json
from tsformer.cli.line_config import Model, PluginFiles, Transforms, read_layers
from tsformer.cli.options import parameters, with_signature, with_values
from tsformer.cli.places import require_named
from tsformer.registry import Kind
from tsformer.settings import WindowConfig

MODEL = "tcn_transformer"  # in the line, where nobody names one
DATA = "csv"


def command(words: Sequence[str] | None) -> Callable[..., None]:
    """The command with the options of `--data csv`; without them when the line is another command's."""
    return with_signature(inspect, [] if words is None else _options())


def with_switches(words: Sequence[str]) -> list[str]:
    """A line whose options that are true or false all have a value."""
    return with_values(words, _options())


def inspect(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The table (CSV, Parquet, gzip, zip with one table), - for stdin.")
    ],
    model: Model = MODEL,
    transform: Transforms = None,
    plugin: PluginFiles = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    **options: Any,
) -> None:
    """Look at a table: how it is written, its series and what is wrong with them. Ends with a line that fits a model.

    Takes the options of fit --data csv; what they leave open is found in the file. Nothing is trained or written.
    """
    with guarded(as_json=json):
        require_named("FILE", file)
        layers = read_layers(
            config=None,
            model=model,
            data=DATA,
            transform=transform,
            scale=None,
            options={**options, "data__path": file},
        )
        with data_only():
            from tsformer.inspection.search import inspect as search
            from tsformer.report.inspection import lines

            found = search(layers, file)
        if json:
            print_json(found.to_json())
        else:
            print("\n".join(lines(found)))
        found.require_table()


def _options() -> list[signatures.Parameter]:
    """Those that say how a table is read and cut into windows; its path is an argument."""
    config = registry.get(Kind.DATA, DATA).config
    found = parameters("data", config, f"Data {DATA}") + parameters("window", WindowConfig, "Window")
    return [parameter for parameter in found if parameter.name != "data__path"]
