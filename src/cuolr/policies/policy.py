"""The interface of ranking policies, which rank the candidates of a query and can be saved."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from cuolr.config import Range, check_arguments
from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.progress import Progress
from cuolr.registry import Registry
from cuolr.types import Candidates, FeatureRecipe, Floats, Ints, Strings

POLICIES: Registry[type["RankingPolicy"]] = Registry(
    "policy", package="cuolr.policies", entry_points="cuolr.policies", base="RankingPolicy", variable="POLICIES"
)


class Ranks(Protocol):
    """Anything that ranks candidates: a policy, or a fitted `Ranker`."""

    def rank(self, candidates: Candidates, k: int) -> Ints:
        """[n_queries, k] as `RankingPolicy.rank`."""


class RankingPolicy(ABC):
    """Ranks the candidates of each query.

    Attributes:
        provenance: Where the policy comes from, if it was loaded from a folder that records it.
    """

    provenance: Mapping[str, Any] = MappingProxyType({})

    @property
    def n_features(self) -> int | None:
        """F, the number of features that documents must have; None = any number."""
        return None

    @property
    def recipe(self) -> FeatureRecipe | None:
        """How columns of a table become the features of documents, as in training; None = not known."""
        return None

    @property
    def feature_names(self) -> Strings | None:
        """[F] the names of the features, in the order of training; None = not known."""
        return None

    @abstractmethod
    def rank(self, candidates: Candidates, k: int) -> Ints:
        """The best `k` documents of each query.

        Returns:
            [n_queries, k] the candidate index of the document at each position, 0 = the query's first document; each
            document at most once; −1 after the last one of a query that has fewer than k.
        """

    def sampled(self, seed: int) -> "RankingPolicy":
        """The same policy, but each document is sampled from the policy's distribution instead of taking the best."""
        raise InputError("this policy is deterministic; rankings cannot be sampled from it")

    @abstractmethod
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The learned parameters, by name."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Everything else needed to rebuild the policy, as JSON values."""

    @classmethod
    @abstractmethod
    def from_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Rebuild a policy from its `arrays` and `settings`."""


class NormalisedPolicy(RankingPolicy):
    """Scales the features of documents first, as in training.

    Attributes:
        normaliser: Fitted on the training candidates.
    """

    normaliser: Normaliser

    @property
    def recipe(self) -> FeatureRecipe | None:
        """How columns of a table become the features of documents, as in training; None = not known."""
        return self.normaliser.recipe

    @property
    def feature_names(self) -> Strings | None:
        """[F] the names of the features, in the order of training; None = not known."""
        return self.normaliser.feature_names


class ScoringPolicy(RankingPolicy):
    """Scores each document and sorts by score, with ties in input order."""

    @abstractmethod
    def score(self, candidates: Candidates) -> Floats:
        """[n_documents] the score of each document, higher = better."""

    def rank(self, candidates: Candidates, k: int) -> Ints:
        """The k best documents of each query by score."""
        check_arguments(k=(k, Range(1)))
        return rank_by_score(self.score(candidates), candidates.offsets, k)


class ScaledScoringPolicy(ScoringPolicy, NormalisedPolicy):
    """Scores each document by its scaled features only."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """F, the number of features that documents must have."""

    @abstractmethod
    def score_scaled(self, features: Floats) -> Floats:
        """[n] the scores of one or more scaled documents [n, F + M]; each bit-identical whatever the others are."""

    def score_raw(self, features: Floats) -> Floats:
        """[n] the scores of the documents [n, F] of one query, the same bits as `score` gives; n is at least 1."""
        return self.score_scaled(self.normaliser.transform(features))

    def score(self, candidates: Candidates) -> Floats:
        """[n_documents] the scores, higher = better; computed in parts, to avoid a scaled copy of all documents."""
        candidates = self.normaliser.as_fitted(candidates, self.n_features)
        scores = np.empty(candidates.n_documents, np.float32)
        for rows, scaled in self.normaliser.in_parts(candidates):
            if len(scaled):
                scores[rows] = self.score_scaled(scaled)
        return scores


def rank_by_score(scores: npt.NDArray[np.floating], offsets: Ints, k: int) -> Ints:
    """Sort the documents of each query by descending score, with ties in input order.

    Args:
        scores: [n_documents] the scores.
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

    def rank(self, candidates: Candidates, k: int, queries: Ints | None = None) -> Ints:
        """[n_queries, k] as `RankingPolicy.rank`; only the features of a part are read, or copied, at a time.

        Args:
            candidates: The documents of all queries.
            k: Length of the lists.
            queries: The queries to rank, in this order; None = all.
        """
        if queries is None:
            queries = np.arange(candidates.n_queries)
        parts = []
        for start in range(0, max(len(queries), 1), QUERIES_AT_A_TIME):
            part = queries[start : start + QUERIES_AT_A_TIME]
            parts.append(self.policy.rank(candidates.select(part), k))
            self.progress(len(part))
        return np.concatenate(parts)
