import json
from pathlib import Path

import pytest

from cuolr.logs.log_folder import save_click_log
from tests.cli.conftest import Run
from tests.experiments.real_log import real_log


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log half of whose lists were in random order."""
    save_click_log(real_log(queries=30, sessions=2_000)[0], tmp_path / "LOG")
    return tmp_path / "LOG"


@pytest.mark.thorough
def test_a_method_and_naive_are_judged_by_random_lists(run: Run, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "results"
    command = ("experiment", "real", "--data", log, "--out", out, "--steps", 5, "--only", "method=IPW")
    result = run(*command)
    assert result.status == 0, result.err
    shown = result.out.splitlines()
    assert any(line.split()[:1] == ["IPW"] for line in shown)
    assert any(line.split()[:1] == ["naive"] for line in shown)
    assert "examination, against that of 2,000 lists in random order" in result.out
    assert "outcome, new" in result.out
    assert "naive: " in result.err
    again = run(*command, "--json")
    assert again.err == ""
    content = json.loads(again.out)
    assert [row["method"] for row in content["methods"]] == ["IPW", "LOGGING", "naive"]
    assert json.loads(run("report", out, "--json").out) == content
    assert run("report", out).out == result.out


def test_the_experiment_needs_an_imported_log(run: Run, log: Path, tmp_path: Path) -> None:
    for arguments, message in (
        (("real",), "--data web10k-like: expected the folder of an imported log"),
        (("demo", "--data", "tiny", "--labels", tmp_path / "labels.txt"), "--labels: only with --data LOG"),
        (("real", "--data", log, "--labels", tmp_path / "labels.txt"), "labels.txt: file not found"),
        (("real", "--data", log, "--ray", "auto"), "--ray: not with an imported log"),
        (("real", "--data", log, "--only", "method=IPV"), "IPW"),
    ):
        result = run("experiment", *arguments, "--out", tmp_path / "out")
        assert (result.status, result.err.count("\n")) == (2, 1), result.err
        assert message in result.err
