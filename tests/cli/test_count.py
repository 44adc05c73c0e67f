"""`cuolr count`, and the commands that take a counted log."""

import json
from pathlib import Path

import numpy as np
import pytest

from cuolr.logs.log_folder import save_click_log
from tests.cli.conftest import Run
from tests.small_log import small_log

LOG = small_log(rows=120, queries=12)
DISTINCT = len(np.unique(np.column_stack([LOG.query, LOG.ranking, LOG.clicks]), axis=0))


@pytest.fixture
def counts(run: Run, tmp_path: Path) -> Path:
    """A counted log of 360 sessions and 12 queries."""
    save_click_log(LOG.select(np.tile(np.arange(120), 3)), tmp_path / "LOG")
    result = run("count", tmp_path / "LOG", "--out", tmp_path / "COUNTS")
    assert result.err == f"wrote {tmp_path / 'COUNTS'}: 360 sessions in {DISTINCT} rows\n"
    return tmp_path / "COUNTS"


def test_a_log_is_counted_once_and_told(run: Run, counts: Path) -> None:
    log, again = counts.parent / "LOG", counts.parent / "AGAIN"
    assert json.loads(run("count", counts, "--out", again, "--json").out) == {
        "out": str(again),
        "sessions": 360,
        "rows": DISTINCT,
    }
    for arguments, problem in (
        ((log, "--out", counts), "already exists"),
        ((counts.parent / "NOWHERE", "--out", counts.parent / "X"), "folder not found"),
        ((log, "--since", "2d", "--out", counts.parent / "X"), "no timestamps"),
    ):
        result = run("count", *arguments)
        assert result.status == 2
        assert problem in result.err


def test_a_log_that_counting_does_not_shorten_is_told(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_click_log(LOG, tmp_path / "LOG")
    monkeypatch.setattr("cuolr.cli.count.FEW_ROWS", 10)
    note = "note: nearly all sessions differ; --by document has rows bounded by documents and positions\n"
    for by, notes in (("list", note), ("document", "")):
        said = run("count", tmp_path / "LOG", "--out", tmp_path / by, "--by", by).err
        assert said.partition(" rows\n")[2] == notes


def test_log_info_of_counts_is_that_of_the_sessions(run: Run, counts: Path) -> None:
    found, expected = (json.loads(run("log-info", log, "--json").out) for log in (counts, counts.parent / "LOG"))
    assert found["sessions"] == expected["sessions"] == 360
    assert found["share_without_clicks"] == expected["share_without_clicks"]
    assert found["click_rate"] == expected["click_rate"]
    assert "in a log of sessions only" in run("log-info", counts).err


def test_click_models_are_fitted_to_counts(run: Run, counts: Path) -> None:
    result = run("fit-clicks", counts, "--click-models", "pbm", "ubm", "--json")
    assert result.status == 0, result.err


@pytest.mark.thorough
def test_a_model_is_trained_and_assessed_on_counts(run: Run, counts: Path) -> None:
    model = counts.parent / "MODEL"
    assert run("train", counts, "--learner", "naive", "--steps", 5, "--out", model).status == 0
    found, expected = (json.loads(run("assess", model, log, "--json").out) for log in (counts, counts.parent / "LOG"))
    assert found["recommendation"] == expected["recommendation"]
    assert found["overlap"] == expected["overlap"]


def test_what_needs_sessions_says_so(run: Run, counts: Path) -> None:
    users = counts.parent / "users.toml"
    assert run("fit-clicks", counts, "--click-models", "pbm", "--out", users).status == 0
    result = run("simulate", "--data", counts, "--click-model", users, "--sessions", 10, "--out", counts.parent / "X")
    assert result.status == 2
    assert "simulating users needs sessions one by one, but this log is counted" in result.err


@pytest.mark.thorough
def test_documents_are_counted_trained_on_and_assessed(run: Run, counts: Path) -> None:
    log, documents, model = (counts.parent / name for name in ("LOG", "DOCUMENTS", "MODEL"))
    assert "360 sessions in" in run("count", log, "--by", "document", "--out", documents).err
    assert json.loads(run("log-info", documents, "--json").out)["sessions"] == 360
    assert "unknown (counted by document)" in run("log-info", documents).out
    options = ("--steps", 2, "--set", "learner.threads=1", "--no-student", "--profile")
    trained = run("train", documents, *options, "--out", model)
    assert trained.status == 0, trained.err
    for stage in (
        "reading DOCUMENTS",
        "estimating examination",
        "training steps",
        "validation",
        "off-policy evaluation",
    ):
        assert stage in trained.out
    found, expected = (json.loads(run("assess", model, each, "--json").out) for each in (documents, log))
    assert found["overlap"] == pytest.approx(expected["overlap"])
    assert found["never_shown"] == expected["never_shown"]
    for refused in (
        ("train", documents, "--learner", "naive", "--out", counts.parent / "X"),
        ("fit-clicks", documents, "--click-models", "dbn"),
        ("judgments", documents, "--out", counts.parent / "X.csv"),
        ("count", documents, "--out", counts.parent / "X"),
    ):
        result = run(*refused)
        assert (result.status, result.err.count("\n")) == (2, 1), result.err
        assert "counts documents (`cuolr count --by document`), and this needs lists" in result.err


def test_parts_have_no_time_window_and_a_cluster_needs_parts(run: Run, tmp_path: Path) -> None:
    for arguments, problem in (
        (("part.parquet", "--since", "2d"), "--since, --until: not with parts; give the parts of these days"),
        (("--ray", "auto"), "--ray: expected Parquet parts to count, found none"),
    ):
        result = run("count", tmp_path, *arguments, "--out", tmp_path / "X")
        assert (result.status, result.err) == (2, f"error: {problem}\n")
