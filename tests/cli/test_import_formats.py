import json
from pathlib import Path

import polars as pl
import pytest

from cuolr.logs.log_folder import load_click_log
from tests.cli.conftest import Run
from tests.logs.importing.formats.test_ubi import RECORDS

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
    result = run("import-log", "--format", "ubi", "--max-dropped", "50%", *files, "--out", out)
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
        "note: the log has no features: it serves for examination, click rates and judgments",
        f"wrote {out}: 1 sessions; describe it with: cuolr log-info {out}",
    ]
    assert load_click_log(out).clicks.tolist() == [[0, 1]]
    assert run("log-info", out).status == 0


def test_too_much_dropped_of_the_records_stops_the_import(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    command = ("import-log", "--format", "ubi", *files, "--out", tmp_path / "LOG")
    result = run(*command)
    assert result.status == 2
    assert result.err.splitlines() == [
        "error: 2 files: 50.0% of the sessions cannot be used, more than --max-dropped 0.05 allows",
        "error: dropped: query_id not in ubi_queries: 1 session",
        "error: dropped: query_id not in ubi_queries: 1 click",
    ]
    result = run(*command, "--dry-run")
    assert (result.status, "lists dropped, by reason" in result.out) == (2, True)
    result = run(*command, "--strict", "--max-dropped", "100%")
    assert result.status == 2
    assert "error: 2 files: dropped: query_id not in ubi_queries: 1 session" in result.err
    assert not (tmp_path / "LOG").exists()


def test_a_repeated_event_is_no_loss(run: Run, tmp_path: Path) -> None:
    (tmp_path / "ubi.ndjson").write_text("".join(json.dumps(record) + "\n" for record in (*RECORDS, *RECORDS[1:])))
    result = run("import-log", "--format", "ubi", tmp_path / "ubi.ndjson", "--strict", "--out", tmp_path / "LOG")
    assert result.status == 0, result.err


def test_json_has_the_whole_report(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    found = json.loads(
        run("import-log", "--format", "ubi", "--max-dropped", "50%", *files, "--out", tmp_path / "LOG", "--json").out
    )
    report = found.pop("report")["source"]
    assert found == {"out": str(tmp_path / "LOG"), "sessions": 1, "queries": 1, "k": 2}
    assert report["clicks"] == {"found": 2, "kept": 1, "dropped": {"query_id not in ubi_queries": 1}}
    assert (report["queries"], report["events"], report["lists"], report["complete"]) == (1, 4, 2, 1)


def test_a_dry_run_writes_nothing(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    result = run(
        "import-log", "--format", "ubi", "--max-dropped", "50%", *files, "--out", tmp_path / "LOG", "--dry-run"
    )
    assert (result.status, "lists" in result.out) == (0, True)
    assert not (tmp_path / "LOG").exists()


def test_an_existing_log_is_replaced_only_when_told(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    command = ("import-log", "--format", "ubi", "--max-dropped", "50%", *files, "--out", tmp_path / "LOG")
    assert run(*command).status == 0
    again = run(*command)
    assert (again.status, "already exists" in again.err) == (2, True)
    assert run(*command, "--overwrite").status == 0


def test_features_are_taken_where_given(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    features = tmp_path / "features.parquet"
    pl.DataFrame({"query_id": ["red shoes"] * 2, "doc_id": ["a", "b"], "price": [1.5, 2.5]}).write_parquet(features)
    assert (
        run(
            "import-log",
            "--format",
            "ubi",
            "--max-dropped",
            "50%",
            *files,
            "--features",
            features,
            "--out",
            tmp_path / "LOG",
        ).status
        == 0
    )
    assert load_click_log(tmp_path / "LOG").candidates.features.tolist() == [[1.5], [2.5]]


def test_files_are_needed(run: Run, tmp_path: Path) -> None:
    result = run("import-log", "--format", "ubi", "--out", tmp_path / "LOG")
    assert result.status == 2
    assert "files" in result.err.lower()


def test_an_unknown_format_is_one_line_with_a_guess(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    result = run("import-log", "--format", "ubj", *files, "--out", tmp_path / "LOG")
    assert (result.status, result.err.startswith("error: unknown format 'ubj' (did you mean 'ubi'?); known: ")) == (
        2,
        1,
    )


def test_columns_are_named_for_tables_only(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    result = run(
        "import-log",
        "--format",
        "ubi",
        "--max-dropped",
        "50%",
        *files,
        "--column",
        "doc_id=sku",
        "--out",
        tmp_path / "LOG",
    )
    assert result.status == 2
    assert result.err == "error: --column: the columns of --format ubi are known; name columns of tables only\n"


def test_a_table_without_features_is_for_click_rates_and_not_for_training(run: Run, tmp_path: Path) -> None:
    table, log = tmp_path / "log.csv", tmp_path / "LOG"
    rows = [f"q{i % 3},s{i},{p},{'ab'[(i + p) % 2]},{int(p == 1)},1" for i in range(150) for p in (1, 2)]
    table.write_text("query_id,session_id,position,doc_id,click,randomised\n" + "\n".join(rows))
    result = run("import-log", table, "--out", log)
    assert result.status == 0
    assert "note: the log has no features: it serves for examination, click rates and judgments" in result.err
    loaded = load_click_log(log)
    assert loaded.candidates.n_documents == 6
    assert loaded.randomised is not None
    assert loaded.randomised.all()
    trained = run("train", log, "--out", tmp_path / "MODEL")
    assert (trained.status, trained.err.count("\n")) == (2, 1)
    assert "the documents of this log have no features" in trained.err
    assert not (tmp_path / "MODEL").exists()
    assert run("judgments", log, "--out", tmp_path / "judgments.json").status == 0
    assert run("propensity", log, "--randomised").status == 0
    assert ["sessions", "in", "random", "order", "150"] in [
        line.split() for line in run("log-info", log).out.splitlines()
    ]


def test_features_of_documents_are_joined(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "documents.csv").write_text("doc_id,rating\na,3\nb,\n")
    command = (
        "import-log",
        "--format",
        "ubi",
        *files,
        "--max-dropped",
        "50%",
        "--out",
        tmp_path / "LOG",
        "--document-features",
        tmp_path / "documents.csv",
    )
    result = run(*command)
    assert result.status == 2
    assert "--allow-column rating" in result.err
    result = run(*command, "--allow-column", "rating")
    assert result.status == 0, result.err
    assert load_click_log(tmp_path / "LOG").candidates.features[0].tolist() == [3]
