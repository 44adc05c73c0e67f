"""Each correction beats `naive` where its assumption holds, and each baseline beats the policy that logged.

Over five folds or seeds, paired over the queries of all of them. About nine minutes on two cores: a subset of the
baselines and of the click models on each data set.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuolr.clicks.click_model import click_model
from cuolr.clicks.randomisation import randomise
from cuolr.clicks.simulate import simulate
from cuolr.data.letor.reader import read_letor
from cuolr.data.synthetic import generate_splits
from cuolr.evaluation.evaluate import evaluate, score_on
from cuolr.evaluation.significance import compare
from cuolr.policies.policy import RankingPolicy
from cuolr.supervised.ranksvm import fit_ranksvm
from cuolr.training.presets.configure import configure
from cuolr.types import Doubles, RankingDataset
from tests.training.tasks import fit_log

# Half of what the lists of a fold need to be seen often enough for their clicks to be nearly without noise.
SESSIONS, RANDOM_LISTS = 300_000, 500_000
# The default preset, stopped earlier to save time.
TRAINING = {"training.steps": 400, "training.validate_every": 25, "training.patience": 6}

Splits = tuple[RankingDataset, RankingDataset, RankingDataset]


def web10k_like() -> Iterator[Splits]:
    """Five worlds of 1,000 training queries."""
    for seed in range(1, 6):
        yield generate_splits("web10k-like", 1_000, 300, 500, seed)


def mq2008(folder: Path) -> Iterator[Splits]:
    """The five folds."""
    for fold in range(1, 6):
        files = (folder / f"Fold{fold}" / f"{split}.txt" for split in ("train", "vali", "test"))
        train, validation, test = (read_letor(file, max_grade=2) for file in files)
        yield train, validation, test


@dataclass(frozen=True)
class Trained:
    """nDCG@10 of each test query, by learner; and of the logging policy, as `logging`."""

    per_query: dict[str, Doubles]


def train_all(splits: Splits, clicks: str, learners: dict[str, dict[str, Any]], seed: int, folder: Path) -> Trained:
    """Simulate a log and train each learner on it; the best step on validation is measured on test.

    Args:
        splits: Labelled queries; a RankSVM on 1 % of the training queries is the logging policy.
        clicks: Name of the click model.
        learners: Settings by the learner's name.
        seed: Of the logging policy, the log and the training.
    """
    train, validation, test = splits
    model, logger = click_model(clicks), fit_ranksvm(train, 0.01, seed)
    log = simulate(train, logger, model, SESSIONS, seed=seed)
    propensities = randomise(train, model, RANDOM_LISTS, seed=seed)
    per_query = {"logging": ndcg(logger, test)}
    for name, settings in learners.items():
        config = configure(name, settings={"training.seed": seed, **TRAINING, **settings})
        best = fit_log(log, config, score_on(validation), propensities).best
        assert best is not None
        per_query[name] = ndcg(best.policy, test)
    return Trained(per_query)


def ndcg(policy: RankingPolicy, test: RankingDataset) -> Doubles:
    """[n_queries] nDCG@10; NaN for queries without a relevant document."""
    return evaluate(policy, test, ["ndcg@10"]).per_query["ndcg@10"]


def pooled(runs: list[Trained]) -> dict[str, Doubles]:
    """The values of all folds or seeds, one after the other."""
    return {name: np.concatenate([run.per_query[name] for run in runs]) for name in runs[0].per_query}


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
