"""Validation without labels: some queries are held out, and their clicks are not used in training.

A log of few queries holds out some sessions of each query instead.
"""

import numpy as np

from cuolr.config import Range, check_arguments
from cuolr.errors import InputError
from cuolr.logs.changed_candidates import MANY_QUERIES, in_groups
from cuolr.logs.clicklog import ClickLog, require_single_sessions
from cuolr.training.batches import WeightedLists
from cuolr.types import Ints

# Number of rows read at a time, so that memory does not grow with the log.
ROWS_AT_A_TIME = 1 << 18
# The other sessions are in this many groups, for learners that fit and stack rankers on different queries.
TRAINING_GROUPS = 9


def held_out_queries(log: ClickLog, share: float, seed: int) -> Ints:
    """A random sample of the queries with shown documents; at least one query.

    Args:
        log: A log with at least two such queries.
        share: Share of these queries to hold out, above 0 and below 1.
        seed: Seed of the sample.
    """
    _check_sample(share, seed)
    queries = queries_shown(log)
    if len(queries) < 2:
        raise InputError(
            f"log: expected at least 2 queries with shown documents, to hold one out, found {len(queries)}; "
            "validate on labelled queries instead"
        )
    n_held_out = min(max(1, round(share * len(queries))), len(queries) - 1)
    return np.random.default_rng(seed).permutation(queries)[:n_held_out]


def held_out_sessions(log: ClickLog, share: float, seed: int) -> Ints:
    """The rows of a random sample of the sessions that show documents; at least one, and not all.

    Args:
        log: Raw sessions.
        share: Share of these sessions to hold out.
        seed: Seed of the sample.
    """
    _check_sample(share, seed)
    require_single_sessions(log, f"a log of fewer than {MANY_QUERIES} queries")
    rows = np.flatnonzero(log.where.any(axis=1))
    if len(rows) < 2:
        raise InputError(f"log: expected at least 2 sessions with shown documents, found {len(rows)}")
    n_held_out = min(max(1, round(share * len(rows))), len(rows) - 1)
    return np.sort(np.random.default_rng(seed).permutation(rows)[:n_held_out])


def with_held_out_sessions(log: ClickLog, share: float, seed: int) -> tuple[ClickLog, Ints]:
    """The log with its sessions in groups, and the queries of the group that is held out; see `in_groups`."""
    group = 1 + np.random.default_rng(seed).permutation(len(log)) % TRAINING_GROUPS
    group[held_out_sessions(log, share, seed)] = 0
    return in_groups(log, group, TRAINING_GROUPS + 1), np.arange(log.candidates.n_queries)


def _check_sample(share: float, seed: int) -> None:
    """Raise if a sample cannot be drawn: the settings may be those that a model recorded."""
    check_arguments(share=(share, Range(above=0, below=1)), seed=(seed, Range(0)))


def split_by_query(log: ClickLog | WeightedLists, held_out: Ints) -> tuple[Ints, Ints]:
    """The rows of the training queries, and the rows of the held-out queries."""
    is_held_out = np.zeros(log.candidates.n_queries, np.bool_)
    is_held_out[held_out] = True
    of_row = is_held_out[log.query]
    return np.flatnonzero(~of_row), np.flatnonzero(of_row)


def sample_rows(rows: Ints, at_most: int, seed: int) -> Ints:
    """All rows, or a sorted random sample of `at_most` rows."""
    if len(rows) <= at_most:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, at_most, replace=False))


def queries_shown(log: ClickLog) -> Ints:
    """Queries with a shown document, ascending: a learner that pools sessions has no others."""
    shown = np.zeros(log.candidates.n_queries, np.bool_)
    for start in range(0, len(log), ROWS_AT_A_TIME):
        part = log.select(slice(start, start + ROWS_AT_A_TIME))
        shown[part.query[part.where.any(axis=1)]] = True
    return np.flatnonzero(shown)
