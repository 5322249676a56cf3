"""`tsformer plugins`: what there is, and its options."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import typer

from tsformer import registry
from tsformer.cli.console import data_only, guarded, print_json, say
from tsformer.cli.fit import PLUGIN_HELP
from tsformer.cli.options import describe
from tsformer.errors import PluginError, did_you_mean
from tsformer.registry import Kind

app = typer.Typer(help="The plugins that are here, and their options.")

Files = Annotated[list[str] | None, typer.Option("--plugin", metavar="FILE", help=PLUGIN_HELP)]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]


@app.command("list")
def list_plugins(plugin: Files = None, json: Json = False) -> None:
    """Name and origin of every plugin; imports none of the built-in ones."""
    with guarded(as_json=json):
        found = [entry for kind in Kind for entry in registry.entries(kind).values()]
        if json:
            rows = [{"kind": e.kind.value, "name": e.name, "origin": e.origin} for e in found]
            print_json({"schema": 1, "plugins": rows, "broken": registry.broken()})
            return
        width = max(len(entry.name) for entry in found)
        for entry in found:
            print(f"{entry.kind:<10} {entry.name:<{width}}  {entry.origin}")
        for line in registry.broken().values():
            say(f"warning: {line}")


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(help="The plugin's name.")], plugin: Files = None, json: Json = False
) -> None:
    """Options of a plugin: type, default and description of each."""
    with guarded(as_json=json):
        kinds = [kind for kind in Kind if name in registry.entries(kind)]
        if not kinds:
            everything = [n for kind in Kind for n in registry.entries(kind)]
            if name in registry.broken():
                raise PluginError(registry.broken()[name])
            raise PluginError(f"unknown plugin '{name}'{did_you_mean(name, everything)}")
        with data_only():
            shown = [_describe(kind, name) for kind in kinds]
        if json:
            print_json({"schema": 1, "plugins": shown})
            return
        for item in shown:
            _print(item)


def _describe(kind: Kind, name: str) -> dict[str, Any]:
    plugin = registry.get(kind, name)
    module = inspect.getmodule(plugin.config)
    about = inspect.getdoc(module) or inspect.getdoc(plugin.config) or ""
    return {
        "kind": kind.value,
        "name": name,
        "origin": registry.entries(kind)[name].origin,
        "about": about,
        "tasks": sorted(task.value for task in getattr(plugin, "tasks", ())),
        "options": describe(plugin.config),
    }


def _print(item: dict[str, Any]) -> None:
    print(f"{item['kind']} {item['name']} ({item['origin']})")
    print(item["about"])
    if item["tasks"]:
        print(f"tasks: {', '.join(item['tasks'])}")
    prefix = f"transform.{item['name']}" if item["kind"] == "transform" else item["kind"]
    for option in item["options"]:
        flag = f", {option['flag']}" if option["flag"] else ""
        default = "required" if option["required"] else f"default {option['default']}"
        print(f"  --{prefix}.{option['name']}{flag}".replace("_", "-") + f"  {option['type']}, {default}")
        print(f"      {option['description']}")
    if not item["options"]:
        print("  no options")
