"""JSON files of results, each with a hash of its content."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cuolr.errors import check_format, does_not_match
from cuolr.files import atomic_file, content_hash, is_verifying, read_json

OWN_HASH = "sha256"


def write_hashed(path: Path, content: Mapping[str, Any]) -> None:
    """Write an object with its hash, all or nothing."""
    with atomic_file(path) as unfinished:
        hashed = {**content, OWN_HASH: content_hash(content)}
        unfinished.write_text(json.dumps(hashed) + "\n", encoding="utf-8")


def read_hashed(path: Path, formats: Mapping[str, bool]) -> dict[str, Any]:
    """Read what `write_hashed` wrote, and compare it with its hash.

    Args:
        path: The file.
        formats: The formats that are read, the present one first, and whether each must have a hash: files from before
            there was one have none.
    """
    content = read_json(path)
    found = content.get("format") if isinstance(content, dict) else None
    if found not in list(formats):
        check_format(found, next(iter(formats)), path, "a file of results")
    assert isinstance(content, dict)
    digest = content.pop(OWN_HASH, None)
    if is_verifying() and (digest is not None or formats[content["format"]]) and digest != content_hash(content):
        raise does_not_match(path)
    return content
