import json
from pathlib import Path

import polars as pl
import pytest

from cuolr.logs.log_folder import load_click_log
from tests.cli.conftest import Run
from tests.logs.importing.test_import_ubi import RECORDS

ORPHAN = {**RECORDS[-1], "query_id": "L2"}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Queries and events of a list, and a click without a query."""
    queries, events = tmp_path / "queries.ndjson", tmp_path / "events.ndjson"
    queries.write_text(json.dumps(RECORDS[0]))
    events.write_text("".join(json.dumps(record) + "\n" for record in (*RECORDS[1:], ORPHAN)))
    return queries, events


def test_what_was_found_kept_and_dropped_is_shown(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "LOG"
    result = run("import-ubi", *files, "--out", out)
    assert result.status == 0
    shown = [line.split() for line in result.out.splitlines() if line.strip()]
    for expected in (
        "lists 2",
        "complete 1",
        "dropped 1",
        "kept lists, positions from 1 1",
        "impressions kept 2 of 2",
        "clicks kept 1 of 2",
        "query_id not in ubi_queries 1",
    ):
        assert expected.split() in shown
    assert result.err.splitlines() == [
        "note: 1 lists have no timestamp; the log is without timestamps",
        f"wrote {out}: 1 sessions; describe it with: cuolr log-info {out}",
    ]
    assert load_click_log(out).clicks.tolist() == [[0, 1]]
    assert run("log-info", out).status == 0


def test_json_has_the_whole_report(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    found = json.loads(run("import-ubi", *files, "--out", tmp_path / "LOG", "--json").out)
    report = found.pop("report")
    assert found == {"out": str(tmp_path / "LOG"), "sessions": 1, "queries": 1, "k": 2}
    assert report["clicks"] == {"found": 2, "kept": 1, "dropped": {"query_id not in ubi_queries": 1}}
    assert (report["queries"], report["events"], report["lists"], report["complete"]) == (1, 4, 2, 1)


def test_a_dry_run_writes_nothing(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    result = run("import-ubi", *files, "--out", tmp_path / "LOG", "--dry-run")
    assert (result.status, result.err.splitlines()[-1]) == (0, "dry run: nothing was written")
    assert not (tmp_path / "LOG").exists()


def test_an_existing_log_is_replaced_only_when_told(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    command = ("import-ubi", *files, "--out", tmp_path / "LOG")
    assert run(*command).status == 0
    again = run(*command)
    assert (again.status, "already exists" in again.err) == (2, True)
    assert run(*command, "--overwrite").status == 0


def test_features_are_taken_where_given(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    features = tmp_path / "features.parquet"
    pl.DataFrame({"query_id": ["red shoes"] * 2, "doc_id": ["a", "b"], "price": [1.5, 2.5]}).write_parquet(features)
    assert run("import-ubi", *files, "--features", features, "--out", tmp_path / "LOG").status == 0
    assert load_click_log(tmp_path / "LOG").candidates.features.tolist() == [[1.5], [2.5]]


def test_files_are_needed(run: Run, tmp_path: Path) -> None:
    result = run("import-ubi", "--out", tmp_path / "LOG")
    assert result.status == 2
    assert "files" in result.err.lower()


def test_features_of_documents_are_joined(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "documents.csv").write_text("doc_id,rating\na,3\nb,\n")
    command = ("import-ubi", *files, "--out", tmp_path / "LOG", "--document-features", tmp_path / "documents.csv")
    result = run(*command)
    assert result.status == 2
    assert "--allow-column rating" in result.err
    result = run(*command, "--allow-column", "rating")
    assert result.status == 0, result.err
    assert load_click_log(tmp_path / "LOG").candidates.features[0].tolist() == [3]
