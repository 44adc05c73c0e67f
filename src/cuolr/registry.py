"""Registries: click models, learners, encoders, policies and measures by name, including those of plug-ins."""

import difflib
import importlib.util
import inspect
import pkgutil
import re
import warnings
from collections.abc import Callable, Iterable
from functools import cached_property
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

    The modules of `package` and its sub-packages register classes, so a new class needs one new file and no list to
    edit. Other packages add classes by the entry points of the group `entry_points`. The first look-up imports all of
    them; with `variable`, a look-up imports only the module that registers the name, and listing names imports none.

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
        self,
        kind: str,
        package: str | None,
        entry_points: str | None = None,
        base: str | None = None,
        variable: str | None = None,
    ) -> None:
        """A registry without entries; they are loaded when they are looked up.

        Args:
            kind: The kind of the entries, for messages.
            package: The package whose modules register entries.
            entry_points: The group of entry points by which other packages add entries.
            base: Name of the class that entries of other packages must inherit.
            variable: Name of the registry in the source, to find `@VARIABLE.register("name")` without importing it.
        """
        self.kind = kind
        self._base = base
        self._variable = variable
        self._homes: dict[str, str] | None = None
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
        if name not in self._entries:
            if home := self._modules_by_name().get(name):
                importlib.import_module(home)
            else:
                self._load()
        if name not in self._entries:
            raise unknown_name(self.kind, name, self.names())
        return self._entries[name]

    def name_of(self, entry: T) -> str:
        """The name under which `entry` is registered."""
        if entry not in self._entries.values():
            self._load()  # another package may have it
        names = [name for name, other in self._entries.items() if other is entry]
        assert names, f"{entry} is not a registered {self.kind}"
        return names[0]

    def names(self) -> list[str]:
        """All registered names, sorted."""
        if self._variable is None or self._plug_ins:
            self._load()
        return sorted({*self._entries, *self._modules_by_name()})

    def _modules_by_name(self) -> dict[str, str]:
        """The module that registers each name, as its source says; empty without `variable`."""
        if self._homes is None:
            self._homes = {}
            decorator = re.compile(rf'^@{self._variable}\.register\("([^"]+)"\)', re.MULTILINE)
            for module in self._modules() if self._variable is not None else ():
                spec = importlib.util.find_spec(module)
                get_source = getattr(spec.loader, "get_source", None) if spec is not None else None
                source = get_source(module) if get_source is not None else None
                self._homes |= dict.fromkeys(decorator.findall(source or ""), module)
        return self._homes

    def _modules(self) -> list[str]:
        if self._package is None:
            return []
        path = importlib.import_module(self._package).__path__
        return [module.name for module in pkgutil.walk_packages(path, f"{self._package}.")]

    @cached_property
    def _plug_ins(self) -> list[metadata.EntryPoint]:
        """To find them reads a file of each installed package."""
        return [] if self._entry_points is None else list(metadata.entry_points(group=self._entry_points))

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True  # set first, because a module may look up a name while it is imported
        for module in self._modules():
            importlib.import_module(module)
        for entry_point in self._plug_ins:
            self._load_plug_in(entry_point)

    def _problem(self, entry: Any) -> str:
        """Why an entry of another package cannot be used; "" if it can."""
        if not isinstance(entry, type):
            return f"expected a class, found {entry!r}"
        bases = [parent for parent in entry.__mro__ if parent.__name__ == self._base]
        if self._base is not None and not bases:
            return f"expected a subclass of {self._base}, found {entry.__name__}"
        needs_config = any("Config" in inspect.get_annotations(base) for base in bases)
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
