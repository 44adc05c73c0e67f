"""Registries: click models, learners, encoders, policies and measures by name, including those of plug-ins."""

import difflib
import importlib
import pkgutil
import warnings
from collections.abc import Callable, Iterable
from importlib import metadata
from typing import Any, Generic, TypeVar

from cuolr.errors import InputError, InputWarning

T = TypeVar("T")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The closest known name, as part of an error message; "" if none is close."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean '{close[0]}'?)" if close else ""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InputError:
    """The error for an unknown name: lists the known ones and suggests the closest."""
    known = sorted(known)
    return InputError(f"unknown {kind} '{name}'{did_you_mean(name, known)}; known: {', '.join(known)}")


class Registry(Generic[T]):
    """The classes of one kind by name.

    The first look-up imports every module of `package` and its sub-packages, so a new class needs one new file and no
    list to edit. It also loads the entry points of the group `entry_points`, by which other packages add classes.

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

    def __init__(
        self, kind: str, package: str | None, entry_points: str | None = None, base: str | None = None
    ) -> None:
        """A registry without entries; they are loaded at the first look-up.

        Args:
            kind: The kind of the entries, for messages.
            package: The package whose modules register entries.
            entry_points: The group of entry points by which other packages add entries.
            base: Name of the class that entries of other packages must inherit.
        """
        self.kind = kind
        self._base = base
        self._package = package
        self._entry_points = entry_points
        self._entries: dict[str, T] = {}
        self._loaded = False

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator that registers a class as `name`; each name can be registered once."""

        def add(entry: T) -> T:
            taken: Any = self._entries.get(name)
            if taken is not None:
                raise ValueError(f"{self.kind} '{name}' is already registered, as {taken.__qualname__}")
            self._entries[name] = entry
            return entry

        return add

    def get(self, name: str) -> T:
        """The class registered as `name`; the error for an unknown name lists the known ones."""
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
        self._loaded = True  # set first, because a module may look up a name while it is imported
        if self._package is not None:
            package = importlib.import_module(self._package)
            for module in pkgutil.walk_packages(package.__path__, f"{self._package}."):
                importlib.import_module(module.name)
        if self._entry_points is not None:
            for entry_point in metadata.entry_points(group=self._entry_points):
                self._load_plug_in(entry_point)

    def _problem(self, entry: Any) -> str:
        """Why an entry of another package cannot be used; "" if it can."""
        if not isinstance(entry, type):
            return f"expected a class, found {entry!r}"
        if self._base is not None and self._base not in [parent.__name__ for parent in entry.__mro__]:
            return f"expected a subclass of {self._base}, found {entry.__name__}"
        needs_config = any("Config" in vars(parent).get("__annotations__", {}) for parent in entry.__mro__)
        return f"{entry.__name__} has no Config" if needs_config and not hasattr(entry, "Config") else ""

    def _load_plug_in(self, entry_point: metadata.EntryPoint) -> None:
        """Load what another package adds; a broken plug-in gives a warning and affects nothing else."""
        try:
            entry = entry_point.load()
            if problem := self._problem(entry):
                self._entries = {name: other for name, other in self._entries.items() if other is not entry}
                raise TypeError(problem)
            if entry not in self._entries.values():
                self.register(entry_point.name)(entry)
        except (Exception, SystemExit) as error:  # a plug-in that exits must not end the program
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            message = f"{self.kind} '{entry_point.name}' of the plug-in {entry_point.value} cannot be loaded: {reason}"
            warnings.warn(message, InputWarning, stacklevel=2)
