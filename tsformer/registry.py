"""Finds plugins by name: built-in, installed, local files, `register()`.

Names are listed without importing any plugin; a plugin that fails, or a name that two plugins have, breaks only itself.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tsformer.errors import PluginError, did_you_mean, in_words
from tsformer.plugin import DataPlugin, ModelPlugin, Plugin, TransformPlugin

if TYPE_CHECKING:
    from importlib.metadata import Distribution


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
        fault: why the name cannot be used, when two plugins have it; otherwise empty.
    """

    kind: Kind
    name: str
    origin: str
    find: Callable[[], object]
    identity: str = "built-in"
    fault: str = ""


_added: dict[tuple[Kind, str, str], Entry] = {}  # by kind, name and identity
_broken: dict[str, str] = {}  # local files that did not import: their kind is unknown, so a name fails in each


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
    entry = known[name]
    if entry.fault:
        raise PluginError(entry.fault)
    try:
        plugin = entry.find()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit() and exceptions that somebody derived from BaseException, too
        raise PluginError(f"{kind} '{name}' ({entry.origin}) cannot be imported: {in_words(error)}") from error
    if not isinstance(plugin, _TYPES[kind]):
        raise PluginError(f"{kind} '{name}' ({entry.origin}) is no {_TYPES[kind].__name__} but {type(plugin).__name__}")
    return plugin


def register(name: str, plugin: Plugin) -> None:
    """Make a plugin known under a name for this process; registering it again replaces it.

    Raises:
        PluginError: not a plugin, or the name belongs to a plugin that was not registered this way.
    """
    new = _entry(name, plugin, "register()", "register()")
    same = [entry for entry in (*_built_in(new.kind), *_installed(new.kind), *_added.values()) if _rivals(entry, new)]
    if same:
        raise PluginError(_clash([*same, new]))
    _add(new)


def load_file(path: str | Path) -> str:
    """Make the plugin in a local file known under the file's stem, and return that name.

    A file that fails to import is remembered, as is a name that another plugin has; the error is raised only if the
    name is used. What went wrong with the import is returned by `broken()`.

    Raises:
        PluginError: no such file, or what it calls `plugin` is none.
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
    except BaseException as error:
        lacks = _lacks_plugin(module, error)
        what = "has no value named 'plugin'" if lacks else f"cannot be imported: {in_words(error)}"
        _broken[name] = f"plugin file '{path}' {what}"
        return name
    _add(_entry(name, plugin, f"file {file.name}", str(file.resolve())))
    return name


def broken() -> dict[str, str]:
    """Local files that failed to import and packages that cannot be read, by name, with what went wrong in one line."""
    return {**_scan(tuple(sys.path))[1], **_broken}


def _entry(name: str, plugin: object, origin: str, identity: str) -> Entry:
    kind = next((kind for kind, kind_type in _TYPES.items() if isinstance(plugin, kind_type)), None)
    if kind is None:
        raise PluginError(
            f"'{name}' ({origin}) is no plugin but {type(plugin).__name__}; "
            "a plugin is a ModelPlugin, DataPlugin or TransformPlugin"
        )
    return Entry(kind, name, origin, lambda: plugin, identity)


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
    return [entry for entry in _scan(tuple(sys.path))[0] if entry.kind is kind]


@functools.lru_cache(maxsize=1)
def _scan(path: tuple[str, ...]) -> tuple[tuple[Entry, ...], dict[str, str]]:
    """What installed packages declare as entry points, and what is wrong with those that cannot be read.

    Args:
        path: `sys.path`, so that the packages are looked at again when it changes.
    """
    from importlib import metadata

    found: list[Entry] = []
    unreadable: dict[str, str] = {}
    seen: set[str] = set()
    for distribution in metadata.distributions():
        # of some hundred packages few have plugins: the metadata of the others, slow to parse, are left alone
        try:
            if "tsformer." not in (distribution.read_text("entry_points.txt") or ""):
                continue
        except Exception:  # a damaged package that nobody asked for
            continue
        name = "a package without a name"
        try:
            name = distribution.metadata["Name"] or name
            key = re.sub(r"[-_.]+", "-", name).lower()
            if key not in seen:  # the first on the path wins, as for imports; development leaves a package there twice
                found += _declared(distribution, name)
            seen.add(key)
        except Exception as error:
            unreadable[name] = f"the entry points of the package '{name}' cannot be read: {in_words(error)}"
    return tuple(found), unreadable


def _declared(distribution: Distribution, name: str) -> list[Entry]:
    """A package's plugins; an entry point's value is a module, or `module:plugin`."""
    origin = f"{name} {distribution.version}"

    def finder(load: Callable[[], object]) -> Callable[[], object]:
        def find() -> object:
            loaded = load()
            return loaded.plugin if isinstance(loaded, ModuleType) else loaded

        return find

    return [
        Entry(_GROUPS[point.group], point.name, origin, finder(point.load), f"{origin} ({point.value})")
        for point in distribution.entry_points
        if point.group in _GROUPS
    ]


def _lacks_plugin(module: object, error: BaseException) -> bool:
    return isinstance(error, AttributeError) and getattr(error, "obj", None) is module
