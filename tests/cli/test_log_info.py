"""`cuolr log-info` on logs with times, and with something wrong; `cuolr judgments`."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cuolr.logs.aggregate import aggregate
from cuolr.logs.log_folder import save_click_log
from tests.cli.conftest import Run
from tests.logs.test_log_info import ordinary
from tests.small_log import small_log


def test_an_ordinary_log_has_no_drift(run: Run, tmp_path: Path) -> None:
    save_click_log(ordinary(), tmp_path / "log")
    result = run("log-info", tmp_path / "log")
    assert result.status == 0
    assert "2026-11-01T08:00:00Z to 2026-11-02T00:39:00Z" in result.out
    assert "No drift: sessions since 2026-11-01T16:20:00Z do not differ from earlier ones." in result.out
    assert "Warning" not in result.out
    found = json.loads(run("log-info", tmp_path / "log", "--since", "2026-11-02", "--json").out)
    assert (found["sessions"], found["session_info"]["sessions"]) == (40, 40)
    assert found["session_info"]["warnings"] == []
    result = run("log-info", tmp_path / "log", "--until", "2026-11-01")
    assert (result.status, result.out) == (2, "")
    assert "until 2026-11-01: no session in this window" in result.err


def test_warnings_are_told(run: Run, tmp_path: Path) -> None:
    log = ordinary()
    save_click_log(log.select(np.flatnonzero(log.clicks.any(axis=1))), tmp_path / "log")
    assert "Warning: only clicked sessions were logged" in run("log-info", tmp_path / "log").out
    (warning,) = json.loads(run("log-info", tmp_path / "log", "--json").out)["session_info"]["warnings"]
    assert warning.startswith("only clicked sessions were logged")


def test_an_aggregated_log_has_no_sessions_to_describe(run: Run, tmp_path: Path) -> None:
    save_click_log(aggregate(ordinary()), tmp_path / "log")
    assert json.loads(run("log-info", tmp_path / "log", "--json").out)["session_info"] is None
    assert run("log-info", tmp_path / "log").status == 0
    assert "an aggregated log has no timestamps" in run("log-info", tmp_path / "log", "--since", "1d").err


def test_a_log_without_features_has_none(run: Run, tmp_path: Path) -> None:
    rows = [f"{i},q{i % 3},{doc},{at},{at % 2}" for i in range(30) for at, doc in enumerate("abc", start=1)]
    (tmp_path / "clicks.csv").write_text(
        "\n".join(["session_id,query_id,doc_id,position,click", *rows]), encoding="utf-8"
    )
    run("import-log", tmp_path / "clicks.csv", "--out", tmp_path / "log")
    found = run("log-info", tmp_path / "log", "--html", tmp_path / "log.html")
    assert "estimated from   nothing: the log has no features" in re.sub(" {2,}", "   ", found.out)
    assert "From click rates alone" in " ".join(found.out.split())
    assert "From click rates alone" in (tmp_path / "log.html").read_text(encoding="utf-8")
    assert json.loads(run("log-info", tmp_path / "log", "--json").out)["features"] == []


def test_a_page_is_written_once(run: Run, tmp_path: Path) -> None:
    save_click_log(ordinary(), tmp_path / "log")
    page = tmp_path / "log.html"
    result = run("log-info", tmp_path / "log", "--html", page)
    assert (result.status, result.err) == (0, f"wrote {page}\n")
    assert "What this log can tell" in page.read_text(encoding="utf-8")
    again = run("log-info", tmp_path / "log", "--html", page)
    assert (again.status, again.out) == (2, "")
    assert "replace it with --overwrite" in again.err
    other = run("log-info", tmp_path / "log", "--html", tmp_path / "log.pdf")
    assert other.status == 2
    assert ".html" in other.err


def test_examination_and_what_to_do_are_told(run: Run, tiny: Path, tmp_path: Path) -> None:
    users = ("--click-model", "pbm", "--randomised-lists", 1_000)
    run("simulate", "--data", tiny, *users, "--sessions", 2_000, "--out", tmp_path / "log")
    text = run("log-info", tmp_path / "log").out
    found = json.loads(run("log-info", tmp_path / "log", "--json").out)
    second = found["examination"]["all"][1]
    assert f"{second['value']:.3f} [{second['low']:.3f}, {second['high']:.3f}]" in text
    assert "What to do: To know examination within ±10 % at positions 1 to " in text
    assert " ".join(found["what_to_do"]["sentences"]) in text
    assert found["identifiability"]["source"] == "features alone"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of six queries in lists of random order."""
    save_click_log(small_log(400), tmp_path / "LOG")
    return tmp_path / "LOG"


def test_judgments_are_written_and_what_they_leave_out_is_said(run: Run, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "judgments.parquet"
    result = run("judgments", log, "--out", out, "--min-examinations", 30)
    assert (result.status, result.out) == (0, "")
    table = pl.read_parquet(out)
    assert (table["examinations"] >= 30).all()
    wrote, left_out, *_ = result.err.splitlines()
    assert wrote == f"wrote {out}: {len(table)} documents of {table['query_id'].n_unique()} queries, ratings 0-1"
    assert left_out.endswith("documents have fewer than 30 expected examinations: left out")


def test_qrels_of_queries_with_spaces_have_their_numbers_in_a_file_of_topics(run: Run, tmp_path: Path) -> None:
    log = small_log(400)
    ids = np.char.add("red ", log.candidates.query_ids)
    save_click_log(replace(log, candidates=replace(log.candidates, query_ids=ids)), tmp_path / "LOG")
    out = tmp_path / "j.qrels"
    said = run("judgments", tmp_path / "LOG", "--out", out).err.splitlines()[1]
    topics = Path(said.partition(": the queries by number")[0].removeprefix("wrote "))
    assert said.endswith("since a TREC file cannot hold spaces")
    assert set(ids) <= {line.partition("\t")[2] for line in topics.read_text().splitlines()}


def test_the_share_of_shown_documents_that_chance_chose_is_told(run: Run, tmp_path: Path) -> None:
    log = small_log(400)
    propensity = np.where(np.arange(log.k) == 0, 0.5, 1.0) * np.ones((len(log), 1))
    save_click_log(replace(log, logging_propensity=propensity.astype(np.float32)), tmp_path / "LOG")
    row = next(line for line in run("log-info", tmp_path / "LOG").out.splitlines() if "logging propensity" in line)
    assert row.split()[-1] == f"{len(log) / log.where.sum():.1%}"


@pytest.mark.parametrize(
    ("name", "flags", "file_format", "scale"),
    [
        ("j.json", (), "workbench", "0-1"),
        ("j.csv", (), "table", "0-1"),
        ("j.csv", ("--format", "quepid"), "quepid", "0-3"),
        ("j.qrels", (), "qrels", "0-3"),
        ("j.txt", ("--format", "qrels", "--scale", "0-4"), "qrels", "0-4"),
    ],
)
def test_the_format_and_the_scale_go_by_the_name_and_the_flags(
    run: Run, log: Path, tmp_path: Path, name: str, flags: tuple[str, ...], file_format: str, scale: str
) -> None:
    result = run("judgments", log, "--out", tmp_path / name, *flags, "--json")
    assert result.status == 0, result.err
    found = json.loads(result.out)
    assert (found["format"], found["scale"], found["topics"]) == (file_format, scale, None)
    assert found["queries"] == 6
    assert (tmp_path / name).stat().st_size > 0


def test_what_cannot_be_written_is_refused_before_any_work(run: Run, log: Path, tmp_path: Path) -> None:
    def error(*arguments: object) -> str:
        result = run("judgments", log, *arguments)
        assert (result.status, result.out) == (2, "")
        return result.err

    assert "expected a name that ends in" in error("--out", tmp_path / "j.txt")
    assert error("--out", tmp_path / "j.qrels", "--scale", "0-1") == (
        "error: --scale 0-1: qrels hold whole numbers; use 0-3 or 0-4\n"
    )
    assert "lower --min-examinations" in error("--out", tmp_path / "j.json", "--min-examinations", 1e6)
    assert not (tmp_path / "j.json").exists()
    (tmp_path / "j.csv").write_text("mine")
    assert "already exists" in error("--out", tmp_path / "j.csv")
    assert run("judgments", log, "--out", tmp_path / "j.csv", "--overwrite").status == 0
