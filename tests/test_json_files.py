"""JSON of unknown origin is limited in size and depth, and what is read from it has the expected types."""

import json
import os
from pathlib import Path

import pytest

from cuolr.errors import InputError
from cuolr.json_files import MAX_DEPTH, MAX_JSON_BYTES, Shape, check_shape, parse_json, read_json


def test_json_that_is_too_large_for_memory_is_not_read(tmp_path: Path) -> None:
    """A file with a hole takes no room on the disk, however large it is."""
    file = tmp_path / "meta.json"
    file.write_text("{}")
    os.truncate(file, MAX_JSON_BYTES + 1)
    with pytest.raises(InputError, match=r"meta.json: expected at most 104,857,600 bytes, found 104,857,601$"):
        read_json(file)


def test_a_pipe_is_not_read_as_json(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "meta.json")
    with pytest.raises(InputError, match=r"meta.json: expected a file, found a folder or a device$"):
        read_json(tmp_path / "meta.json")


def test_json_is_nested_as_deeply_as_it_can_be_written_again_within_other_objects() -> None:
    deepest = parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    assert json.loads(json.dumps({"log": {"source": deepest}}, indent=2))
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        with pytest.raises(InputError, match="nested too deeply"):
            parse_json(opening * (MAX_DEPTH + 1) + "1" + closing * (MAX_DEPTH + 1))


def test_entries_may_be_missing_or_null_but_of_no_other_type() -> None:
    shape: Shape = {"name": str, "share": float, "log": {"rows": int}}
    values: list[dict[str, object]] = [
        {},
        {"name": None, "share": 1, "log": {}},
        {"name": "a", "share": 0.5, "log": {"rows": 2, "x": []}},
    ]
    for value in values:
        check_shape(value, shape)
    with pytest.raises(InputError) as raised:
        check_shape({"name": 1, "share": True, "log": {"rows": 2.0}}, shape, "settings")
    assert raised.value.problems == [
        "settings.name: expected a text, found 1",
        "settings.share: expected a number, found True",
        "settings.log.rows: expected a whole number, found 2.0",
    ]
    with pytest.raises(InputError, match=r"^expected an object, found \[1\]$"):
        check_shape([1], shape)
    with pytest.raises(InputError, match=r"^log: expected an object, found None$"):
        check_shape({"log": None}, shape)
