"""JSON of unknown origin: its size and depth, and the types of what is read from it."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from reprlib import repr as in_short
from typing import Any, TypeAlias

from cuolr.errors import InputError, problems_in, unreadable
from cuolr.files import require_file

MAX_JSON_BYTES = 100 << 20  # which take up to 450 MB to read
# Python's stack holds about 1,000 levels, and what is read is written again within other objects.
MAX_DEPTH = 500

# The types of the entries of an object, and the shapes of those that are objects; others may be anything.
Shape: TypeAlias = Mapping[str, "type | Shape"]
WORDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", list: "a list"}


def parse_json(content: bytes | str) -> Any:
    """The value that JSON text describes; raises `InputError` for what is too deep or has very long numbers, too.

    >>> parse_json("[" * 100_000)
    Traceback (most recent call last):
        ...
    cuolr.errors.InputError: not valid JSON: nested too deeply
    """
    try:
        value = json.loads(content)
    except (RecursionError, ValueError) as error:
        raise InputError(f"not valid JSON: {error if isinstance(error, ValueError) else 'nested too deeply'}") from None
    level = [value]
    for _ in range(MAX_DEPTH):
        inside = (item for each in level for item in _items(each))
        level = [item for item in inside if isinstance(item, dict | list)]
        if not level:
            return value
    raise InputError("not valid JSON: nested too deeply")


def _items(value: Any) -> Any:
    """What is directly in an object or a list."""
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def read_json(path: Path) -> Any:
    """The value of a JSON file; raises `InputError` that names the file."""
    require_file(path, MAX_JSON_BYTES)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None
    with problems_in(path):
        return parse_json(content)


def check_shape(value: Any, shape: Shape, name: str = "") -> None:
    """Raise `InputError` if entries of an object have other types; one may be missing or, if it is no object, null.

    >>> check_shape({"steps": "many", "log": 1}, {"steps": int, "log": {"folder": str}})
    Traceback (most recent call last):
        ...
    cuolr.errors.InputError: steps: expected a whole number, found 'many'
    log: expected an object, found 1
    """
    if problems := list(_problems(value, shape, name)):
        raise InputError(problems)


def _problems(value: Any, shape: Shape, name: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{name}: expected an object, found {in_short(value)}".removeprefix(": ")
        return
    for key, expected in shape.items():
        place, found = f"{name}.{key}" if name else key, value.get(key)
        if isinstance(expected, Mapping):
            if key in value:
                yield from _problems(found, expected, place)
        elif found is not None and not (type(found) is expected or (expected is float and type(found) is int)):
            yield f"{place}: expected {WORDS[expected]}, found {in_short(found)}"
