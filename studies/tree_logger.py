"""A logging policy that is not linear; the numbers are in docs/results/wins-earlier.md.

LambdaMART, trained on the labels of other queries, shows the lists. The default learner learns from clicks on them, its
step chosen by held-out clicks, and both are measured on test queries.

Run: python -m studies.tree_logger [--queries 300]
"""

from collections.abc import Iterator

import numpy as np
import torch
import tyro

from cuolr import Ranker, click_model, evaluate, generate_splits, simulate
from cuolr.cli.terminal import show_table
from cuolr.evaluation.significance import compare
from cuolr.supervised.oracle import LambdaMartSettings, fit_lambdamart

LOGGER = LambdaMartSettings(trees=200, leaves=31, learning_rate=0.05, threads=1)
# Click model, sessions per query, and training steps.
CASES = (("dcm", 10, 60), ("pbm", 200, 150))
MEASURE = "ndcg@10"


def rows_of(data: str, queries: int, seed: int) -> Iterator[list[str]]:
    """The rows of the table, one for each case."""
    both, validation, test = generate_splits(data, 2 * queries, 100, 300, seed=seed)
    labelled, train = (both.select(half) for half in np.split(np.arange(2 * queries), 2))
    logger = fit_lambdamart(labelled, validation, LOGGER)
    for users, sessions_per_query, steps in CASES:
        log = simulate(train, logger, click_model(users), sessions=queries * sessions_per_query, seed=1)
        ranker = Ranker(steps=steps).fit(log)
        ours, theirs = (evaluate(policy, test, [MEASURE]).per_query[MEASURE] for policy in (ranker.policy_, logger))
        seen_ours, seen_theirs = (
            evaluate(policy, train, [MEASURE]).means()[MEASURE] for policy in (ranker.policy_, logger)
        )
        yield [
            f"{users.upper()}, {sessions_per_query} sessions a query, {steps} steps",
            f"{np.nanmean(theirs):.4f}",
            f"{np.nanmean(ours):.4f}",
            f"{compare(ours, theirs).t_test:.3f}",
            f"{seen_theirs:.4f}",
            f"{seen_ours:.4f}",
        ]


def main(data: str = "web10k-like", queries: int = 300, seed: int = 5) -> None:
    """Learn from the clicks on the lists of a LambdaMART.

    Args:
        data: Generated data.
        queries: Number of queries to learn from; the logging policy has the labels of as many others.
        seed: Seed of the data.
    """
    torch.set_num_threads(1)
    columns = ["", "LOGGING", "factored", "p", "LOGGING, queries of the log", "factored"]
    show_table("nDCG@10 on test queries", columns, list(rows_of(data, queries, seed)), left=(0,))


if __name__ == "__main__":
    tyro.cli(main)
