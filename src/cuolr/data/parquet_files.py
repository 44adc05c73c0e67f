"""Parquet of unknown origin: a file of some hundred bytes may hold a billion equal rows."""

from pathlib import Path

import polars as pl

from cuolr.errors import InputError

# A log of 20 million sessions has one row per byte; thousands per byte are no data.
MAX_ROWS_PER_BYTE = 1_000
# So many rows are read, however small the file.
FREE_ROWS = 1 << 24


def count_parquet_rows(path: Path) -> int:
    """Number of rows of a Parquet file, as its footer says; raises `InputError` if the file is far too small for them.

    Args:
        path: The file; errors of polars are not caught.
    """
    rows = int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())
    if rows > max(FREE_ROWS, MAX_ROWS_PER_BYTE * path.stat().st_size):
        raise InputError(f"{path}: refused, because it claims {rows:,} rows in {path.stat().st_size:,} bytes")
    return rows
