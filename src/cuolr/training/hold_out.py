"""Validation without labels: a share of the queries is held out, and nothing is learned from their clicks."""

import numpy as np

from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.training.batches import WeightedLists
from cuolr.types import Ints

# Rows of the log that are read together, so that memory does not grow with the log.
ROWS_AT_A_TIME = 1 << 18


def held_out_queries(log: ClickLog, share: float, seed: int) -> Ints:
    """A random part of the queries with at least one shown document; at least one query.

    Args:
        log: With two such queries or more.
        share: Of these queries, above 0 and below 1.
        seed: Decides which ones.
    """
    if not 0 < share < 1:
        raise InputError(f"share of the queries to hold out: expected above 0 and below 1, found {share}")
    queries = _queries_shown(log)
    if len(queries) < 2:
        raise InputError(
            f"expected documents shown for at least 2 queries, to hold one out for validation, found {len(queries)}; "
            "validate on labelled queries"
        )
    n_held_out = min(max(1, round(share * len(queries))), len(queries) - 1)
    return np.random.default_rng(seed).permutation(queries)[:n_held_out]


def split_by_query(log: ClickLog | WeightedLists, held_out: Ints) -> tuple[Ints, Ints]:
    """The rows of all queries but the held-out ones, and the rows of these."""
    is_held_out = np.zeros(log.candidates.n_queries, np.bool_)
    is_held_out[held_out] = True
    of_row = is_held_out[log.query]
    return np.flatnonzero(~of_row), np.flatnonzero(of_row)


def sample_rows(rows: Ints, at_most: int, seed: int) -> Ints:
    """All rows, or a random sample of as many as are allowed, in order."""
    if len(rows) <= at_most:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, at_most, replace=False))


def _queries_shown(log: ClickLog) -> Ints:
    """Queries with a document in the log, in order: a learner that pools sessions has no others."""
    shown = np.zeros(log.candidates.n_queries, np.bool_)
    for start in range(0, len(log), ROWS_AT_A_TIME):
        part = log.select(slice(start, start + ROWS_AT_A_TIME))
        shown[part.query[part.where.any(axis=1)]] = True
    return np.flatnonzero(shown)
