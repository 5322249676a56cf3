"""Plugins that installed packages declare: their entry points, read without importing any of the packages."""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

from tsformer.errors import in_words

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint


class EntryPointError(Exception):
    """What a package declares is wrong; the message says how."""


@dataclass(frozen=True)
class Declared:
    """A plugin of a package.

    Attributes:
        origin: the package and its version.
        point: the entry point; its value is a module with a value named `plugin`, or `module:value`.
    """

    origin: str
    point: EntryPoint

    @property
    def name(self) -> str:
        return self.point.name

    @property
    def group(self) -> str:
        return self.point.group

    @property
    def value(self) -> str:
        return self.point.value

    def load(self) -> object:
        """What the entry point names.

        Raises:
            EntryPointError: there is nothing.
            Exception: what the import raises.
        """
        what = f"the entry point {self.name} = {self.value!r}"
        if self.point.pattern.match(self.value) is None:
            raise EntryPointError(f"{what} is neither a module nor module:value")
        try:
            found: object = importlib.import_module(self.point.module)
        except ModuleNotFoundError as error:
            if not f"{self.point.module}.".startswith(f"{error.name}."):
                raise  # of an import within the module
            raise EntryPointError(f"{what} names a module that is not there ({error})") from error
        try:
            found = functools.reduce(getattr, filter(None, (self.point.attr or "").split(".")), found)
            return found.plugin if isinstance(found, ModuleType) else found
        except AttributeError as error:
            raise EntryPointError(f"{what}: {error}") from error


@functools.lru_cache(maxsize=1)
def declared(path: tuple[str, ...], groups: tuple[str, ...]) -> tuple[tuple[Declared, ...], dict[str, str]]:
    """What installed packages declare in some groups, and what is wrong with those that cannot be read, by package.

    Args:
        path: `sys.path`, so that the packages are looked at again when it changes.
        groups: of entry points.
    """
    from importlib import metadata

    found: list[Declared] = []
    unreadable: dict[str, str] = {}
    seen: set[str] = set()
    for distribution in metadata.distributions():
        # of some hundred packages few have plugins: the metadata of the others, slow to parse, are left alone
        name = folder = str(getattr(distribution, "_path", "a package"))
        try:
            points = distribution.read_text("entry_points.txt") or ""
            if "tsformer." not in points:
                continue
            name = distribution.metadata["Name"] or f"a package without a name in {folder}"
            key = re.sub(r"[-_.]+", "-", name).lower()
            if key not in seen:  # the first on the path wins, as for imports; development leaves a package there twice
                _check_groups(points, groups)
                found += _of(distribution, name, groups)
            seen.add(key)
        except UnicodeDecodeError as error:
            if b"tsformer." in error.object:
                unreadable[name] = _unreadable(name, "they are not UTF-8")
        except Exception as error:
            unreadable[name] = _unreadable(name, str(error) if isinstance(error, EntryPointError) else in_words(error))
    return tuple(found), unreadable


def _unreadable(name: str, why: str) -> str:
    return f"the entry points of the package '{name}' cannot be read: {why}"


def _check_groups(points: str, groups: Sequence[str]) -> None:
    """Raises EntryPointError for a heading that is misspelt, whose plugins would be missing in silence."""
    for line in map(str.strip, points.splitlines()):
        if line.startswith("[tsformer.") and line not in [f"[{group}]" for group in groups]:
            raise EntryPointError(f"{line} is none of {', '.join(f'[{group}]' for group in groups)}")


def _of(distribution: Distribution, name: str, groups: Sequence[str]) -> list[Declared]:
    version = distribution.metadata["Version"]
    origin = f"{name} {version}" if version else name
    return [Declared(origin, point) for point in distribution.entry_points if point.group in groups]
