"""Names for things: a click model, a learner, a data set is found by the name that the papers give it."""

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from cuolr.errors import InputError

T = TypeVar("T")


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InputError:
    """The error for a name that nothing answers to: lists the known ones and guesses what was meant."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1)
    guess = f" (did you mean '{close[0]}'?)" if close else ""
    return InputError(f"unknown {kind} '{name}'{guess}; known: {', '.join(known)}")


class Registry(Generic[T]):
    """The classes of one kind by name.

    Every module of `package` is imported at the first look-up, so a new class is one new file and no list to edit.

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

    def __init__(self, kind: str, package: str | None) -> None:
        self.kind = kind
        self._package = package
        self._entries: dict[str, T] = {}

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
        self._import_package()
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
        self._import_package()
        return sorted(self._entries)

    def _import_package(self) -> None:
        if self._package is None:
            return
        package = importlib.import_module(self._package)
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{self._package}.{module.name}")
