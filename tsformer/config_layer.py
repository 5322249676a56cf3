"""A layer of configuration: what a file, the environment or the flags say, before anything is validated."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tsformer.errors import UsageError, did_you_mean
from tsformer.plugin import Config, Task, option_type
from tsformer.settings import TokensConfig, TrainConfig, TransferConfig, WindowConfig

NAMED = ("model", "data", "transform", "scale")  # sections that name a plugin
GENERAL: dict[str, type[Config]] = {  # sections that are the same whatever the plugins are
    "window": WindowConfig,
    "tokens": TokensConfig,
    "train": TrainConfig,
    "transfer": TransferConfig,
}
SECTIONS = (*NAMED, *GENERAL)
TASK = "task"  # a word beside the sections
NONE = "none"  # the name for no scaler, and for no transform
SCALE = "standard"  # the scaler where nobody names one


@dataclass(frozen=True)
class Layer:
    """One layer of configuration.

    Attributes:
        values: sections `model`, `data`, `scale` (a name, or a table with `name`), `transform` (a list of these),
            `window`, `tokens`, `train`, `transfer`; `task`, a word; and `transform_options`, options by transform name.
        source: the file it was read from, None for flags.
        variables: of the environment, the variable that gave each option or name: "model.d_model", "model.name".
            In such a layer, names of options are in lower case, and values are text.
        faults: what is wrong with the layer as such, one line each; `resolve` reports it with all other faults.
    """

    values: Mapping[str, Any]
    source: str | None = None
    variables: Mapping[str, str] | None = None
    faults: tuple[str, ...] = ()

    def field(self, section: str, name: str) -> str:
        """How a user calls an option of this layer."""
        if self.source is not None:
            return f"{section if section == TASK else f'{section}.{name}'} in {self.source}"
        return self.origin(section, name)

    def origin(self, section: str, name: str) -> str:
        """Where this layer has an option from: a flag, a variable or a file."""
        if self.variables is not None:
            return self.variables[f"{section}.{name}".lower()]
        flag = section if name == "name" else f"{section}.{name}"
        return self.source or "--" + flag.replace("_", "-")

    def transform_options(self, name: str) -> Mapping[str, Any]:
        """Options that were given by a transform's name."""
        found: Mapping[str, Any] = self.values.get("transform_options", {})
        return found.get(name if self.variables is None else name.lower(), {})

    def text_read(self, config: type[Config], options: Mapping[str, Any]) -> dict[str, Any]:
        """Options of the environment by field name, with lists taken apart; those of other layers as they are."""
        if self.variables is None:
            return dict(options)
        names = {name.lower(): name for name in config.model_fields}
        read = {}
        for key, text in options.items():
            name = names.get(key, key)
            known = config.model_fields.get(name)
            read[name] = separate(text) if known is not None and option_type(known.annotation).many else text
        return read


def separate(text: str) -> list[Any]:
    """Several values in one text: words between commas, or a list in JSON."""
    if text.lstrip().startswith("["):
        try:
            listed = json.loads(text)
        except (ValueError, RecursionError):
            pass  # a word that begins with a bracket
        else:
            return list(listed)
    return [word.strip() for word in text.split(",") if word.strip()]


def read_file(path: str) -> Layer:
    """A layer from a TOML or JSON file, or from an earlier run's folder. Faulty sections are left out and remembered.

    Raises:
        UsageError: missing, or not TOML or JSON.
    """
    if not path.strip():
        raise UsageError("--config is empty: name a file, or leave it out")
    file = Path(os.path.expanduser(path))
    try:
        if file.is_dir():
            file = file / "config.json"
        text = file.read_text(encoding="utf-8-sig")
        document = json.loads(text) if file.suffix == ".json" else tomllib.loads(text)
    except FileNotFoundError:
        raise UsageError(f"no configuration file '{file}'") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"configuration file '{file}' cannot be read: {error}") from None
    if isinstance(document, dict) and isinstance(document.get("settings"), dict):
        document = document["settings"]  # the config.json of a run
    if not isinstance(document, dict):
        raise UsageError(f"configuration file '{file}' must hold tables such as [model], not {type(document).__name__}")
    values, faults = {}, []
    for name, section in document.items():
        fault = _section_fault(name, section, file)
        if fault:
            faults.append(fault)
        else:
            values[name] = section
    return Layer(values, str(file), faults=tuple(faults))


def section_with(option: str) -> str | None:
    """The section that has an option of that name whatever the plugins are."""
    word = option.lower().replace("-", "_")
    return next((section for section, config in GENERAL.items() if word in config.model_fields), None)


def _section_fault(name: str, section: object, file: Path) -> str | None:
    if name == TASK:
        return None if isinstance(section, str) else f"{TASK} in {file} must be a word: {', '.join(Task)}"
    if name not in SECTIONS:
        home = section_with(name)
        if home and not isinstance(section, dict):
            return f"{name} in {file} is outside of all sections: put it under [{home}]"
        return f"unknown section [{name}] in {file}{did_you_mean(name, (*SECTIONS, TASK))}"
    items = section if name == "transform" and isinstance(section, list) else [section]
    if not all(isinstance(item, dict) or (name in NAMED and isinstance(item, str)) for item in items):
        return f"section '{name}' in {file} must be a table"
    # a flag may name model and data; a transform in a list has only its own name
    absent = None if name == "transform" else ""
    if not all(isinstance(item.get("name", absent) if isinstance(item, dict) else item, str) for item in items):
        return f"section '{name}' in {file} needs the name of a plugin, a word"
    return None


def named_by(layers: Sequence[Layer], section: str) -> tuple[str | None, Layer | None]:
    """The plugin's name that the layers end up with, and the layer that gives it."""
    for layer in reversed(layers):
        given = layer.values.get(section)
        name = given.get("name") if isinstance(given, Mapping) else given
        if name is not None:
            return str(name), layer
    return None, None


def transforms_of(layer: Layer) -> list[dict[str, Any]]:
    """The transforms that a layer names, each as a table; empty when it says nothing of them."""
    given = layer.values.get("transform") or []
    items = given if isinstance(given, list) else [given]
    return [
        {**item, "name": str(item.get("name"))} if isinstance(item, Mapping) else {"name": str(item)} for item in items
    ]


def transforms_by(layers: Sequence[Layer]) -> tuple[list[str], Layer | None]:
    """The transforms that the layers end up with, in order, without the scaler, and the layer that names them."""
    for layer in reversed(layers):
        tables = transforms_of(layer)
        if tables:
            return [table["name"] for table in tables if table["name"] != NONE], layer
    return [], None


def name_in(layers: Sequence[Layer], section: str) -> str | None:
    """The plugin's name that the layers end up with."""
    return named_by(layers, section)[0]


def transform_names(layers: Sequence[Layer]) -> list[str]:
    """The transforms that the layers end up with, in order, without the scaler."""
    return transforms_by(layers)[0]


def scaler_name(layers: Sequence[Layer]) -> str:
    """The scaler's name that the layers end up with, or "none"."""
    name = name_in(layers, "scale")
    return SCALE if name is None else name
