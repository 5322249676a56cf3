"""Layers of configuration: defaults, then a file, then the environment, then flags. All faults are reported at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pydantic

from tsformer import registry
from tsformer.errors import PluginError, UsageError, did_you_mean
from tsformer.layers import Layer, named_by, transforms_by, transforms_of
from tsformer.plugin import Config, option_type
from tsformer.registry import Kind
from tsformer.settings import Chosen, Settings, TrainConfig, WindowConfig

DEFAULT, FROM_DATA = "default", "chosen from the data"
SCALE = "standard"  # the scaler where nobody names one


@dataclass(frozen=True)
class Resolved:
    """Settings, and where each of their values comes from.

    Attributes:
        origins: of the shape of `Settings.to_json`; for each value a flag, a variable, a file, `DEFAULT` or
            `FROM_DATA`.
    """

    settings: Settings
    origins: Mapping[str, Any]


def name_in(layers: Sequence[Layer], section: str) -> str | None:
    """The plugin's name that the layers end up with."""
    return named_by(layers, section)[0]


def transform_names(layers: Sequence[Layer]) -> list[str]:
    """The transforms that the layers end up with, in order, without the scaler."""
    for layer in reversed(layers):
        names = transforms_of(layer)
        if names:
            return names
    return []


def plugin_named(layers: Sequence[Layer], kind: Kind, section: str, name: str) -> Any:
    """The plugin of a name that the layers end up with.

    Raises:
        PluginError: unknown or broken; says who named it, if that was not a flag.
    """
    try:
        return registry.get(kind, name)
    except PluginError as error:
        layer = transforms_by(layers) if section == "transform" else named_by(layers, section)[1]
        if layer is None or (layer.source is None and layer.variables is None):
            raise
        raise PluginError(f"{error} (named by {layer.origin(section, 'name')})") from error.__cause__


def resolve(layers: Sequence[Layer], *, needs_data: bool = True) -> Settings:
    """Merge layers, the later one winning, and validate everything.

    Raises:
        UsageError: all faults, one line each.
        PluginError: a plugin is unknown or broken.
    """
    return trace(layers, needs_data=needs_data).settings


def trace(layers: Sequence[Layer], *, needs_data: bool = True) -> Resolved:
    """`resolve`, with the origin of each value."""
    faults = [fault for layer in layers for fault in layer.faults]
    model, data = name_in(layers, "model"), name_in(layers, "data")
    if model is None:
        faults.append(f"no model: give --model NAME, one of {', '.join(registry.entries(Kind.MODEL))}")
    if data is None and needs_data:
        faults.append(f"no data: give --data NAME, one of {', '.join(registry.entries(Kind.DATA))}")
    if model is None or (data is None and needs_data):
        raise UsageError("\n".join(faults))
    merge = _Merge(layers, faults)

    chosen_model = merge.choose(Kind.MODEL, "model", model, _options(layers, "model", model))
    origins: dict[str, Any] = {"model": merge.origins}
    chosen_data = None
    if data is not None:
        chosen_data = merge.choose(Kind.DATA, "data", data, _options(layers, "data", data))
        origins["data"] = merge.origins
    names, transforms = transform_names(layers), []
    origins["transform"] = []
    for position, name in enumerate(names):
        parts = _transform_options(layers, name, names[:position].count(name))
        transforms.append(merge.choose(Kind.TRANSFORM, "transform", name, parts))
        origins["transform"].append(merge.origins)
    scale, chosen_scale = name_in(layers, "scale") or SCALE, None
    scaler = next((chosen.name for chosen in transforms if chosen.plugin.scaler), None)
    if scaler is not None:
        origins["scale"] = {"name": f"transform {scaler} takes its place"}
    elif scale == "none":
        merge.validate(Config, "scale", _options(layers, "scale", scale))
        origins["scale"] = {"name": merge.name_origin("scale"), **merge.origins}
    else:
        parts = [*_options(layers, "scale", scale), *_transform_options(layers, scale, None)]
        chosen_scale = merge.choose(Kind.TRANSFORM, "scale", scale, parts)
        origins["scale"] = merge.origins
    merge.refuse_unused_transforms([*names, scale])
    window = merge.validate(WindowConfig, "window", _options(layers, "window", None))
    origins["window"] = {name: FROM_DATA if o == DEFAULT else o for name, o in merge.origins.items()}
    train = merge.validate(TrainConfig, "train", _options(layers, "train", None))
    origins["train"] = merge.origins
    if faults:
        raise UsageError("\n".join(faults))
    return Resolved(Settings(chosen_model, chosen_data, tuple(transforms), chosen_scale, window, train), origins)


def validate_options(config: type[Config], section: str, options: Mapping[str, Any]) -> Config:
    """One plugin's options from Python.

    Raises:
        UsageError: all faults, one line each.
    """
    merge = _Merge((), [])
    validated: Config = merge.validate(config, section, [_Part(Layer({}), section, options)])
    if merge.faults:
        raise UsageError("\n".join(merge.faults))
    return validated


@dataclass(frozen=True)
class _Part:
    """Options that one layer gives, and the section that it gives them in."""

    layer: Layer
    section: str
    options: Mapping[str, Any]


@dataclass
class _Merge:
    """Merges and validates section by section; `origins` are those of the last one."""

    layers: Sequence[Layer]
    faults: list[str]
    origins: dict[str, str] = field(default_factory=dict)

    def choose(self, kind: Kind, section: str, name: str, parts: Sequence[_Part]) -> Chosen:
        plugin = plugin_named(self.layers, kind, section, name)
        config = self.validate(plugin.config, f"transform.{name}" if kind is Kind.TRANSFORM else section, parts)
        self.origins = {"name": self.name_origin(section), **self.origins}
        return Chosen(kind, name, plugin, config)

    def validate(self, config: type[Config], section: str, parts: Sequence[_Part]) -> Any:
        merged: dict[str, Any] = {}
        source: dict[str, _Part] = {}
        for part in parts:
            for key, value in part.layer.text_read(config, part.options).items():
                if isinstance(value, bool) and key in config.model_fields and _is_number(config, key):
                    # which would be read as 1 or 0
                    self.faults.append(f"{part.layer.field(part.section, key)}: a number is wanted (got {value})")
                elif value is not None:
                    merged[key], source[key] = value, part
        self.origins = {
            name: source[name].layer.origin(source[name].section, name) if name in source else DEFAULT
            for name in config.model_fields
        }
        try:
            return config.model_validate(merged)
        except pydantic.ValidationError as error:
            for fault in error.errors():
                self.faults.append(_fault_line(fault, section, source, list(config.model_fields)))
            return None

    def name_origin(self, section: str) -> str:
        layer = transforms_by(self.layers) if section == "transform" else named_by(self.layers, section)[1]
        return DEFAULT if layer is None else layer.origin(section, "name")

    def refuse_unused_transforms(self, used: Sequence[str]) -> None:
        """A variable for a transform that no layer names is misspelt; one whose transform was replaced is not."""
        known = [*used, *(name for layer in self.layers for name in transforms_of(layer))]
        for layer in self.layers:
            for option, variable in (layer.variables or {}).items():
                section, _, rest = option.partition(".")
                name = rest.rpartition(".")[0]
                if section == "transform" and name and name not in {name.lower() for name in known}:
                    self.faults.append(f"{variable}: the transform '{name}' is not in use{did_you_mean(name, known)}")


def _options(layers: Sequence[Layer], section: str, name: str | None) -> list[_Part]:
    """What each layer says of a section, without what belongs to a plugin that a later layer replaced."""
    found: list[_Part] = []
    for layer in layers:
        given = layer.values.get(section)
        options = dict(given) if isinstance(given, Mapping) else {}
        named = options.pop("name", given if isinstance(given, str) else None) if name is not None else None
        if named is not None and named != name:
            found.clear()  # options of another plugin
            continue
        found.append(_Part(layer, section, options))
    return found


def _transform_options(layers: Sequence[Layer], name: str, occurrence: int | None) -> list[_Part]:
    """Options of the transform of that name, the first (0) or a later one; None for the scaler, which stands apart."""
    found: list[_Part] = []
    section = f"transform.{name}"
    for layer in layers:
        given = layer.values.get("transform") or []
        items = given if isinstance(given, list) else [given]
        same = [dict(item) for item in items if isinstance(item, Mapping) and item.get("name") == name]
        if occurrence is not None and occurrence < len(same):
            options = {key: value for key, value in same[occurrence].items() if key != "name"}
            found.append(_Part(layer, section, options))
        found.append(_Part(layer, section, layer.transform_options(name)))
    return found


def _is_number(config: type[Config], name: str) -> bool:
    return option_type(config.model_fields[name].annotation).words in ("INTEGER", "FLOAT")


def _fault_line(fault: Any, section: str, source: Mapping[str, _Part], known: list[str]) -> str:
    message = fault["msg"].removeprefix("Value error, ")
    if not fault["loc"]:
        given = {name: part.layer.field(part.section, name) for name, part in source.items() if name in message.split()}
        elsewhere = [where for where in given.values() if not where.startswith("--")]
        return f"--{section}: {message}" + (f" ({', '.join(given.values())})" if elsewhere else "")
    name = str(fault["loc"][0])
    if name not in source:
        where = Layer({}).field(section, name)
        return f"{where} is required" if fault["type"] == "missing" else f"{where}: {message}"
    part = source[name]
    where = part.layer.field(part.section, name)
    if fault["type"] == "extra_forbidden":
        return f"{where}: unknown option{did_you_mean(name, known)}"
    return f"{where}: {message[:1].lower()}{message[1:]} (got {fault['input']!r})"
