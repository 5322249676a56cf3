"""The `tsformer fit` line that takes a table as it is."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tsformer.config_layer import GENERAL
from tsformer.data.declarations import join_names
from tsformer.plugin import Config, option_flag


def fit_line(path: str, model: str, data: type[Config], options: Mapping[str, Any], transforms: Sequence[str]) -> str:
    """A line for a POSIX shell.

    Args:
        path: of the table, as the user wrote it.
        model: a model plugin's name.
        data: the declaration of the options of `--data csv`.
        options: by dotted name, `{"data.missing": "mask"}`.
        transforms: names of transforms, in order.
    """
    configs = {"data": data, **GENERAL}
    words = ["tsformer", "fit", "--model", model, "--data", "csv", *_option("--path", path)]
    for name in transforms:
        words += _option("--transform", name)
    for name, value in options.items():
        section, _, field = name.partition(".")
        flag = option_flag(configs[section].model_fields[field]) or f"--{name}".replace("_", "-")
        for text in _texts(value):
            words += _option(flag, text)
    return shlex.join(words)


def _option(flag: str, text: str) -> list[str]:
    return [f"{flag}={text}"] if text.startswith("-") and text != "-" else [flag, text]


def _texts(value: Any) -> Iterator[str]:
    """A value as the command line takes it: names in one text, numbers each by itself."""
    if not isinstance(value, list | tuple):
        yield _text(value)
    elif all(isinstance(part, str) for part in value):
        yield join_names(value)
    else:
        yield from map(_text, value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
