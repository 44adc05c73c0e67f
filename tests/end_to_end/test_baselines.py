"""Each correction beats `naive` where its assumption holds, and each baseline beats the policy that logged.

Over five folds or seeds, paired over the queries of all of them. About nine minutes on two cores: a subset of the
baselines and of the click models on each data set.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from cuolr.evaluation.significance import compare
from tests.end_to_end.baselines import Splits, mq2008, pooled, train_all, web10k_like

pytestmark = pytest.mark.slow

# Under which click model which corrections are right.
CORRECT: dict[str, dict[str, dict[str, Any]]] = {
    "pbm": {"naive": {}, "ipw": {}, "dla": {}},
    "dcm": {"naive": {}, "cm-ipw": {}},
}


def assert_better(better: Any, worse: Any, what: str) -> None:
    """The mean over queries is higher, and both tests are sure of it."""
    result = compare(better, worse)
    assert result.difference > 0, f"{what}: {result}"
    assert max(result.t_test, result.permutation_test) < 0.05, f"{what}: {result}"


def assert_corrections_help(data: Iterable[Splits], clicks: str, folder: Path) -> None:
    learners = CORRECT[clicks]
    runs = [train_all(splits, clicks, learners, seed, folder) for seed, splits in enumerate(data, start=1)]
    values = pooled(runs)
    for name in learners:
        assert_better(values[name], values["logging"], f"{name} against logging under {clicks}")
    for name in learners.keys() - {"naive"}:
        assert_better(values[name], values["naive"], f"{name} against naive under {clicks}")


@pytest.mark.parametrize("clicks", CORRECT)
def test_corrections_help_on_generated_data(clicks: str, tmp_path: Path) -> None:
    assert_corrections_help(web10k_like(), clicks, tmp_path)


@pytest.mark.parametrize("clicks", CORRECT)
def test_corrections_help_on_mq2008(clicks: str, shared_data: Path, tmp_path: Path) -> None:
    assert_corrections_help(mq2008(shared_data / "MQ2008"), clicks, tmp_path)


def test_the_peers_beat_the_policy_that_logged(tmp_path: Path) -> None:
    peers: dict[str, dict[str, Any]] = {
        "two-tower": {},
        "lightgbm": {"learner.position_bias": True, "training.steps": 100},
    }
    values = train_all(next(web10k_like()), "pbm", peers, seed=1, folder=tmp_path).per_query
    for name in peers:
        assert_better(values[name], values["logging"], f"{name} against logging")
