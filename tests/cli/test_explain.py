import json
from pathlib import Path

import pytest

from cuolr.policies.model_folder import save_policy
from cuolr.policies.random_policy import RandomPolicy
from tests.cli.conftest import Run


def test_a_query_is_explained_in_tables_and_as_json(run: Run, folders: tuple[Path, Path]) -> None:
    found = json.loads(run("explain", *folders, "--query", "q2", "--json").out)
    assert found["query_id"] == "q2"
    assert set(found["features"]) == {"feature 1", "feature 3"}
    result = run("explain", *folders, "--query", "q2")
    assert result.status == 0
    assert f"{found['sessions']:,} sessions, estimated change in clicks" in result.out
    for document in found["documents"]:
        assert document["reason"] in result.out.replace("\n", " ")
    assert "why the model orders them so" in result.out
    assert "feature 1 +" in result.out


def test_a_model_without_scores_says_so(run: Run, folders: tuple[Path, Path], tmp_path: Path) -> None:
    save_policy(RandomPolicy(3), tmp_path / "RANDOM")
    result = run("explain", tmp_path / "RANDOM", folders[1], "--query", "q2")
    assert "does not score documents one by one" in result.out


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (("--query", "q22"), "query 'q22': expected a query of the log, found none of this name (did you mean 'q2'?)"),
        (("--query", "q2", "--min-sessions", "1000"), "show it with --min-sessions 1"),
        (("--query", "q2", "--titles", "none.csv"), "none.csv: file not found"),
    ],
)
def test_what_cannot_be_shown_is_one_line(
    run: Run, folders: tuple[Path, Path], flags: tuple[str, ...], error: str
) -> None:
    result = run("explain", *folders, *flags)
    assert (result.status, result.out) == (2, "")
    assert error in result.err
    assert len(result.err.splitlines()) == 1
