import json
from pathlib import Path

import pytest

from cuolr.policies.model_folder import load_policy
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.supervised import oracle_best
from cuolr.supervised.oracle import LambdaMartSettings
from cuolr.training.training_config import TrainingConfig
from tests.cli.conftest import Run

QUICK = LambdaMartSettings(trees=10, leaves=4, learning_rate=0.1, min_documents_per_leaf=10, threads=1)


def provenance(model: Path) -> dict[str, object]:
    content: dict[str, object] = json.loads((model / "model.json").read_text())["provenance"]
    return content


def test_it_writes_a_model_that_can_be_evaluated(run: Run, tiny: Path, tmp_path: Path) -> None:
    result = run("oracle", "--data", tiny, "--out", tmp_path / "model", "--threads", 1)
    assert result.status == 0, result.err
    assert "lambdamart, ndcg@10 0." in result.err
    assert "on vali (queries without a relevant document skipped)" in result.err
    assert isinstance(load_policy(tmp_path / "model"), TreesPolicy)
    described = provenance(tmp_path / "model")
    assert (described["oracle"], described["fold"]) == ("lambdamart", 1)
    evaluated = json.loads(run("evaluate", tmp_path / "model", "--data", tiny, "--json").out)
    assert 0 < evaluated["measures"]["ndcg@10"] <= 1


def test_the_best_says_what_was_tried(run: Run, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle_best, "TUNED_LAMBDAMART", (QUICK,))
    monkeypatch.setattr(oracle_best, "NETWORK_TRAINING", TrainingConfig(steps=2))
    result = run("oracle", "--data", tiny, "--out", tmp_path / "model", "--best", "--threads", 1)
    assert result.status == 0, result.err
    described = provenance(tmp_path / "model")
    tried = described["tried"]
    assert isinstance(tried, dict)
    assert len(tried) == 2 + 1 + 3
    assert described["chosen"] == max(tried, key=lambda name: tried[name])
    assert result.err.count("ndcg@10") == 6 + 1


def test_a_model_that_is_there_is_not_replaced_unasked(run: Run, tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    result = run("oracle", "--data", tiny, "--out", tmp_path / "model")
    assert result.status == 2
    assert "already exists" in result.err
    (tmp_path / "model" / "thesis.txt").write_text("precious")
    result = run("oracle", "--data", tmp_path / "nowhere", "--out", tmp_path / "model", "--overwrite")
    assert "has no model.json, so it is not replaced" in result.err, "before anything is read"
