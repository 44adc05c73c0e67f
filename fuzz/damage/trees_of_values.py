"""Damage to nested values, as JSON and TOML hold them: what a stranger who knows the format would write."""

import json
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

import tomli_w

from fuzz.cases import Choices
from fuzz.damage import Damage

JSON_VALUES = (
    "null", "true", "false", "0", "1", "-1", "2", "3", "0.5", "-0.0", "1e999", "-1e999", "NaN", "Infinity",
    "1e-320", "1e308",
    "2147483648", "1000000000", "1000000000000", "9223372036854775807", "9223372036854775808", "-9223372036854775809",
    "1" * 400, "1" * 5_000, '""', '"a"', '"\\u0000"', '"\\ud800"', '"../../../etc/passwd"', '"none"', '"1"',
    '"é\\n\\u001b[31m"',
    '"' + "x" * 100_000 + '"', "[]", "{}", "[[]]", "[1]", "[1, 2, 3]", '["a"]', '["a", 1, null]', '{"a": 1}',
    "[" * 100_000,
    "[" * 400 + "]" * 400, "[" * 980 + "]" * 980, '{"a":' * 900 + "1" + "}" * 900, "[0" + ",0" * 100_000 + "]",
)  # fmt: skip
TOML_VALUES = (
    "true", "0", "1", "-1", "0.5", "1e999", "nan", "inf", "-inf", "1e-320", "2147483648", "1000000000000",
    "9223372036854775807", "9223372036854775808", "1" * 400, "1" * 5_000, '""', '"a"', '"\\u0000"', '"none"',
    "'''x'''",
    '"../../../etc/passwd"', '"' + "x" * 100_000 + '"', "[]", "{}", "[[]]", "[1]", '["a"]', '["a", 1]', "{a = 1}",
    "[" * 100_000, "[" * 400 + "]" * 400, "1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "0x7fffffffffffffff",
)  # fmt: skip
_MARK = "(to be replaced)"

Change = Callable[[dict[Any, Any] | list[Any], Any, Choices], None]


def _replace(home: dict[Any, Any] | list[Any], key: Any, choices: Choices) -> None:
    home[key] = _MARK


def _delete(home: dict[Any, Any] | list[Any], key: Any, choices: Choices) -> None:
    del home[key]


def _repeat(home: dict[Any, Any] | list[Any], key: Any, choices: Choices) -> None:
    if isinstance(home, list):
        home += [home[key]] * (1 + choices.below(3))
    else:
        home[f"{key}_"] = home[key]


def _rename(home: dict[Any, Any] | list[Any], key: Any, choices: Choices) -> None:
    if isinstance(home, dict):
        home[choices.one_of(("", "a", "\0", "é", "__class__", str(key).upper()))] = home.pop(key)


def _copy(home: dict[Any, Any] | list[Any], key: Any, choices: Choices) -> None:
    others = list(home) if isinstance(home, dict) else range(len(home))
    home[key] = home[choices.one_of(others)]


def _wrap(home: dict[Any, Any] | list[Any], key: Any, choices: Choices) -> None:
    home[key] = [home[key]] if choices.below(2) else {"a": home[key]}


CHANGES: tuple[Change, ...] = (_replace, _replace, _replace, _replace, _delete, _repeat, _rename, _copy, _wrap)


def change_json(content: bytes, choices: Choices) -> bytes:
    """A value of a JSON object is another, or missing, or somewhere else."""
    try:
        values = json.loads(content)
    except (ValueError, RecursionError):
        return content
    by = choices.one_of(JSON_VALUES)
    change_value(values, choices)
    return json.dumps(values).replace(f'"{_MARK}"', by).encode()


def change_json_line(content: bytes, choices: Choices) -> bytes:
    """A value of one of several lines of JSON is another."""
    lines = content.split(b"\n")
    place = choices.below(len(lines))
    lines[place] = change_json(lines[place], choices)
    return b"\n".join(lines)


def change_toml(content: bytes, choices: Choices) -> bytes:
    """A value of a TOML file is another, or missing, or somewhere else."""
    try:
        values = tomllib.loads(content.decode())
    except (ValueError, RecursionError):
        return content
    by = choices.one_of(TOML_VALUES)
    change_value(values, choices)
    try:
        return tomli_w.dumps(values).replace(f'"{_MARK}"', by).encode()
    except (TypeError, ValueError):  # a list of nothing that TOML can hold
        return content


def change_value(values: Any, choices: Choices) -> None:
    """Change one of nested values, in place."""
    places = list(_places(values))
    if places:
        home, key = choices.one_of(places)
        choices.one_of(CHANGES)(home, key, choices)


def _places(values: Any) -> Iterator[tuple[Any, Any]]:
    """Each value as its container and its key or index; of long lists the first few."""
    if isinstance(values, dict):
        for key, value in values.items():
            yield values, key
            yield from _places(value)
    elif isinstance(values, list):
        for index, value in enumerate(values[:10]):
            yield values, index
            yield from _places(value)


JSON: tuple[Damage, ...] = (change_json,)
JSON_LINES: tuple[Damage, ...] = (change_json_line,)
TOML: tuple[Damage, ...] = (change_toml,)
