"""The configuration of one command line: a file, then the environment, then flags, the later one winning.

What `fit` and `config show` share: the options that name plugins, and the options that these plugins declare.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import typer

from tsformer import registry
from tsformer.cli.environment import read_environment
from tsformer.cli.options import given, parameters, read_given, sections, with_signature, with_values
from tsformer.config import trace
from tsformer.config_layer import GENERAL, NONE, SCALE, TASK, Layer, name_in, read_file, scaler_name, transform_names
from tsformer.config_merge import plugin_named
from tsformer.errors import PluginError
from tsformer.plugin import Task
from tsformer.registry import Kind

FLAGS = ("config", "model", "data", "scale", "task")  # that take one word
PANELS = {"train": "Training"}  # headings in --help, where they are not the section's name
PLUGIN_HELP = "A Python file with a plugin; its name is the file's stem. May be given several times, anywhere."

Model = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The model plugin; adds its options to --help.",
        autocompletion=lambda: list(registry.entries(Kind.MODEL)),
    ),
]
Data = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The data plugin; adds its options to --help.",
        autocompletion=lambda: list(registry.entries(Kind.DATA)),
    ),
]
Transforms = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="A transform of the targets, undone in the forecast; several act in the order given. none: no transform.",
        autocompletion=lambda: list(registry.entries(Kind.TRANSFORM)),
    ),
]
Scale = Annotated[
    str | None,
    typer.Option(metavar="NAME", help=f"The scaler that follows the transforms, or none. (default: {SCALE})"),
]
File = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="TOML or JSON file, or an earlier run; the environment and flags win over it."),
]
TaskName = Annotated[
    str | None,
    typer.Option(
        metavar="TASK",
        help=f"What is asked: {', '.join(Task)}. (default: the first that model and data can do)",
        autocompletion=lambda: list(Task),
    ),
]
PluginFiles = Annotated[list[str] | None, typer.Option(metavar="FILE", help=PLUGIN_HELP)]


def with_plugin_options(
    function: Callable[..., None], words: Sequence[str] | None, *, needs_data: bool
) -> Callable[..., None]:
    """A command with the options of the plugins that its line, its file or the environment name.

    Args:
        function: the command; its `**options` take what these options are given.
        words: the line before it is parsed; None when it is another command's.
        needs_data: whether the command does nothing without a data plugin.

    Raises:
        PluginError: one of them is unknown or broken; with everything else that is wrong with the line.
    """
    added, all_there = _added(words)
    if words is not None and not all_there:
        # before the line is parsed: to the parser, the options of that plugin would be the fault
        trace(read_layers(**_flags(words), options=read_given(words, added)), needs_data=needs_data)
    return with_signature(function, added)


def with_switches(words: Sequence[str]) -> list[str]:
    """A line whose options that are true or false all have a value; see `with_values`."""
    return with_values(words, _added(words)[0])


def _added(words: Sequence[str] | None) -> tuple[list[inspect.Parameter], bool]:
    """The options that a line may have beside its command's own, and whether all plugins that it names are there."""
    layers = _named(words) if words is not None else []
    added: list[inspect.Parameter] = []
    all_there = True
    for kind, by, key, name in _plugins(layers):
        try:
            config = plugin_named(layers, kind, by, name).config
        except PluginError:
            all_there = False
            continue
        section = f"transform.{name}" if kind is Kind.TRANSFORM else by
        added += parameters(section, config, f"{kind.capitalize()} {name}", key)
    return added + general_parameters(), all_there


def general_parameters() -> list[inspect.Parameter]:
    """The options that do not depend on plugins."""
    return [
        parameter
        for section, config in GENERAL.items()
        for parameter in parameters(section, config, PANELS.get(section, section.capitalize()))
    ]


def read_layers(
    *,
    config: str | None,
    model: str | None,
    data: str | None,
    transform: list[str] | None,
    scale: str | None,
    task: str | None = None,
    options: dict[str, Any],
) -> list[Layer]:
    """The layers of one call: the file, the environment, the flags.

    Raises:
        UsageError: the file cannot be read.
    """
    below = _below_flags(config)
    flags: dict[str, Any] = {"model": {"name": model}, "data": {"name": data}, "scale": {"name": scale}, TASK: task}
    if transform:
        flags["transform"] = transform
    chain = _chain([*below, Layer(flags)])
    for section, values in sections(options).items():
        if section in chain:
            flags.setdefault("transform_options", {}).setdefault(chain[section], {}).update(values)
        else:
            flags.setdefault(section, {}).update(values)
    return [*below, Layer(flags)]


def _named(words: Sequence[str]) -> list[Layer]:
    """The plugins that a command line names, before it is parsed."""
    return read_layers(**_flags(words), options={})


def _flags(words: Sequence[str]) -> dict[str, Any]:
    """Those of `read_layers` on a line that is not yet parsed."""
    last = {name: next(iter(given(words, f"--{name}")[-1:]), None) for name in FLAGS}
    return {**last, "transform": given(words, "--transform")}


def _plugins(layers: Sequence[Layer]) -> Iterator[tuple[Kind, str, str, str]]:
    """Kind, naming section, key of the options and name of each plugin in use; the scaler only beside others."""
    model, data, transforms = name_in(layers, "model"), name_in(layers, "data"), transform_names(layers)
    if model is not None:
        yield Kind.MODEL, "model", "model", model
    if data is not None:
        yield Kind.DATA, "data", "data", data
    if model is not None or data is not None or transforms or name_in(layers, "scale") is not None:
        for key, name in _chain(layers).items():
            yield Kind.TRANSFORM, "transform" if name in transforms else "scale", key, name


def _below_flags(file: str | None) -> list[Layer]:
    return [*([read_file(file)] if file is not None else []), read_environment(os.environ)]


def _chain(layers: Sequence[Layer]) -> dict[str, str]:
    """A key and a name for each transform in use, the scaler last."""
    scale = scaler_name(layers)
    names = [*transform_names(layers), *([scale] if scale != NONE else [])]
    return {f"transform.{number}": name for number, name in enumerate(dict.fromkeys(names))}
