"""Layers of configuration: defaults, then a file, then the environment, then flags. All faults are reported at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tsformer import registry
from tsformer.config_layer import Layer, name_in
from tsformer.config_merge import DEFAULT, Merge, Part, options_in
from tsformer.plugin import Config
from tsformer.registry import Kind
from tsformer.settings import Settings, TrainConfig, WindowConfig

FROM_DATA = "chosen from the data"


@dataclass(frozen=True)
class Resolved:
    """Settings, and where each of their values comes from.

    Attributes:
        origins: of the shape of `Settings.to_json`; for each value a flag, a variable, a file, `DEFAULT` or
            `FROM_DATA`.
    """

    settings: Settings
    origins: Mapping[str, Any]


def resolve(layers: Sequence[Layer], *, needs_data: bool = True) -> Settings:
    """Merge layers, the later one winning, and validate everything.

    Raises:
        UsageError: all faults, one line each.
        PluginError: the same, when one of them is an unknown or broken plugin.
    """
    return trace(layers, needs_data=needs_data).settings


def trace(layers: Sequence[Layer], *, needs_data: bool = True) -> Resolved:
    """`resolve`, with the origin of each value."""
    merge = Merge(layers, [fault for layer in layers for fault in layer.faults])
    model, data = name_in(layers, "model"), name_in(layers, "data")
    origins: dict[str, Any] = {}
    chosen_model = chosen_data = None
    if model is None:
        merge.faults.append(f"no model: give --model NAME, one of {', '.join(registry.entries(Kind.MODEL))}")
    if data is None and needs_data:
        merge.faults.append(f"no data: give --data NAME, one of {', '.join(registry.entries(Kind.DATA))}")
    if model is not None:
        chosen_model = merge.choose(Kind.MODEL, "model", model, options_in(layers, "model", model))
        origins["model"] = merge.origins
    if data is not None:
        chosen_data = merge.choose(Kind.DATA, "data", data, options_in(layers, "data", data))
        origins["data"] = merge.origins
    transforms, origins["transform"] = merge.choose_transforms()
    scale, replaced = merge.choose_scale(transforms)
    origins["scale"] = merge.origins
    merge.refuse_unused_transforms()
    window = merge.validate(WindowConfig, "window", options_in(layers, "window", None))
    origins["window"] = {name: FROM_DATA if o == DEFAULT else o for name, o in merge.origins.items()}
    train = merge.validate(TrainConfig, "train", options_in(layers, "train", None))
    origins["train"] = merge.origins
    if merge.faults or chosen_model is None:
        raise merge.error()
    settings = Settings(chosen_model, chosen_data, tuple(transforms), scale, window, train, scale_replaced=replaced)
    return Resolved(settings, origins)


def validate_options(config: type[Config], section: str, options: Mapping[str, Any]) -> Config:
    """One plugin's options from Python.

    Raises:
        UsageError: all faults, one line each.
    """
    merge = Merge((), [])
    validated: Config = merge.validate(config, section, [Part(Layer({}), section, options)])
    if merge.faults:
        raise merge.error()
    return validated
