"""Sessions of a query in groups, each under a copy of the query."""

from dataclasses import replace

import numpy as np

from cuolr.logs.clicklog import ClickLog
from cuolr.types import Ints

# From this number on, queries are held out, resampled, and what intervals are over; with fewer, their sessions are.
MANY_QUERIES = 10


def in_groups(log: ClickLog, group: Ints, groups: int) -> ClickLog:
    """The same sessions, each under its group's copy of the query, with copies of the documents.

    What is done by query, such as holding out and resampling, is then done by group of sessions, where there are too
    few queries for it.

    Args:
        log: A log of n queries.
        group: [M] the group of each row, from 0.
        groups: The number of groups.

    Returns:
        A log of groups · n queries; query q of group g is number g·n + q.
    """
    queries = np.tile(np.arange(log.candidates.n_queries), groups)
    query = group * log.candidates.n_queries + log.query
    return replace(log, candidates=log.candidates.select(queries), query=query.astype(np.int32))
