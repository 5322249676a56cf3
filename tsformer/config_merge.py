"""What layers of configuration come to, section by section, with the origin of each value and every fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pydantic

from tsformer import registry
from tsformer.config_layer import (
    NONE,
    Layer,
    named_by,
    scaler_name,
    section_with,
    transform_names,
    transforms_by,
    transforms_of,
)
from tsformer.errors import PluginError, UsageError, at_fault, did_you_mean
from tsformer.pairing import OF_ROWS, unread
from tsformer.plugin import Config, Task, option_type
from tsformer.registry import Kind
from tsformer.settings import Chosen

DEFAULT = "default"


def plugin_named(layers: Sequence[Layer], kind: Kind, section: str, name: str) -> Any:
    """The plugin of a name that the layers end up with.

    Raises:
        PluginError: unknown or broken; says who named it, if that was not a flag.
    """
    try:
        return registry.get(kind, name)
    except PluginError as error:
        layer = _named_in(layers, section)
        if layer is None or (layer.source is None and layer.variables is None):
            raise
        raise PluginError(f"{error} (named by {layer.origin(section, 'name')})") from error.__cause__


@dataclass(frozen=True)
class Part:
    """Options that one layer gives, and the section that it gives them in."""

    layer: Layer
    section: str
    options: Mapping[str, Any]


@dataclass
class Merge:
    """Merges and validates section by section; `origins` are those of the last one."""

    layers: Sequence[Layer]
    faults: list[str]
    origins: dict[str, str] = field(default_factory=dict)
    without_plugin: PluginError | None = None  # the first of them; its line is among the faults

    def error(self) -> UsageError | PluginError:
        """All faults, one line each. A plugin that cannot be had comes before wrong options."""
        faults = dict.fromkeys(self.faults)
        if self.without_plugin is None:
            return UsageError(*faults)
        error = PluginError(*faults)
        error.__cause__ = self.without_plugin.__cause__
        return error

    def choose(self, kind: Kind, section: str, name: str, parts: Sequence[Part]) -> Chosen | None:
        """The plugin of that name with its options; None when it cannot be had."""
        self.origins = {}
        if not name.strip():
            self.faults.append(f"{self.name_field(section)} is empty: give the name of a plugin, or leave it out")
            return None
        try:
            plugin = plugin_named(self.layers, kind, section, name)
        except PluginError as error:
            self.faults.append(str(error))
            self.without_plugin = self.without_plugin or error
            return None
        config = self.validate(plugin.config, f"transform.{name}" if kind is Kind.TRANSFORM else section, parts)
        self.origins = {"name": self.name_origin(section), **self.origins}
        return Chosen(kind, name, plugin, config)

    def choose_transforms(self) -> tuple[list[Chosen], list[dict[str, str]]]:
        """The transforms without the scaler, and their origins."""
        names, layer = transforms_by(self.layers)
        tables = transforms_of(layer) if layer else []
        if layer and any(table["name"] == NONE for table in tables) and tables != [{"name": NONE}]:
            self.faults.append(f"{layer.field('transform', 'name')}: none goes without other transforms and options")
        transforms, origins = [], []
        for position, name in enumerate(names):
            parts = _transform_options(self.layers, name, names[:position].count(name))
            chosen = self.choose(Kind.TRANSFORM, "transform", name, parts)
            if chosen is not None:
                transforms.append(chosen)
                origins.append(self.origins)
        return transforms, origins

    def leave_transforms_out(self, task: Task | None) -> None:
        """Transforms are for rows: to a task of whole sequences, those of a file are nothing, and others a fault."""
        if task is None or task in OF_ROWS:
            return
        self.layers = [
            replace(layer, values={name: value for name, value in layer.values.items() if name != "transform"})
            if layer.source is not None
            else layer
            for layer in self.layers
        ]
        if transform_names(self.layers):
            field = self.name_field("transform")
            self.faults.append(f"{field} is for forecasts, and the task is {task}; --scale acts on all numbers")

    def refuse_for_task(self, model: Chosen, task: Task) -> None:
        """What the model itself says of its options for a task."""
        source = {
            name: part
            for part in options_in(self.layers, "model", model.name)
            for name, value in part.layer.text_read(type(model.config), part.options).items()
            if value is not None
        }
        try:
            with at_fault("--model: the plugin", "checking its options"):
                faults = list(model.config.faults_for(task))
        except PluginError as fails:
            self.faults.append(str(fails))
            self.without_plugin = self.without_plugin or fails
            return
        self.faults += [_fault_line({"loc": (), "msg": fault}, "model", source, []) for fault in faults]

    def refuse_unread(self, section: str, config: Config | None, task: Task) -> None:
        """What a file sets for other tasks is not read, and its origin says so; what a line sets is a fault."""
        parts = options_in(self.layers, section, None)
        for name, reason in unread(section, config, task) if config is not None else ():
            layer = next(part.layer for part in reversed(parts) if part.options.get(name) is not None)
            if layer.source is None:
                self.faults.append(f"{layer.field(section, name)}: {reason}")
            else:
                self.origins[name] += f", not read: {reason}"

    def choose_scale(self, transforms: Sequence[Chosen]) -> tuple[Chosen | None, bool]:
        """The scaler that follows the transforms, if any, and whether one of them takes its place."""
        name = scaler_name(self.layers)
        parts = options_in(self.layers, "scale", name)
        if name == NONE:
            self.validate(Config, "scale", parts)
            self.origins = {"name": self.name_origin("scale"), **self.origins}
            return None, False
        scaler = next((chosen.name for chosen in transforms if chosen.plugin.scaler), None)
        if scaler is None or name not in transform_names(self.layers):
            parts += _transform_options(self.layers, name, None)
        chosen = self.choose(Kind.TRANSFORM, "scale", name, parts)
        if scaler is None or not name.strip():
            return chosen, False
        self.refuse_replaced(name, parts, scaler)
        self.origins = {"name": f"transform {scaler} takes its place"}
        return None, True

    def refuse_replaced(self, name: str, parts: Sequence[Part], scaler: str) -> None:
        """A scaler may be replaced by a layer above it; beside or above the transforms, it would go in silence."""
        by = named_by(self.layers, "scale")[1]
        named = [Part(by, "scale", {"name": name})] if by else []
        given: list[str] = []
        for layer in reversed(self.layers):
            own = [part for part in (*named, *parts) if part.layer is layer]
            given += [
                part.layer.field(part.section, key) for part in own for key, v in part.options.items() if v is not None
            ]
            if transforms_of(layer):
                break
        if given:
            self.faults.append(
                f"{', '.join(given)}: no effect, because the transform {scaler} is a scaler and takes the place of "
                "--scale; leave one of them out"
            )

    def validate(self, config: type[Config], section: str, parts: Sequence[Part]) -> Any:
        merged: dict[str, Any] = {}
        source: dict[str, Part] = {}
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
            with at_fault(f"--{section}: the plugin", "checking its options"):
                try:
                    return config.model_validate(merged)
                except pydantic.ValidationError as error:
                    for fault in error.errors():
                        self.faults.append(_fault_line(fault, section, source, list(config.model_fields)))
        except PluginError as fails:  # of its validator
            self.faults.append(str(fails))
            self.without_plugin = self.without_plugin or fails
        return None

    def name_origin(self, section: str) -> str:
        layer = _named_in(self.layers, section)
        return DEFAULT if layer is None else layer.origin(section, "name")

    def name_field(self, section: str) -> str:
        """How a user calls the name of the plugin that the layers end up with."""
        layer = _named_in(self.layers, section) or Layer({})
        return layer.field(section, "name")

    def refuse_unused_transforms(self) -> None:
        """A variable for a transform that no layer names is misspelt; one whose transform was replaced is not."""
        used = [scaler_name(self.layers)]
        used += [table["name"] for layer in self.layers for table in transforms_of(layer)]
        known = [name for name in used if name != NONE]
        for layer in self.layers:
            for option, variable in (layer.variables or {}).items():
                section, _, rest = option.partition(".")
                name = rest.rpartition(".")[0]
                if section == "transform" and name and name not in {name.lower() for name in known}:
                    self.faults.append(f"{variable}: the transform '{name}' is not in use{did_you_mean(name, known)}")


def _named_in(layers: Sequence[Layer], section: str) -> Layer | None:
    """The layer that names the plugin, or the transforms."""
    return (transforms_by(layers) if section == "transform" else named_by(layers, section))[1]


def options_in(layers: Sequence[Layer], section: str, name: str | None) -> list[Part]:
    """What each layer says of a section, without what belongs to a plugin that a later layer replaced."""
    found: list[Part] = []
    for layer in layers:
        given = layer.values.get(section)
        options = dict(given) if isinstance(given, Mapping) else {}
        named = options.pop("name", given if isinstance(given, str) else None) if name is not None else None
        if named is not None and named != name:
            found.clear()  # options of another plugin
            continue
        found.append(Part(layer, section, options))
    return found


def _transform_options(layers: Sequence[Layer], name: str, occurrence: int | None) -> list[Part]:
    """Options of the transform of that name, the first (0) or a later one; None for the scaler, which stands apart."""
    found: list[Part] = []
    section = f"transform.{name}"
    for layer in layers:
        same = [table for table in transforms_of(layer) if table["name"] == name]
        if occurrence is not None and occurrence < len(same):
            options = {key: value for key, value in same[occurrence].items() if key != "name"}
            found.append(Part(layer, section, options))
        found.append(Part(layer, section, layer.transform_options(name)))
    return found


def _is_number(config: type[Config], name: str) -> bool:
    return option_type(config.model_fields[name].annotation).words in ("INTEGER", "FLOAT")


def _fault_line(fault: Any, section: str, source: Mapping[str, Part], known: list[str]) -> str:
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
        home = section_with(name)
        if home and home != section:
            return f"{where}: unknown option; '{name}' belongs to {home}"
        return f"{where}: unknown option{did_you_mean(name, known)}"
    return f"{where}: {message[:1].lower()}{message[1:]} (got {fault['input']!r})"
