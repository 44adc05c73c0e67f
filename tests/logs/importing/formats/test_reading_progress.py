"""Every format reports the bytes of its files while it reads them, not only at their end."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from cuolr.logs.importing.importer import IMPORTERS

LISTS = 60_000


def yandex(file: Path) -> None:
    file.write_text("".join(f"{i}\t0\tQ\t{i % 50}\t0\t1\t2\t3\n" for i in range(LISTS)))


def tiangong_st(file: Path) -> None:
    file.write_text("".join(f"{i}\t{i % 50}\t[1, 2]\t[-1, -1]\t[0, 1]\n" for i in range(LISTS)))


def _shown(**columns: Any) -> pl.DataFrame:
    numbers = pl.int_range(LISTS, eager=True)
    return pl.DataFrame({"number": numbers}).select(number=numbers, **columns)


def expedia(file: Path) -> None:
    number = pl.col("number")
    _shown(
        srch_id=number, date_time=pl.lit("2013-04-04 08:32:15"), prop_id=number % 9, position=1, random_bool=0,
        click_bool=1, booking_bool=0, price=number * 0.5,
    ).drop("number").write_csv(file)  # fmt: skip


def open_bandit(file: Path) -> None:
    _shown(
        timestamp=pl.lit("2019-11-24 00:00:00"), item_id=pl.col("number") % 9, position=1, click=0, propensity_score=0.1
    ).drop("number").write_csv(file)


def clax(file: Path) -> None:
    lists = pl.DataFrame({"query_doc_ids": [[1, 2]] * LISTS, "clicks": [[0, 1]] * LISTS, "query_id": [3] * LISTS})
    lists.write_parquet(file, row_group_size=LISTS // 10)


def baidu_ultr_uva(file: Path) -> None:
    number = pl.col("number")
    rows = _shown(query_no=number, query_md5=number % 50, text_md5=number % 9, position=1, click=0, bm25=number * 0.5)
    rows.drop("number").write_ipc(file, record_batch_size=LISTS // 10)


def ubi(file: Path) -> None:
    record = '{"query_id": "%d", "user_query": "shoes", "query_response_hit_ids": ["1", "2"]}\n'
    file.write_text("".join(record % i for i in range(LISTS // 10)))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "suffix", "write"),
    [
        ("yandex", ".txt", yandex),
        ("tiangong-st", ".txt", tiangong_st),
        ("expedia", ".csv", expedia),
        ("open-bandit", ".csv", open_bandit),
        ("clax", ".parquet", clax),
        ("baidu-ultr-uva", ".feather", baidu_ultr_uva),
        ("ubi", ".ndjson", ubi),
    ],
)
def test_bytes_are_reported_while_a_file_is_read(
    name: str, suffix: str, write: Callable[[Path], None], tmp_path: Path
) -> None:
    files = [tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"]
    for file in files:
        write(file)
    assert _reported(name, files[:1])[-1] == files[0].stat().st_size
    total = _reported(name, files)
    assert total[-1] == sum(file.stat().st_size for file in files)
    within_first = [done for done in total if done < files[0].stat().st_size]
    assert len(within_first) > 1
    assert total == sorted(total)


def test_every_format_is_tried_here() -> None:
    tried = {"yandex", "tiangong-st", "expedia", "open-bandit", "clax", "baidu-ultr-uva", "ubi"}
    in_parts = {"table", "cuolr-serve"}  # these report rows, and small files
    assert set(IMPORTERS.names()) == tried | in_parts


def _reported(name: str, files: list[Path]) -> list[int]:
    """The bytes done after each report."""
    amounts: list[int] = []
    IMPORTERS.get(name)().read(files, amounts.append)
    return list(itertools.accumulate(amounts))
