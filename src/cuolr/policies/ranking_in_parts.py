"""Ranking that reports its progress."""

from dataclasses import dataclass

import numpy as np

from cuolr.policies.policy import RankingPolicy
from cuolr.progress import Progress
from cuolr.types import Candidates, Ints

# Number of queries that are ranked at a time.
QUERIES_AT_A_TIME = 500


@dataclass(frozen=True)
class RankingInParts:
    """Ranks a part of the queries at a time, with the same result.

    Attributes:
        policy: Must rank each query by itself, which policies that sample do not.
        progress: Called with the number of queries of each part.
    """

    policy: RankingPolicy
    progress: Progress

    def rank(self, candidates: Candidates, k: int) -> Ints:
        """[n_queries, k] as `RankingPolicy.rank`."""
        parts = []
        for start in range(0, max(candidates.n_queries, 1), QUERIES_AT_A_TIME):
            queries = np.arange(start, min(start + QUERIES_AT_A_TIME, candidates.n_queries))
            parts.append(self.policy.rank(candidates.select(queries), k))
            self.progress(len(queries))
        return np.concatenate(parts)
