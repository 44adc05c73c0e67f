"""Ranking SVM on labels: the logging policy of the paper, a linear ranker trained on a few labelled queries.

Left of the wall: it reads relevance labels, so it is not a learner.
"""

import numpy as np

from cuolr.config import Range, check_arguments
from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.policies.linear_policy import MAX_PAIR_VALUES, LinearPolicy, draw_pairs, fit_pairs
from cuolr.random import DEFAULT_SEED
from cuolr.types import Ints, RankingDataset


def fit_ranksvm(
    dataset: RankingDataset,
    fraction: float = 0.01,
    seed: int = DEFAULT_SEED,
    normalising: str = "log-min-max",
    C: float = 10.0,
    pairs_per_query: int = 1_000,
) -> LinearPolicy:
    """Ranking SVM on pair differences: min_w ½|w|² + C·mean max(0, 1 − w·(x_better − x_worse))².

    Section 5.1: trained on 1 % of the training data. Features are normalised by all training candidates, which needs no
    labels.

    Args:
        dataset: The training queries with their grades.
        fraction: Share of the queries to train on, above 0 and at most 1. If none of them has two different grades,
            more are drawn until one has.
        seed: Seed of the sample of queries and pairs.
        normalising: How features are scaled, see `Normaliser`.
        C: Weight of the mean loss over pairs against |w|².
        pairs_per_query: Maximum number of document pairs per query; lower if memory requires it.
    """
    check_arguments(fraction=(fraction, Range(above=0, at_most=1)), seed=(seed, Range(0)))
    rng = np.random.default_rng(seed)
    queries = _draw_queries(dataset, fraction, rng)
    normaliser = Normaliser.fit(normalising, dataset.candidates)
    sample = dataset.select(queries)
    affordable = MAX_PAIR_VALUES // (len(queries) * (sample.candidates.n_features + normaliser.n_indicators))
    better, worse = draw_pairs(
        sample.relevance, sample.candidates.offsets, max(1, min(pairs_per_query, affordable)), rng
    )
    scaled = normaliser.apply(sample.candidates).features
    weights = fit_pairs(scaled, better, worse, C)
    return LinearPolicy(weights.astype(np.float32), normaliser)


def _draw_queries(dataset: RankingDataset, fraction: float, rng: np.random.Generator) -> Ints:
    """A random sample of the queries, at least one of which has documents of two grades."""
    query = dataset.candidates.query_of_document
    lowest = np.full(dataset.candidates.n_queries, dataset.max_grade)
    highest = np.zeros(dataset.candidates.n_queries, np.int64)
    np.minimum.at(lowest, query, dataset.relevance)
    np.maximum.at(highest, query, dataset.relevance)
    order = rng.permutation(dataset.candidates.n_queries)
    with_pairs = np.flatnonzero((highest > lowest)[order])
    if not len(with_pairs):
        raise InputError(
            f"none of the {len(order)} training queries has documents of two different grades; "
            "a ranker cannot be trained on them"
        )
    wanted = round(fraction * len(order))
    return order[: max(wanted, with_pairs[0] + 1)]
