"""Error of estimated examination, by logging policy and by randomisation; the numbers are in docs/learners/factored.md.

Mean absolute error of log χ over positions 1 to 8, without a click above and right below a click.

Run: python -m studies.examination_error [--queries 1000] [--seed 5]
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import tyro

from cuolr import click_model, fit_ranksvm, generate_splits, simulate
from cuolr.cli.terminal import show_table
from cuolr.clicks.pbm import EYE_TRACKING
from cuolr.data.normalise import Normaliser
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import ClickCounts
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.policies.logging_policy_model import LoggingPolicyModel
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.policies.policy import ScoringPolicy
from cuolr.supervised.oracle import LambdaMartSettings, fit_lambdamart
from cuolr.types import Doubles, RankingDataset

POSITIONS = 8
TEMPERATURE = 0.1
LAMBDAMART = LambdaMartSettings(trees=200, leaves=31, learning_rate=0.05, threads=1)
CASES = (("weak", 200), ("strong", 200), ("strong", 10), ("lambdamart", 200), ("lambdamart", 10))
# log χ relative to position 1: without a click above, and right below a click, from position 2 on.
RHO = np.log(np.array(EYE_TRACKING[:POSITIONS]))
TRUTH: Mapping[str, tuple[Doubles, Doubles]] = {
    "pbm": (RHO - RHO[0], RHO[1:] - RHO[0]),
    "dcm": (np.zeros(POSITIONS), RHO[:-1]),
}


@dataclass(frozen=True)
class Error:
    """Mean absolute error of log χ: without a click above, and right below a click."""

    unclicked: float
    below_click: float

    def __str__(self) -> str:
        return f"{self.unclicked:.2f} / {self.below_click:.2f}"


def error_of(log: ClickLog, users: str) -> Error:
    """The error of the examination estimated from a log of such users."""
    normaliser = Normaliser.fit("log-min-max", log.candidates)
    counts = ClickCounts.of(log)
    shown = ScaledDocuments.of(counts.lists, normaliser)
    scores = LoggingPolicyModel.fit(counts.lists, normaliser, seed=0, folds=3).scores(shown.features)
    table = np.log(ExaminationModel.from_counts(counts, scores[shown.documents]).probabilities())
    found = table[:POSITIONS, 0], np.array([table[k, k] for k in range(1, POSITIONS)])
    return Error(*(float(np.nanmean(np.abs(f - t))) for f, t in zip(found, TRUTH[users], strict=True)))


def with_odd_lists(log: ClickLog, drawn: ClickLog, queries: int) -> ClickLog:
    """The log, with the sessions of some queries of another log added."""
    odd = drawn.select(np.flatnonzero(drawn.query < queries))
    columns: dict[str, Any] = {n: np.concatenate([values, odd.columns[n]]) for n, values in log.columns.items()}
    return replace(log, **columns)


def rows_of(train: RankingDataset, loggers: Mapping[str, ScoringPolicy]) -> Iterator[list[str]]:
    """The rows of the table: one list per query, lists drawn in each session, and ten of these for five queries."""
    queries = train.candidates.n_queries
    for name, sessions in CASES:
        row = [f"{name}, {sessions}"]
        for users in ("pbm", "dcm"):
            model = click_model(users)
            stochastic = StochasticLogger(loggers[name], TEMPERATURE)
            fixed = simulate(train, loggers[name], model, sessions=sessions * queries, seed=1)
            drawn = simulate(train, stochastic, model, sessions=sessions * queries, seed=1)
            few = simulate(train, stochastic, model, sessions=10 * queries, seed=2)
            few = replace(few, logging_propensity=None)
            row += [str(error_of(log, users)) for log in (fixed, with_odd_lists(fixed, few, 5), drawn)]
        yield row


def main(queries: int = 1_000, seed: int = 5) -> None:
    """Measure the error of χ for several loggers.

    Args:
        queries: Number of queries of `web10k-like`.
        seed: Seed of the data.
    """
    torch.set_num_threads(1)
    train, validation, _ = generate_splits("web10k-like", queries, 200, 10, seed=seed)
    loggers: dict[str, ScoringPolicy] = {
        "weak": fit_ranksvm(train, 0.01, seed=1),
        "strong": fit_ranksvm(train, 1.0, seed=1),
        "lambdamart": fit_lambdamart(train, validation, LAMBDAMART),
    }
    columns = ["logger, sessions a query"]
    columns += [f"{users}: {lists}" for users in ("PBM", "DCM") for lists in ("one list", "and few odd ones", "drawn")]
    show_table("Error of log χ", columns, list(rows_of(train, loggers)), left=(0,))


if __name__ == "__main__":
    tyro.cli(main)
