"""Layers of configuration: defaults, then a file, then the environment, then flags. All faults are reported at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tsformer import registry
from tsformer.config_layer import GENERAL, SCALE, TASK, Layer, name_in, named_by
from tsformer.config_merge import DEFAULT, Merge, Part, options_in
from tsformer.errors import UsageError
from tsformer.pairing import READ_BY, settle_task, shared_tasks, task_of
from tsformer.plugin import Config, Task
from tsformer.registry import Kind
from tsformer.settings import Chosen, Settings, TrainConfig

FROM_DATA = "chosen from the data"
FROM_PLUGINS = "chosen from model and data"


@dataclass(frozen=True)
class Resolved:
    """Settings, and where each of their values comes from.

    Attributes:
        origins: of the shape of `Settings.to_json`; for each value a flag, a variable, a file, `DEFAULT` or
            `FROM_DATA`; for the task `FROM_PLUGINS` where nobody names it.
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
    task = None
    if chosen_model is not None and (data is None or chosen_data is not None):
        task, origins[TASK] = _task(merge, chosen_model, chosen_data)
        if task is not None and chosen_model.config is not None:
            merge.refuse_for_task(chosen_model, task)
    merge.leave_transforms_out(task)
    transforms, origins["transform"] = merge.choose_transforms()
    scale, replaced = merge.choose_scale(transforms)
    origins["scale"] = merge.origins
    merge.refuse_unused_transforms()
    general = {}
    for section, config in GENERAL.items():
        general[section] = merge.validate(config, section, options_in(layers, section, None))
        if task is not None:
            merge.refuse_unread(section, general[section], task)
        origins[section] = merge.origins
    merge.faults += _of_counts(general["train"], transforms, scale, origins["scale"].get("name", DEFAULT))
    if merge.faults or chosen_model is None or task is None:
        raise merge.error()
    for name, origin in origins["window"].items():
        open_yet = getattr(general["window"], name) is None
        if origin == DEFAULT and open_yet and task in READ_BY["window"].get(name, {task}):
            origins["window"][name] = FROM_DATA
    settings = Settings(
        chosen_model, chosen_data, tuple(transforms), scale, scale_replaced=replaced, task=task, **general
    )
    return Resolved(settings, origins)


def _of_counts(train: TrainConfig | None, transforms: Sequence[Chosen], scale: Chosen | None, by: str) -> list[str]:
    """What is named to change counts, which have to stay what they are.

    Args:
        by: who names the scaler. A file may name the default one, for that of a run does: it acts on covariates.
    """
    if train is None or not train.counts:
        return []
    named = [f"--transform {chosen.name}" for chosen in transforms]
    if scale is not None and by != DEFAULT and (by == "--scale" or scale.name != SCALE):
        named.append(f"--scale {scale.name}")
    if not named:
        return []
    return [
        f"output {train.output} is a distribution of the counts as they are, and {' and '.join(named)} would change "
        "them; leave that out (covariates are scaled all the same)"
    ]


def _task(merge: Merge, model: Chosen, data: Chosen | None) -> tuple[Task | None, str]:
    """The task and its origin; None when model, data and wish do not go together, which is a fault.

    A wish below a layer that names another model or other data holds only where they can do it: a file that was made
    for one task serves another.
    """
    word, by = named_by(merge.layers, TASK)
    above = merge.layers[list(merge.layers).index(by) + 1 :] if by is not None else ()
    try:
        wanted = None if word is None else task_of(word)
        replaced = any(name_in(above, section) is not None for section in ("model", "data"))
        if replaced and wanted not in shared_tasks(model, data):
            wanted, by = None, None
        return settle_task(model, data, wanted), FROM_PLUGINS if by is None else by.origin(TASK, "name")
    except UsageError as fault:
        elsewhere = by is not None and (by.source is not None or by.variables is not None)
        merge.faults.append(f"{fault} ({by.origin(TASK, 'name')})" if by is not None and elsewhere else str(fault))
    return None, ""


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
