"""Several models on one command line: `--model a=transformer --model b=transformer --a.d-model 64 --b.lookback 512`.

Each has a name, that of its plugin where none is given, and under it options of its own: those of its plugin
(`--a.d-model`), of the training (`--a.train.lr`, `--a.lr`), of the windows (`--a.lookback`), its transforms
(`--a.transform log`) and its scaler. What is said without a name holds for all of them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import typer

from tsformer import registry
from tsformer.cli.line_config import general_parameters, read_layers
from tsformer.cli.options import SEPARATOR, given, parameter, parameters, read_given, sections
from tsformer.config import resolve
from tsformer.config_layer import GENERAL, NONE, SECTIONS, TASK, Layer, name_in, scaler_name, transform_names
from tsformer.config_merge import plugin_named
from tsformer.errors import PluginError, UsageError, did_you_mean
from tsformer.plugin import Config, option_flag
from tsformer.registry import Kind
from tsformer.settings import Settings

KEY = "own"
"""What the options of single models are filed under: own.0.model, own.0.train, ..."""
_TAKEN = {*SECTIONS, TASK, "config", "run", "plugin", "help", "no"}
_OWN = ("window", "train")
_ALL = {"horizon", "season"}  # of the windows, the same for all
_SHORT = {"output"}  # beside those with a flag of their own


@dataclass(frozen=True)
class Alias:
    """A model on a line: the name that it goes by, and that of its plugin."""

    name: str
    plugin: str


@dataclass(frozen=True)
class OwnLayer(Layer):
    """What a line says of one of its models.

    Attributes:
        flags: as which option each value was given: {"train.lr": "--a.lr"}.
    """

    flags: Mapping[str, str] = field(default_factory=dict)

    def origin(self, section: str, name: str) -> str:
        """The flag that an option of this layer was given by."""
        return self.flags.get(f"{section}.{name}", super().origin(section, name))


def read_aliases(models: Sequence[str]) -> list[Alias]:
    """The models of a line.

    Raises:
        UsageError: names that are none, or are there twice; all of them.
    """
    found: list[Alias] = []
    faults = []
    for text in models:
        name, equals, plugin = text.partition("=")
        name, plugin = (name.strip(), plugin.strip()) if equals else (text.strip(), text.strip())
        if not name or not plugin:
            faults.append(f"--model {text!r}: give the name of a plugin, or name=plugin")
        elif equals and not re.fullmatch("[a-z][a-z0-9_-]*", name):
            faults.append(f"--model {text}: a name has small letters, digits, - and _, and begins with a letter")
        elif name.replace("-", "_") in _TAKEN:
            faults.append(f"--model {text}: '{name}' stands for other options; choose another name")
        elif any(_dashed(name) == _dashed(other.name) for other in found):
            again = f"--model first={plugin} --model second={plugin}"
            faults.append(f"--model {text}: two models are called '{name}'; give them names: {again}")
        else:
            found.append(Alias(name, plugin))
    if faults:
        raise UsageError(*faults)
    return found


def added(words: Sequence[str]) -> tuple[list[inspect.Parameter], bool]:
    """The options that a line may have for its models and data, and whether all plugins that it names are there.

    Raises:
        UsageError: models without proper names, or options of a model that is not on the line.
    """
    aliases = read_aliases(given(words, "--model"))
    _refuse_unknown(words, aliases)
    shared = _shared(words, {})
    if not aliases:
        aliases = _from_below(shared)
    options: list[inspect.Parameter] = []
    all_there = True
    configs: list[type[Config]] = []
    for number, alias in enumerate(aliases):
        try:
            config = plugin_named([*shared, OwnLayer({})], Kind.MODEL, "model", alias.plugin).config
        except PluginError:
            all_there = False
            continue
        configs.append(config)
        options += _own_parameters(words, shared, number, alias, config)
    options += _common_parameters(configs)
    data, transforms = name_in(shared, "data"), _chain(shared)
    for kind, section, key, name in (
        *([(Kind.DATA, "data", "data", data)] if data is not None else []),
        *((Kind.TRANSFORM, f"transform.{name}", f"transform.{i}", name) for i, name in enumerate(transforms)),
    ):
        try:
            config = plugin_named(shared, kind, "data" if kind is Kind.DATA else "transform", name).config
        except PluginError:
            all_there = False
            continue
        options += parameters(section, config, f"{kind.capitalize()} {name}", key)
    return options + general_parameters(), all_there


def settings_of(
    *,
    models: Sequence[str],
    config: str | None,
    data: str | None,
    transform: list[str] | None,
    scale: str | None,
    options: Mapping[str, Any],
    needs_data: bool = True,
) -> dict[str, Settings]:
    """The settings of each model of a line, by its name.

    Args:
        models: what `--model` was given.
        options: of plugins and sections, those of single models included.

    Raises:
        UsageError, PluginError: all faults of all models, one line each.
    """
    own = {name: value for name, value in options.items() if name.startswith(KEY + SEPARATOR)}
    rest = {name: value for name, value in options.items() if name not in own}
    read = partial(read_layers, config=config, model=None, data=data, transform=transform, scale=scale)
    shared = read(options=rest)
    aliases = read_aliases(models) or _from_below(shared)
    foreign = _foreign(rest, aliases)
    if foreign:  # said once, and not again of each model
        left_out = {f"model{SEPARATOR}{name}" for name in foreign}
        shared = read(options={name: value for name, value in rest.items() if name not in left_out})
    values = sections(own)
    faults: list[tuple[str, str]] = []
    lacking: PluginError | None = None
    found = {}
    for number, alias in enumerate(aliases):
        layers = [*shared, _own_layer(number, alias, values, named=bool(models))]
        try:
            found[alias.name] = resolve(layers, needs_data=needs_data)
        except (UsageError, PluginError) as error:
            lacking = lacking or (error if isinstance(error, PluginError) else None)
            faults += [(alias.name, line) for line in str(error).splitlines()]
    if faults or foreign:
        lines = [*foreign.values(), *_merged(faults, [alias.name for alias in aliases])]
        raise (PluginError(*lines) if lacking is not None else UsageError(*lines))
    return found


def _own_layer(number: int, alias: Alias, values: Mapping[str, Mapping[str, Any]], *, named: bool) -> OwnLayer:
    """What the line says of one model."""
    layer: dict[str, Any] = {"model": {"name": alias.plugin} if named else {}}
    flags = {"model.name": f"--model {alias.name}={alias.plugin}" if alias.name != alias.plugin else "--model"}
    for section, options in values.items():
        _, place, rest = section.split(".", 2)
        if int(place) != number:
            continue
        for name, value in options.items():
            flag = f"--{_dashed(alias.name)}.{_dashed(name if rest in ('model', 'plugins') else f'{rest}.{name}')}"
            if rest == "plugins":  # --a.transform, --a.scale
                layer[name] = value if name == "transform" else {"name": value}
                flags[f"{name}.name"] = flag
            elif rest.startswith("transform."):
                layer.setdefault("transform_options", {}).setdefault(rest.partition(".")[2], {})[name] = value
                flags[f"{rest}.{name}"] = flag
            else:
                layer.setdefault(rest, {})[name] = value
                flags[f"{rest}.{name}"] = flag
    return OwnLayer(layer, flags=flags)


def _own_parameters(
    words: Sequence[str], shared: Sequence[Layer], number: int, alias: Alias, config: type[Config]
) -> Iterator[inspect.Parameter]:
    """The options of one model: those of its plugin are shown in `--help`, others are known all the same."""
    key, prefix = f"{KEY}.{number}", alias.name
    title = f"Model {alias.name}" + (f" ({alias.plugin})" if alias.plugin != alias.name else "")
    title += f": also --{_dashed(prefix)}.lookback, .transform, .scale, .output, .train.*"
    for name, declared in config.model_fields.items():
        yield parameter([f"{prefix}.{name}"], f"{key}.model.{name}", declared, title)
    for section in _OWN:
        for name, declared in GENERAL[section].model_fields.items():
            if section == "window" and name in _ALL:
                continue
            short = option_flag(declared) is not None or name in _SHORT
            names = [f"{prefix}.{section}.{name}"]
            if short and name not in config.model_fields:
                names.append(f"{prefix}.{name}")
            yield parameter(names, f"{key}.{section}.{name}", declared, title, hidden=True)
    for name, many in (("transform", True), ("scale", False)):
        if name not in config.model_fields:
            yield _name_parameter(f"--{_dashed(prefix)}.{name}", f"{key}.plugins.{name}", title, many=many)
    flags = f"--{_dashed(prefix)}.transform", f"--{_dashed(prefix)}.scale"
    own = OwnLayer({"transform": given(words, flags[0]), "scale": next(iter(given(words, flags[1])[-1:]), None)})
    for name in _chain([*shared, own]):
        try:
            declared_by = plugin_named([*shared, own], Kind.TRANSFORM, "transform", name).config
        except PluginError:
            continue  # said when the layers are resolved
        for option, declared in declared_by.model_fields.items():
            names = [f"{prefix}.transform.{name}.{option}"]
            yield parameter(names, f"{key}.transform.{name}.{option}", declared, title, hidden=True)


def _name_parameter(flag: str, key: str, panel: str, *, many: bool) -> inspect.Parameter:
    """An option that names plugins."""
    annotation: Any = list[str] | None if many else str | None
    option = typer.Option(flag, metavar="NAME", help="", rich_help_panel=panel, hidden=True)
    return inspect.Parameter(
        key.replace(".", SEPARATOR),
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[annotation, option, (flag,)],
    )


def _common_parameters(configs: Sequence[type[Config]]) -> Iterator[inspect.Parameter]:
    """`--model.d-model`, for all models; one that some of them have not is known, and refused later."""
    declared: dict[str, Any] = {}
    for config in configs:
        for name, found in config.model_fields.items():
            declared.setdefault(name, found)
    for name, found in declared.items():
        flag = option_flag(found)
        everywhere = all(name in config.model_fields for config in configs)
        also = [flag] if flag and len(configs) == 1 else []
        panel = "All models" if len(configs) > 1 else "Model"
        yield parameter([f"model.{name}"], f"model.{name}", found, panel, also=also, hidden=not everywhere)


def _foreign(options: Mapping[str, Any], aliases: Sequence[Alias]) -> dict[str, str]:
    """A fault for each `--model.X` that not all of several models have, by the name of the option."""
    faults = {}
    for name in sections(options).get("model", {}) if len(aliases) > 1 else ():
        without = [alias.name for alias in aliases if not _has(alias, name)]
        if without:
            have = [alias.name for alias in aliases if alias.name not in without]
            hint = f": give it to those that have it, --{_dashed(have[0])}.{_dashed(name)}" if have else ""
            faults[name] = f"--model.{_dashed(name)} is no option of {', '.join(without)}{hint}"
    return faults


def _has(alias: Alias, option: str) -> bool:
    """Whether a model has an option; so one of a plugin that cannot be had, which is said elsewhere."""
    try:
        return option in registry.get(Kind.MODEL, alias.plugin).config.model_fields
    except PluginError:
        return True


def _refuse_unknown(words: Sequence[str], aliases: Sequence[Alias]) -> None:
    """Raises UsageError for options such as `--c.d-model`, of which no model is called c."""
    known = {_dashed(alias.name) for alias in aliases}
    faults = []
    for word in words:
        if word == "--":
            break
        found = re.match(r"--(?:no-)?([a-z][a-z0-9-]*)\.", word)
        if found is None or found[1] in known or found[1] in _TAKEN or not aliases:
            continue
        hint = did_you_mean(found[1], known | set(SECTIONS))
        faults.append(f"{word.partition('=')[0]}: no model is called '{found[1]}'{hint}")
    if faults:
        raise UsageError(*faults)


def _shared(words: Sequence[str], options: Mapping[str, Any]) -> list[Layer]:
    """What a line that is not yet parsed says of all its models."""
    last = {name: next(iter(given(words, f"--{name}")[-1:]), None) for name in ("config", "data", "scale")}
    transform = given(words, "--transform") or None
    return read_layers(**last, model=None, transform=transform, options=dict(options))


def _from_below(shared: Sequence[Layer]) -> list[Alias]:
    """The model that a file or the environment names, where the line names none."""
    name = name_in(shared, "model")
    return [] if name is None else [Alias(name, name)]


def _chain(layers: Sequence[Layer]) -> list[str]:
    scale = scaler_name(layers)
    return list(dict.fromkeys([*transform_names(layers), *([scale] if scale != NONE else [])]))


def _merged(faults: Iterable[tuple[str, str]], names: Sequence[str]) -> Iterator[str]:
    """The faults of all models: one that all of them have is said once, others with the name of the model."""
    by_line: dict[str, list[str]] = {}
    for name, line in faults:
        by_line.setdefault(line, []).append(name)
    for line, having in by_line.items():
        own = any(line.startswith(f"--{_dashed(name)}.") for name in having)
        yield line if own or len(having) == len(names) else f"{', '.join(having)}: {line}"


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def pre_read(words: Sequence[str], options: Sequence[inspect.Parameter]) -> dict[str, Any]:
    """What `settings_of` is given of a line that is not yet parsed."""
    last = {name: next(iter(given(words, f"--{name}")[-1:]), None) for name in ("config", "data", "scale")}
    return {
        **last,
        "models": given(words, "--model"),
        "transform": given(words, "--transform") or None,
        "options": read_given(words, options),
    }
