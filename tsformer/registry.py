"""Finds plugins by name: built-in, installed, local files, `register()`.

Names are listed without importing any plugin; a plugin that fails, or a name that two plugins have, breaks only itself.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tsformer import entry_points
from tsformer.entry_points import Declared, EntryPointError
from tsformer.errors import PluginError, did_you_mean, in_words, is_nobodys
from tsformer.plugin import DataPlugin, ModelPlugin, Plugin, TransformPlugin

if TYPE_CHECKING:
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec


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
_GROUPS = {f"tsformer.{folder}": kind for kind, folder in _FOLDERS.items()}  # of entry points


@dataclass(frozen=True)
class Entry:
    """A plugin that is known by name.

    Attributes:
        origin: where it comes from, in words: "built-in", "my-package 1.2", "file my_model.py", "register()".
        find: imports and returns it; raises whatever the import raises.
        identity: what tells one origin from another: the whole path of a file.
        fault: why the name cannot be used, when two plugins have it or it is no plain word; otherwise empty.
    """

    kind: Kind
    name: str
    origin: str
    find: Callable[[], object]
    identity: str = "built-in"
    fault: str = ""


_added: dict[tuple[Kind, str, str], Entry] = {}  # by kind, name and identity
_broken: dict[str, str] = {}  # local files without a plugin: their kind is unknown, so a name fails in each


def entries(kind: Kind) -> dict[str, Entry]:
    """All plugins of a kind by name, built-ins first. Imports none of them.

    A name that two of them have is there once, with both origins and a `fault`.
    """
    found: dict[str, dict[str, Entry]] = {}
    added = [entry for entry in _added.values() if entry.kind is kind]
    for entry in (*_built_in(kind), *_installed(kind), *added):
        found.setdefault(entry.name, {})[entry.identity] = entry
    return {name: _only(tuple(same.values())) for name, same in found.items()}


def get(kind: Kind, name: str) -> Any:
    """The plugin of that name.

    Raises:
        PluginError: unknown (with the nearest name), claimed by two, fails to import, or is not a plugin of that kind.
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
    return plugin_of(known[name])


def plugin_of(entry: Entry) -> Any:
    """The plugin of an entry.

    Raises:
        PluginError: claimed by two, fails to import, or is not a plugin of that kind.
    """
    if entry.fault:
        raise PluginError(entry.fault)
    who, wanted = f"{entry.kind} '{entry.name}' ({entry.origin})", _TYPES[entry.kind]
    try:
        plugin = entry.find()
    except EntryPointError as error:
        raise PluginError(f"{who} cannot be found: {error}") from error.__cause__
    except BaseException as error:  # sys.exit() and exceptions that somebody derived from BaseException, too
        if is_nobodys(error):
            raise
        raise PluginError(f"{who} cannot be imported: {in_words(error)}") from error
    if not isinstance(plugin, wanted):
        raise PluginError(f"{who} is no {wanted.__name__} but {type(plugin).__name__}")
    return plugin


def register(name: str, plugin: Plugin) -> None:
    """Make a plugin known under a name for this process; registering it again replaces it.

    Raises:
        PluginError: not a plugin, no plain word for a name, or the name of a plugin that was not registered this way.
    """
    new = _entry(name, plugin, "register()", "register()")
    same = [entry for entry in (*_built_in(new.kind), *_installed(new.kind), *_added.values()) if _rivals(entry, new)]
    if same:
        raise PluginError(_clash([*same, new]))
    _add(new)


def load_file(path: str | Path) -> str:
    """Make the plugin in a local file known under the file's stem, and return that name.

    A file that fails to import or holds no plugin is remembered, as is a name that another plugin has; the error is
    raised only if the name is used. What is wrong with the file is returned by `broken()`.

    Raises:
        PluginError: no such file, or not a Python file.
    """
    _spec_of(path)
    name = Path(path).stem
    _broken.pop(name, None)
    try:
        _add(in_file(path))
    except PluginError as error:
        _broken[name] = str(error)
    return name


def in_file(path: str | Path) -> Entry:
    """The plugin in a local file, without making it known: another of its name is no clash.

    Raises:
        PluginError: no such file, one that fails to import, or what it calls `plugin` is none.
    """
    spec, loader = _spec_of(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pydantic look their module up by name
    try:
        loader.exec_module(module)
        plugin = module.plugin
    except BaseException as error:
        if is_nobodys(error):
            raise
        lacks = _lacks_plugin(module, error)
        what = "has no value named 'plugin'" if lacks else f"cannot be imported: {in_words(error)}"
        raise PluginError(f"plugin file '{path}' {what}") from error
    file = _expanded(path)
    return _entry(file.stem, plugin, f"file {file.name}", str(file.resolve()))


def broken() -> dict[str, str]:
    """Local files without a plugin and packages that cannot be read, by name, with what is wrong in one line."""
    return {**entry_points.declared(tuple(sys.path), tuple(_GROUPS))[1], **_broken}


def _expanded(path: str | Path) -> Path:
    return Path(os.path.expanduser(path))


def _spec_of(path: str | Path) -> tuple[ModuleSpec, Loader]:
    """How to import a file. Raises PluginError when it is not there, or no Python file."""
    file = _expanded(path)
    if not file.is_file():
        raise PluginError(f"no plugin file '{path}'; --plugin takes the path of a Python file")
    spec = importlib.util.spec_from_file_location(f"tsformer_local_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise PluginError(f"plugin file '{path}' is not a Python file (.py)")
    return spec, spec.loader


def _entry(name: str, plugin: object, origin: str, identity: str) -> Entry:
    kind = next((kind for kind, kind_type in _TYPES.items() if isinstance(plugin, kind_type)), None)
    if kind is None:
        raise PluginError(
            f"'{name}' ({origin}) is no plugin but {type(plugin).__name__}; "
            "a plugin is a ModelPlugin, DataPlugin or TransformPlugin"
        )
    fault = _fault_of_name(kind, name, origin)
    if fault:
        raise PluginError(fault)
    return Entry(kind, name, origin, lambda: plugin, identity)


def _fault_of_name(kind: Kind, name: str, origin: str) -> str:
    """Why a plugin cannot have that name, which becomes part of options and folders; empty when it can."""
    who = f"{kind} '{name}' ({origin}) cannot be used"
    if not re.fullmatch(r"\w[\w.-]*", name):
        return f"{who}: its name is no plain word of letters, digits, '_', '-' and '.', first a letter, digit or '_'"
    if kind is Kind.TRANSFORM and name == "none":
        return f"{who}: --transform none means no transform; give it another name"
    return ""


def _add(entry: Entry) -> None:
    _added[entry.kind, entry.name, entry.identity] = entry


def _rivals(a: Entry, b: Entry) -> bool:
    return (a.kind, a.name) == (b.kind, b.name) and a.identity != b.identity


def _only(same: Sequence[Entry]) -> Entry:
    """The entry of a name; one that cannot be used when several plugins have it."""
    first = same[0]
    if len(same) == 1:
        return first
    return Entry(first.kind, first.name, _origins(same), first.find, identity="", fault=_clash(same))


def _clash(same: Sequence[Entry]) -> str:
    return f"{len(same)} {same[0].kind} plugins are called '{same[0].name}': {_origins(same)}; rename or remove one"


def _origins(same: Sequence[Entry]) -> str:
    origins = [entry.origin for entry in same]
    alike = len(set(origins)) < len(origins)  # two files of one name in different folders
    return " and ".join(entry.identity if alike else entry.origin for entry in same)


def _built_in(kind: Kind) -> list[Entry]:
    package = f"tsformer_plugins.{_FOLDERS[kind]}"
    spec = importlib.util.find_spec(package)
    folders = spec.submodule_search_locations if spec else None
    stems = sorted(file.stem for folder in folders or () for file in Path(folder).glob("[!_]*.py"))

    def finder(stem: str) -> Callable[[], object]:
        return lambda: importlib.import_module(f"{package}.{stem}").plugin

    return [Entry(kind, stem, "built-in", finder(stem)) for stem in stems]


def _installed(kind: Kind) -> list[Entry]:
    def entry(point: Declared) -> Entry:
        fault = _fault_of_name(kind, point.name, point.origin)
        return Entry(kind, point.name, point.origin, point.load, f"{point.origin} ({point.value})", fault)

    points = entry_points.declared(tuple(sys.path), tuple(_GROUPS))[0]
    return [entry(point) for point in points if _GROUPS[point.group] is kind]


def _lacks_plugin(module: object, error: BaseException) -> bool:
    return isinstance(error, AttributeError) and getattr(error, "obj", None) is module
