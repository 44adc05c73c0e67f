"""Small click logs for tests, and a policy for them."""

from dataclasses import replace

import numpy as np

from cuolr.data.normalise import Normaliser
from cuolr.logs.clicklog import ClickLog
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.types import Candidates


def small_candidates(queries: int = 6, n_features: int = 4, seed: int = 0, least: int = 3, most: int = 8) -> Candidates:
    """Queries of different numbers of documents, with features of different scale."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(least, most + 1, queries)
    features = rng.standard_normal((sizes.sum(), n_features)) * np.arange(1, n_features + 1)
    query_ids = np.array([f"q{i}" for i in range(queries)])
    return Candidates(features.astype(np.float32), np.concatenate([[0], np.cumsum(sizes)]), query_ids)


def small_log(rows: int = 40, k: int = 5, seed: int = 0, queries: int = 6) -> ClickLog:
    """Sessions with random lists, some shorter than k; documents with a high first feature are clicked more often."""
    candidates = small_candidates(queries, seed=seed)
    rng = np.random.default_rng(seed + 1)
    query = rng.integers(0, candidates.n_queries, rows).astype(np.int32)
    ranking = np.full((rows, k), -1, np.int16)
    for row, size in enumerate(candidates.sizes[query]):
        shown = min(k, size)
        ranking[row, :shown] = rng.permutation(size)[:shown]
    documents = np.where(ranking >= 0, candidates.offsets[query, None] + ranking, 0)
    attractiveness = 1 / (1 + np.exp(-2 * candidates.features[documents, 0]))
    clicks = (rng.random((rows, k)) < attractiveness) & (ranking >= 0)
    return ClickLog(candidates, query, ranking, clicks.astype(np.uint8), np.ones(rows, np.int64))


def counted_log(rows: int = 40) -> ClickLog:
    """The same as an aggregated log whose row i stands for i + 1 sessions, so that the weight tells rows apart."""
    log = small_log(rows)
    return replace(log, clicks=log.clicks.astype(np.float64), count=np.arange(1, rows + 1), aggregated=True)


def linear_policy(log: ClickLog) -> LinearPolicy:
    """It likes what users of `small_log` click: documents with a high first feature."""
    return LinearPolicy(np.array([1.0, 0.0, 0.5, 0.0], np.float32), Normaliser.fit("min-max", log.candidates))


def with_missing_values(candidates: Candidates, share: float = 0.3, seed: int = 0) -> Candidates:
    """The same candidates without some values of the last two features."""
    missing = np.random.default_rng(seed).random(candidates.features.shape) < share
    missing[:, :-2] = False
    return replace(candidates, features=np.where(missing, np.float32(np.nan), candidates.features))
