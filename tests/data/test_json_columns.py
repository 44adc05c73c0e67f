import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from cuolr.data import json_columns as module
from cuolr.data.json_columns import json_columns

LINES = [
    {"a": 1, "b": None},
    {"a": 2.5},
    {"b": [1], "c": "x"},
    {"c": None, "d": True},
    {"a": 1, "b": [2.5]},
    {"c": "y"},
]


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz"])
def test_columns_found_block_by_block_are_those_of_the_whole_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "".join(json.dumps(line) + "\n" for line in LINES).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    monkeypatch.setattr(module, "BLOCK_BYTES", 30)
    done: list[int] = []
    assert json_columns(path, done.append) == pl.scan_ndjson(path, infer_schema_length=None).collect_schema()
    assert sum(done) == path.stat().st_size
    assert len(done) > 2
