"""JSON files of unknown origin."""

import json
from pathlib import Path
from typing import Any

from cuolr.errors import InputError, unreadable


def parse_json(content: bytes | str) -> Any:
    """The value that JSON text describes.

    >>> parse_json("[" * 100_000)
    Traceback (most recent call last):
        ...
    cuolr.errors.InputError: not valid JSON: nested too deeply

    Raises:
        InputError: If it is not JSON: not UTF-8, nested too deeply, or with a number of thousands of digits, too.
    """
    try:
        return json.loads(content)
    except RecursionError:
        raise InputError("not valid JSON: nested too deeply") from None
    except ValueError as error:
        raise InputError(f"not valid JSON: {error}") from None


def read_json(path: Path) -> Any:
    """The value of a JSON file; raises `InputError` that names the file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None
    try:
        return parse_json(content)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
