"""Where a command line's configuration comes from: a file, the environment and flags, the later one winning.

What `fit` and `config show` share: the options that name plugins, and the options that these plugins declare.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from tsformer import registry
from tsformer.cli.environment import read_environment
from tsformer.cli.options import given, parameters, sections, with_signature
from tsformer.config import SCALE, name_in, plugin_named, transform_names
from tsformer.layers import Layer, read_file
from tsformer.registry import Kind
from tsformer.settings import TrainConfig, WindowConfig

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
        help="A transform of the targets, undone in the forecast; several act in the order given.",
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
PluginFiles = Annotated[list[str] | None, typer.Option(metavar="FILE", help=PLUGIN_HELP)]


def with_plugin_options(function: Callable[..., None], words: Sequence[str] | None) -> Callable[..., None]:
    """A command with the options of the plugins that its line, its file or the environment name.

    Args:
        function: the command; its `**options` take what these options are given.
        words: the line before it is parsed; None when it is another command's.
    """
    layers = _named(words) if words is not None else []
    model, data = name_in(layers, "model"), name_in(layers, "data")
    added = []
    if model is not None:
        config = plugin_named(layers, Kind.MODEL, "model", model).config
        added += parameters("model", config, f"Model {model}")
    if data is not None:
        added += parameters("data", plugin_named(layers, Kind.DATA, "data", data).config, f"Data {data}")
    transforms = transform_names(layers)
    for key, name in _chain(layers).items() if model is not None or data is not None or transforms else ():
        config = plugin_named(layers, Kind.TRANSFORM, "transform" if name in transforms else "scale", name).config
        added += parameters(f"transform.{name}", config, f"Transform {name}", key)
    added += parameters("window", WindowConfig, "Window") + parameters("train", TrainConfig, "Training")
    return with_signature(function, added)


def read_layers(
    *,
    config: str | None,
    model: str | None,
    data: str | None,
    transform: list[str] | None,
    scale: str | None,
    options: dict[str, Any],
) -> list[Layer]:
    """The layers of one call: the file, the environment, the flags.

    Raises:
        UsageError: the file cannot be read.
    """
    below = _below_flags(config)
    flags: dict[str, Any] = {"model": {"name": model}, "data": {"name": data}, "scale": {"name": scale}}
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
    names = {section: given(words, f"--{section}") for section in ("model", "data", "scale")}
    flags: dict[str, Any] = {section: {"name": values[-1]} for section, values in names.items() if values}
    flags["transform"] = given(words, "--transform")
    return [*_below_flags(next(iter(given(words, "--config")[-1:]), None)), Layer(flags)]


def _below_flags(file: str | None) -> list[Layer]:
    return [*([read_file(file)] if file else []), read_environment(os.environ)]


def _chain(layers: Sequence[Layer]) -> dict[str, str]:
    """A key and a name for each transform in use, the scaler last."""
    scale = name_in(layers, "scale") or SCALE
    names = [*transform_names(layers), *([scale] if scale != "none" else [])]
    return {f"transform.{number}": name for number, name in enumerate(dict.fromkeys(names))}
