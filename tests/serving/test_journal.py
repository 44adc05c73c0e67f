"""The log of the service: synced, compacted, read back; crashes and full disks."""

import json
import os
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from cuolr.errors import InputError
from cuolr.logs.importing.import_log import import_log_with_report
from cuolr.logs.importing.import_options import ImportOptions
from cuolr.logs.served_log import numbered_files, read_part
from cuolr.serving import journal as journal_module
from cuolr.serving.journal import Journal, Rotation, compact, compact_all
from cuolr.serving.metrics import ServiceMetrics
from cuolr.serving.request_ids import RequestIds
from tests.serving.small_service import PRICE, TestClient, documents, linear_model, serving
from tests.serving.test_rank import metrics


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "SYNC_SECONDS", 0.02)


def rank(client: TestClient, query: str, *prices: float) -> str:
    return str(client.post("/rank", json={"query": query, "documents": documents(*prices)}).json()["request_id"])


def send(client: TestClient, request_id: str, document: str, **event: Any) -> int:
    return int(client.post("/events", json={"request_id": request_id, "document": document, **event}).status_code)


def wait_for(condition: Any) -> None:
    for _ in range(500):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen in 5 seconds")


def test_what_was_shown_and_clicked_comes_back_as_a_click_log(tmp_path: Path) -> None:
    model = linear_model(tmp_path / "m", [1.0], PRICE)
    with serving(model, journal=Journal(tmp_path / "LOG")) as client:
        shoes, hats = rank(client, "shoes", 1, 3, 2), rank(client, "<script>", 5, 4)
        assert send(client, shoes, "c") == 200
        assert send(client, shoes, "c") == 200  # a second click on the same document
        assert send(client, hats, "a", event="purchase", value=3) == 200
        assert send(client, hats, "a", event="purchase", value=2) == 200
        assert send(client, hats, "a") == 200
    assert [path.name for path in numbered_files(tmp_path / "LOG").values()] == ["part-000001.parquet"]
    options = ImportOptions(reward={"click": 1, "purchase": 10}, strict=True)
    log, report = import_log_with_report(tmp_path / "LOG", options=options, format="cuolr-serve")
    found = log.to_frame().sort("query_id", "position")
    assert found.select("query_id", "position", "doc_id", "click", "reward").rows() == [
        ("<script>", 1, "a", 1, 51.0),
        ("<script>", 2, "b", 0, 0.0),
        ("shoes", 1, "b", 0, 0.0),
        ("shoes", 2, "c", 1, 1.0),
        ("shoes", 3, "a", 0, 0.0),
    ]
    assert set(found["session_id"]) == {shoes, hats}
    assert log.logging_propensity is None
    assert report.source is not None
    assert report.source.as_dict() == {"lists": 2, "documents shown": 5, "events": 5}


def test_an_event_sent_again_under_its_id_counts_once(tmp_path: Path) -> None:
    with serving(linear_model(tmp_path / "m", [1.0], PRICE), journal=Journal(tmp_path / "LOG")) as client:
        shown = rank(client, "q", 1, 2)
        for event_id in ("e1", "e1", "e2", None, None):
            assert send(client, shown, "a", event="reward", value=2, event_id=event_id) == 200
    log, _ = import_log_with_report(tmp_path / "LOG", format="cuolr-serve")
    assert log.rewards.tolist() == [[0, 8]]
    assert log.clicks.tolist() == [[0, 1]]  # a reward needs a click


def test_clicks_on_what_was_not_shown_are_counted_as_dropped(tmp_path: Path) -> None:
    with serving(linear_model(tmp_path / "m", [1.0], PRICE), journal=Journal(tmp_path / "LOG")) as client:
        shown = rank(client, "q", 1, 2)
        send(client, shown, "a")
        send(client, shown, "z")
    options = ImportOptions(max_dropped=0.5)
    _, report = import_log_with_report(tmp_path / "LOG", options=options, format="cuolr-serve")
    (loss,) = report.source_losses
    assert (loss.found, loss.total) == (2, 1)
    assert loss.dropped["click on a document that is not in the list"] == 1


def test_ids_are_recognised_after_a_restart_and_others_are_not(tmp_path: Path) -> None:
    model = linear_model(tmp_path / "m", [1.0], PRICE)
    with serving(model, journal=Journal(tmp_path / "LOG")) as client:
        shown = rank(client, "q", 1)
    with serving(model, journal=Journal(tmp_path / "LOG")) as client:
        assert send(client, shown, "a") == 200
        for wrong in (shown[:-1], f"{shown}x", shown[::-1], "AAAA", "ü", RequestIds(b"other").new()):
            assert send(client, wrong, "a") == 404
        assert send(client, shown, "a", event="position") == 422
        assert send(client, shown, "a", value=-1) == 422
        assert (
            client.post("/events", json={"events": [{"request_id": shown, "document": "a"}] * 1001}).status_code == 413
        )
    log, _ = import_log_with_report(tmp_path / "LOG", format="cuolr-serve")
    assert log.clicks.tolist() == [[1]]
    assert (tmp_path / "LOG" / "key").stat().st_mode & 0o077 == 0


def line(number: int) -> dict[str, Any]:
    shown = {"documents": ["a"], "scores": [0.5], "propensity": [1.0], "team": None}
    return {"kind": "list", "time": 1e9 + number, "request_id": str(number), "query": "q", **shown}


def test_journals_become_parts_when_large_or_old_and_nothing_is_lost_or_twice(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "LOG", Rotation(max_bytes=500))
    journal.start(ServiceMetrics())
    for number in range(60):
        journal.write(line(number))
        time.sleep(0.002)
    journal.stop()
    files = list(numbered_files(tmp_path / "LOG").values())
    assert len(files) > 2
    assert {file.suffix for file in files} == {".parquet"}
    assert pl.concat(map(read_part, files))["request_id"].to_list() == [str(number) for number in range(60)]


def test_an_unfinished_last_line_is_left_out_and_all_before_it_is_kept(tmp_path: Path) -> None:
    lines = b"".join(json.dumps(line(number)).encode() + b"\n" for number in range(3))
    for cut in range(len(lines) + 1):
        (tmp_path / "journal-000001.jsonl").write_bytes(lines[:cut])
        whole = lines[:cut].count(b"\n")
        assert len(read_part(tmp_path / "journal-000001.jsonl")) == whole
    compact_all(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["part-000001.parquet"]


def test_a_crash_between_part_and_removal_of_the_journal_counts_nothing_twice(tmp_path: Path) -> None:
    journal = tmp_path / "journal-000001.jsonl"
    journal.write_text(json.dumps(line(1)) + "\n")
    content = journal.read_bytes()
    compact(journal)
    journal.write_bytes(content)  # as if the crash had come before it was removed
    assert [path.name for path in numbered_files(tmp_path).values()] == ["part-000001.parquet"]
    compact_all(tmp_path)
    assert not journal.exists()
    assert len(read_part(tmp_path / "part-000001.parquet")) == 1


def test_a_journal_without_a_whole_line_leaves_no_part(tmp_path: Path) -> None:
    (tmp_path / "journal-000001.jsonl").write_bytes(b'{"kind": "list", "docum')
    compact_all(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_records_beyond_those_that_may_wait_are_counted_as_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "MAX_PENDING", 0)
    with serving(linear_model(tmp_path / "m", [1.0], PRICE), journal=Journal(tmp_path / "LOG")) as client:
        rank(client, "q", 1)
        rank(client, "q", 2)
        found = metrics(client)
    assert (found["cuolr_log_lost_total"], found["cuolr_log_writable"]) == (2, 0)
    assert numbered_files(tmp_path / "LOG") == {}


def test_a_damaged_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"short")
    with pytest.raises(InputError, match="key: damaged: expected 32 bytes, found 5; remove it for a new key"):
        RequestIds.of_folder(tmp_path)


def test_a_part_that_cannot_be_written_leaves_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = tmp_path / "journal-000001.jsonl"
    journal.write_text(json.dumps(line(1)) + "\n")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    compact(journal)
    assert [path.name for path in tmp_path.iterdir()] == ["journal-000001.jsonl"]


def test_a_full_disk_stops_the_log_but_not_the_ranking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = linear_model(tmp_path / "m", [1.0], PRICE)
    with serving(model, journal=Journal(tmp_path / "LOG")) as client:
        rank(client, "before", 1)
        wait_for(lambda: metrics(client)["cuolr_log_records_total"] == 1)

        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            for _ in range(3):
                assert client.post("/rank", json={"documents": documents(1, 2)}).status_code == 200
            wait_for(lambda: metrics(client)["cuolr_log_lost_total"] == 3)
            assert metrics(client)["cuolr_log_writable"] == 0
        rank(client, "after", 1)
        wait_for(lambda: metrics(client)["cuolr_log_writable"] == 1)
        assert metrics(client)["cuolr_log_records_total"] == 2
    files = numbered_files(tmp_path / "LOG")
    assert len(files) == 2, "no file is left of what was lost"
    assert all(file.stat().st_size for file in files.values())
    kept = import_log_with_report(tmp_path / "LOG", format="cuolr-serve")[0]
    assert len(kept) == 2, "what is counted as lost is not in the log"


def test_a_record_that_cannot_be_written_is_lost_and_the_log_goes_on(tmp_path: Path) -> None:
    model, journal = linear_model(tmp_path / "m", [1.0], PRICE), Journal(tmp_path / "LOG")
    with serving(model, journal=journal) as client:
        journal.write({"kind": object()})
        wait_for(lambda: metrics(client)["cuolr_log_lost_total"] == 1)
        rank(client, "after", 1)
        wait_for(lambda: metrics(client)["cuolr_log_records_total"] == 1)
        assert metrics(client)["cuolr_log_writable"] == 1


def test_two_services_do_not_share_a_log(tmp_path: Path) -> None:
    first = Journal(tmp_path / "LOG")
    with pytest.raises(InputError, match="another service writes to this log"):
        Journal(tmp_path / "LOG")
    first.stop()
    Journal(tmp_path / "LOG").stop()


def test_a_folder_of_something_else_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found no part and no journal"):
        import_log_with_report(tmp_path, format="cuolr-serve")
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "part-000001.parquet")
    with pytest.raises(InputError, match="columns missing or of another type: request_id"):
        import_log_with_report(tmp_path, format="cuolr-serve")


def test_a_part_of_another_making_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "journal-000001.jsonl").write_text(json.dumps(line(1)) + "\n")
    compact_all(tmp_path)
    part = tmp_path / "part-000001.parquet"
    rows = pl.read_parquet(part)
    rows.with_columns(pl.duration(days=1).alias("logging_propensity")).drop("team").write_parquet(part)
    with pytest.raises(InputError, match="missing or of another type: logging_propensity, team"):
        read_part(part)


def test_an_event_that_would_replace_a_column_is_one_line(tmp_path: Path) -> None:
    event = {"kind": "event", "time": 1e9, "request_id": "1", "document": "a", "event": "doc_id", "value": 1.0}
    (tmp_path / "journal-000001.jsonl").write_text("".join(json.dumps(each) + "\n" for each in (line(1), event)))
    with pytest.raises(InputError, match="event 'doc_id': expected a name of its own"):
        import_log_with_report(tmp_path, format="cuolr-serve")


def test_no_link_leads_out_of_a_served_log(tmp_path: Path) -> None:
    (tmp_path / "LOG").mkdir()
    (tmp_path / "LOG" / "journal-000001.jsonl").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="leads out of the folder"):
        import_log_with_report(tmp_path / "LOG", format="cuolr-serve")
