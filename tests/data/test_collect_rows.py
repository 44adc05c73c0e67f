from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from cuolr.data.collect_rows import collect_rows
from cuolr.data.tables import scan_table

ROWS = 300_000


def to_gzip(table: pl.DataFrame, path: Path) -> None:
    table.lazy().sink_csv(path, compression="gzip")


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("t.csv", pl.DataFrame.write_csv),
        ("t.csv.gz", to_gzip),
        ("t.parquet", pl.DataFrame.write_parquet),
        ("t.jsonl", pl.DataFrame.write_ndjson),
    ],
)
def test_rows_are_read_in_their_order_and_counted_while_they_are_read(
    name: str, write: Callable[[pl.DataFrame, Path], Any], tmp_path: Path
) -> None:
    table = pl.DataFrame({"id": np.arange(ROWS), "x": np.random.default_rng(0).random(ROWS)})
    write(table, tmp_path / name)
    stages: list[tuple[str, int | None]] = []
    done: list[int] = []

    def begin(name: str, total: int | None) -> Callable[[int], None]:
        stages.append((name, total))
        return done.append

    read = collect_rows(scan_table(tmp_path / name).select("id", "x"), name, begin)
    assert read.equals(table)
    assert stages == [(f"reading {name}", ROWS)]
    assert sum(done) == ROWS
    assert len(done) > 1
