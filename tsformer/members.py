"""Members of an ensemble, each a line of words: "tcn_transformer lookback=336 d_model=64 train.loss=mae"."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tsformer import registry
from tsformer.config_layer import Layer
from tsformer.config_merge import Merge, Part
from tsformer.errors import PluginError, UsageError
from tsformer.pairing import unread
from tsformer.plugin import Config, Field, Task
from tsformer.registry import Kind
from tsformer.settings import MOST_STEPS, Chosen, TrainConfig

OF_ALL = ("output", "quantiles", "device")
"""Training options that are those of the whole ensemble."""


class MemberOptions(Config):
    """What may be said of any member."""

    lookback: int | None = Field(None, ge=1, le=MOST_STEPS, description="steps that it sees (default: the window's)")
    weight: float | None = Field(None, gt=0, le=1e6, description="its share, beside 1 of those that name none")


@dataclass(frozen=True)
class Member(Chosen):
    """A model plugin with its options, and what is said of it as a member.

    Attributes:
        number: its place, from 1 on.
        lookback: steps that it sees; the whole window when None.
        weight: its share, not yet divided by the sum of all; None where none is named.
        train: training options that differ from those of the ensemble.
    """

    number: int = 0
    lookback: int | None = None
    weight: float | None = None
    train: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Number and name, for records: "2 tcn_transformer"."""
        return f"{self.number} {self.name}"

    def __str__(self) -> str:
        return f"member {self.number} of the ensemble, {super().__str__()}"


@dataclass(frozen=True)
class _Line(Layer):
    """Options in a line, which are called by their names alone."""

    def field(self, section: str, name: str) -> str:
        return f"--train.{name}" if section == "train" else f"--{name}"

    def origin(self, section: str, name: str) -> str:
        return self.field(section, name)


def read_members(lines: Sequence[str]) -> tuple[list[Member], list[str]]:
    """The members that lines name, and what is wrong with the lines; a faulty one gives no member."""
    members, faults = [], []
    for number, line in enumerate(lines, start=1):
        merge = Merge((), [])
        member = _read(merge, number, line)
        if member is not None and not merge.faults:
            members.append(member)
        told = (fault.removeprefix("--model: ").removeprefix("--train: ") for fault in merge.faults)
        faults += [f"member {number} '{line}': {fault.removeprefix('--')}" for fault in told]
    return members, faults


def _read(merge: Merge, number: int, line: str) -> Member | None:
    """The member of a line; faults are those of `merge`."""
    name, options = _words(merge, line)
    if name is None:
        return None
    try:
        plugin = registry.get(Kind.MODEL, name)
    except PluginError as error:
        merge.faults.append(error.sentence())
        return None
    if plugin.members is not None:
        merge.faults.append(f"{name} is made of members itself: name those here")
        return None
    if Task.FORECAST not in plugin.tasks:
        merge.faults.append(f"model '{name}' cannot forecast")
        return None
    own = {key: options.pop(key) for key in MemberOptions.model_fields if key in options}
    train = {key.removeprefix("train."): options.pop(key) for key in list(options) if key.startswith("train.")}
    for key in [key for key in OF_ALL if key in train]:
        merge.faults.append(f"train.{key} is that of the whole ensemble: give --train.{key}")
        del train[key]
    said = merge.validate(MemberOptions, "model", _part("model", own))
    trained = merge.validate(TrainConfig, "train", _part("train", train))
    config = merge.validate(plugin.config, "model", _part("model", options))
    if config is not None:
        merge.faults += config.faults_for(Task.FORECAST)
    if trained is not None:
        merge.faults += [f"train.{reason}" for _, reason in unread("train", trained, Task.FORECAST)]
    if said is None or trained is None or config is None:
        return None
    chosen = {key: getattr(trained, key) for key in TrainConfig.model_fields if key in trained.model_fields_set}
    return Member(Kind.MODEL, name, plugin, config, number, said.lookback, said.weight, chosen)


def _part(section: str, options: Mapping[str, str]) -> list[Part]:
    # variables, though there are none: values are text, as those of the environment are
    return [Part(_Line({}, variables={}), section, options)]


def _words(merge: Merge, line: str) -> tuple[str | None, dict[str, str]]:
    """The name of the plugin, and options as text."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        merge.faults.append(f"{str(error).lower()}: quotes come in pairs, as in \"option='two words'\"")
        return None, {}
    if not words or "=" in words[0]:
        merge.faults.append("begin with the name of a model, as in 'ridge lookback=512'")
        return None, {}
    options: dict[str, str] = {}
    for word in words[1:]:
        key, separator, value = word.partition("=")
        key = key.strip("-").replace("-", "_").removeprefix("model.")
        if not separator or not key:
            merge.faults.append(f"'{word}' is no option: options are written name=value")
        elif key in options:
            merge.faults.append(f"{key} is given twice")
        else:
            options[key] = value
    return words[0], options


def train_options(member: Member, train: TrainConfig, seed: int) -> TrainConfig:
    """The training options of a member: its own, and those of the ensemble.

    Args:
        seed: of a member that names none.

    Raises:
        UsageError: they do not go together.
    """
    merge = Merge((), [])
    options = {**train.model_dump(), "seed": seed, **member.train}
    validated: TrainConfig | None = merge.validate(TrainConfig, "train", [Part(_Line({}), "train", options)])
    if validated is None:
        told = (fault.removeprefix("--").removeprefix("train: ") for fault in merge.faults)
        raise UsageError(*(f"{member}: {fault}" for fault in told))
    return validated
