"""Counts of sessions; Parquet parts are counted like the log that they are parts of, here or on a cluster."""

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuolr.errors import InputError
from cuolr.files import unverified
from cuolr.logs import session_files
from cuolr.logs.aggregate import aggregate
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.count_parts import count_parts
from cuolr.logs.counting import CountedBy, count_chunks, count_log, subtract_sessions
from cuolr.logs.counts import ClickCounts
from cuolr.logs.deletion import SessionsToDelete, delete_sessions
from cuolr.logs.log_folder import SESSIONS_FILE, load_click_log, save_click_log
from cuolr.logs.log_info import describe_log
from cuolr.logs.merge import merge_logs
from cuolr.logs.session_files import Part
from tests.data.small_data import assert_same_log, candidates_of, full_log, log_of, random_log
from tests.logs.day_tables import make_days, save_days


def contents(log: ClickLog) -> Counter[tuple[object, ...]]:
    """By hand: the number of sessions of each query, list and clicks, by the ids of queries and documents."""
    found: Counter[tuple[object, ...]] = Counter()
    names = log.candidates.document_names[log.documents]
    for row in range(len(log)):
        shown = log.where[row]
        key = (log.candidates.query_ids[log.query[row]], *names[row][shown], *log.clicks[row][shown].tolist())
        found[key] += int(log.count[row])
    return found


def test_equal_sessions_become_one_row() -> None:
    log = log_of(
        candidates_of(3, 2),
        query=[1, 0, 0, 0, 0],
        ranking=[[1, -1], [2, 0], [0, 2], [2, 0], [2, 0]],
        clicks=[[1, 0], [0, 1], [1, 1], [1, 0], [0, 1]],
    )
    counted = count_chunks([log])
    assert counted.counted
    assert not counted.aggregated
    assert counted.query.tolist() == [0, 0, 0, 1]
    assert counted.ranking.tolist() == [[0, 2], [2, 0], [2, 0], [1, -1]]
    assert counted.clicks.tolist() == [[1, 1], [0, 1], [1, 0], [1, 0]]
    assert counted.count.tolist() == [1, 2, 1, 1]


def test_sessions_of_different_rewards_context_or_days_are_told_apart_and_ids_and_hours_go() -> None:
    log = log_of(candidates_of(2), [0] * 4, [[1, 0]] * 4, [[1, 0]] * 4)
    times = np.array(["2026-11-01T08", "2026-11-01T23", "2026-11-02T08", "2026-11-01T08"], "datetime64[us]")
    device, ids = np.array(["phone", "phone", "phone", "desktop"]), np.array(["a", "b", "c", "d"])
    counted = count_chunks([replace(log, timestamp=times, context={"device": device}, session_id=ids, user_id=ids)])
    assert counted.session_id is None
    assert counted.user_id is None
    assert counted.timestamp is not None
    days = counted.timestamp.astype("datetime64[D]").astype(str).tolist()
    rows = sorted(zip(days, counted.context["device"].tolist(), counted.count.tolist(), strict=True))
    assert rows == [("2026-11-01", "desktop", 1), ("2026-11-01", "phone", 2), ("2026-11-02", "phone", 1)]
    rewards = np.array([[1, 0], [2, 0], [2, 0], [1, 0]], np.float32)
    counted = count_chunks([replace(log, reward=rewards)])
    assert counted.reward is not None
    assert sorted(zip(counted.reward[:, 0].tolist(), counted.count.tolist(), strict=True)) == [(1.0, 2), (2.0, 2)]


@pytest.mark.thorough
@given(seed=st.integers(0, 1000), lists=st.integers(1, 3), parts=st.integers(1, 4))
def test_what_is_counted_of_counts_is_what_is_counted_of_sessions(seed: int, lists: int, parts: int) -> None:
    log = random_log(candidates_of(4, 3, 6, seed=seed), 50, 3, lists, seed)
    whole = count_chunks([log])
    assert contents(whole) == contents(log)
    chunks = [log.select(rows) for rows in np.array_split(np.arange(len(log)), parts)]
    assert_same_log(count_chunks(chunks), whole)
    assert_same_log(count_chunks([count_chunks([chunk]) for chunk in chunks]), whole)
    assert_same_log(aggregate(whole), aggregate(log))
    of_counts, of_sessions = ClickCounts.of(whole), ClickCounts.of(log)
    assert_same_log(of_counts.lists, of_sessions.lists)
    for name in ("cells", "impressions", "clicks"):
        np.testing.assert_array_equal(getattr(of_counts, name), getattr(of_sessions, name))
    assert describe_log([whole]) == describe_log([log])


def test_chunks_are_added_up_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    log = random_log(candidates_of(4, 3), 60, 3)
    whole = count_chunks([log])
    monkeypatch.setattr(session_files, "ROWS_AT_A_TIME", 3)
    assert_same_log(count_chunks(log.select(slice(start, start + 7)) for start in range(0, 60, 7)), whole)


def test_folds_of_counted_sessions_have_all_of_them() -> None:
    log = random_log(candidates_of(4, 3), 400, 3)
    patterns = ClickPatterns.of(count_chunks([log]))
    assert patterns.sessions == 400
    sizes = np.bincount(patterns.fold, weights=patterns.count)
    assert len(sizes) == 10
    assert sizes.min() > 15  # each has 40 ± 6
    sessions = ClickPatterns.of(log)
    for name in ("impressions", "clicks"):
        assert getattr(patterns.cells, name).sum() == getattr(sessions.cells, name).sum()


def test_a_counted_log_is_saved_and_loaded(tmp_path: Path) -> None:
    save_click_log(full_log(), tmp_path / "LOG")
    counted = count_log(tmp_path / "LOG", tmp_path / "COUNTS")
    assert_same_log(load_click_log(tmp_path / "COUNTS"), counted)
    assert counted.sessions == full_log().sessions
    assert_same_log(count_log(tmp_path / "COUNTS", tmp_path / "AGAIN"), counted)


def test_counts_of_days_merge_to_the_counts_of_all_days(tmp_path: Path) -> None:
    days = save_days(make_days(1, sessions=40), tmp_path)
    for number, day in enumerate(days):
        count_log(day, tmp_path / f"COUNTS {number}")
    merge_logs(days, tmp_path / "LOG")
    whole = count_log(tmp_path / "LOG", tmp_path / "COUNTS")
    report = merge_logs([tmp_path / "COUNTS 0", tmp_path / "COUNTS 1"], tmp_path / "MERGED")
    merged = load_click_log(tmp_path / "MERGED")
    assert report.kept == merged.sessions == whole.sessions == 80
    assert contents(merged) == contents(whole)
    with pytest.raises(InputError, match=r"is of sessions, .* is counted; merge logs of one form: count"):
        merge_logs([days[0], tmp_path / "COUNTS 1"], tmp_path / "MIXED")


def test_counts_of_the_same_log_are_named_when_they_are_merged(tmp_path: Path) -> None:
    days = save_days(make_days(1, sessions=40), tmp_path)
    counts = [tmp_path / "COUNTS 0", tmp_path / "COUNTS 1"]
    for day, counted in zip(days, counts, strict=False):
        count_log(day, counted)
    assert merge_logs(counts, tmp_path / "WEEK").overlapping == ()
    assert merge_logs([tmp_path / "WEEK", counts[1]], tmp_path / "TWICE").overlapping == (str(counts[1]),)
    shutil.copytree(counts[0], tmp_path / "COPY")
    assert merge_logs([*counts, tmp_path / "COPY"], tmp_path / "COPIED").overlapping == (str(tmp_path / "COPY"),)
    assert merge_logs(days, tmp_path / "LOG").overlapping == ()


def test_sessions_are_taken_away_from_counts() -> None:
    log = random_log(candidates_of(4, 3), 60, 3)
    counted = count_chunks([log])
    left = subtract_sessions(counted, log.select(slice(0, 25)))
    assert_same_log(left, count_chunks([log.select(slice(25, 60))]))
    with pytest.raises(InputError, match="does not hold all of the sessions"):
        subtract_sessions(left, log)
    with pytest.raises(InputError, match="no session would be left"):
        subtract_sessions(counted, log)


def test_deleted_sessions_are_taken_away_from_counts(tmp_path: Path) -> None:
    log, *_ = save_days(make_days(1, sessions=40), tmp_path)
    count_log(log, tmp_path / "COUNTS")
    delete_sessions(log, SessionsToDelete(user_ids=["user 3"]), [tmp_path / "COUNTS"])
    left = load_click_log(tmp_path / "COUNTS")
    assert left.sessions == 32
    assert contents(left) == contents(load_click_log(log))
    with pytest.raises(InputError, match="a counted log has no ids"):
        delete_sessions(tmp_path / "COUNTS", SessionsToDelete(user_ids=["user 2"]))


def test_a_damaged_counted_log_is_refused(tmp_path: Path) -> None:
    save_click_log(full_log(), tmp_path / "LOG")
    count_log(tmp_path / "LOG", tmp_path / "COUNTS")
    meta = tmp_path / "COUNTS" / "meta.json"
    meta.write_text(meta.read_text().replace('"counted": true', '"counted": "yes"'))
    with pytest.raises(InputError, match=r"meta\.json: damaged: it does not match its hash"):
        load_click_log(tmp_path / "COUNTS")
    with unverified(), pytest.raises(InputError, match="expected 'counted' to be true or false"):
        load_click_log(tmp_path / "COUNTS")
    meta.write_text(meta.read_text().replace('"counted": "yes"', '"counted": false'))
    with unverified(), pytest.raises(InputError, match="unexpected column 'count'"):
        load_click_log(tmp_path / "COUNTS")


def test_means_cannot_be_counted() -> None:
    with pytest.raises(InputError, match="counting needs the clicks of each session"):
        count_chunks([aggregate(random_log(candidates_of(4, 3), 20, 3))])


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
