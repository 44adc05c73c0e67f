"""What every ranking policy does: put a query's candidates in order, and take itself apart to be saved."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError, check_at_least
from cuolr.registry import Registry
from cuolr.types import Candidates, Floats, Ints

POLICIES: Registry[type["RankingPolicy"]] = Registry("policy", package="cuolr.policies", entry_points="cuolr.policies")
# What k is called where it is refused.
LENGTH = "length of the rankings"


class RankingPolicy(ABC):
    """Puts the candidates of each query in order."""

    @property
    def n_features(self) -> int | None:
        """F, how many features the documents must have; None = any number."""
        return None

    @abstractmethod
    def rank(self, candidates: Candidates, k: int) -> Ints:
        """The best `k` documents of each query.

        Returns:
            [n_queries, k] the slot of the document at each position, 0 = the query's first row; each document at
            most once; −1 after the last one of a query that has fewer than k.
        """

    def sampled(self, seed: int) -> "RankingPolicy":
        """The same policy with each document drawn from its distribution instead of the best, where it has one."""
        raise InputError("this model gives one ranking and has no distribution to draw from")

    @abstractmethod
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What was learned, by name; empty where nothing is."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What else it takes to rebuild the policy, as JSON can hold it."""

    @classmethod
    @abstractmethod
    def from_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """The policy that `arrays` and `settings` were taken from."""


class ScoringPolicy(RankingPolicy):
    """Gives each document a score of its own and sorts by it, ties in input order."""

    @abstractmethod
    def score(self, candidates: Candidates) -> Floats:
        """[n_documents] higher = better."""

    def rank(self, candidates: Candidates, k: int) -> Ints:
        """The k best documents of each query by score."""
        check_at_least(LENGTH, k, 1)
        return rank_by_score(self.score(candidates), candidates.offsets, k)


class ScaledScoringPolicy(ScoringPolicy):
    """Scores documents by their scaled features alone.

    Attributes:
        normaliser: Fitted on the training candidates.
    """

    normaliser: Normaliser

    @property
    @abstractmethod
    def n_features(self) -> int:
        """F, how many features the documents must have."""

    @abstractmethod
    def score_scaled(self, features: Floats) -> Floats:
        """[n] of scaled documents [n, F], at least one; each by itself, to the bit."""

    def score(self, candidates: Candidates) -> Floats:
        """[n_documents] higher = better; some queries at a time, so that no scaled copy of all documents is made."""
        candidates = self.normaliser.as_fitted(candidates, self.n_features)
        scores = np.empty(candidates.n_documents, np.float32)
        for rows, scaled in self.normaliser.in_parts(candidates):
            if len(scaled):
                scores[rows] = self.score_scaled(scaled)
        return scores


def rank_by_score(scores: npt.NDArray[np.floating], offsets: Ints, k: int) -> Ints:
    """Sort the documents of each query by descending score, ties in input order.

    Args:
        scores: [n_documents].
        offsets: [n_queries + 1] where each query's documents begin.
        k: Length of the lists.

    Returns:
        [n_queries, k] slots, −1 after the last document.

    >>> rank_by_score(np.array([0.1, 0.9, 0.9, 0.5]), np.array([0, 3, 4]), k=3)
    array([[ 1,  2,  0],
           [ 0, -1, -1]])
    """
    sizes = np.diff(offsets)
    query = np.repeat(np.arange(len(sizes)), sizes)
    slots = np.lexsort((-scores, query)) - offsets[query]
    position = np.arange(len(scores)) - offsets[query]
    ranking = np.full((len(sizes), k), -1, np.int64)
    shown = position < k
    ranking[query[shown], position[shown]] = slots[shown]
    return ranking
