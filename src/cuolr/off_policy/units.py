"""What the interval of a gain is over: queries, or groups of the sessions of a log of few queries."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from cuolr.logs.clicklog import ClickLog
from cuolr.logs.session_groups import MANY_QUERIES
from cuolr.random import FIXED_SEED
from cuolr.types import Doubles, Ints

# Number of groups of sessions, if there are few queries.
SESSION_GROUPS = 30
# Groups of queries, at most, whose influence on shared parameters is computed one by one.
MAX_QUERY_GROUPS = 200


@dataclass(frozen=True)
class Units:
    """The units of a log, in groups.

    Attributes:
        of_row: [M] the unit of each row of the log: its query, or its group of sessions.
        group: [units] the group of each unit.
        groups: G.
        of_sessions: Whether the units are groups of sessions; each is then a group of its own.
    """

    of_row: Ints
    group: Ints
    groups: int
    of_sessions: bool

    @classmethod
    def of(cls, log: ClickLog) -> Self:
        """Queries, in groups if there are very many; or groups of sessions, if the log is raw and of few queries."""
        queries = np.unique(log.query).astype(np.int64)
        if len(queries) < MANY_QUERIES and log.of_sessions:
            of_row = session_groups(len(log))
            groups = min(SESSION_GROUPS, len(log))
            return cls(of_row, np.arange(groups), groups, of_sessions=True)
        groups = min(len(queries), MAX_QUERY_GROUPS)
        group = np.zeros(log.candidates.n_queries, np.int64)
        group[np.random.default_rng(FIXED_SEED).permutation(queries)] = np.arange(len(queries)) % groups
        return cls(log.query.astype(np.int64), group, groups, of_sessions=False)

    def sums(self, weights: Doubles) -> Doubles:
        """[units] the sums of the weights [M] of the rows of the log."""
        return np.bincount(self.of_row, weights=weights, minlength=len(self.group)).astype(np.float64)

    def by_group(self, values: Doubles) -> Doubles:
        """[G] the sums of the values [units]."""
        return np.bincount(self.group, weights=values, minlength=self.groups).astype(np.float64)


def session_groups(sessions: int) -> Ints:
    """[M] the group of each session, at random."""
    groups: Ints = np.random.default_rng(FIXED_SEED).permutation(sessions) % min(SESSION_GROUPS, sessions)
    return groups
