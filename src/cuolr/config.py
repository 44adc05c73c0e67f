"""Frozen dataclasses to and from plain dictionaries and TOML, with strict keys and types.

A misspelt key or a value of the wrong type is an error that names it; nothing is ignored and nothing is guessed.
"""

import dataclasses
import tomllib
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import tomli_w

from cuolr.errors import InputError
from cuolr.registry import unknown_name

C = TypeVar("C")


def to_dict(config: Any) -> dict[str, Any]:
    """A config as a plain dictionary that TOML and JSON can hold.

    They have no None: it is left out where it is the default, and "none" elsewhere.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Pair:
    ...     left: float = 1.0
    ...     right: tuple[int, ...] = (2, 3)
    >>> to_dict(Pair())
    {'left': 1.0, 'right': [2, 3]}
    >>> from_dict(Pair, {"left": 4})
    Pair(left=4.0, right=(2, 3))
    """

    def plain(value: Any) -> Any:
        if dataclasses.is_dataclass(value):
            return to_dict(value)
        if isinstance(value, list | tuple):
            return [plain(item) for item in value]
        if isinstance(value, Mapping):
            return {key: plain(item) for key, item in value.items()}
        return value

    given = {field: getattr(config, field.name) for field in dataclasses.fields(config)}
    return {
        field.name: "none" if value is None else plain(value)
        for field, value in given.items()
        if value is not None or field.default is not None
    }


def from_dict(cls: type[C], values: Mapping[str, Any], where: str = "") -> C:
    """Build the dataclass `cls` from a dictionary, strictly.

    Args:
        cls: The dataclass.
        values: A value per field; fields with a default may be missing.
        where: Prefix for error messages, such as a file name or the path of a nested table.
    """
    hints = typing.get_type_hints(cls)
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    prefix = f"{where}." if where else ""
    for key in values:
        if key not in fields:
            raise unknown_name("setting", f"{prefix}{key}", [f"{prefix}{name}" for name in fields])
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and name not in values:
            raise InputError(f"setting '{prefix}{name}' is missing; expected {_describe(hints[name])}")
    return cls(**{key: _convert(hints[key], value, f"{prefix}{key}") for key, value in values.items()})


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file."""
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not valid TOML: {error}") from None


def to_toml(config: Any) -> str:
    """A config as TOML text."""
    return tomli_w.dumps(to_dict(config))


def _convert(hint: Any, value: Any, name: str) -> Any:
    """`value` as the type that `hint` asks for, or an error that names the setting."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if dataclasses.is_dataclass(hint) and isinstance(value, Mapping):
        return from_dict(typing.cast("type[Any]", hint), value, where=name)
    if origin is typing.Literal:
        if value in arguments:
            return value
    elif origin in (typing.Union, types.UnionType):
        if value == "none" and type(None) in arguments and str not in arguments:
            return None
        for option in arguments:
            try:
                return _convert(option, value, name)
            except InputError:
                continue
    elif origin is dict and isinstance(value, Mapping):
        return {key: _convert(arguments[1], item, f"{name}.{key}") for key, item in value.items()}
    elif origin is tuple and isinstance(value, list | tuple):
        if arguments[-1] is Ellipsis:
            return tuple(_convert(arguments[0], item, f"{name}[{i}]") for i, item in enumerate(value))
        if len(arguments) == len(value):
            return tuple(
                _convert(a, item, f"{name}[{i}]") for i, (a, item) in enumerate(zip(arguments, value, strict=True))
            )
    elif hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    elif isinstance(hint, type) and type(value) is hint:
        return value
    raise InputError(f"setting '{name}': expected {_describe(hint)}, found {value!r}")


def _describe(hint: Any) -> str:
    """A type as a user would say it."""
    words = {float: "a number", int: "a whole number", str: "a text", bool: "true or false", type(None): "none"}
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return "one of " + ", ".join(repr(option) for option in arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_describe(option) for option in arguments)
    if origin is dict:
        return f"a table with {_describe(arguments[1])} for each key"
    if origin is tuple:
        return "a list of " + ", ".join(_describe(option) for option in arguments if option is not Ellipsis)
    return words.get(hint, getattr(hint, "__name__", str(hint)))
