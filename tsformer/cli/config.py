"""`tsformer config`: what a line would be configured by, and where each value comes from."""

from __future__ import annotations

import json as json_text
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from tsformer.cli.console import data_only, guarded, print_json
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
from tsformer.config import trace

WIDEST = 40  # of what stands before a comment; longer lines push theirs to the right


def group(words: Sequence[str] | None) -> typer.Typer:
    """The commands, with the options of the plugins that a line names; None when the line is another command's."""
    app = typer.Typer(help="What a fit would be configured by.", no_args_is_help=True)
    app.command("show")(with_plugin_options(show, words, needs_data=False))
    app.callback()(_group)  # without it, a single command would take the group's place
    return app


def _group() -> None:
    pass


def show(
    model: Model = None,
    data: Data = None,
    transform: Transforms = None,
    scale: Scale = None,
    task: TaskName = None,
    config: File = None,
    plugin: PluginFiles = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    **options: Any,
) -> None:
    """Print every value, and whether it is a default or comes from a file, the environment or a flag.

    Takes the options of fit. What it prints is a configuration file: tsformer config show ... > run.toml
    """
    with guarded(as_json=json):
        layers = read_layers(
            config=config, model=model, data=data, transform=transform, scale=scale, task=task, options=options
        )
        with data_only():
            resolved = trace(layers, needs_data=False)
        values = resolved.settings.to_json()
        if json:
            print_json({"schema": 1, "settings": values, "origins": resolved.origins})
        else:
            print(configuration_file(values, resolved.origins))


def configuration_file(values: Mapping[str, Any], origins: Mapping[str, Any]) -> str:
    """A configuration as TOML, with the origin of each value beside it, without a last line break.

    Args:
        values: as of `Settings.to_json`.
        origins: as of `Resolved.origins`.
    """
    return "\n".join(_aligned(_toml(values, origins)))


def _toml(values: Mapping[str, Any], origins: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The lines of a TOML file, each with its comment; what has no value is a comment altogether."""
    for section, content in values.items():
        if isinstance(content, str):
            yield (f"{section} = {_toml_value(content)}", origins[section])
            yield ("", "")
            continue
        many = isinstance(content, list)
        for table, origin in zip(content, origins[section], strict=True) if many else [(content, origins[section])]:
            yield (f"[[{section}]]" if many else f"[{section}]", "")
            for name, value in table.items():
                key = name if name.isascii() else _toml_value(name)
                yield (f"# {key} =" if value is None else f"{key} = {_toml_value(value)}", origin[name])
            yield ("", "")
    if "data" not in values:
        yield ("# [data]", "none yet: --data NAME")
        yield ("", "")
    if "scale" not in values:
        yield ("# [scale]", origins["scale"]["name"])


def _toml_value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, str):
        return json_text.dumps(value, ensure_ascii=False).replace("\x7f", r"\u007f")
    return json_text.dumps(value)


def _aligned(lines: Iterator[tuple[str, str]]) -> Iterator[str]:
    found = list(lines)
    while found and found[-1] == ("", ""):
        found.pop()
    width = max((len(line) for line, comment in found if comment and len(line) <= WIDEST), default=0)
    for line, comment in found:
        printable = "".join(c if c.isprintable() else "?" for c in comment)
        yield f"{line:<{width}}  # {printable}" if comment else line
