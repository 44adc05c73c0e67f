"""Parquet files whose footer or page headers claim what cannot be."""

import io
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuolr.data.compressed_files import count_parquet_rows
from cuolr.data.parquet_structure import check_parquet
from cuolr.errors import InputError
from cuolr.logs.importing.import_log import import_log_with_report
from fuzz.cases import Choices
from fuzz.damage.tables import change_footer_number, change_page_number

ROWS = 40


def to_file(folder: Path, content: bytes) -> Path:
    (folder / "a.parquet").write_bytes(content)
    return folder / "a.parquet"


def written(table: pl.DataFrame, **options: Any) -> bytes:
    content = io.BytesIO()
    table.write_parquet(content, **options)
    return content.getvalue()


def table_of_ids() -> pl.DataFrame:
    return pl.DataFrame({"query_id": [f"q{i % 6}" for i in range(ROWS)]})


def with_page_values(number: bytes) -> bytes:
    """The data page of a column claims another number of values, which has one byte."""
    content = written(table_of_ids(), statistics=False)
    # Field 5, the header of a data page, whose field 1 is the number of values: 80 = 40, as positive numbers are even.
    place = content.index(b"\x2c\x15\x50") + 2
    return content[:place] + number + content[place + 1 :]


def with_chunk_values() -> bytes:
    """A column claims 2⁴⁰ values in the footer."""
    content = written(table_of_ids(), statistics=False)
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer = content[start:-8]
    # Fields 4, the codec, and 5, the number of values.
    place = footer.index(b"\x15\x0c\x16\x50") + 3
    footer = footer[:place] + b"\x80\x80\x80\x80\x80\x40" + footer[place + 1 :]
    return content[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def with_another_kind() -> bytes:
    """The number of values is a field of another kind, so that who trusts the kind does not see the number."""
    content = with_page_values(b"\x01")
    place = content.index(b"\x2c\x15\x01") + 1
    return content[:place] + b"\x17" + content[place + 1 :]  # a float, which polars reads as a whole number


def with_another_header() -> bytes:
    """A page says that it is a dictionary, and has the header of data."""
    content = written(table_of_ids(), statistics=False)
    start = content.index(b"\x2c\x15\x50")
    place = content.rindex(b"\x15\x00\x15", 0, start) + 1
    return content[:place] + b"\x04" + content[place + 1 :]


def only_footer(footer: bytes) -> bytes:
    return b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def nested_columns(depth: int) -> bytes:
    """Groups of columns, each in another one: polars ended by a signal at 20,000."""
    number = bytes([depth & 127 | 128, depth >> 7 & 127 | 128, depth >> 14])
    return only_footer(b"\x29\xfc" + number + b"\x55\x02\x00" * depth + b"\x00")


def row_group(chunk: bytes) -> bytes:
    """One column, and a row group with this description of it."""
    return only_footer(b"\x29\x1c\x00" + b"\x29\x1c" + b"\x19\x1c" + chunk + b"\x00\x00\x00")


CRAFTED = {
    "a number of another kind": (with_another_kind(), "damaged: a field of kind 7 where another is expected"),
    "a page of another type": (with_another_header(), "damaged: a page whose header is not that of its type"),
    "columns in columns": (nested_columns(20_000), "damaged: it claims 101 columns within columns, and 100 are"),
    "row groups before the columns": (only_footer(b"\x49\x0c\x00"), "damaged: its columns are not described before"),
    "an encrypted column": (row_group(b"\x8c\x00\x00"), "it is encrypted; write it without encryption"),
    "a type that is none": (row_group(b"\x3c\x15\x10\x00\x00"), "damaged: it claims 8 types of values, and 7 are"),
    "a page of −1 values": (with_page_values(b"\x01"), "damaged: it claims -1 where"),
    "a page of more values than its column": (
        with_page_values(b"\x7e"),
        "damaged: it claims 63 values of a page, and 40 are",
    ),
    "a column of 2⁴⁰ values": (with_chunk_values(), "damaged: it claims 1,099,511,627,776 values, and 16,777,216 are"),
}


@pytest.mark.parametrize(("content", "problem"), CRAFTED.values(), ids=CRAFTED.keys())
def test_numbers_that_cannot_be_are_refused_before_the_file_is_decoded(
    content: bytes, problem: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=rf"a\.parquet: cannot be read: {problem}"):
        count_parquet_rows(to_file(tmp_path, content))


def test_small_files_of_many_columns_do_not_hold_more_values_than_one_of_few(tmp_path: Path) -> None:
    """A column of nulls takes some bytes, whatever its rows."""
    file = tmp_path / "a.parquet"
    table = pl.select(pl.repeat(None, 4_000_000, dtype=pl.Float64).alias("0"))
    for columns in (4, 5):
        some = table.select(pl.col("0").alias(str(number)) for number in range(columns))
        some.write_parquet(file, row_group_size=len(table), data_page_size=1 << 30, statistics=False)
        if columns == 4:
            check_parquet(file)
    with pytest.raises(InputError, match="claims 20,000,000 values, and 16,777,216 are possible"):
        check_parquet(file)


def test_a_file_of_empty_pages_is_refused_at_once(tmp_path: Path) -> None:
    """Each of five bytes takes as long to step over as one of a megabyte."""
    empty_page, metadata = b"\x15\x00\x4c\x15\x00\x00\x00", b"\x56\x02\x26\xe0\xd4\x03\x26\x08\x00"
    footer = row_group(b"\x3c" + metadata + b"\x00")[4:]
    file = to_file(tmp_path, b"PAR1" + empty_page * 5_000 + footer)
    with pytest.raises(InputError, match="claims 1,001 pages without values"):
        check_parquet(file)


def test_a_file_that_would_end_the_process_ends_in_a_line(tmp_path: Path) -> None:
    """Polars tries to allocate 2⁶¹ bytes for −1 values, in whichever process reads them."""
    file = to_file(tmp_path, with_page_values(b"\x01"))
    for form in ("table", "clax"):
        with pytest.raises(InputError, match="damaged"):
            import_log_with_report(file, format=form)
    read = [sys.executable, "-m", "cuolr", "import-log", str(file), "--out", str(tmp_path / "LOG")]
    ended = subprocess.run(read, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert not (tmp_path / "LOG").exists()


def tables() -> Iterable[pl.DataFrame]:
    """Columns of many types, with missing values, nested, and without rows."""
    columns = pl.DataFrame(
        {
            "whole": range(300),
            "text": [None if i % 7 == 0 else f"text {i}" for i in range(300)],
            "lists": [list(range(i % 5)) for i in range(300)],
            "truth": [i % 3 == 0 for i in range(300)],
            "struct": [{"a": i, "b": [str(i)]} for i in range(300)],
            "array": pl.Series([[float(i), 1.0] for i in range(300)], dtype=pl.Array(pl.Float64, 2)),
            "decimal": pl.Series(range(300), dtype=pl.Decimal(20, 2)),
            "nothing": pl.Series([None] * 300, dtype=pl.Null),
            "bytes": [bytes([i % 256]) for i in range(300)],
            "category": pl.Series([["x", "y"][i % 2] for i in range(300)], dtype=pl.Categorical),
        }
    )
    return columns, columns.clear(), columns.head(1), pl.DataFrame()


@pytest.mark.parametrize("compression", ["zstd", "snappy", "gzip", "lz4", "brotli", "uncompressed"])
@pytest.mark.parametrize("options", [{}, {"row_group_size": 50}, {"data_page_size": 64}, {"statistics": "full"}])
def test_files_that_polars_writes_pass(compression: str, options: dict[str, Any], tmp_path: Path) -> None:
    for table in tables():
        file = to_file(tmp_path, written(table, compression=compression, **options))
        check_parquet(file)
        assert count_parquet_rows(file) == len(table)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"query_id,doc_id\n" * 9, b"PAR1" + b"\xff" * 4 + b"PAR1"])
def test_what_is_no_parquet_file_is_left_to_the_reader(content: bytes, tmp_path: Path) -> None:
    check_parquet(to_file(tmp_path, content))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(0, 1 << 24), min_size=3, max_size=3), st.booleans())
def test_whatever_numbers_change_it_is_refused_with_a_line_or_passes(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int], in_footer: bool
) -> None:
    file = tmp_path_factory.getbasetemp() / "changed.parquet"
    change = change_footer_number if in_footer else change_page_number
    file.write_bytes(change(written(table_of_ids()), Choices(numbers)))
    problems: list[str] = []
    try:
        check_parquet(file)
    except InputError as error:
        problems = error.problems
    assert len(problems) <= 1
    assert not any("\n" in problem for problem in problems)
