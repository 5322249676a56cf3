"""Options of plugins as command-line options: a `Config` declares them, `--help` and parsing follow."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from tsformer.errors import PluginError
from tsformer.plugin import Config, option_flag, option_type
from tsformer.search import declared

SEPARATOR = "__"  # in parameter names, where the command line has a dot
BOOLEAN = "BOOLEAN"


def normalised(arguments: Sequence[str]) -> list[str]:
    """Write `--model.d_model` as `--model.d-model`: both spellings are taken, one is shown."""
    result: list[str] = []
    for position, argument in enumerate(arguments):
        if argument == "--":
            return [*result, *arguments[position:]]
        name, equals, value = argument.partition("=")
        result.append((name.replace("_", "-") if name.startswith("--") else name) + equals + value)
    return result


def with_values(arguments: Sequence[str], added: Sequence[inspect.Parameter]) -> list[str]:
    """Write `--freeze` as `--freeze=true`, `--no-freeze` as `--freeze=false`: what is true or false needs no value."""
    switches = {name for parameter in added if _metavar(parameter) == BOOLEAN for name in _names(parameter)}
    result: list[str] = []
    for position, argument in enumerate(arguments):
        if argument == "--":
            return [*result, *arguments[position:]]
        alone = "".join(arguments[position + 1 : position + 2])[:1] in ("", "-")
        positive = argument.replace("--no-", "--", 1)
        if argument.startswith("--no-") and positive in switches:
            result.append(f"{positive}=false")
        else:
            result.append(f"{argument}=true" if argument in switches and alone else argument)
    return result


def given(arguments: Sequence[str], flag: str) -> list[str]:
    """All values of an option on a command line, before it is parsed: `--model X` and `--model=X`."""
    values = []
    for position, argument in enumerate(arguments):
        if argument == "--":
            break
        if argument == flag and position + 1 < len(arguments):
            values.append(arguments[position + 1])
        elif argument.startswith(f"{flag}="):
            values.append(argument.partition("=")[2])
    return values


def parameters(section: str, config: type[Config], panel: str, key: str | None = None) -> list[inspect.Parameter]:
    """One keyword parameter an option, for `with_signature`. Not given means None.

    Args:
        section: "model", "data", "transform.log", ...; an option is called `--section.field-name`.
        config: the declaration.
        panel: heading in `--help`.
        key: what `sections` files the values under; the section when None.
    """
    return [_parameter(section, name, field, panel, key or section) for name, field in config.model_fields.items()]


def read_given(arguments: Sequence[str], added: Sequence[inspect.Parameter]) -> dict[str, Any]:
    """What a line gives to such parameters, before it is parsed."""
    found: dict[str, Any] = {}
    for parameter in added:
        values = [v for name in _names(parameter) for v in given(arguments, name)]
        if values:
            many = parameter.annotation.__origin__ == list[str] | None
            found[parameter.name] = values if many else values[-1]
    return found


def with_signature(function: Callable[..., None], added: Sequence[inspect.Parameter]) -> Callable[..., None]:
    """A command like `function` with further options; their values reach its `**options`.

    Raises:
        PluginError: two of all these options have the same flag.
    """
    signature = inspect.signature(function, eval_str=True)
    own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    names = [*(parameter.name.replace("_", "-") for parameter in own), "help", "plugin"]
    owners = {f"--{name}": "tsformer itself" for name in names}
    for parameter in added:
        for flag in _names(parameter):
            if flag in owners:
                raise PluginError(
                    f"the flag {flag} of {_owner(parameter)} is that of {owners[flag]}; "
                    "a plugin's Field(..., flag=...) needs a flag of its own"
                )
            owners[flag] = _owner(parameter)

    @functools.wraps(function)
    def command(**options: Any) -> None:
        function(**options)

    widened: Any = command
    widened.__signature__ = signature.replace(parameters=[*own, *added])
    return command


def sections(options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """`{"model__d_model": "64"}` as `{"model": {"d_model": "64"}}`, without what was not given."""
    result: dict[str, dict[str, Any]] = {}
    for name, value in options.items():
        if value is None or value == []:
            continue
        section, _, field = name.rpartition(SEPARATOR)
        result.setdefault(section.replace(SEPARATOR, "."), {})[field] = value
    return result


def describe(config: type[Config]) -> list[dict[str, Any]]:
    """Each option as name, flag, type, default, description, and what `tune` may choose for it."""
    return [
        {
            "name": name,
            "flag": option_flag(field),
            "type": _type(field),
            "default": None if field.is_required() else field.get_default(call_default_factory=True),
            "required": field.is_required(),
            "description": field.description,
            "search": None if (space := declared(config, name)) is None else str(space),
        }
        for name, field in config.model_fields.items()
    ]


def _type(field: FieldInfo) -> str:
    kind = option_type(field.annotation)
    return "|".join(kind.choices) or kind.words + (" ..." if kind.many else "")


def _parameter(section: str, name: str, field: FieldInfo, panel: str, key: str) -> inspect.Parameter:
    flag = option_flag(field)
    return parameter([f"{section}.{name}"], f"{key}.{name}", field, panel, also=[flag] if flag else [])


def parameter(
    names: Sequence[str], key: str, field: FieldInfo, panel: str, *, also: Sequence[str] = (), hidden: bool = False
) -> inspect.Parameter:
    """One option, for `with_signature`.

    Args:
        names: that it goes by, without the dashes before them, "model.d_model"; the first one is the main one.
        key: what `sections` files the value under, with the field after the last dot.
        field: the declaration.
        panel: heading in `--help`.
        also: further flags, as they are: "--path".
        hidden: not shown in `--help`.
    """
    flags = [*("--" + name.replace("_", "-") for name in names), *also]
    kind = option_type(field.annotation)
    settings: dict[str, Any] = {
        "help": _help(field),
        "rich_help_panel": panel,
        "show_default": False,
        "metavar": kind.words,
        "hidden": hidden,
    }
    # text, so that pydantic converts it and all faults are reported at once, by name
    annotation: Any = list[str] | None if kind.many else str | None
    return inspect.Parameter(
        key.replace(".", SEPARATOR),
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[annotation, typer.Option(*flags, **settings), tuple(flags)],
    )


def _names(parameter: inspect.Parameter) -> tuple[str, ...]:
    """The long name of such a parameter and its short flag."""
    names: tuple[str, ...] = parameter.annotation.__metadata__[1]
    return names


def _metavar(parameter: inspect.Parameter) -> str:
    metavar: str = parameter.annotation.__metadata__[0].metavar
    return metavar


def _owner(parameter: inspect.Parameter) -> str:
    """A plugin and its option, as a message names them: "model tcn (option width)"."""
    heading = parameter.annotation.__metadata__[0].rich_help_panel
    return f"{heading[:1].lower()}{heading[1:]} (option {parameter.name.rpartition(SEPARATOR)[2]})"


def _help(field: FieldInfo) -> str:
    text = (field.description or "").replace("[", r"\[")  # which rich would take for markup
    choices = option_type(field.annotation).choices
    text += f": {' or '.join(choices)}" if choices else ""
    if field.is_required():
        return f"{text} (required)"
    default = field.default
    if default is None or default is PydanticUndefined or default == ():
        return text
    if isinstance(default, tuple):
        default = ", ".join(map(str, default))
    return f"{text} (default: {str(default).lower() if isinstance(default, bool) else default})"
