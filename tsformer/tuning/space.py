"""The options that a study chooses, and how optuna sees them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tsformer.config import FROM_DATA, Resolved, resolve
from tsformer.config_layer import Layer
from tsformer.config_merge import DEFAULT
from tsformer.errors import PluginError, UsageError, did_you_mean
from tsformer.plugin import Config, option_type
from tsformer.search import Choices, Range, Space, declared, read_space
from tsformer.settings import Settings

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

SECTIONS = ("model", "train", "window")
"""Those whose options can be searched."""
LOOKBACK = "window.lookback"
DRAWS = 100  # of all options together, to see which of them go together
FIXED = {
    "window.horizon": "it says what is forecast",
    "window.season": "it says what errors are compared with",
    "window.short": "it says which series are forecast",
    "train.output": "it says how forecasts are judged: tune for each",
    "train.quantiles": "they say what is forecast",
    "train.seed": "the best of several seeds is luck",
    "train.device": "it changes no forecast",
    "train.eval_every": "it says when trials are compared",
    "train.eval_windows": "it says when trials are compared",
}
"""What cannot be searched, and why."""


@dataclass(frozen=True)
class Dimension:
    """An option, and what a study may choose for it.

    Attributes:
        key: "model.d_model".
        start: what the first trial takes; None leaves it open, as a fit without a study would.
    """

    key: str
    space: Space
    start: Any

    @property
    def section(self) -> str:
        return self.key.partition(".")[0]

    @property
    def name(self) -> str:
        return self.key.partition(".")[2]

    def distribution(self) -> BaseDistribution:
        """What optuna draws from: for ascending numbers their places, so that it knows which of them are alike."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        if isinstance(self.space, Choices):
            last = len(self.space.values) - 1
            return IntDistribution(0, last) if self.space.ordered else CategoricalDistribution(self.space.values)
        if self.space.whole:
            return IntDistribution(int(self.space.low), int(self.space.high), log=self.space.log)
        return FloatDistribution(self.space.low, self.space.high, log=self.space.log)

    def value(self, drawn: Any) -> Any:
        """The option's value of what optuna drew."""
        return self.space.values[drawn] if isinstance(self.space, Choices) and self.space.ordered else drawn

    def nearest(self, value: Any) -> Any:
        """What optuna might have drawn for a value, or for one near it; None counts as the middle."""
        if isinstance(self.space, Range):
            low, high = self.space.low, self.space.high
            if value is None:
                value = math.sqrt(low * high) if self.space.log else (low + high) / 2
            value = min(max(value, low), high)
            return round(value) if self.space.whole else float(value)
        values = self.space.values
        if self.space.ordered:
            if value is None:
                return len(values) // 2
            return min(range(len(values)), key=lambda place: abs(values[place] - value))
        return value if value in values else values[0]

    def draw(self, generator: np.random.Generator) -> Any:
        """What optuna might draw, by chance alone."""
        if isinstance(self.space, Choices):
            place = int(generator.integers(len(self.space.values)))
            return place if self.space.ordered else self.space.values[place]
        low, high = self.space.low, self.space.high
        if self.space.log:
            value = math.exp(generator.uniform(math.log(low), math.log(high)))
        else:
            value = float(generator.uniform(low, high))
        value = min(max(value, low), high)
        return round(value) if self.space.whole else value


@dataclass(frozen=True)
class SearchSpace:
    """All that a study chooses."""

    dimensions: tuple[Dimension, ...]

    def __str__(self) -> str:
        return "; ".join(f"{each.key}={each.space}" for each in self.dimensions)

    def distributions(self) -> dict[str, BaseDistribution]:
        """By key."""
        return {each.key: each.distribution() for each in self.dimensions}

    def options(self, drawn: Mapping[str, Any]) -> dict[str, Any]:
        """Values of the options, by key, of what optuna drew."""
        return {each.key: each.value(drawn[each.key]) for each in self.dimensions}

    def start(self) -> dict[str, Any]:
        """Options of the first trial: as they would be without a study, as far as the space holds them."""
        return {each.key: each.start for each in self.dimensions if each.start is not None}

    def nearest(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """What optuna might have drawn for options."""
        return {each.key: each.nearest(options.get(each.key)) for each in self.dimensions}

    def draw(self, generator: np.random.Generator) -> dict[str, Any]:
        """What optuna might draw, by chance alone."""
        return {each.key: each.draw(generator) for each in self.dimensions}


def layer_of(options: Mapping[str, Any], source: str | None = None) -> Layer:
    """Options by key as a layer of configuration."""
    values: dict[str, dict[str, Any]] = {}
    for key, value in options.items():
        section, _, name = key.partition(".")
        values.setdefault(section, {})[name] = value
    return Layer(values, source)


def with_options(layers: Sequence[Layer], options: Mapping[str, Any]) -> Settings:
    """The settings of a trial.

    Raises:
        UsageError: the options do not go together.
    """
    return resolve([*layers, layer_of(options)], needs_data=False)


def search_space(
    layers: Sequence[Layer],
    resolved: Resolved,
    asked: Mapping[str, Any],
    fixed: Sequence[str],
    *,
    only: bool = False,
    trained: bool,
    lookback: Space | None,
) -> SearchSpace:
    """What a study chooses: what is asked for, and what plugins and training declare, but for what is given or fixed.

    Declared options that nothing would read, or that do not go with what is given, are left out.

    Args:
        layers, resolved: the configuration, and what it comes to.
        asked: spaces by key, as `Field` declares them or in words.
        fixed: keys of options that are left as they are.
        only: search nothing but what is asked for.
        trained: whether the model is trained by gradients, so that training options mean something.
        lookback: what fits the data; None where nothing does.

    Raises:
        UsageError: what is asked for cannot be searched, or nothing is left to search.
    """
    settings, faults = resolved.settings, list[str]()
    configs: dict[str, Config] = {"model": settings.model.config, "train": settings.train, "window": settings.window}
    found: dict[str, Space] = {}
    for key, given in asked.items():
        try:
            found[plain(key)] = _asked(plain(key), given, configs)
        except ValueError as error:
            faults.append(f"--search {plain(key)}: {error}")
    wanted, keep = set(found), {plain(key) for key in fixed}
    for key in keep:
        try:
            _field_of(key, configs)
        except ValueError as error:
            faults.append(f"--fix {key}: {error}")
        if key in found:
            faults.append(f"--fix {key} and --search {key} contradict each other: leave one of them out")
    if faults:
        raise UsageError(*faults)
    for key, space in () if only else _declared(configs, trained=trained, lookback=lookback):
        section, _, name = key.partition(".")
        given_by = resolved.origins[section][name]
        if key in found or key in keep or given_by not in (DEFAULT, FROM_DATA):
            continue
        if any(_goes(layers, {key: value}) for value in _probes(space, getattr(configs[section], name))):
            found[key] = space
    if not found:
        raise UsageError(
            f"nothing to search: all options of model '{settings.model.name}' that declare a space are given or "
            "fixed; name one with --search model.OPTION=LOW:HIGH, or give less"
        )
    faults = list(_without_effect(layers, found, wanted, configs, trained=trained))
    if faults:
        raise UsageError(*faults)
    order = [f"{section}.{name}" for section, config in configs.items() for name in type(config).model_fields]
    each = [_dimension(key, found[key], configs, key in wanted) for key in sorted(found, key=order.index)]
    return SearchSpace(tuple(one if _goes_first(layers, one) else replace(one, start=None) for one in each))


def _goes_first(layers: Sequence[Layer], dimension: Dimension) -> bool:
    """Whether the first trial may have the value that it would take; otherwise the option is left as it is given."""
    return dimension.start is None or _goes(layers, {dimension.key: dimension.start})


def _without_effect(
    layers: Sequence[Layer],
    spaces: Mapping[str, Space],
    wanted: Collection[str],
    configs: Mapping[str, Config],
    *,
    trained: bool,
) -> Iterator[str]:
    """A fault for each option that is asked for, though nothing reads it, alone or together with others."""
    generator = np.random.default_rng(0)
    each = [Dimension(key, space, None) for key, space in spaces.items()]
    drawn = [{one.key: one.value(one.draw(generator)) for one in each} for _ in range(DRAWS)]
    allowed: list[dict[str, Any]] | None = None
    for key in sorted(wanted):
        section, _, name = key.partition(".")
        if section == "train" and not trained:
            yield f"--search {key}: the model is not trained step by step, and nothing reads it"
            continue
        current = getattr(configs[section], name)
        alone = [{key: value} for value in _probes(spaces[key], current)]
        if any(_goes(layers, options) for options in alone):
            continue
        if allowed is None:
            allowed = [options for options in drawn if _goes(layers, options)]
        if not any(options[key] != current for options in allowed):
            yield f"--search {key}: {_reason(layers, alone[0])}"


def _reason(layers: Sequence[Layer], options: Mapping[str, Any]) -> str:
    try:
        with_options(layers, options)
    except (UsageError, PluginError) as error:
        return error.sentence()
    return "no value of it is allowed"


def plain(key: str) -> str:
    """A key as fields are called: "model.d_model" for "--model.d-model"."""
    return key.strip().removeprefix("--").replace("-", "_")


def _asked(key: str, given: Any, configs: Mapping[str, Config]) -> Space:
    """Raises ValueError."""
    config, name = _field_of(key, configs)
    field = type(config).model_fields[name]
    return read_space(given, field, option_type(field.annotation))


def _field_of(key: str, configs: Mapping[str, Config]) -> tuple[Config, str]:
    """Raises ValueError for what is no option that can be searched."""
    section, dot, name = key.partition(".")
    if not dot or section not in configs:
        raise ValueError(f"options are named with their section, {', '.join(f'{s}.OPTION' for s in SECTIONS)}")
    fields = type(configs[section]).model_fields
    if name not in fields:
        raise ValueError(f"unknown option{did_you_mean(name, fields)}")
    if key in FIXED:
        raise ValueError(f"not for a study: {FIXED[key]}")
    return configs[section], name


def _declared(configs: Mapping[str, Config], *, trained: bool, lookback: Space | None) -> Iterator[tuple[str, Space]]:
    for section, config in configs.items():
        if section == "train" and not trained:
            continue
        for name in type(config).model_fields:
            space = lookback if f"{section}.{name}" == LOOKBACK else declared(type(config), name)
            if space is not None:
                yield f"{section}.{name}", space


def _probes(space: Space, current: Any) -> list[Any]:
    values = space.values if isinstance(space, Choices) else (space.low, space.high)
    return [value for value in values if value != current]


def _goes(layers: Sequence[Layer], options: Mapping[str, Any]) -> bool:
    try:
        with_options(layers, options)
    except (UsageError, PluginError):
        return False
    return True


def _dimension(key: str, space: Space, configs: Mapping[str, Config], asked: bool) -> Dimension:
    section, _, name = key.partition(".")
    whole = Dimension(key, space, None)
    current = getattr(configs[section], name)
    if current is None and not asked:
        return whole
    # what a user asks for is kept to; a declared space is what may be tried beside the default
    return Dimension(key, space, whole.value(whole.nearest(current)) if asked else current)
