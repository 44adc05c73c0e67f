"""What every ranking policy does: rank the candidates of a query, and give the parts that it is saved as."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from cuolr.config import Range, check_arguments
from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.registry import Registry
from cuolr.types import Candidates, Floats, Ints

POLICIES: Registry[type["RankingPolicy"]] = Registry("policy", package="cuolr.policies", entry_points="cuolr.policies")


class Ranks(Protocol):
    """Whatever ranks candidates: a policy, or a fitted `Ranker`."""

    def rank(self, candidates: Candidates, k: int) -> Ints:
        """[n_queries, k] as `RankingPolicy.rank`."""


class RankingPolicy(ABC):
    """Ranks the candidates of each query.

    Attributes:
        provenance: Where the policy comes from, where it was loaded from a folder that says so.
    """

    provenance: Mapping[str, Any] = MappingProxyType({})

    @property
    def n_features(self) -> int | None:
        """F, the number of features that documents must have; None = any number."""
        return None

    @abstractmethod
    def rank(self, candidates: Candidates, k: int) -> Ints:
        """The best `k` documents of each query.

        Returns:
            [n_queries, k] the candidate index of the document at each position, 0 = the query's first document; each
            document at most once; −1 after the last one of a query that has fewer than k.
        """

    def sampled(self, seed: int) -> "RankingPolicy":
        """The same policy with each document sampled from its distribution, instead of the best one."""
        raise InputError("this policy is deterministic: it has no distribution to sample rankings from")

    @abstractmethod
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The learned parameters by name."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """All else that it takes to rebuild the policy, as JSON can hold it."""

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
        check_arguments(k=(k, Range(1)))
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
        """F, the number of features that documents must have."""

    @abstractmethod
    def score_scaled(self, features: Floats) -> Floats:
        """[n] of scaled documents [n, F], at least one; each by itself, to the bit."""

    def score(self, candidates: Candidates) -> Floats:
        """[n_documents] higher = better; computed in parts, so that no scaled copy of all documents is made."""
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
        [n_queries, k] candidate indices, −1 after the last document.

    >>> rank_by_score(np.array([0.1, 0.9, 0.9, 0.5]), np.array([0, 3, 4]), k=3)
    array([[ 1,  2,  0],
           [ 0, -1, -1]])
    """
    sizes = np.diff(offsets)
    query = np.repeat(np.arange(len(sizes)), sizes)
    index = np.lexsort((-scores, query)) - offsets[query]
    position = np.arange(len(scores)) - offsets[query]
    ranking = np.full((len(sizes), k), -1, np.int64)
    shown = position < k
    ranking[query[shown], position[shown]] = index[shown]
    return ranking
