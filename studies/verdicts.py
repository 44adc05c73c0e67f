"""What is said of a model without labels, beside the truth; the numbers are in docs/results/cuolr-wins.md.

For a weak logger with many sessions and a strong one with few: the default learner's verdict on the log that it learned
from and on a second log of the same logger, and what the simulated users would click.

Run: python -m studies.verdicts --data MQ2008 [--steps 300]
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
from cuolr.supervised.skyline import only_shown
from cuolr.types import RankingDataset


@dataclass(frozen=True)
class Logger:
    """How a log was made: a RankSVM of some of the labelled queries, and so many sessions a query."""

    name: str
    fraction: float
    sessions_per_query: int


LOGGERS = (Logger("weak", 0.01, 200), Logger("strong", 1.0, 10))


@dataclass(frozen=True)
class Judged:
    """A model: what is said of it on the log that it learned from, on a second one, and its true gain in clicks."""

    logger: Logger
    click_model: str
    own: OffPolicyEvaluation
    second: OffPolicyEvaluation
    truth: float


def judge(train: RankingDataset, logger: Logger, users: str, steps: int) -> Judged:
    """Train on a log, and assess the model on it and on another."""
    production = fit_ranksvm(train, logger.fraction, seed=1)
    sessions = logger.sessions_per_query * train.candidates.n_queries
    own, second = (simulate(train, production, click_model(users), sessions=sessions, seed=seed) for seed in (1, 2))
    ranker = Ranker(steps=steps).fit(own)
    truth = true_gain(train, ranker.policy_, production, users, own.k)
    return Judged(logger, users, ranker.assess(own), ranker.assess(second), truth)


def true_gain(train: RankingDataset, policy: RankingPolicy, production: RankingPolicy, users: str, k: int) -> float:
    """Clicks on the lists that production shows, if `policy` puts them in order, relative to those that they get."""
    shown = only_shown(train, production.rank(train.candidates, k))
    measure = f"clicks:{users}@{k}"
    clicks = [np.nansum(evaluate(ranker, shown, [measure]).per_query[measure]) for ranker in (policy, production)]
    return float(clicks[0] / clicks[1] - 1)


def rows_of(judged: Iterator[Judged]) -> Iterator[list[str]]:
    """Of the table."""
    for found in judged:
        yield [
            f"{found.logger.name} logger, {found.click_model.upper()}",
            f"{found.own.never_shown:.0%}",
            f"{found.own.overlap:.0%}",
            "–" if found.own.logging_policy_share is None else f"{found.own.logging_policy_share:.0%}",
            *(f"{said.recommendation}: {said.gain:+.1%} ({said.interval_text})" for said in (found.own, found.second)),
            f"{found.truth:+.1%}",
        ]


def main(data: Path, fold: int = 1, steps: int = 300, click_models: tuple[str, ...] = ("pbm", "dcm")) -> None:
    """Judge a model for each logger and click model.

    Args:
        data: The folder of a labelled data set.
        fold: Whose training queries are logged.
        steps: Of training.
        click_models: Which.
    """
    torch.set_num_threads(1)
    train = DataOptions(fold=fold).load(data)["train"]
    judged = (judge(train, logger, users, steps) for logger in LOGGERS for users in click_models)
    columns = ["", "never shown", "overlap", "logged order", "on its own log", "on the second log", "in truth"]
    show_table("Verdicts without labels, and the truth", columns, list(rows_of(judged)), left=(0,))


if __name__ == "__main__":
    tyro.cli(main)
