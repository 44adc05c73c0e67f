"""Registries: click models, learners, encoders, policies and measures by name, also those of other packages."""

import difflib
import importlib
import pkgutil
import warnings
from collections.abc import Callable, Iterable
from importlib import metadata
from typing import Any, Generic, TypeVar

from cuolr.errors import InputError, InputWarning

T = TypeVar("T")


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InputError:
    """The error for an unknown name: lists the known ones and suggests the closest."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1)
    guess = f" (did you mean '{close[0]}'?)" if close else ""
    return InputError(f"unknown {kind} '{name}'{guess}; known: {', '.join(known)}")


class Registry(Generic[T]):
    """The classes of one kind by name.

    At the first look-up every module of `package` and its sub-packages is imported, so a new class is one new file and
    no list to edit. So is every entry point of the group `entry_points`, by which other installed packages add theirs.

    >>> animals: Registry[type] = Registry("animal", package=None)
    >>> @animals.register("cat")
    ... class Cat: ...
    >>> animals.get("cat").__name__
    'Cat'
    >>> animals.get("cta")
    Traceback (most recent call last):
        ...
    cuolr.errors.InputError: unknown animal 'cta' (did you mean 'cat'?); known: cat
    """

    def __init__(self, kind: str, package: str | None, entry_points: str | None = None) -> None:
        self.kind = kind
        self._package = package
        self._entry_points = entry_points
        self._entries: dict[str, T] = {}
        self._loaded = False

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator that files a class under `name`; a name can be taken only once."""

        def file_under_name(entry: T) -> T:
            taken: Any = self._entries.get(name)
            if taken is not None:
                raise ValueError(f"{self.kind} '{name}' is registered already, as {taken.__qualname__}")
            self._entries[name] = entry
            return entry

        return file_under_name

    def get(self, name: str) -> T:
        """The class of that name; an unknown one raises with the known ones listed."""
        self._load()
        if name not in self._entries:
            raise unknown_name(self.kind, name, self._entries)
        return self._entries[name]

    def name_of(self, entry: T) -> str:
        """The name under which `entry` is registered."""
        names = [name for name in self.names() if self._entries[name] is entry]
        assert names, f"{entry} is not a registered {self.kind}"
        return names[0]

    def names(self) -> list[str]:
        """All registered names, sorted."""
        self._load()
        return sorted(self._entries)

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True  # before the imports: a module may look up a name while it is imported
        if self._package is not None:
            package = importlib.import_module(self._package)
            for module in pkgutil.walk_packages(package.__path__, f"{self._package}."):
                importlib.import_module(module.name)
        if self._entry_points is not None:
            for entry_point in metadata.entry_points(group=self._entry_points):
                self._load_plug_in(entry_point)

    def _load_plug_in(self, entry_point: metadata.EntryPoint) -> None:
        """Import what another package adds; one that is broken is reported, and takes nothing else down."""
        try:
            entry = entry_point.load()
            if entry not in self._entries.values():
                self.register(entry_point.name)(entry)
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            message = f"{self.kind} '{entry_point.name}' of the plug-in {entry_point.value} cannot be loaded: {reason}"
            warnings.warn(message, InputWarning, stacklevel=2)
