"""A table that is read in blocks of sessions gives what it gives as a whole."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuolr.errors import InputError
from cuolr.logs.importing import session_blocks
from cuolr.logs.importing.import_log import import_log
from cuolr.logs.importing.import_options import ImportOptions
from cuolr.logs.importing.import_report import ImportReport
from cuolr.logs.importing.log_rows import LogRows, scan_log
from cuolr.logs.importing.table import read_log_table
from tests.data.small_data import assert_same_log, candidates_of, random_log
from tests.logs.importing.test_damage import (
    Row,
    delete,
    duplicate,
    move,
    move_page,
    replace_cell,
    rows_of,
    swap,
    write_json,
)


@contextmanager
def blocks_of(rows: int) -> Iterator[None]:
    with mock.patch.multiple(session_blocks, ROWS_AT_A_TIME=rows, ROWS_PER_SAMPLE=1):
        yield


def amounts(report: ImportReport) -> object:
    findings = [{one.reason: one.amounts for one in kind} for kind in (report.repaired, report.dropped)]
    return report.read, report.kept, report.first_position, findings


@pytest.mark.thorough
@settings(max_examples=40, deadline=None)
@given(
    damages=st.lists(st.sampled_from([delete, duplicate, move, move_page, replace_cell, swap]), max_size=4),
    rows_at_a_time=st.integers(1, 30),
    k=st.integers(1, 5) | st.none(),
    seed=st.integers(0, 2**32),
)
def test_blocks_change_nothing(
    damages: list[Callable[[list[Row], np.random.Generator], None]],
    rows_at_a_time: int,
    k: int | None,
    seed: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    good = random_log(candidates_of(4, 3, 5), sessions=15, k=4, seed=seed)
    rows, rng = rows_of(good), np.random.default_rng(seed)
    for damage in damages:
        damage(rows, rng)
    files = write_json(rows, tmp_path_factory.mktemp("log"))
    options = ImportOptions(k=k, max_dropped=1)
    with blocks_of(10**6):
        try:
            log, report = read_log_table(files, good.candidates, options)
        except InputError:
            return
    with blocks_of(rows_at_a_time):
        in_blocks, report_of_blocks = read_log_table(files, good.candidates, options)
    assert_same_log(in_blocks, log)
    assert amounts(report_of_blocks) == amounts(report)


def test_each_session_is_in_one_block_and_blocks_are_in_order() -> None:
    table = random_log(candidates_of(4, 3, 5), sessions=50, k=4).to_frame().sample(fraction=1, shuffle=True, seed=1)
    rows = scan_log(table, ImportOptions())
    done: list[float] = []
    with blocks_of(30):
        known = session_blocks.survey(rows, lambda _: None)
        shared = list(_collected(session_blocks.blocks(rows, known, done.append)))
    found = [session_ids for session_ids, _ in shared]
    assert known.rows == len(table) == sum(map(len, found))
    assert 3 <= len(found) <= 8
    assert all(before.max() < after.min() for before, after in itertools.pairwise(found))  # type: ignore[operator]
    assert sum(done) + sum(share for _, share in shared) == pytest.approx(1)


def _collected(blocks: Iterator[tuple[LogRows, float]]) -> Iterator[tuple[pl.Series, float]]:
    for block, share in blocks:
        yield block.parts[0].collect()["session_id"], share


def test_a_row_keeps_its_file_and_its_number(tmp_path: Path) -> None:
    good = random_log(candidates_of(4, 3, 5), sessions=20, k=4)
    table = good.to_frame()
    table[:9].write_csv(tmp_path / "day-1.csv")
    table[9:].with_columns(click=pl.when(pl.int_range(pl.len()) == 4).then(-7).otherwise("click")).write_csv(
        tmp_path / "day-2.csv"
    )
    with blocks_of(5):
        _, report = read_log_table(str(tmp_path / "day-*.csv"), good.candidates, ImportOptions(max_dropped=1))
        with pytest.raises(InputError, match=r"day-2\.csv: row 5: click: expected 0 or 1, found '-7'") as error:
            read_log_table(str(tmp_path / "day-*.csv"), good.candidates, ImportOptions(strict=True))
    assert "day-2.csv: row 5: click: expected 0 or 1, found '-7'" in report.dropped[0].examples[0]
    assert len(error.value.problems) == 1


def test_strict_counts_the_problems_of_all_blocks() -> None:
    good = random_log(candidates_of(4, 3, 5), sessions=60, k=4)
    bad = good.to_frame().with_columns(click=pl.lit(-7))
    with blocks_of(12), pytest.raises(InputError) as error:
        read_log_table(bad, good.candidates, ImportOptions(strict=True))
    *lines, rest = error.value.problems
    assert len(lines) == 20
    assert rest == f"the table: … and {len(bad) - 20} more of this kind"


def test_nothing_is_left_in_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    good = random_log(candidates_of(4, 3, 5), sessions=20, k=4)
    with blocks_of(5):
        read_log_table(good.to_frame(), good.candidates)
        with pytest.raises(InputError):
            read_log_table(good.to_frame().with_columns(click=pl.lit(-7)), good.candidates)
    assert list(tmp_path.iterdir()) == []


ROWS = "query_id,session_id,position,doc_id,click,timestamp\nq,s,1,a,0,{first}\nq,s,2,b,1,5\nq,t,1,a,1,7\n"


def test_a_time_of_too_many_digits_is_a_problem_of_its_session(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(ROWS.format(first=10**25))
    with pytest.raises(InputError, match="timestamp"):
        import_log(tmp_path / "log.csv")
    with pytest.warns(UserWarning, match="timestamp"):
        log = import_log(tmp_path / "log.csv", max_dropped=1.0)
    assert log.session_id is not None
    assert log.session_id.tolist() == ["t"]
