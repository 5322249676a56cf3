"""Finds plugins by name. Names are listed without importing any plugin; a plugin that fails breaks only itself."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from tsformer.errors import PluginError, did_you_mean, in_words
from tsformer.plugin import DataPlugin, ModelPlugin, Plugin, TransformPlugin


class Kind(StrEnum):
    """The three kinds of plugins."""

    MODEL = "model"
    DATA = "data"
    TRANSFORM = "transform"


_TYPES: dict[Kind, type] = {
    Kind.MODEL: ModelPlugin,
    Kind.DATA: DataPlugin,
    Kind.TRANSFORM: TransformPlugin,
}
_FOLDERS = {Kind.MODEL: "models", Kind.DATA: "data", Kind.TRANSFORM: "transforms"}


@dataclass(frozen=True)
class Entry:
    """A plugin that is known by name.

    Attributes:
        origin: where it comes from, in words: "built-in", "file my_model.py", "register()".
        find: imports and returns it; raises whatever the import raises.
        identity: what tells one origin from another: the whole path of a file.
    """

    kind: Kind
    name: str
    origin: str
    find: Callable[[], object]
    identity: str = "built-in"


_added: dict[tuple[Kind, str], Entry] = {}
_broken: dict[str, str] = {}  # local files that did not import: their kind is unknown, so a name fails in each


def entries(kind: Kind) -> dict[str, Entry]:
    """All plugins of a kind by name, built-ins first. Imports none of them."""
    found = {entry.name: entry for entry in _built_in(kind)}
    found.update({name: entry for (k, name), entry in _added.items() if k is kind})
    return found


def get(kind: Kind, name: str) -> Any:
    """The plugin of that name.

    Raises:
        PluginError: unknown (with the nearest name), fails to import, or is not a plugin of that kind.
    """
    if name in _broken:
        raise PluginError(_broken[name])
    known = entries(kind)
    if name not in known:
        hint = did_you_mean(name, known)
        elsewhere = [other for other in Kind if other is not kind and name in entries(other)]
        if elsewhere:
            hint = f"; there is a {elsewhere[0]} plugin of that name"
        raise PluginError(f"unknown {kind} '{name}'{hint} (known: {', '.join(sorted(known))})")
    entry = known[name]
    try:
        plugin = entry.find()
    except (Exception, SystemExit) as error:
        raise PluginError(f"{kind} '{name}' ({entry.origin}) cannot be imported: {in_words(error)}") from error
    if not isinstance(plugin, _TYPES[kind]):
        raise PluginError(f"{kind} '{name}' ({entry.origin}) is no {_TYPES[kind].__name__} but {type(plugin).__name__}")
    return plugin


def register(name: str, plugin: Plugin) -> None:
    """Make a plugin known under a name for this process; registering it again replaces it.

    Raises:
        PluginError: not a plugin, or the name belongs to a plugin that was not registered this way.
    """
    _add(name, plugin, "register()", "register()")


def load_file(path: str | Path) -> str:
    """Make the plugin in a local file known under the file's stem, and return that name.

    A file that fails to import is remembered; the error is raised only if its name is used. What went wrong is
    returned by `broken()`.

    Raises:
        PluginError: no such file, or its name clashes with another plugin's.
    """
    file = Path(os.path.expanduser(path))
    if not file.is_file():
        raise PluginError(f"no plugin file '{path}'; --plugin takes the path of a Python file")
    name, module_name = file.stem, f"tsformer_local_{file.stem}"
    spec = importlib.util.spec_from_file_location(module_name, file)
    if spec is None or spec.loader is None:
        raise PluginError(f"plugin file '{path}' is not a Python file (.py)")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses and pydantic look their module up by name
    _broken.pop(name, None)
    try:
        spec.loader.exec_module(module)
        plugin = module.plugin
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit() and exceptions that somebody derived from BaseException, too
        lacks = _lacks_plugin(module, error)
        what = "has no value named 'plugin'" if lacks else f"cannot be imported: {in_words(error)}"
        _broken[name] = f"plugin file '{path}' {what}"
        return name
    _add(name, plugin, f"file {file.name}", str(file.resolve()))
    return name


def broken() -> dict[str, str]:
    """Local files that failed to import, by name, with what went wrong in one line."""
    return dict(_broken)


def _add(name: str, plugin: object, origin: str, identity: str) -> None:
    kind = next((kind for kind, kind_type in _TYPES.items() if isinstance(plugin, kind_type)), None)
    if kind is None:
        raise PluginError(
            f"'{name}' ({origin}) is no plugin but {type(plugin).__name__}; "
            "a plugin is a ModelPlugin, DataPlugin or TransformPlugin"
        )
    known = entries(kind).get(name)
    if known is not None and known.identity != identity:
        both = f"{known.origin} and {origin}" if known.origin != origin else f"{known.identity} and {identity}"
        raise PluginError(f"two {kind} plugins are called '{name}': {both}; rename one")
    _added[kind, name] = Entry(kind, name, origin, lambda: plugin, identity)


def _built_in(kind: Kind) -> list[Entry]:
    package = f"tsformer_plugins.{_FOLDERS[kind]}"
    spec = importlib.util.find_spec(package)
    folders = spec.submodule_search_locations if spec else None
    stems = sorted(file.stem for folder in folders or () for file in Path(folder).glob("[!_]*.py"))

    def finder(stem: str) -> Callable[[], object]:
        return lambda: importlib.import_module(f"{package}.{stem}").plugin

    return [Entry(kind, stem, "built-in", finder(stem)) for stem in stems]


def _lacks_plugin(module: object, error: BaseException) -> bool:
    return isinstance(error, AttributeError) and getattr(error, "obj", None) is module
