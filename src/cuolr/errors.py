"""Errors and warnings about input, in words that a user can act on."""

import glob
import importlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class InputError(ValueError):
    """Bad input from outside: a file, a parameter, a name.

    The command line prints one line per problem on stderr and exits with status 2; a user never sees a traceback.

    Attributes:
        problems: One line each: where, what was expected, what was found, what to do.
    """

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join(self.problems))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems,)


@contextmanager
def problems_in(place: object) -> Iterator[None]:
    """Prefix each problem raised inside with its place, such as the file."""
    try:
        yield
    except InputError as error:
        raise InputError([f"{place}: {problem}" for problem in error.problems]) from None


def unreadable(path: Path, error: OSError) -> InputError:
    """The error for a file that cannot be read."""
    if isinstance(error, FileNotFoundError):
        return not_found(path)
    return InputError(f"{path}: cannot be read ({error.strerror or error})")


def not_found(path: Path) -> InputError:
    """The error for a file that does not exist; it names one of another format, if there is one."""
    others = sorted(path.parent.glob(f"{glob.escape(path.stem)}.*")) if path.suffix else []
    others = [other for other in others if other.is_file()]
    return InputError(f"{path}: file not found" + (f" (did you mean '{others[0]}'?)" if others else ""))


def does_not_match(path: Path) -> InputError:
    """The error for what was changed after it was written."""
    return InputError(
        f"{path}: damaged: it does not match its hash; restore it from a copy, or read it as it is with --no-verify"
    )


def check_format(found: object, expected: str, where: Path, what: str) -> None:
    """Raise if a file is not of the expected format, such as `cuolr-results-2`; one of a newer cuolr is told apart.

    Args:
        found: The format that the file says it has.
        expected: The format that this version reads.
        where: The file.
        what: What it should be, such as `a model`.
    """
    if found == expected:
        return
    family, _, number = expected.rpartition("-")
    match = re.fullmatch(rf"{re.escape(family)}-(\d{{1,9}})", found) if isinstance(found, str) else None
    if match and int(match[1]) > int(number):
        raise InputError(f"{where}: format '{found}' needs a newer cuolr; this version reads '{expected}'")
    raise InputError(f"{where}: not {what} of this version of cuolr; expected format '{expected}'")


def require_type(name: str, value: object, kind: type, advice: str) -> None:
    """Raise `InputError` if an argument is of another class.

    >>> require_type("log", "LOG", bytes, "load_click_log returns one")
    Traceback (most recent call last):
        ...
    cuolr.errors.InputError: log: expected a bytes, found a str; load_click_log returns one

    Args:
        name: Of the argument.
        value: Of the argument.
        kind: The class that it must have.
        advice: Where such an object comes from.
    """
    if not isinstance(value, kind):
        raise InputError(f"{name}: expected a {kind.__name__}, found a {type(value).__name__}; {advice}")


def load_extra(module: str, extra: str, problem: str) -> Any:
    """Import a module of a package that only an extra brings along.

    Args:
        module: Its name.
        extra: The extra of cuolr.
        problem: What to say if it is not installed; how to install it is added.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise InputError(f"{problem}; install it with: pip install 'cuolr[{extra}]'") from None


class InputWarning(UserWarning):
    """A problem with the input that does not stop the work; the command line prints it on stderr."""
