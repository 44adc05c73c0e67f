"""Arrow files (Feather) whose footer or batches claim what cannot be."""

import base64
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuolr.data.arrow_structure import check_arrow
from cuolr.data.parquet_structure import check_parquet
from cuolr.data.tables import scan_table
from cuolr.errors import InputError
from cuolr.logs.importing.import_log import import_log_with_report
from fuzz.damage.bytes import EXTREMES
from tests.data.test_parquet_structure import only_footer, tables


def nested(depth: int) -> pl.DataFrame:
    dtype: Any = pl.Int8()
    for _ in range(depth):
        dtype = pl.List(dtype)
    return pl.DataFrame(schema={"x": dtype})


def written(folder: Path, table: pl.DataFrame, **options: Any) -> Path:
    table.write_ipc(folder / "a.feather", **options)
    return folder / "a.feather"


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
@pytest.mark.parametrize("level", [None, pl.CompatLevel.oldest()])
def test_files_that_polars_writes_pass(compression: Any, level: Any, tmp_path: Path) -> None:
    for table in (*tables(), nested(90)):
        file = written(tmp_path, table, compression=compression, compat_level=level)
        check_arrow(file)
        assert scan_table(file).collect().height == len(table)


def test_columns_nested_by_the_hundred_are_refused(tmp_path: Path) -> None:
    """Polars ended by a signal at 5,000, which few writers can write."""
    for form in ("table", "baidu-ultr-uva"):
        with pytest.raises(InputError, match=r"a\.feather: cannot be read: damaged: columns nested more than 100 deep"):
            import_log_with_report(written(tmp_path, nested(101)), format=form)


def test_the_same_within_parquet_is_refused(tmp_path: Path) -> None:
    """Which has the columns once more, for readers of Arrow; polars ended by a signal at 1,000."""
    content = written(tmp_path, nested(101)).read_bytes()[8:]  # the magic number
    message = base64.b64encode(content[: 8 + int.from_bytes(content[4:8], "little")])
    length = bytes([len(message) & 127 | 128, len(message) >> 7 & 127 | 128, len(message) >> 14])
    file = tmp_path / "a.parquet"
    file.write_bytes(only_footer(b"\x59\x1c\x18\x0cARROW:schema\x18" + length + message + b"\x00\x00"))
    with pytest.raises(InputError, match=r"a\.parquet: cannot be read: damaged: columns nested more than 100 deep"):
        check_parquet(file)


def test_a_bomb_is_refused_before_it_is_decompressed(tmp_path: Path) -> None:
    file = written(tmp_path, pl.DataFrame({"x": np.zeros(10_000_000)}), compression="zstd")
    assert file.stat().st_size < 100_000
    with pytest.raises(InputError, match=r"a\.feather: cannot be read: damaged: it claims [0-9,]+ bytes of values"):
        scan_table(file)
    read = [sys.executable, "-m", "cuolr", "import-log", str(file), "--out", str(tmp_path / "LOG")]
    ended = subprocess.run(read, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("content", [b"", b"ARROW1", b"query_id,doc_id\n" * 9])
def test_what_is_no_arrow_file_is_left_to_the_reader(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.feather").write_bytes(content)
    check_arrow(tmp_path / "a.feather")


@pytest.mark.thorough
@settings(max_examples=500, deadline=None)
@given(st.integers(0, 1 << 20), st.sampled_from([1, 2, 4, 8]), st.sampled_from(EXTREMES))
def test_whatever_numbers_change_it_is_refused_with_a_line_or_passes(
    tmp_path_factory: pytest.TempPathFactory, place: int, size: int, number: int
) -> None:
    folder = tmp_path_factory.getbasetemp()
    content = bytearray(written(folder, next(iter(tables())).select("text", "lists"), compression="zstd").read_bytes())
    place %= len(content) - size
    content[place : place + size] = (number % (1 << 8 * size)).to_bytes(size, "little")
    (folder / "a.feather").write_bytes(content)
    problems: list[str] = []
    try:
        check_arrow(folder / "a.feather")
    except InputError as error:
        problems = error.problems
    assert len(problems) <= 1
    assert not any("\n" in problem for problem in problems)
