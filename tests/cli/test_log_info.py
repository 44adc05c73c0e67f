"""`cuolr log-info` on logs with times, and with something wrong."""

import json
from pathlib import Path

import numpy as np

from cuolr.logs.aggregate import aggregate
from cuolr.logs.log_folder import save_click_log
from tests.cli.conftest import Run
from tests.logs.test_session_info import ordinary


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
