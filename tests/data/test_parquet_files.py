from pathlib import Path

import polars as pl
import pytest

from cuolr.data import parquet_files
from cuolr.data.parquet_files import count_parquet_rows
from cuolr.data.tables import scan_table
from cuolr.errors import InputError


def test_the_rows_of_the_footer_are_counted(tmp_path: Path) -> None:
    pl.DataFrame({"a": range(7)}).write_parquet(tmp_path / "a.parquet")
    assert count_parquet_rows(tmp_path / "a.parquet") == 7


def test_far_more_rows_than_the_file_can_hold_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_files, "FREE_ROWS", 1_000)
    file = tmp_path / "a.parquet"
    pl.select(a=pl.repeat(0, 3_000_000)).write_parquet(file, row_group_size=3_000_000, compression="zstd")
    assert file.stat().st_size < 3_000
    with pytest.raises(InputError, match=r"a\.parquet: refused, because it claims 3,000,000 rows in"):
        scan_table(file)
