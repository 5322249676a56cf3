"""Layers of configuration: defaults, then a file, then flags. All faults are reported at once, by flag name."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydantic

from tsformer import registry
from tsformer.errors import UsageError, did_you_mean
from tsformer.plugin import Config
from tsformer.registry import Kind
from tsformer.settings import Chosen, Settings, TrainConfig, WindowConfig


@dataclass(frozen=True)
class Layer:
    """One layer of configuration.

    Attributes:
        values: sections `model`, `data`, `scale` (a name, or a table with `name`), `transform` (a list of these),
            `window`, `train`; and `transform_options`, options by transform name.
        source: the file it was read from, None for flags.
    """

    values: Mapping[str, Any]
    source: str | None = None

    def field(self, section: str, name: str) -> str:
        """How a user calls an option of this layer."""
        if self.source is None:
            return "--" + f"{section}.{name}".replace("_", "-")
        return f"{section}.{name} in {self.source}"


SECTIONS = ("model", "data", "transform", "scale", "window", "train")


def read_file(path: str) -> Layer:
    """A layer from a TOML or JSON file, or from an earlier run's folder.

    Raises:
        UsageError: missing, not TOML or JSON, or with unknown sections.
    """
    file = Path(os.path.expanduser(path))
    try:
        if file.is_dir():
            file = file / "config.json"
        text = file.read_text(encoding="utf-8")
        document = json.loads(text) if file.suffix == ".json" else tomllib.loads(text)
    except FileNotFoundError:
        raise UsageError(f"no configuration file '{file}'") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"configuration file '{file}' cannot be read: {error}") from None
    if isinstance(document, dict) and isinstance(document.get("settings"), dict):
        document = document["settings"]  # the config.json of a run
    if not isinstance(document, dict):
        raise UsageError(f"configuration file '{file}' must hold tables such as [model], not {type(document).__name__}")
    faults = [
        f"unknown section [{name}] in {file}{did_you_mean(name, SECTIONS)}" for name in document if name not in SECTIONS
    ]
    for name in set(document) & set(SECTIONS):
        items = document[name] if name == "transform" and isinstance(document[name], list) else [document[name]]
        named = name in ("model", "data", "transform", "scale")
        if not all(isinstance(item, dict) or (named and isinstance(item, str)) for item in items):
            faults.append(f"section '{name}' in {file} must be a table")
            continue
        # a flag may name model and data; a transform in a list has only its own name
        absent = None if name == "transform" else ""
        if not all(isinstance(item.get("name", absent) if isinstance(item, dict) else item, str) for item in items):
            faults.append(f"section '{name}' in {file} needs the name of a plugin, a word")
    if faults:
        raise UsageError("\n".join(faults))
    return Layer(document, str(file))


def name_in(layers: Sequence[Layer], section: str) -> str | None:
    """The plugin's name that the layers end up with."""
    for layer in reversed(layers):
        given = layer.values.get(section)
        name = given.get("name") if isinstance(given, Mapping) else given
        if name is not None:
            return str(name)
    return None


def transform_names(layers: Sequence[Layer]) -> list[str]:
    """The transforms that the layers end up with, in order, without the scaler."""
    for layer in reversed(layers):
        given = layer.values.get("transform")
        if given:
            items = given if isinstance(given, list) else [given]
            return [str(item.get("name")) if isinstance(item, Mapping) else str(item) for item in items]
    return []


def resolve(layers: Sequence[Layer], *, needs_data: bool = True) -> Settings:
    """Merge layers, the later one winning, and validate everything.

    Raises:
        UsageError: all faults, one line each.
        PluginError: a plugin is unknown or broken.
    """
    faults: list[str] = []
    model, data = name_in(layers, "model"), name_in(layers, "data")
    if model is None:
        faults.append(f"no model: give --model NAME, one of {', '.join(registry.entries(Kind.MODEL))}")
    if data is None and needs_data:
        faults.append(f"no data: give --data NAME, one of {', '.join(registry.entries(Kind.DATA))}")
    if model is None or (data is None and needs_data):
        raise UsageError("\n".join(faults))

    def choose(kind: Kind, name: str, section: str, parts: list[tuple[Layer, Mapping[str, Any]]]) -> Chosen:
        plugin = registry.get(kind, name)
        return Chosen(kind, name, plugin, _validate(plugin.config, section, parts, faults))

    chosen_model = choose(Kind.MODEL, model, "model", _options(layers, "model", model))
    chosen_data = choose(Kind.DATA, data, "data", _options(layers, "data", data)) if data is not None else None
    transforms = []
    names = transform_names(layers)
    for position, name in enumerate(names):
        parts = _transform_options(layers, name, names[:position].count(name))
        transforms.append(choose(Kind.TRANSFORM, name, f"transform.{name}", parts))
    scale = name_in(layers, "scale") or "standard"
    chosen_scale = None
    if scale != "none" and not any(chosen.plugin.scaler for chosen in transforms):
        parts = [*_options(layers, "scale", scale), *_transform_options(layers, scale, None)]
        chosen_scale = choose(Kind.TRANSFORM, scale, f"transform.{scale}", parts)
    window = _validate(WindowConfig, "window", _options(layers, "window", None), faults)
    train = _validate(TrainConfig, "train", _options(layers, "train", None), faults)
    if faults:
        raise UsageError("\n".join(faults))
    return Settings(chosen_model, chosen_data, tuple(transforms), chosen_scale, window, train)


def validate_options(config: type[Config], section: str, options: Mapping[str, Any]) -> Config:
    """One plugin's options from Python.

    Raises:
        UsageError: all faults, one line each.
    """
    faults: list[str] = []
    validated: Config = _validate(config, section, [(Layer({}), options)], faults)
    if faults:
        raise UsageError("\n".join(faults))
    return validated


def _options(layers: Sequence[Layer], section: str, name: str | None) -> list[tuple[Layer, Mapping[str, Any]]]:
    """What each layer says of a section, without what belongs to a plugin that a later layer replaced."""
    found: list[tuple[Layer, Mapping[str, Any]]] = []
    for layer in layers:
        given = layer.values.get(section)
        options = dict(given) if isinstance(given, Mapping) else {}
        named = options.pop("name", given if isinstance(given, str) else None) if name is not None else None
        if named is not None and named != name:
            found.clear()  # options of another plugin
            continue
        found.append((layer, options))
    return found


def _transform_options(
    layers: Sequence[Layer], name: str, occurrence: int | None
) -> list[tuple[Layer, Mapping[str, Any]]]:
    """Options of the transform of that name, the first (0) or a later one; None for the scaler, which stands apart."""
    found: list[tuple[Layer, Mapping[str, Any]]] = []
    for layer in layers:
        given = layer.values.get("transform") or []
        items = given if isinstance(given, list) else [given]
        same = [dict(item) for item in items if isinstance(item, Mapping) and item.get("name") == name]
        if occurrence is not None and occurrence < len(same):
            found.append((layer, {key: value for key, value in same[occurrence].items() if key != "name"}))
        found.append((layer, layer.values.get("transform_options", {}).get(name, {})))
    return found


def _validate(
    config: type[Config], section: str, parts: Sequence[tuple[Layer, Mapping[str, Any]]], faults: list[str]
) -> Any:
    merged: dict[str, Any] = {}
    source: dict[str, Layer] = {}
    for layer, options in parts:
        for key, value in options.items():
            if value is not None:
                merged[key], source[key] = value, layer
    try:
        return config.model_validate(merged)
    except pydantic.ValidationError as error:
        for fault in error.errors():
            faults.append(_fault_line(fault, section, source, list(config.model_fields)))
        return None


def _fault_line(fault: Any, section: str, source: Mapping[str, Layer], known: list[str]) -> str:
    message = fault["msg"].removeprefix("Value error, ")
    if not fault["loc"]:
        return f"--{section}: {message}"
    name = str(fault["loc"][0])
    where = source[name].field(section, name) if name in source else Layer({}).field(section, name)
    if fault["type"] == "extra_forbidden":
        return f"{where}: unknown option{did_you_mean(name, known)}"
    if fault["type"] == "missing":
        return f"{where} is required"
    return f"{where}: {message[:1].lower()}{message[1:]} (got {fault['input']!r})"
