import gzip
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuolr.data import gzip_files
from cuolr.data.features import read_feature_table
from cuolr.data.gzip_files import open_gzip
from cuolr.data.letor.reader import read_letor
from cuolr.errors import InputError
from cuolr.logs.importing.import_log import import_log_with_report


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """A gigabyte of one letter in a megabyte."""
    part = gzip.compress(b"a" * (64 << 20), 9, mtime=0)
    return part * 16


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("data.txt.gz", read_letor),
        ("features.csv.gz", read_feature_table),
        ("features.ndjson.gz", read_feature_table),
        ("clicks.csv.gz", import_log_with_report),
        ("ubi.ndjson.gz", lambda file: import_log_with_report(file, format="ubi")),
    ],
)
def test_a_file_that_expands_a_thousandfold_is_refused_at_once(
    name: str, read: Callable[[Path], Any], bomb: bytes, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(bomb)
    start = time.process_time()
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="is more than 300 times as large as the file; decompress it"):
            read(tmp_path / name)
        assert tracemalloc.get_traced_memory()[1] < 500 << 20
    finally:
        tracemalloc.stop()
    assert time.process_time() - start < 5  # 2, but for the tracing


def test_text_that_compresses_well_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of zeros and ones."""
    monkeypatch.setattr(gzip_files, "FREE_BYTES", 1 << 20)
    lines = b"".join(b"0 qid:1 1:0 2:0 3:0 4:%d\n" % bit for bit in np.random.default_rng(0).integers(0, 2, 100_000))
    (tmp_path / "a.gz").write_bytes(gzip.compress(lines, 9))
    with (tmp_path / "a.gz").open("rb") as raw:
        assert open_gzip(tmp_path / "a.gz", raw).read() == lines
    assert len(lines) > 2 << 20
