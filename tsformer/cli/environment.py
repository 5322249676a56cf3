"""The environment as a layer of configuration: `TSFORMER_OPT__MODEL__D_MODEL=128` is `--model.d-model 128`."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any

from tsformer.config_layer import NAMED, SECTIONS, TASK, Layer, section_with, separate
from tsformer.errors import UsageError, did_you_mean

PREFIX = "TSFORMER_OPT__"


def read_environment(environment: Mapping[str, str]) -> Layer:
    """The layer that the variables of a process give, in any case.

    `TSFORMER_OPT__SECTION__FIELD` is an option; `TSFORMER_OPT__MODEL` and `TSFORMER_OPT__MODEL__NAME` name the plugin,
    `TSFORMER_OPT__TRANSFORM` several, between commas; `TSFORMER_OPT__TRANSFORM__LOG__FIELD` is an option of one;
    `TSFORMER_OPT__TASK` is the task.
    Variables that are not understood are faults of the layer; other programs' variables are left alone.
    """
    values: dict[str, Any] = {}
    variables: dict[str, str] = {}
    faults: list[str] = []
    for variable, text in sorted(environment.items()):
        if not _is_meant(variable):
            continue
        try:
            section, field = _address(variable)
            if not text.strip() or (section == "transform" and not separate(text)):
                raise UsageError(f"{variable} is empty; give it a value, or unset it")
            before = variables.setdefault(f"{section}.{field}", variable)
            if before != variable:
                raise UsageError(f"{before} and {variable} give the same option; unset one")
        except UsageError as fault:
            faults.append(str(fault))
            continue
        if section == "transform":
            names = separate(text)
            values["transform"] = [name for name in names if isinstance(name, str)]
            faults += [
                f"{variable}: the name of a transform is a word, not {json.dumps(name)[:40]}; its options are given "
                f"as {PREFIX}TRANSFORM__LOG__OPTION"
                for name in names
                if not isinstance(name, str)
            ]
        elif section.startswith("transform."):
            options = values.setdefault("transform_options", {}).setdefault(section.removeprefix("transform."), {})
            options[field] = text
        else:
            values.setdefault(section, {})[field] = text.strip() if field == "name" else text
    return Layer(values, variables=variables, faults=tuple(faults))


def _is_meant(variable: str) -> bool:
    """Whether a variable is one of ours, or was meant to be: `TSFORMER_OPT_MODEL`, `TSFORMER__MODEL__D_MODEL`."""
    head, separator, _ = variable.upper().partition("__")
    alike = difflib.SequenceMatcher(None, head, PREFIX[:-2]).ratio() >= 0.8
    return head.startswith(PREFIX[:-2]) or (bool(separator) and head.startswith("TSFORM") and alike)


def _address(variable: str) -> tuple[str, str]:
    """Section and field, in lower case; the field is "name" where a plugin is named.

    Raises:
        UsageError: it has none.
    """
    if not variable.upper().startswith(PREFIX):
        raise UsageError(f"{variable}: unknown variable; options are given as {PREFIX}MODEL__D_MODEL")
    section, separator, field = variable[len(PREFIX) :].lower().partition("__")
    if section == TASK and not separator:
        return TASK, "name"
    if section not in SECTIONS:
        home = None if separator else section_with(section)
        if home:
            raise UsageError(f"{variable} names no section; did you mean '{PREFIX}{home.upper()}__{section.upper()}'?")
        # compared without the prefix, which would make all of them look alike
        alike = [PREFIX + name.upper() for name in difflib.get_close_matches(section, (*SECTIONS, TASK), n=1)]
        raise UsageError(f"{variable}: unknown section{did_you_mean(alike[0], alike) if alike else ''}")
    if section == "transform" and separator:
        name, _, field = field.rpartition("__")
        if not name or not field:
            raise UsageError(f"{variable}: an option of a transform is given as {PREFIX}TRANSFORM__LOG__OPTION")
        return f"transform.{name}", field
    if separator and field:
        return section, field
    if separator or section not in NAMED:
        raise UsageError(f"{variable} names no option; an option is given as {PREFIX}{section.upper()}__OPTION")
    return section, "name"
