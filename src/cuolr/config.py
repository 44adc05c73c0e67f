"""Settings: frozen dataclasses with types and ranges, converted to and from dictionaries and TOML.

A misspelt name, a value of the wrong type or a value out of range is an error that names the setting.
"""

import dataclasses
import math
import re
import sys
import tomllib
import types
import typing
from collections.abc import Iterator, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, TypeVar

import tomli_w

from cuolr.errors import InputError, unreadable
from cuolr.files import require_file
from cuolr.registry import unknown_name

C = TypeVar("C")
MAX_TOML_BYTES = 1 << 20
TOO_LONG = re.compile(rb"""(?<![\w-])((([\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){20}|[\da-fox_]{1000})""", re.I)


@dataclasses.dataclass(frozen=True)
class Range:
    """The range of a number, as an annotation of its type. NaN and infinities are outside every range.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Config:
    ...     learning_rate: Annotated[float, Range(0, 1)] = 1e-4
    ...     max_norm: Annotated[float, Range(above=0)] | None = 1.0
    ...
    ...     def __post_init__(self) -> None:
    ...         check_ranges(self)
    >>> Config(learning_rate=2)
    Traceback (most recent call last):
        ...
    cuolr.config.SettingError: setting 'learning_rate': expected 0 to 1, found 2
    >>> ranges_of(Config)["max_norm"]
    'a finite number above 0 or none'

    Attributes:
        at_least: Inclusive lower bound.
        at_most: Inclusive upper bound.
        above: Exclusive lower bound.
        below: Exclusive upper bound.
    """

    at_least: float = -math.inf
    at_most: float = math.inf
    above: float = -math.inf
    below: float = math.inf

    def __contains__(self, value: float) -> bool:
        # A whole number may be larger than any float.
        finite = isinstance(value, Real) and abs(value) <= sys.float_info.max
        return finite and self.at_least <= value <= self.at_most and self.above < value < self.below

    def describe(self, kind: Any = float) -> str:
        """The range in words, for numbers of the type `kind`.

        >>> Range(0, 1).describe(), Range(1).describe(int), Range(above=0, at_most=1).describe()
        ('0 to 1', 'a whole number >= 1', 'above 0 and at most 1')
        """
        number = "a whole number" if kind is int else "a finite number"
        if math.isfinite(self.at_least) and math.isfinite(self.at_most):
            return f"{self.at_least:.12g} to {self.at_most:.12g}"
        if math.isfinite(self.at_least) and self.below == math.inf:
            return f"{number} >= {self.at_least:.12g}"
        limits = {"above": self.above, "at least": self.at_least, "below": self.below, "at most": self.at_most}
        words = [f"{word} {limit:.12g}" for word, limit in limits.items() if math.isfinite(limit)]
        return " and ".join(words) if len(words) > 1 else " ".join([number, *words])


class SettingError(InputError):
    """Invalid values of settings; raised by a config's `__post_init__`.

    Attributes:
        of_settings: The problem of each setting, by name within the config. `from_dict` adds the config's table.
    """

    def __init__(self, of_settings: Mapping[str, str]) -> None:
        self.of_settings = of_settings
        super().__init__([f"setting '{name}': {problem}" for name, problem in of_settings.items()])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.of_settings,)


def check_ranges(config: Any) -> None:
    """Raise if a number of a config is outside its `Range`, including in lists and nested configs."""
    if problems := dict(_out_of_range(type(config), config, "")):
        raise SettingError(problems)


def check_arguments(**arguments: tuple[float, Range]) -> None:
    """Raise if an argument of a function, given as its value and its range, is outside of it.

    >>> check_arguments(k=(0, Range(1)), discount=(0.5, Range(0, 1)))
    Traceback (most recent call last):
        ...
    cuolr.errors.InputError: k: expected a whole number >= 1, found 0
    """
    if problems := [
        f"{name}: expected {limits.describe(type(value))}, found {value}"
        for name, (value, limits) in arguments.items()
        if value not in limits
    ]:
        raise InputError(problems)


def ranges_of(config_class: type) -> dict[str, str]:
    """The range of each setting in words; settings of nested configs are named `outer.inner`."""
    ranges: dict[str, str] = {}
    for name, hint in _annotated_hints(config_class).items():
        if dataclasses.is_dataclass(hint):
            ranges |= {f"{name}.{inner}": words for inner, words in ranges_of(typing.cast("type", hint)).items()}
        else:
            ranges[name] = _describe(hint)
    return ranges


def to_dict(config: Any) -> dict[str, Any]:
    """A config as a plain dictionary that TOML and JSON can hold.

    TOML has no null: None is omitted where it is the default, and written as "none" elsewhere. What a config's own
    `without_effect` names is omitted, too: settings of a part that another setting does not choose.

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

    omitted: frozenset[str] = getattr(config, "without_effect", frozenset())
    given = {field: getattr(config, field.name) for field in dataclasses.fields(config) if field.name not in omitted}
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
        where: Prefix of the names in error messages: the path of the table, such as `learner.encoder_settings`.
    """
    hints = typing.get_type_hints(cls)
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    prefix = f"{where}." if where else ""
    if not isinstance(values, Mapping):
        raise InputError(f"setting '{where}': expected a table, found {values!r:.100}")
    for key in values:
        if key not in fields:
            raise unknown_name("setting", f"{prefix}{key}", [f"{prefix}{name}" for name in fields])
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and name not in values:
            raise InputError(f"setting '{prefix}{name}' is missing; expected {_describe(hints[name])}")
    converted, problems = {}, []
    for key, value in values.items():
        try:
            converted[key] = _convert(hints[key], value, f"{prefix}{key}")
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    try:
        return cls(**converted)
    except SettingError as error:
        raise InputError([f"setting '{prefix}{name}': {text}" for name, text in error.of_settings.items()]) from None


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file. Long dotted keys, which take memory by the square of their parts, are refused."""
    require_file(path)
    try:
        with path.open("rb") as file:
            content = file.read(MAX_TOML_BYTES + 1)
        if len(content) > MAX_TOML_BYTES or TOO_LONG.search(content):
            raise ValueError("larger than 1 MB, or with a key of more than 20 parts, or a number of 1,000 digits")
        return tomllib.loads(content.decode())
    except OSError as error:
        raise unreadable(path, error) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not valid TOML: {error}") from None


def to_toml(config: Any) -> str:
    """A config as TOML text."""
    return tomli_w.dumps(to_dict(config))


def _convert(hint: Any, value: Any, name: str) -> Any:
    """`value` converted to the type `hint`, or an error that names the setting."""
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
    elif hint is float and isinstance(value, Real) and not isinstance(value, bool):
        if not isinstance(value, Integral) or abs(int(value)) < 2**1023:
            return float(value)
    elif hint is int and isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    elif isinstance(hint, type) and type(value) is hint:
        return value
    raise InputError(f"setting '{name}': expected {_describe(hint)}, found {value!r:.300}")


def _annotated_hints(config_class: type) -> dict[str, Any]:
    """The types of the fields of a dataclass, with their ranges."""
    hints = typing.get_type_hints(config_class, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(config_class)}


def _out_of_range(hint: Any, value: Any, name: str) -> Iterator[tuple[str, str]]:
    """The name and the problem of each number in `value` that is outside its range."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        yield from _out_of_range(arguments[0], value, name)
        if isinstance(value, int | float):
            ranges = (extra for extra in arguments[1:] if isinstance(extra, Range))
            yield from ((name, f"expected {r.describe(arguments[0])}, found {value}") for r in ranges if value not in r)
    elif origin in (typing.Union, types.UnionType):
        for option in arguments:
            yield from _out_of_range(option, value, name)
    elif origin is tuple and isinstance(value, list | tuple):
        of_items = arguments[:1] * len(value) if arguments[-1] is Ellipsis else arguments
        for number, (of_item, item) in enumerate(zip(of_items, value, strict=False)):
            yield from _out_of_range(of_item, item, f"{name}[{number}]")
    elif origin is dict and isinstance(value, Mapping):
        for key, item in value.items():
            yield from _out_of_range(arguments[1], item, f"{name}.{key}")
    elif dataclasses.is_dataclass(hint) and dataclasses.is_dataclass(value):
        for key, of_item in _annotated_hints(type(value)).items():
            yield from _out_of_range(of_item, getattr(value, key), f"{name}.{key}" if name else key)


def _describe(hint: Any) -> str:
    """A type, and the range of its values, in words."""
    words = {float: "a number", int: "a whole number", str: "a string", bool: "true or false", type(None): "none"}
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        ranges = [extra.describe(arguments[0]) for extra in arguments[1:] if isinstance(extra, Range)]
        return " and ".join(ranges) or _describe(arguments[0])
    if origin is typing.Literal:
        return ("one of " if len(arguments) > 1 else "") + ", ".join(repr(option) for option in arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_describe(option) for option in arguments)
    if origin is dict:
        return f"a table with {_describe(arguments[1])} for each key"
    if origin is tuple:
        words_of = [_describe(option) for option in arguments if option is not Ellipsis]
        return f"a list, each entry {words_of[0]}" if arguments[-1] is Ellipsis else "a list of " + ", ".join(words_of)
    if dataclasses.is_dataclass(hint):
        return "a table of settings"
    return words.get(hint, getattr(hint, "__name__", str(hint)))
