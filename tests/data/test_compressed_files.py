import gzip
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from cuolr.data import compressed_files, line_blocks
from cuolr.data.compressed_files import _block_sizes, check_zstandard, open_gzip
from cuolr.data.features import read_feature_table
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
    monkeypatch.setattr(compressed_files, "FREE_BYTES", 1 << 20)
    lines = b"".join(b"0 qid:1 1:0 2:0 3:0 4:%d\n" % bit for bit in np.random.default_rng(0).integers(0, 2, 100_000))
    (tmp_path / "a.gz").write_bytes(gzip.compress(lines, 9))
    with (tmp_path / "a.gz").open("rb") as raw:
        assert open_gzip(tmp_path / "a.gz", raw).read() == lines
    assert len(lines) > 2 << 20


FRAME = b"\x28\xb5\x2f\xfd\x00\x38"


def repeated(length: int, last: bool) -> bytes:
    """A block that repeats the letter a."""
    return (int(last) | 1 << 1 | length << 3).to_bytes(3, "little") + b"a"


@pytest.mark.parametrize("rows", [10, 300_000])
def test_the_size_of_what_polars_writes_is_known(rows: int, tmp_path: Path) -> None:
    file = tmp_path / "a.csv.zst"
    table = pl.select(query_id=pl.lit("q"), doc_id=pl.int_range(rows), x=pl.int_range(rows) % 7)
    table.write_csv(file, compression="zstd")
    text = table.write_csv().encode()
    with file.open("rb") as opened:
        known = sum(_block_sizes(opened))
    assert len(text) <= known < len(text) + (128 << 10)
    check_zstandard(file)
    assert read_feature_table(file).n_documents == rows


@pytest.mark.parametrize("name", ["a.csv.zst", "a.ndjson.zst"])
def test_a_file_that_expands_a_thousandfold_is_refused(name: str, tmp_path: Path) -> None:
    """A gigabyte in 32 kilobytes."""
    blocks = repeated(128 << 10, last=False) * 8_191 + repeated(128 << 10, last=True)
    (tmp_path / name).write_bytes(FRAME + blocks)
    with pytest.raises(InputError, match="more than 300 times as large as the file; decompress it with unzstd"):
        read_feature_table(tmp_path / name)


@pytest.mark.parametrize("content", [b"", FRAME[:3], FRAME[:5], FRAME, FRAME + b"a", b"text that is not compressed"])
def test_what_is_damaged_is_left_to_its_reader(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.csv.zst").write_bytes(content)
    check_zstandard(tmp_path / "a.csv.zst")


def test_frames_that_are_skipped_count_nothing(tmp_path: Path) -> None:
    skipped = (0x184D2A53).to_bytes(4, "little") + (5).to_bytes(4, "little") + b"12345"
    (tmp_path / "a").write_bytes(skipped + FRAME + repeated(7, last=True) + skipped)
    with (tmp_path / "a").open("rb") as opened:
        assert list(_block_sizes(opened)) == [7]


def test_a_line_without_an_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_blocks, "MAX_LINE_BYTES", 1_000)
    (tmp_path / "data.txt").write_bytes(b"1 qid:1 1:1\n2 qid:1 1:" + b"1" * 2_000)
    with pytest.raises(InputError, match=r"data\.txt:2: expected lines of text, found one of more than 1,000 bytes"):
        list(line_blocks.blocks_of_lines(tmp_path / "data.txt", 100, None))
