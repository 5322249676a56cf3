"""`tsformer plugins`: what there is, its options, and whether it keeps its contract."""

from __future__ import annotations

import inspect
import itertools
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from inspect import Parameter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tsformer import registry
from tsformer.cli.console import data_only, guarded, print_json, say
from tsformer.cli.fit import fit
from tsformer.cli.line_config import PLUGIN_HELP, general_parameters
from tsformer.cli.options import describe, parameters, with_signature
from tsformer.errors import PluginError, did_you_mean
from tsformer.pairing import partners
from tsformer.plugin import TransformPlugin, option_flag
from tsformer.registry import Entry, Kind

if TYPE_CHECKING:
    from tsformer.plugin import Plugin
    from tsformer.testing import Outcome

app = typer.Typer(help="The plugins that are here, and their options.")

Files = Annotated[list[str] | None, typer.Option("--plugin", metavar="FILE", help=PLUGIN_HELP)]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]


@app.command("list")
def list_plugins(
    plugin: Files = None,
    check: Annotated[
        bool, typer.Option("--check", help="Import every plugin; show its tasks, or why it does not work.")
    ] = False,
    json: Json = False,
) -> None:
    """Name and origin of every plugin; imports none of them without --check."""
    with guarded(as_json=json):
        with data_only():
            rows = [_row(entry, check) for kind in Kind for entry in registry.entries(kind).values()]
        broken = registry.broken()
        if json:
            print_json({"schema": 1, "plugins": rows, "broken": broken})
        else:
            names, origins = (max(len(row[key]) for row in rows) for key in ("name", "origin"))
            for row in rows:
                verdict = _verdict(row) if check else ""
                print(f"{row['kind']:<10} {row['name']:<{names}}  {row['origin']:<{origins}}  {verdict}".rstrip())
            for line in [*broken.values(), *(row["fault"] for row in rows if row["fault"] and not check)]:
                say(f"warning: {line}")
        if check and (broken or any(row["fault"] for row in rows)):
            sys.exit(PluginError.exit_code)


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(help="The plugin's name.", autocompletion=lambda: _names())],
    plugin: Files = None,
    json: Json = False,
) -> None:
    """Options of a plugin: type, default and description of each."""
    with guarded(as_json=json):
        with data_only():
            shown = [_describe(entry) for entry in _called(name)]
        if json:
            print_json({"schema": 1, "plugins": shown})
            return
        for item in shown:
            _print(item)


@app.command("check")
def check(
    name: Annotated[
        str,
        typer.Argument(
            metavar="FILE|NAME",
            help="A Python file with a plugin, or a plugin's name.",
            autocompletion=lambda: _names(),
        ),
    ],
    plugin: Files = None,
    json: Json = False,
) -> None:
    """Run the conformance checks of a plugin: one line each, with what is wrong and where to look. Takes seconds."""
    with guarded(as_json=json):
        with data_only():
            from tsformer.testing.suite import NOT_RUN  # torch, which listing does not wait for

            found = [registry.in_file(name)] if name.endswith(".py") else _called(name)
            plugins = [(entry, registry.plugin_of(entry)) for entry in found]
        results = []
        for entry, value in plugins:
            if not json:
                print(f"{entry.kind} {entry.name} ({entry.origin})", flush=True)
            checks = [asdict(outcome) for outcome in _told(entry, value, quiet=json)]
            counts = Counter(item["passed"] for item in checks)
            results.append({**_row(entry, False), "passed": not counts[False], "checks": checks})
            not_run = sum(item["explanation"] == NOT_RUN for item in checks)
            others = {"failed": counts[False], "skipped": counts[None] - not_run, "not run": not_run}
            more = "".join(f", {count} {word}" for word, count in others.items() if count)
            say(f"{entry.name}: {counts[True]} checks passed{more}", quiet=json)
        if json:
            print_json({"schema": 1, "plugins": results})
        if not all(result["passed"] for result in results):
            sys.exit(PluginError.exit_code)


def _row(entry: Entry, check: bool) -> dict[str, Any]:
    """An entry for a list; with `check`, after its import: its tasks, or why it cannot be used."""
    row: dict[str, Any] = {"kind": entry.kind.value, "name": entry.name, "origin": entry.origin}
    fault = entry.fault
    if check:
        tasks: list[str] = []
        try:
            tasks = _tasks(registry.get(entry.kind, entry.name))
        except PluginError as error:
            fault = str(error)
        row["tasks"] = tasks
    return {**row, "fault": fault or None}


def _verdict(row: dict[str, Any]) -> str:
    return f"broken: {row['fault']}" if row["fault"] else ", ".join(row["tasks"]) or "ok"


def _called(name: str) -> list[Entry]:
    """The plugins of that name, of any kind."""
    known = {kind: registry.entries(kind) for kind in Kind}
    found = [entries[name] for entries in known.values() if name in entries]
    if not found and name in registry.broken():
        raise PluginError(registry.broken()[name])
    if not found:
        raise PluginError(f"unknown plugin '{name}'{did_you_mean(name, _names())}")
    return found


def _names() -> list[str]:
    return [name for kind in Kind for name in registry.entries(kind)]


def _tasks(plugin: object) -> list[str]:
    return sorted(task.value for task in getattr(plugin, "tasks", ()))


def _describe(entry: Entry) -> dict[str, Any]:
    plugin = registry.get(entry.kind, entry.name)
    module = inspect.getmodule(plugin.config)
    about = inspect.getdoc(module) or inspect.getdoc(plugin.config) or ""
    return {
        "kind": entry.kind.value,
        "name": entry.name,
        "origin": entry.origin,
        "about": about,
        "tasks": _tasks(plugin),
        "goes_with": _goes_with(entry.kind, plugin),
        "options": describe(plugin.config),
    }


def _goes_with(kind: Kind, plugin: Plugin) -> dict[str, list[str]]:
    """For a model the sources of data that there are for each of its tasks, and the other way round."""
    other = {Kind.MODEL: Kind.DATA, Kind.DATA: Kind.MODEL}.get(kind)
    return partners(other, plugin.tasks) if other and not isinstance(plugin, TransformPlugin) else {}


def _told(entry: Entry, plugin: Plugin, quiet: bool) -> Iterator[Outcome]:
    """The checks as they are done, a line each; what the plugin prints meanwhile goes to stderr."""
    from tsformer.testing import checks_of, outcomes
    from tsformer.testing.suite import NOT_RUN

    width = max(len(_short(check.__name__)) for check in checks_of(plugin))
    running = itertools.chain(outcomes(plugin), _flags(entry, plugin))
    not_run = 0
    while True:
        with data_only():
            outcome = next(running, None)
        if outcome is None:
            break
        yield outcome
        if outcome.explanation == NOT_RUN:
            not_run += 1
        elif not quiet:
            word = {True: "ok", False: "FAIL", None: "skip"}[outcome.passed]
            line = outcome.explanation or outcome.about
            print(f"  {word:<4}  {_short(outcome.check):<{width}}  {line}", flush=True)
    if not_run and not quiet:
        print(f"  {not_run} more checks were not run, for they stand on the first")


def _flags(entry: Entry, plugin: Plugin) -> Iterator[Outcome]:
    """Whether a line of `fit` can have the plugin's short flags beside its own and those of any built-in; nothing if
    there are none."""
    from tsformer.testing import Outcome

    if not any(option_flag(field) for field in plugin.config.model_fields.values()):
        return
    about = "The short flags are no others of fit, nor of a built-in plugin of another kind."
    general = general_parameters()
    others = [other for kind in Kind if kind is not entry.kind for other in registry.entries(kind).values()]
    try:
        for other in (None, *(other for other in others if other.origin == "built-in")):
            theirs = _parameters(other, registry.plugin_of(other)) if other else []
            with_signature(fit, [*general, *theirs, *_parameters(entry, plugin)])
    except PluginError as error:
        yield Outcome("check_flags", about, False, str(error))
    else:
        yield Outcome("check_flags", about, True)


def _parameters(entry: Entry, plugin: Plugin) -> list[Parameter]:
    section = f"transform.{entry.name}" if entry.kind is Kind.TRANSFORM else entry.kind.value
    return parameters(section, plugin.config, f"{entry.kind.capitalize()} {entry.name}", entry.kind.value)


def _short(check: str) -> str:
    return check.removeprefix("check_")


def _print(item: dict[str, Any]) -> None:
    print(f"{item['kind']} {item['name']} ({item['origin']})")
    print(item["about"])
    for task, others in item["goes_with"].items():
        print(f"{task}: with {', '.join(others) or 'none that is here'}")
    prefix = f"transform.{item['name']}" if item["kind"] == "transform" else item["kind"]
    for option in item["options"]:
        flag = f", {option['flag']}" if option["flag"] else ""
        default = "required" if option["required"] else f"default {option['default']}"
        print(f"  --{prefix}.{option['name']}{flag}".replace("_", "-") + f"  {option['type']}, {default}")
        print(f"      {option['description']}")
        if option["search"]:
            print(f"      tune searches {option['search']}")
    if not item["options"]:
        print("  no options")
