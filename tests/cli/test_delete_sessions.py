"""`cuolr import-log --hash-ids`, `merge-logs` and `delete-sessions`, as they are used week after week."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import cuolr
from cuolr.logs.aggregate import aggregate
from cuolr.logs.log_folder import load_click_log, read_meta, save_click_log
from tests.cli.conftest import Run
from tests.logs.day_tables import Days, make_days
from tests.small_log import small_log


@pytest.fixture
def days(tmp_path: Path) -> Days:
    """Two days as CSV, and the features of both."""
    made = make_days(1, sessions=30)
    for number, table in enumerate(made.days):
        table.write_csv(tmp_path / f"{number}.csv")
    made.features.write_parquet(tmp_path / "features.parquet")
    return made


def import_days(run: Run, folder: Path, *flags: object) -> None:
    for number in (0, 1):
        out = folder / f"LOG{number}"
        result = run(
            "import-log", folder / f"{number}.csv", "--features", folder / "features.parquet", "--out", out, *flags
        )
        assert result.status == 0, result.err


@pytest.mark.usefixtures("days")
def test_logs_are_merged_and_told(run: Run, tmp_path: Path) -> None:
    import_days(run, tmp_path)
    logs = (tmp_path / "LOG0", tmp_path / "LOG1")
    result = run("merge-logs", *logs, "--out", tmp_path / "LOG")
    assert result.status == 0
    assert result.err.splitlines() == [
        f"wrote {tmp_path / 'LOG'}: 60 sessions of 4 queries and 24 documents",
    ]
    assert "already exists" in run("merge-logs", *logs, "--out", tmp_path / "LOG").err
    # The latest session is at 23:00 on the second day.
    result = run("merge-logs", *logs, tmp_path / "LOG", "--keep-days", 1, "--out", tmp_path / "DAY", "--json")
    found = json.loads(result.out)
    assert (found["sessions"], found["outside"], found["repeated"], found["kept"]) == (120, 58, 31, 31)
    result = run("merge-logs", *logs, "--keep-days", 1, "--since", "2d", "--out", tmp_path / "X")
    assert "--keep-days 1: says when to start, as --since does" in result.err
    assert "--since: expected a date" in run("merge-logs", *logs, "--since", "now", "--out", tmp_path / "X").err


@pytest.mark.usefixtures("days")
def test_sessions_without_an_id_are_told(run: Run, tmp_path: Path) -> None:
    import_days(run, tmp_path)
    both = ("--features", tmp_path / "features.parquet", "--no-session-ids")
    assert run("import-log", tmp_path / "0.csv", *both, "--out", tmp_path / "NONE").status == 0
    result = run("merge-logs", tmp_path / "LOG0", tmp_path / "NONE", "--out", tmp_path / "LOG")
    assert result.err.splitlines()[0] == (
        "warning: 30 sessions have no session id and cannot be compared: any of them that are in several logs are "
        "counted more than once"
    )
    assert read_meta(tmp_path / "LOG")["source"]["merge"]["without_id"] == 30
    result = run("delete-sessions", tmp_path / "LOG", "--session-id", "unknown", "--models", tmp_path)
    assert (result.status, len(result.err.splitlines())) == (2, 1)
    assert result.err.endswith("any of the 1 ids given; 30 sessions have no id and cannot be found\n")
    result = run("delete-sessions", tmp_path / "LOG", "--session-id", "0-1")
    assert "warning: 30 sessions have no id and cannot be found" in result.err
    counts = tmp_path / "counts"
    for name in ("LOG0", "NONE"):
        cuolr.save_click_log(aggregate(load_click_log(tmp_path / name)), counts / name)
    result = run("merge-logs", counts / "LOG0", counts / "NONE", "--out", tmp_path / "COUNTS")
    assert "no session id" not in result.err
    assert f"warning: {counts / 'NONE'}: made from the same log as one before it" in result.err


@pytest.mark.usefixtures("days")
def test_hashed_ids_are_the_same_week_after_week(run: Run, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(bytes(range(32)))
    import_days(run, tmp_path, "--hash-ids", tmp_path / "key")
    result = run("merge-logs", tmp_path / "LOG0", tmp_path / "LOG1", "--out", tmp_path / "LOG")
    assert result.err.splitlines()[-1].endswith("60 sessions of 4 queries and 24 documents")
    stored = b"".join(file.read_bytes() for file in (tmp_path / "LOG").iterdir())
    for text in ("query 1", "user 1"):
        assert text.encode() not in stored
        assert text.encode("utf-32-le") not in stored
    delete = ("delete-sessions", tmp_path / "LOG", "--user-id", "user 1")
    result = run(*delete)
    assert result.status == 2
    assert result.err == (
        f"error: {tmp_path / 'LOG'}: nothing was deleted: no session has any of the 1 ids given; the ids of this log "
        "are hashed: give the key with --hash-ids KEYFILE\n"
    )
    result = run(*delete, "--json")
    assert (result.status, json.loads(result.out)["sessions"]) == (2, 0)
    hashed = str(load_click_log(tmp_path / "LOG").session_id[0])  # type: ignore[index]
    result = run(*delete, "--session-id", hashed, "--dry-run")
    assert "1 of 2 ids are not in the log" in result.err
    assert "the ids of this log are hashed; to find a session by its own id, give the key" in result.err
    result = run(*delete, "--hash-ids", tmp_path / "key")
    assert result.err.startswith("deleted 12 sessions with ")
    assert load_click_log(tmp_path / "LOG").sessions == 48


@pytest.mark.thorough
@pytest.mark.usefixtures("days")
def test_models_that_learned_from_the_deleted_sessions_are_told(run: Run, tmp_path: Path) -> None:
    import_days(run, tmp_path)
    logs = [tmp_path / "LOG0", tmp_path / "LOG1"]
    assert run("merge-logs", *logs, "--out", tmp_path / "LOG").status == 0
    models = tmp_path / "models"
    for name, log in (("first", logs[0]), ("other", logs[1]), ("merged", tmp_path / "LOG")):
        small = ("--learner", "naive", "--steps", 1, "--set", "learner.hidden=[4]")
        result = run("train", log, "--out", models / name, *small)
        assert result.status == 0, result.err
    ranker = cuolr.Ranker("naive", steps=1, settings={"learner.hidden": [4]}).fit(load_click_log(logs[0]))
    ranker.save(models / "in python")
    (models / "no model").mkdir()
    (models / "no model" / "model.json").write_text("{}")
    delete = ("delete-sessions", logs[0], "--session-id", "0-1", "--session-id", "0-2", "--models", models)
    planned = json.loads(run(*delete, "--dry-run", "--json").out)
    assert (planned["sessions"], planned["kept"], planned["dry_run"]) == (2, 28, True)
    assert read_meta(logs[0])["sessions"] == 30
    found = {Path(model["folder"]).name: model["same_log"] for model in planned["models"]}
    assert found == {"first": True, "in python": True, "merged": False}
    result = run(*delete)
    assert f"{models / 'first'}: learned from this log; train it again" in result.err
    assert f"{models / 'merged'}: learned from a log that shares sessions with this one" in result.err
    assert read_meta(logs[0])["sessions"] == 28
    # The log still knows what it was, so that models of then are found later, too.
    again = json.loads(run("delete-sessions", logs[0], "--session-id", "0-3", "--models", models, "--json").out)
    assert {Path(model["folder"]).name for model in again["models"]} == {"first", "merged"}


@pytest.mark.thorough
@pytest.mark.usefixtures("days")
def test_models_that_started_from_one_that_learned_are_told_and_unreadable_ones_too(run: Run, tmp_path: Path) -> None:
    import_days(run, tmp_path)
    models = tmp_path / "models"
    small = ("--learner", "naive", "--steps", 20, "--set", "learner.hidden=[4]")

    def train(name: str, log: int, *flags: object) -> None:
        result = run("train", tmp_path / f"LOG{log}", "--out", models / name, *small, *flags)
        assert result.status == 0, result.err

    train("first", 0)
    # In the order of names, a start comes after what started from it.
    train("second", 1, "--warm-start", models / "first")
    train("last", 1, "--warm-start", models / "second")
    train("apart", 1)
    train("elsewhere", 1, "--seed", 2)
    train("started apart", 1, "--warm-start", models / "apart")
    train("started elsewhere", 1, "--warm-start", models / "elsewhere")
    shutil.rmtree(models / "elsewhere")
    for name, log in (("older", 1), ("older first", 0)):
        train(name, log, "--seed", 5)
        file = models / name / "model.json"
        file.write_text(file.read_text().replace('"cuolr-policy-4"', '"cuolr-policy-3"'))
    (models / "damaged").mkdir()
    (models / "damaged" / "model.json").write_text("{")
    delete = ("delete-sessions", tmp_path / "LOG0", "--session-id", "0-1", "--models", models, "--dry-run")
    found = json.loads(run(*delete, "--json").out)
    started = {Path(model["folder"]).name: model["started_from"] for model in found["models"]}
    assert started == {
        "first": None,
        "second": str(models / "first"),
        "last": str(models / "second"),
        "older first": None,
    }
    assert {Path(model["folder"]).name: model["reason"] for model in found["unclear_models"]} == {
        "damaged": "cannot be read",
        "older": "cannot be read: another version of cuolr saved it",
        "started elsewhere": "training started from a model that is not in the folders searched",
    }
    told = run(*delete).err
    assert f"{models / 'last'}: learned from {models / 'second'}, from which its training started; train" in told
    assert f"warning: {models / 'damaged'}: cannot be read: may have learned from this log" in told
    only = models / "damaged"
    told = run("delete-sessions", tmp_path / "LOG0", "--session-id", "0-1", "--models", only, "--dry-run").err
    assert told.endswith(f"no other model in {only} learned from this log\n")


@pytest.mark.usefixtures("days")
def test_ids_can_be_in_files(run: Run, tmp_path: Path) -> None:
    import_days(run, tmp_path)
    (tmp_path / "ids").write_text("0-1\n\n0-2\nunknown\n")
    found = json.loads(run("delete-sessions", tmp_path / "LOG0", "--session-ids", tmp_path / "ids", "--json").out)
    assert (found["ids"], found["unknown"], found["sessions"]) == (3, 1, 2)
    result = run("delete-sessions", tmp_path / "LOG0", "--user-ids", tmp_path / "nothing")
    assert (result.status, result.err) == (2, f"error: {tmp_path / 'nothing'}: file not found\n")
    result = run("delete-sessions", tmp_path / "LOG0")
    assert result.err.startswith("error: expected sessions to delete: give --session-id")


@pytest.mark.usefixtures("days")
def test_an_import_counts_what_is_outside_the_window(run: Run, tmp_path: Path) -> None:
    command = ("import-log", tmp_path / "0.csv", tmp_path / "1.csv", "--features", tmp_path / "features.parquet")
    result = run(*command, "--since", "2026-11-02", "--out", tmp_path / "LOG")
    assert result.status == 0
    assert "outside the time window" in result.out
    assert result.err.startswith(f"wrote {tmp_path / 'LOG'}: 30 sessions")
    found = json.loads(run(*command, "--keep-days", 1, "--dry-run", "--json").out)
    assert found["report"]["kept"]["sessions"] == found["sessions"] == 31
    assert read_meta(tmp_path / "LOG")["source"]["import"]["dropped"][0]["sessions"] == 30
    result = run(*command, "--hash-ids", tmp_path / "none", "--out", tmp_path / "X")
    assert result.err.startswith(f"error: {tmp_path / 'none'}: key not found; make one with: python -c ")


def test_what_merging_changed_is_told(run: Run, tmp_path: Path) -> None:
    made = make_days(1, sessions=30)
    again = made.days[0].with_columns(click=1 - pl.col("click"))
    tables = {"A": (made.days[0], made.features), "B": (again, made.features.with_columns(pl.col("price") + 1))}
    for name, (rows, features) in tables.items():
        rows.write_csv(tmp_path / f"{name}.csv")
        features.write_parquet(tmp_path / f"{name}.parquet")
        flags = ("--features", tmp_path / f"{name}.parquet", "--out", tmp_path / name)
        assert run("import-log", tmp_path / f"{name}.csv", *flags).status == 0
    logs = (tmp_path / "A", tmp_path / "B")
    lines = run("merge-logs", *logs, "--until", "2026-11-01T12:00", "--out", tmp_path / "LOG").err.splitlines()
    # Sessions 0 to 29 of a day begin at the hours 0 to 23 and again 0 to 5: 12 + 6 before noon, in both logs.
    assert lines[0] == f"{2 * (30 - 18)} sessions are outside the time window: left out"
    assert lines[1] == "18 sessions are in several logs, by their ids: counted once"
    assert lines[2].startswith("warning: 18 of them have other lists or clicks in the other log; the last log counts.")
    assert lines[3].endswith("documents differ between logs; those of the last log are kept")
    assert lines[4].startswith(f"wrote {tmp_path / 'LOG'}: 18 sessions of ")


def test_a_column_that_not_all_logs_have_is_told(run: Run, tmp_path: Path) -> None:
    log = small_log(30)
    save_click_log(log, tmp_path / "A")
    save_click_log(replace(log, timestamp=np.arange(30).astype("datetime64[us]")), tmp_path / "B")
    said = run("merge-logs", tmp_path / "A", tmp_path / "B", "--out", tmp_path / "LOG").err
    assert "note: column 'timestamp' is left out, because not all logs have it" in said.splitlines()


@pytest.mark.usefixtures("days")
def test_ids_that_are_no_text_are_refused(run: Run, tmp_path: Path) -> None:
    import_days(run, tmp_path)
    (tmp_path / "ids").write_bytes(b"0-1\n\xff\n")
    result = run("delete-sessions", tmp_path / "LOG0", "--session-ids", tmp_path / "ids")
    assert (result.status, result.err) == (2, f"error: {tmp_path / 'ids'}: expected ids in UTF-8, one per line\n")


@pytest.mark.usefixtures("days")
def test_queries_without_other_sessions_go_with_theirs(run: Run, tmp_path: Path) -> None:
    import_days(run, tmp_path)
    log = load_click_log(tmp_path / "LOG0")
    assert log.session_id is not None
    of_query = log.session_id[log.query == 0].tolist()
    (tmp_path / "ids").write_text("\n".join(map(str, of_query)))
    result = run("delete-sessions", tmp_path / "LOG0", "--session-ids", tmp_path / "ids")
    assert "deleted 1 queries, which no other session has" in result.err
    assert load_click_log(tmp_path / "LOG0").candidates.n_queries == log.candidates.n_queries - 1
