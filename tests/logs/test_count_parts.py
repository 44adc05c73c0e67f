"""Parquet parts are counted like the log that they are parts of, here or on a cluster."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.count_parts import count_parts
from cuolr.logs.counting import CountedBy, count_chunks, count_log
from cuolr.logs.log_folder import SESSIONS_FILE, load_click_log, save_click_log
from cuolr.logs.session_files import Part
from tests.data.small_data import assert_same_log, candidates_of, full_log, random_log


def save_parts(log: ClickLog, place: Path, parts: int) -> None:
    """The log, and its sessions in so many files of the folder PARTS."""
    save_click_log(log, place / "LOG")
    (place / "PARTS").mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(log)), parts)):
        save_click_log(log.select(rows), place / f"PART {number}")
        shutil.move(place / f"PART {number}" / SESSIONS_FILE, place / "PARTS" / f"{number}.parquet")


@pytest.mark.parametrize("by", ["list", "document"])
def test_parts_are_counted_like_the_whole_log(by: CountedBy, tmp_path: Path) -> None:
    save_parts(full_log(), tmp_path, 3)
    whole = count_log(tmp_path / "LOG", tmp_path / "WHOLE", by=by)
    assert_same_log(count_parts(tmp_path / "LOG", [tmp_path / "PARTS"], tmp_path / "OUT", by), whole)
    assert_same_log(load_click_log(tmp_path / "OUT", documents=True), whole)
    two = count_parts(tmp_path / "LOG", [tmp_path / "PARTS" / f"{n}.parquet" for n in (2, 0)], tmp_path / "TWO", by)
    one = count_chunks([full_log().select(slice(17, 34))], by)
    assert two.sessions + one.sessions == whole.sessions


@pytest.mark.parametrize("by", ["list", "document"])
def test_parts_in_a_store_are_counted_like_files(by: CountedBy, tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    save_parts(full_log(), tmp_path, 3)
    whole = count_log(tmp_path / "LOG", tmp_path / "WHOLE", by=by)
    store = fsspec.filesystem("memory")
    for file in (tmp_path / "PARTS").iterdir():
        store.pipe_file(f"/{tmp_path.name}/day/{file.name}", file.read_bytes())
    store.pipe_file(f"/{tmp_path.name}/day/notes.txt", b"no part")
    folder = f"memory://{tmp_path.name}/day"
    assert_same_log(count_parts(tmp_path / "LOG", [folder], tmp_path / "MEMORY", by), whole)
    mixed: list[Part] = [f"{folder}/0.parquet", tmp_path / "PARTS" / "1.parquet", f"file://{tmp_path}/PARTS/2.parquet"]
    assert_same_log(count_parts(tmp_path / "LOG", mixed, tmp_path / "MIXED", by), whole)


def test_what_is_wrong_with_a_store_or_its_parts_is_one_line(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    save_parts(full_log(), tmp_path, 1)
    store, place = fsspec.filesystem("memory"), f"memory://{tmp_path.name}"
    store.pipe_file(f"/{tmp_path.name}/damaged.parquet", b"PAR1 and no more")
    store.makedirs(f"/{tmp_path.name}/empty")
    for address, problem in (
        (f"{place}/none.parquet", f"{place}/none.parquet: file not found"),
        (f"{place}/empty", f"{place}/empty: expected Parquet files in this folder, found none"),
        (f"{place}/damaged.parquet", f"{place}/damaged.parquet: "),
        ("nowhere://bucket/part.parquet", "nowhere://bucket/part.parquet: cannot be read: "),
    ):
        with pytest.raises(InputError) as error:
            count_parts(tmp_path / "LOG", [address], tmp_path / "OUT")
        (line,) = error.value.problems
        assert line.startswith(problem)
        assert "\n" not in line
        assert str(tmp_path) not in line
        assert not (tmp_path / "OUT").exists()


def test_a_part_without_sessions_adds_nothing(tmp_path: Path) -> None:
    save_parts(full_log(), tmp_path, 2)
    first = pl.read_parquet(tmp_path / "PARTS" / "0.parquet")
    first.clear().write_parquet(tmp_path / "PARTS" / "00.parquet")
    whole = count_parts(tmp_path / "LOG", [tmp_path / "PARTS"], tmp_path / "OUT")
    assert_same_log(whole, count_chunks([full_log()]))
    with pytest.raises(InputError, match="expected at least one session in these parts, found none"):
        count_parts(tmp_path / "LOG", [tmp_path / "PARTS" / "00.parquet"], tmp_path / "NONE")


def test_parts_that_are_none_are_refused(tmp_path: Path) -> None:
    save_parts(full_log(), tmp_path, 2)
    log, parts, out = tmp_path / "LOG", tmp_path / "PARTS", tmp_path / "OUT"
    (tmp_path / "EMPTY").mkdir()
    save_click_log(random_log(candidates_of(5, 2, 9), 20, 4), tmp_path / "OTHER")
    save_click_log(random_log(candidates_of(5, 2, 90), 20, 4), tmp_path / "MORE")
    for paths, problem in (
        ([tmp_path / "EMPTY"], "expected Parquet files in this folder, found none"),
        ([tmp_path / "none.parquet"], "file not found"),
        ([parts, parts / "1.parquet"], "given twice"),
        ([parts, tmp_path / "OTHER" / SESSIONS_FILE], "expected the columns of the other parts; they differ in"),
        ([tmp_path / "MORE" / SESSIONS_FILE], "expected candidate indices of the query"),
    ):
        with pytest.raises(InputError, match=problem):
            count_parts(log, paths, out)
        assert not out.exists()
    count_log(log, tmp_path / "COUNTS")
    with pytest.raises(InputError, match="expected a log of sessions, whose documents the parts have"):
        count_parts(tmp_path / "COUNTS", [parts], out)


@pytest.mark.slow
def test_a_cluster_counts_the_same_and_the_loss_of_a_node_loses_nothing(cluster: Any, tmp_path: Path) -> None:
    log = random_log(candidates_of(*[20] * 50), 100_000, 10, lists_per_query=200)
    save_parts(log, tmp_path, 10)
    lost: list[Any] = []

    def stages(name: str, total: int | None) -> Any:
        assert (name, total) == ("counting parts", 10)

        def progress(done: int) -> None:
            if not lost:
                lost.append(next(node for node in cluster.list_all_nodes() if node is not cluster.head_node))
                cluster.remove_node(lost[0], allow_graceful=False)

        return progress

    counted = count_parts(
        tmp_path / "LOG", [tmp_path / "PARTS"], tmp_path / "OUT", "document", cluster.address, stages=stages
    )
    assert lost
    assert_same_log(counted, count_chunks([log], "document"))
