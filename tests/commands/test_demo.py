import json
from pathlib import Path

import pytest

from cuolr.data.clicklog import load_click_log
from cuolr.policies.store import load_policy
from tests.commands.conftest import Run


@pytest.mark.thorough
def test_the_demo_runs_the_whole_pipe_and_keeps_its_results(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "demo"
    result = run("demo", "--out", out, "--queries", 60, "--sessions", 2_000, "--steps", 2)
    assert result.status == 0, result.err
    rows = json.loads((out / "results.json").read_text())
    assert {row["method"] for row in rows} == {"LOGGING", "ORACLE", "CUOLR(SAC)", "CUOLR(CQL)"}
    assert all(0 <= row["ndcg@10"] <= 1 for row in rows)
    for row in rows:
        assert row["method"] in result.out
    assert load_click_log(out / "log-pbm").sessions == 2_000
    load_policy(out / "dcm-CUOLR(CQL)")
    load_policy(out / "ORACLE")


def test_the_demo_does_not_touch_a_folder_that_is_there(run: Run, tmp_path: Path) -> None:
    result = run("demo", "--out", tmp_path)
    assert result.status == 2
    assert "exists already" in result.err
