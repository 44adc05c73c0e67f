"""What a command says in a message, it says to programs with --json."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from cuolr.cli.main import COMMANDS
from cuolr.policies.model_folder import save_policy
from cuolr.policies.random_policy import RandomPolicy
from tests.cli.conftest import Run

FEATURES = "0 qid:q 1:5 2:1 # a\n0 qid:q 1:6 2:3 # b\n"
TABLE = "query_id,session_id,position,doc_id,click\nq,s,1,b,0\nq,s,2,a,1\nq,t,1,a,0\n"


def printed(run: Run, *arguments: object) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.status == 0, result.err
    assert "wrote" not in result.err
    content: dict[str, Any] = json.loads(result.out)
    return content


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"browse", "serve"}))  # these show pages, and run on
def test_a_command_that_reports_takes_json(name: str) -> None:
    assert inspect.signature(COMMANDS[name].load()).parameters["json"].default is False


def test_generate_tells_what_it_wrote(run: Run, tmp_path: Path) -> None:
    sizes = ("--train", 9, "--vali", 2, "--test", 3)
    found = printed(run, "generate", "tiny", "--out", tmp_path / "data", *sizes)
    expected = {"preset": "tiny", "train": 9, "vali": 2, "test": 3, "seed": 1, "max_grade": 2}
    assert found == {"out": str(tmp_path / "data"), **expected}


def test_simulate_tells_what_it_wrote(run: Run, tiny: Path, tmp_path: Path) -> None:
    out = tmp_path / "log"
    arguments = ("--data", tiny, "--click-model", "pbm", "--sessions", 20, "--k", 3, "--randomised-lists", 0)
    found = printed(run, "simulate", *arguments, "--out", out, "--logging", "random")
    logging = {"name": "random", "seed": 1}
    expected = {"sessions": 20, "k": 3, "seed": 1, "data": str(tiny), "fold": 1, "logging": logging}
    assert found == {"out": str(out), **expected}


def test_import_log_tells_what_it_wrote(run: Run, tmp_path: Path) -> None:
    (tmp_path / "features.txt").write_text(FEATURES)
    (tmp_path / "log.csv").write_text(TABLE)
    out = tmp_path / "log"
    found = printed(run, "import-log", tmp_path / "log.csv", "--features", tmp_path / "features.txt", "--out", out)
    report = found.pop("report")
    assert found == {"out": str(out), "sessions": 2, "queries": 1, "k": 2}
    assert report["read"] == report["kept"] == {"sessions": 2, "impressions": 3, "clicks": 1}
    assert report["repaired"] == report["dropped"] == []


def test_rank_tells_what_it_wrote(run: Run, tmp_path: Path) -> None:
    (tmp_path / "features.txt").write_text(FEATURES)
    save_policy(RandomPolicy(1), tmp_path / "model")
    out = tmp_path / "out.csv"
    found = printed(run, "rank", tmp_path / "model", "--candidates", tmp_path / "features.txt", "--out", out)
    assert found == {"out": str(out), "queries": 1, "k": 2, "sample": None}


def test_oracle_tells_its_score(run: Run, tiny: Path, tmp_path: Path) -> None:
    found = printed(run, "oracle", "--data", tiny, "--out", tmp_path / "model", "--threads", 1)
    arguments = ("--data", tiny, "--split", "vali", "--measures", "ndcg@10")
    evaluated = printed(run, "evaluate", tmp_path / "model", *arguments)
    assert (found["chosen"], found["measure"], found["split"]) == ("lambdamart", "ndcg@10", "vali")
    assert found["scores"] == {"lambdamart": pytest.approx(evaluated["measures"]["ndcg@10"])}
