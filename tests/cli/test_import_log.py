from pathlib import Path

import pytest

from cuolr.logs.log_folder import load_click_log
from tests.cli.conftest import Run

FEATURES = "1 qid:q 1:5 2:NULL #docid = a\n0 qid:q 1:6 2:3 #docid = b\n0 qid:q 1:7 2:4 #docid = c\n"
TABLE = "query_id,session_id,position,doc_id,click\nq,s,1,b,0\nq,s,2,a,1\n"


@pytest.fixture
def features(tmp_path: Path) -> Path:
    """Three documents of one query."""
    path = tmp_path / "features.txt"
    path.write_text(FEATURES)
    return path


def test_an_imported_log_can_be_read_and_looked_at(run: Run, features: Path, tmp_path: Path) -> None:
    # Names that are patterns to some readers, with another file that they match.
    (tmp_path / "l[1] ?.csv").write_text(TABLE)
    (tmp_path / "l1 x.csv").write_text("nothing")
    out = tmp_path / "o [x]*"
    result = run("import-log", tmp_path / "l[1] ?.csv", "--features", features, "--out", out)
    assert (result.status, result.out) == (0, "")
    log = load_click_log(out)
    assert log.ranking.tolist() == [[1, 0]]
    assert log.clicks.tolist() == [[0, 1]]
    assert log.candidates.features.tolist() == [[5, 0], [6, 3], [7, 4]]
    assert run("log-info", out).status == 0


def test_letor_features_are_read_as_the_flags_say(run: Run, features: Path, tmp_path: Path) -> None:
    features.write_text(FEATURES.replace(" 1:", " 0:").replace(" 2:", " 1:"))
    (tmp_path / "log.csv").write_text(TABLE)
    command = ("import-log", tmp_path / "log.csv", "--features", features, "--out", tmp_path / "out")
    result = run(*command)
    assert result.status == 2
    assert result.err.startswith(f"error: {features}:1: ")
    assert run(*command, "--zero-based", "--missing", "minimum").status == 0
    assert load_click_log(tmp_path / "out").candidates.features.tolist() == [[5, 3], [6, 3], [7, 4]]


def test_problems_are_told_one_by_one_and_nothing_is_written(run: Run, features: Path, tmp_path: Path) -> None:
    table = tmp_path / "log.csv"
    table.write_text(TABLE.replace("a,1", "x,2"))
    result = run("import-log", table, "--features", features, "--out", tmp_path / "out")
    assert (result.status, result.out) == (2, "")
    assert result.err.splitlines() == [
        f"error: {table}: row 2: doc_id: 'x' is not among the documents of query 'q' in the features",
        f"error: {table}: row 2: click: expected 0 or 1, found '2'",
    ]
    assert not (tmp_path / "out").exists()


def test_lists_are_cut_and_an_existing_log_is_replaced_when_told(run: Run, features: Path, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(TABLE)
    command = ("import-log", tmp_path / "log.csv", "--features", features, "--out", tmp_path / "out")
    assert run(*command).status == 0
    assert "already exists" in run(*command, "--k", 1).err
    assert load_click_log(tmp_path / "out").k == 2
    assert run(*command, "--k", 1, "--overwrite").status == 0
    assert load_click_log(tmp_path / "out").ranking.tolist() == [[1]]
