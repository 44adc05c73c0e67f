"""Off-policy evaluation of models against their true gain; the numbers are in docs/results/wins-earlier.md.

For a weak logging policy with many sessions and a strong one with few: the recommendation for the default learner's
model on the log that it learned from and on a second log of the same policy, and the gain in expected clicks.

Run: python -m studies.recommendations --data MQ2008 [--steps 300]
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import tyro

from cuolr import Ranker, click_model, evaluate, fit_ranksvm, simulate
from cuolr.cli.options import DataOptions
from cuolr.cli.terminal import show_table
from cuolr.off_policy.recommendation import OffPolicyEvaluation
from cuolr.policies.policy import RankingPolicy
from cuolr.types import RankingDataset


@dataclass(frozen=True)
class Logger:
    """A logging policy, RankSVM on a fraction of the labelled queries, and the number of sessions per query."""

    name: str
    fraction: float
    sessions_per_query: int


LOGGERS = (Logger("weak", 0.01, 200), Logger("strong", 1.0, 10))


@dataclass(frozen=True)
class Evaluated:
    """A model, evaluated on the log that it learned from and on a second one, and its true gain in clicks."""

    logger: Logger
    click_model: str
    own: OffPolicyEvaluation
    second: OffPolicyEvaluation
    truth: float


def evaluate_both(train: RankingDataset, logger: Logger, users: str, steps: int) -> Evaluated:
    """Train on a log, and assess the model on it and on another."""
    production = fit_ranksvm(train, logger.fraction, seed=1)
    sessions = logger.sessions_per_query * train.candidates.n_queries
    own, second = (simulate(train, production, click_model(users), sessions=sessions, seed=seed) for seed in (1, 2))
    ranker = Ranker(steps=steps).fit(own)
    truth = true_gain(train, ranker.policy_, production, users, own.k)
    return Evaluated(logger, users, ranker.assess(own), ranker.assess(second), truth)


def true_gain(train: RankingDataset, policy: RankingPolicy, production: RankingPolicy, users: str, k: int) -> float:
    """The gain in expected clicks if `policy` shows its own lists."""
    measure = f"clicks:{users}@{k}"
    clicks = [np.nansum(evaluate(ranker, train, [measure]).per_query[measure]) for ranker in (policy, production)]
    return float(clicks[0] / clicks[1] - 1)


def rows_of(models: Iterator[Evaluated]) -> Iterator[list[str]]:
    """The rows of the table."""
    for model in models:
        yield [
            f"{model.logger.name} logger, {model.click_model.upper()}",
            f"{model.own.never_shown:.0%}",
            f"{model.own.overlap:.0%}",
            "–" if model.own.logging_policy_share is None else f"{model.own.logging_policy_share:.0%}",
            *(
                f"{evaluation.recommendation}: {evaluation.gain:+.1%} ({evaluation.interval_text})"
                for evaluation in (model.own, model.second)
            ),
            f"{model.truth:+.1%}",
        ]


def main(data: Path, fold: int = 1, steps: int = 300, click_models: tuple[str, ...] = ("pbm", "dcm")) -> None:
    """Evaluate a model for each logging policy and click model.

    Args:
        data: Folder of a labelled data set.
        fold: Fold whose training queries are logged.
        steps: Training steps.
        click_models: Names of click models.
    """
    torch.set_num_threads(1)
    train = DataOptions(fold=fold).load(data)["train"]
    models = (evaluate_both(train, logger, users, steps) for logger in LOGGERS for users in click_models)
    columns = ["", "never shown", "overlap", "logging policy", "on its own log", "on the second log", "true gain"]
    show_table("Recommendations without labels, and the true gain", columns, list(rows_of(models)), left=(0,))


if __name__ == "__main__":
    tyro.cli(main)
