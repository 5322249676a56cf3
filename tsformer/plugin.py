"""What a plugin is.

A plugin is a value named `plugin` in a module: a `ModelPlugin`, `DataPlugin` or `TransformPlugin`. Its options are
declared once, as a `Config`; command line, help, validation and storage follow from that declaration.
This module imports no torch, so that options can be listed quickly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, Union, get_args, get_origin

import pydantic
from pydantic.fields import FieldInfo

from tsformer.problem import Problem as Problem
from tsformer.problem import Task as Task
from tsformer.search import read_space

if TYPE_CHECKING:
    import numpy as np
    from torch import nn

    from tsformer.data.panel import Defaults, Panel
    from tsformer.data.sequences import Sequences
    from tsformer.members import Member


class Config(pydantic.BaseModel):
    """Base of every set of options: frozen, no unknown names, finite numbers, a description on every field.

    Raises:
        TypeError: when a subclass has a field without description, one called `name` or `faults`, one with `__` in
            its name, or one whose `search` is not within its own bounds.
    """

    model_config = pydantic.ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, validate_default=True, protected_namespaces=()
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        for name, field in cls.model_fields.items():
            if name == "name":
                raise TypeError(f"{cls.__name__}: no option may be called 'name' (files use it for the plugin's name)")
            if name in ("faults", "faults_for"):
                raise TypeError(f"{cls.__name__}: no option may be called '{name}' (it is a method of every Config)")
            if "__" in name:
                raise TypeError(f"{cls.__name__}.{name}: no option may have '__' in its name (it stands for a dot)")
            if not field.description:
                raise TypeError(f"{cls.__name__}.{name} needs a description: Field(..., description='...')")
            kind = option_type(field.annotation)
            extra = field.json_schema_extra
            if isinstance(extra, dict) and "search" in extra:
                try:
                    read_space(extra["search"], field, kind)
                except ValueError as error:
                    raise TypeError(f"{cls.__name__}.{name}: search: {error}") from None

    @pydantic.model_validator(mode="after")
    def _no_faults(self) -> Self:
        """All faults at once; pydantic reports them as it does those of one option."""
        faults = list(self.faults())
        if faults:
            raise ValueError("; ".join(faults))
        return self

    def faults(self) -> Iterator[str]:
        """What does not fit together, and what is set though nothing reads it, in one sentence each.

        It is asked when every option is valid by itself. A subclass adds its own after those of `super().faults()`. An
        option at its default is no fault, for a saved configuration has them all.
        """
        yield from ()

    def faults_for(self, task: Task) -> Iterator[str]:
        """What does not fit the task, and what is set though nothing reads it there; otherwise like `faults`."""
        yield from ()


def changed(config: Config, *names: str) -> list[str]:
    """Those of the named options that are not at their default, as "name value": for saying that nothing reads them."""
    fields = type(config).model_fields
    return [
        f"{name} {getattr(config, name)}"
        for name in names
        if getattr(config, name) != fields[name].get_default(call_default_factory=True)
    ]


@dataclass(frozen=True)
class OptionType:
    """How a command line shows the type of an option.

    Attributes:
        words: "INTEGER", "FLOAT", "TEXT", "BOOLEAN", "PATH" or "CHOICE".
        many: True when it may be given several times.
        choices: what may be chosen.
    """

    words: str
    many: bool = False
    choices: tuple[str, ...] = ()


def option_type(annotation: Any) -> OptionType:
    """The type of a `Config` field as a command line shows it.

    Raises:
        TypeError: a type that a command line cannot show.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        some = [argument for argument in arguments if argument is not type(None)]
        if len(some) == 1:
            return option_type(some[0])
    elif origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return OptionType(option_type(arguments[0]).words, many=True)
    elif origin is Literal and all(isinstance(argument, str) for argument in arguments):
        return OptionType("CHOICE", choices=arguments)
    elif annotation in _WORDS:
        return OptionType(_WORDS[annotation])
    raise TypeError(
        f"{annotation} is no type for an option; use bool, int, float, str, Path, Literal of words, "
        "these with '| None', or tuple[..., ...] of them"
    )


_WORDS: dict[Any, str] = {bool: "BOOLEAN", int: "INTEGER", float: "FLOAT", str: "TEXT", Path: "PATH"}


def option_flag(field: FieldInfo) -> str | None:
    """The short flag that was declared with `Field(..., flag="--path")`."""
    extra = field.json_schema_extra
    return str(extra["flag"]) if isinstance(extra, dict) and "flag" in extra else None


def Field(  # noqa: N802
    default: Any = ...,
    *,
    description: str,
    flag: str | None = None,
    search: tuple[Any, ...] | list[Any] | bool | None = None,
    **constraints: Any,
) -> Any:
    """An option: `pydantic.Field` with a description that is not optional and, if wanted, a short flag.

    Args:
        default: the default value; left out, the option is required.
        description: what `--help` says about it, with the unit.
        flag: a short flag beside the option's path, for example "--path" beside "--data.path".
        search: what `tune` may choose: a range `(low, high)`, with "log" or "linear" if wanted, a list of choices, or
            True for all of a switch or of a `Literal`; see `tsformer.search`. None: it is left alone.
        constraints: what `pydantic.Field` takes: `gt`, `ge`, `lt`, `le`, `min_length`, `pattern`, ...
    """
    if flag is not None and not re.fullmatch("--[a-z][a-z0-9-]*", flag):
        raise ValueError(f"flag {flag!r} must look like '--path'")
    extra: dict[str, Any] = {"flag": flag} if flag else {}
    if search is not None and search is not False:
        extra["search"] = search
    return pydantic.Field(default, description=description, json_schema_extra=extra or None, **constraints)


@dataclass(frozen=True)
class ModelPlugin:
    """A model.

    Attributes:
        config: its options.
        build: `build(config, problem) -> nn.Module` whose `forward(batch, truth=0.0)` returns, for forecasts,
            `[batch, horizon, targets, outputs]`.
        example: a small configuration with which the conformance checks run in seconds.
        tasks: what the model can do.
        fit: optional `fit(module, train, validation)` for models fitted without gradients; it replaces the
            training loop. `train` and `validation` are `Examples`: `Windows` for forecasts, a `SequenceSet` for classes
            and answers.
        persistent: False for a model that cannot be saved without pickle; it serves evaluation only.
        covariates: what a forecast reads beside the past: "future" covariates (`Batch.past_known`, `future_known`),
            "static" ones (`Batch.static`, `static_codes`), or both. Of others the user is told that they do nothing.
        outputs: the outputs that the module describes by itself, by the names of `Problem.output`; None is all. Of a
            model that gives points only, `{"point"}`, others are made by `tsformer.nn.spread`: `build` is then given a
            problem whose output is "point".
        steps_apart: True when what is predicted of a step does not change with `future_known` of later steps, so that
            a forecast of fewer steps than fitted needs no more of it; otherwise all of it has to be known.
        lookback: optional `lookback(config, season)`: the fewest steps that the model has to see, None when any number
            will do. Where the user names no lookback, the window is made as long.
        members: optional `members(config)`: the models that this one is made of, `Member`s of `tsformer.members`, in
            the order of `Ensemble.members`, which `build` then returns. Each is trained by itself. Whether the whole
            can be saved, reads covariates, and so on, follows from them.
    """

    config: type[Config]
    build: Callable[[Any, Problem], nn.Module]
    example: Config
    tasks: frozenset[Task] | set[Task] = frozenset({Task.FORECAST})
    fit: Callable[[Any, Any, Any], None] | None = None
    persistent: bool = True
    covariates: frozenset[str] | set[str] = frozenset()
    steps_apart: bool = False
    outputs: frozenset[str] | set[str] | None = None
    lookback: Callable[[Any, int], int | None] | None = None
    members: Callable[[Any], Sequence[Member]] | None = None

    def __post_init__(self) -> None:
        _check_declaration(self, self.config, self.example, self.build)
        _check_tasks(self, self.tasks)
        if not isinstance(self.covariates, frozenset | set) or not self.covariates <= {"future", "static"}:
            raise TypeError(f"ModelPlugin.covariates must be a set of 'future' and 'static', not {self.covariates!r}")
        known = frozenset(("point", "quantiles", "normal", "student_t", "negative_binomial"))
        if self.outputs is not None and (not isinstance(self.outputs, frozenset | set) or not self.outputs <= known):
            raise TypeError(f"ModelPlugin.outputs must be None or a set of {sorted(known)}, not {self.outputs!r}")

    def unread(self, problem: Problem) -> list[str]:
        """The kinds of covariates that a problem has and this model does not read; only forecasts read any."""
        read = self.covariates if problem.task is Task.FORECAST else frozenset[str]()
        there = {
            "future": problem.future_covariates > 0,
            "static": problem.static_covariates > 0 or bool(problem.static_cardinalities),
        }
        return [kind for kind, has in there.items() if has and kind not in read]


@dataclass(frozen=True)
class DataPlugin:
    """A source of data.

    Attributes:
        config: its options.
        load: `load(config) -> Panel`, or `-> Sequences` for what is no forecast; raises `DataError`.
        example: a configuration that yields little data, for the conformance checks.
        tasks: what the data can be used for.
        defaults: optional `defaults(panel) -> Defaults`: lookback, horizon, stride and season that suit the data.
        read: optional `read(config, source, schema) -> Panel`, or `-> Sequences`: rows at predict time in the schema's
            columns, from a file or "-" (stdin), or the data of `config` again when `source` is None. Without it, new
            rows are read from a CSV file, and the data again by `load`.
    """

    config: type[Config]
    load: Callable[[Any], Panel | Sequences]
    example: Config
    tasks: frozenset[Task] | set[Task] = frozenset({Task.FORECAST})
    defaults: Callable[[Panel], Defaults] | None = None
    read: Callable[[Any, Any, Any], Panel | Sequences] | None = None

    def __post_init__(self) -> None:
        _check_declaration(self, self.config, self.example, self.load)
        _check_tasks(self, self.tasks)


State = Mapping[str, Any]
"""What a transform remembers of the training rows: plain JSON numbers, lists and words."""


class Transform(Protocol):
    """What `TransformPlugin.build` returns. Arrays are float64.

    Attributes:
        pointwise: True when each step is transformed by itself; otherwise `inverse` needs the whole path.
        lost_rows: rows lost at the start of a series (1 for returns).

    Three more may be there. `takes_missing = True`: NaN in `fit` and `forward` is a value that is missing, never all of
    a channel; statistics are of the others, and what is made of a NaN is NaN. Without it the last value before, or the
    first after, stands in for one that is missing. `anchor_step`: how many rows before a missing row of an anchor the
    one stands that takes its place; 1 unless it is given, a season for seasonal differences. `relative = True`: what is
    transformed is positive, and its changes are ratios, so that conformal intervals are ratios, too.
    """

    pointwise: bool
    lost_rows: int

    def fit(self, rows: np.ndarray) -> State:
        """Learn from the training rows `[time, channels]`."""
        ...

    def forward(self, values: np.ndarray, state: State) -> np.ndarray:
        """`[time, channels]` to `[time - lost_rows, channels]`; raises `InvalidValuesError` outside the domain."""
        ...

    def inverse(self, path: np.ndarray, state: State, anchor: np.ndarray) -> np.ndarray:
        """Undo `forward` on paths `[..., horizon, channels]`.

        A path may hold only the first of the channels that `fit` saw: targets come first, covariates are not predicted.
        `anchor` `[..., max(1, lost_rows), channels]` are the last rows of this transform's own input before the path.
        """
        ...


@dataclass(frozen=True)
class TransformPlugin:
    """A transform of the values.

    Attributes:
        config: its options.
        build: `build(config) -> Transform`.
        example: a configuration for the conformance checks.
        scaler: True when it brings values to a common scale; named in `--transform` it replaces `--scale`.
        with_season: optional `with_season(config, season) -> config`, asked before `build`: options that the user left
            open and that follow from the steps in one season (1 if there is none).
    """

    config: type[Config]
    build: Callable[[Any], Transform]
    example: Config
    scaler: bool = False
    with_season: Callable[[Any, int], Config] | None = None

    def __post_init__(self) -> None:
        _check_declaration(self, self.config, self.example, self.build)


def _check_declaration(plugin: object, config: object, example: object, function: object) -> None:
    """What a type checker would have said: a faulty declaration is named when its module is imported."""
    kind = type(plugin).__name__
    if not isinstance(config, type) or not issubclass(config, Config):
        raise TypeError(f"{kind}.config must be a subclass of Config, not {config!r}")
    if not isinstance(example, config):
        raise TypeError(f"{kind}.example must be a {config.__name__}, not {example!r}")
    if not callable(function):
        raise TypeError(f"{kind} needs a function to call, not {function!r}")


def _check_tasks(plugin: object, tasks: object) -> None:
    if not isinstance(tasks, frozenset | set) or not all(isinstance(task, Task) for task in tasks):
        raise TypeError(f"{type(plugin).__name__}.tasks must be a set of Task, not {tasks!r}")


Plugin = ModelPlugin | DataPlugin | TransformPlugin
