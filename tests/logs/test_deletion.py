"""Deleted sessions are gone, all others stay as they were; and keyed hashes of ids."""

import errno
import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuolr.data.candidate_store import save_candidates
from cuolr.errors import InputError
from cuolr.logs import log_folder
from cuolr.logs.aggregate import aggregate
from cuolr.logs.counting import count_log
from cuolr.logs.deletion import SessionsToDelete, delete_sessions
from cuolr.logs.hashed_ids import IdKey, hash_ids
from cuolr.logs.log_folder import load_click_log, read_meta, save_click_log
from cuolr.logs.log_meta import identities
from cuolr.types import Candidates
from tests.logs.day_tables import imported, make_days, rows
from tests.small_log import small_log

KEY = IdKey(b"0123456789abcdef")


@pytest.mark.thorough
@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), users=st.sets(st.integers(0, 7)), sessions=st.sets(st.integers(0, 14)))
def test_what_is_left_and_what_is_deleted_is_what_there_was(
    tmp_path_factory: pytest.TempPathFactory, seed: int, users: set[int], sessions: set[int]
) -> None:
    folder = tmp_path_factory.mktemp("log") / "log"
    days = make_days(seed)
    log = imported(days.table, days.features)
    save_click_log(log, folder)
    which = SessionsToDelete([f"0-{number}" for number in sessions], [f"user {number}" for number in users])
    matches = pl.col("session_id").is_in(which.session_ids) | pl.col("user_id").is_in(which.user_ids)
    gone, left = days.table.filter(matches), days.table.filter(~matches)
    if not (users or sessions) or not len(left):
        with pytest.raises(InputError):
            delete_sessions(folder, which)
        assert rows(load_click_log(folder)).equals(rows(log))
        return
    report = delete_sessions(folder, which)
    after = load_click_log(folder)
    assert rows(after).equals(rows(imported(left, days.features)))
    assert report.sessions + report.kept == log.sessions
    assert report.impressions + after.where.sum() == log.where.sum()
    assert report.clicks + after.clicks.sum() == log.clicks.sum()
    assert report.sessions == gone["session_id"].n_unique()
    assert report.ids == len(users) + len(sessions)
    assert report.unknown == sum(user > 4 for user in users) + sum(session > 11 for session in sessions)
    lost = set(gone["query_id"]) - set(left["query_id"])
    assert report.queries == len(lost)
    assert not lost & set(after.candidates.query_ids.tolist())


def test_nothing_of_a_deleted_session_is_left_in_any_file(tmp_path: Path) -> None:
    days = make_days(1)
    secret = {"query_id": "my private illness", "session_id": "secret session", "user_id": "secret user"}
    lists = days.days[0].head(1).with_columns(pl.lit(value).alias(name) for name, value in secret.items())
    features = pl.concat([days.features, days.features.head(6).with_columns(query_id=pl.lit(secret["query_id"]))])
    save_click_log(imported(pl.concat([days.table, lists]), features), tmp_path / "log")
    (tmp_path / "log" / "propensity.json").write_text("{}")
    assert delete_sessions(tmp_path / "log", SessionsToDelete(user_ids=["secret user"])).queries == 1
    for file in (tmp_path / "log").iterdir():
        content = file.read_bytes()
        for value in secret.values():
            assert value.encode() not in content
            assert value.encode("utf-32-le") not in content
    assert (tmp_path / "log" / "propensity.json").read_text() == "{}"


def test_a_dry_run_counts_and_changes_nothing(tmp_path: Path) -> None:
    days = make_days(2)
    save_click_log(imported(days.table, days.features), tmp_path / "log")
    before = read_meta(tmp_path / "log")
    which = SessionsToDelete(session_ids=["0-1", "1-1", "0-1"])
    planned = delete_sessions(tmp_path / "log", which, dry_run=True)
    assert (planned.ids, planned.sessions) == (2, 2)
    assert read_meta(tmp_path / "log") == before
    assert delete_sessions(tmp_path / "log", which) == planned


def test_the_log_records_deletions_and_what_it_was_before(tmp_path: Path) -> None:
    days = make_days(3)
    save_click_log(imported(days.table, days.features), tmp_path / "log", {"tables": ["a.csv"]})
    first = read_meta(tmp_path / "log")["sessions_sha256"]
    delete_sessions(tmp_path / "log", SessionsToDelete(session_ids=["0-1"]))
    second = read_meta(tmp_path / "log")["sessions_sha256"]
    delete_sessions(tmp_path / "log", SessionsToDelete(session_ids=["0-2"]))
    meta = read_meta(tmp_path / "log")
    assert meta["source"]["tables"] == ["a.csv"]
    assert [deletion["deleted"]["sessions"] for deletion in meta["source"]["deletions"]] == [1, 1]
    assert identities(meta) == {first, second, meta["sessions_sha256"]}
    assert "0-1" not in str(meta)


def test_the_record_of_deletions_grows_by_one_entry_with_each(tmp_path: Path) -> None:
    days = make_days(3)
    save_click_log(imported(days.table, days.features), tmp_path / "log")
    states = {read_meta(tmp_path / "log")["sessions_sha256"]}
    sizes = []
    for session_id in load_click_log(tmp_path / "log").session_id[:5]:  # type: ignore[index]
        delete_sessions(tmp_path / "log", SessionsToDelete(session_ids=[str(session_id)]))
        sizes.append((tmp_path / "log" / "meta.json").stat().st_size)
        states.add(read_meta(tmp_path / "log")["sessions_sha256"])
    assert sizes[4] - sizes[3] <= sizes[1] - sizes[0] + 10
    assert identities(read_meta(tmp_path / "log")) == states


def test_records_of_earlier_versions_within_each_other_are_taken_apart(tmp_path: Path) -> None:
    days = make_days(3)
    first = {"sessions_sha256": "a" * 64, "sessions": 26, "source": {}, "deleted": {"sessions": 1}}
    second = {"sessions_sha256": "b" * 64, "sessions": 25, "source": {"deletions": [first]}, "deleted": {"sessions": 1}}
    save_click_log(imported(days.table, days.features), tmp_path / "log", {"deletions": [first, second]})
    now = read_meta(tmp_path / "log")["sessions_sha256"]
    delete_sessions(tmp_path / "log", SessionsToDelete(session_ids=["0-1"]))
    meta = read_meta(tmp_path / "log")
    assert identities(meta) == {"a" * 64, "b" * 64, now, meta["sessions_sha256"]}
    assert all("source" not in deletion for deletion in meta["source"]["deletions"])


def test_ids_are_hashed_with_the_key_of_the_log(tmp_path: Path) -> None:
    days = make_days(4)
    log = hash_ids(imported(days.table, days.features), KEY)
    save_click_log(log, tmp_path / "log", {"ids_hashed_with": KEY.name})
    by_name = SessionsToDelete(user_ids=["user 1"])
    assert delete_sessions(tmp_path / "log", by_name).sessions == 0
    with pytest.raises(InputError, match="hashed with another key"):
        delete_sessions(tmp_path / "log", replace(by_name, id_key=IdKey(b"another key of the log")))
    assert delete_sessions(tmp_path / "log", replace(by_name, id_key=KEY)).sessions == 6
    save_click_log(imported(days.table, days.features), tmp_path / "plain")
    with pytest.raises(InputError, match="are not hashed; leave the key out"):
        delete_sessions(tmp_path / "plain", replace(by_name, id_key=KEY))


def test_a_log_without_ids_is_refused(tmp_path: Path) -> None:
    save_click_log(small_log(), tmp_path / "log")
    with pytest.raises(InputError, match="log: has no user_id, so nothing can be found by it"):
        delete_sessions(tmp_path / "log", SessionsToDelete(user_ids=["x"]))
    save_click_log(aggregate(small_log()), tmp_path / "lists")
    with pytest.raises(InputError, match="lists: an aggregated log has no ids"):
        delete_sessions(tmp_path / "lists", SessionsToDelete(user_ids=["x"]))
    with pytest.raises(InputError, match="found none"):
        delete_sessions(tmp_path / "log", SessionsToDelete())


def test_sessions_of_unknown_users_are_not_found_by_an_empty_id(tmp_path: Path) -> None:
    log = replace(small_log(4), user_id=np.array(["", "", "a", "b"]))
    save_click_log(log, tmp_path / "log")
    with pytest.raises(InputError, match="empty ones only"):
        delete_sessions(tmp_path / "log", SessionsToDelete(user_ids=[""]))
    report = delete_sessions(tmp_path / "log", SessionsToDelete(user_ids=["", "a"]))
    assert (report.sessions, report.kept, report.without_id) == (1, 3, 2)


def test_sessions_that_lack_one_of_the_ids_given_are_counted_unless_deleted(tmp_path: Path) -> None:
    log = replace(small_log(4), user_id=np.array(["", "", "a", "b"]), session_id=np.array(["1", "2", "", "4"]))
    save_click_log(log, tmp_path / "log")
    report = delete_sessions(tmp_path / "log", SessionsToDelete(["1"], ["b"]), dry_run=True)
    # The first is found by its session, the last by its user.
    assert (report.sessions, report.without_id) == (2, 2)
    assert delete_sessions(tmp_path / "log", SessionsToDelete(["1"]), dry_run=True).without_id == 1


@pytest.mark.thorough
@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), users=st.sets(st.integers(0, 4), min_size=1, max_size=3))
def test_counts_without_the_deleted_sessions_are_those_of_the_rest(
    tmp_path_factory: pytest.TempPathFactory, seed: int, users: set[int]
) -> None:
    folder = tmp_path_factory.mktemp("log")
    # Lists of one document occur often.
    days = make_days(seed, sessions=40, queries=3, gaps=True)
    table = days.table.with_columns(doc_id=pl.col("doc_id").str.replace("[3-5]", "0"))
    table = table.unique(["session_id", "doc_id"], maintain_order=True).with_columns(reward=pl.lit(0.5))
    save_click_log(imported(table, days.features), folder / "log")
    save_click_log(aggregate(load_click_log(folder / "log")), folder / "lists")
    which = SessionsToDelete(user_ids=[f"user {user}" for user in users])
    delete_sessions(folder / "log", which, [folder / "lists"])
    left, expected = load_click_log(folder / "lists"), aggregate(load_click_log(folder / "log"))
    assert np.array_equal(left.candidates.query_ids, expected.candidates.query_ids)
    for name, values in expected.columns.items():
        np.testing.assert_allclose(left.columns[name], values, err_msg=name)


def test_neither_the_log_nor_its_counts_change_if_one_of_them_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = make_days(9)
    folder, lists = tmp_path / "log", tmp_path / "lists"
    save_click_log(imported(days.table, days.features), folder)
    save_click_log(aggregate(load_click_log(folder)), lists)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}

    def fail_at(number: int) -> None:
        written: list[Path] = []

        def save(candidates: Candidates, unfinished: Path) -> None:
            written.append(unfinished)
            if len(written) == number:
                raise OSError(errno.ENOSPC, "No space left on device")
            save_candidates(candidates, unfinished)

        monkeypatch.setattr(log_folder, "save_candidates", save)

    which = SessionsToDelete(session_ids=["0-1"])
    for number in (1, 2):
        fail_at(number)
        with pytest.raises(OSError, match="No space left"):
            delete_sessions(folder, which, [lists])
        assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before
    fail_at(0)
    delete_sessions(folder, which, [lists])
    assert (load_click_log(folder).sessions, load_click_log(lists).sessions) == (23, 23)


def test_counts_of_another_log_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    days = make_days(9)
    save_click_log(imported(days.table, days.features), tmp_path / "log")
    save_click_log(aggregate(imported(days.days[1], days.features)), tmp_path / "other")
    save_click_log(aggregate(small_log()), tmp_path / "small")
    which = SessionsToDelete(session_ids=["0-1"])
    for name, problem in (
        ("other", "does not hold all of the sessions|the columns and the length of lists"),
        ("small", "small: was not made from this log"),
        ("log", "log: expected a counted or aggregated log"),
    ):
        with pytest.raises(InputError, match=problem):
            delete_sessions(tmp_path / "log", which, [tmp_path / name])
    assert load_click_log(tmp_path / "log").sessions == 24


def test_counts_of_another_log_with_the_same_lists_are_refused(tmp_path: Path) -> None:
    """Both logs have the same documents, lists and clicks, but other sessions."""
    log = replace(imported(make_days(9).table, make_days(9).features), timestamp=None)
    assert log.session_id is not None
    save_click_log(log, tmp_path / "log")
    save_click_log(replace(log, session_id=np.char.add(log.session_id, "x")), tmp_path / "other")
    for name in ("log", "other"):
        count_log(tmp_path / name, tmp_path / f"counts of {name}")
    which = SessionsToDelete(session_ids=["0-1"])
    with pytest.raises(InputError, match=r"counts of other: was not made from .*log, but from another log; count this"):
        delete_sessions(tmp_path / "log", which, [tmp_path / "counts of other"])
    for number, session_id in enumerate(("0-1", "0-2")):  # the counts know the log as it was before the first
        delete_sessions(tmp_path / "log", SessionsToDelete(session_ids=[session_id]), [tmp_path / "counts of log"])
        assert load_click_log(tmp_path / "counts of log").sessions == log.sessions - 1 - number


def test_a_hash_is_blake2_with_the_key_and_the_kind() -> None:
    key = hashlib.blake2b(b"0123456789abcdef", digest_size=32).digest()
    expected = hashlib.blake2b("schuhe größe 42".encode(), key=key, person=b"query_id", digest_size=16).hexdigest()
    assert KEY.hash("query_id", ["schuhe größe 42"]).tolist() == [expected]


def test_hashes_depend_on_the_id_the_kind_and_the_key_and_on_nothing_else() -> None:
    ids = ["a", "b", "", "a"]
    found = KEY.hash("user_id", ids)
    assert found.tolist() == [found[0], found[1], "", found[0]]
    assert len({found[0], found[1]}) == 2
    assert IdKey(b"0123456789abcdef").hash("user_id", ["b"])[0] == found[1]
    assert KEY.hash("session_id", ["a"])[0] != found[0]
    assert IdKey(b"0123456789abcdeg").hash("user_id", ["a"])[0] != found[0]
    assert KEY.hash("user_id", []).tolist() == []


def test_a_log_keeps_all_but_the_ids() -> None:
    log = replace(small_log(5), session_id=np.array(list("vwxyz")), user_id=np.array(["ann", "bob", "", "bob", "ann"]))
    hashed = hash_ids(log, KEY)
    assert hashed.candidates.query_ids.tolist() == KEY.hash("query_id", log.candidates.query_ids).tolist()
    assert hashed.user_id is not None
    assert hashed.user_id[2] == ""
    assert len(set(hashed.user_id)) == 3
    for name, values in log.columns.items():
        assert np.array_equal(hashed.columns[name], values) == (name not in ("session_id", "user_id")), name
    assert hash_ids(small_log(5), KEY).session_id is None


def test_keys_are_read_from_files(tmp_path: Path) -> None:
    file = tmp_path / "key"
    with pytest.raises(InputError, match=r"key: key not found; make one with: python -c "):
        IdKey.read(file)
    file.write_bytes(b"short")
    with pytest.raises(InputError, match=r"key: expected a key of at least 16 bytes, found 5; make one"):
        IdKey.read(file)
    file.write_bytes(b"0123456789abcdef")
    assert IdKey.read(file) == KEY
    assert "0123" not in repr(KEY)
    assert KEY.name != IdKey(b"0123456789abcdeg").name
