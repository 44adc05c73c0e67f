"""The counterfactual baselines on simulated clicks: trained on five folds or seeds, and measured query by query."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cuolr.clicks.click_model import click_model
from cuolr.clicks.randomisation import randomise
from cuolr.clicks.simulate import simulate
from cuolr.data.letor.reader import read_letor
from cuolr.data.synthetic import generate_splits
from cuolr.evaluation.evaluate import evaluate, score_on
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
