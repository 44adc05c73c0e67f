"""The lists of a policy: as a distribution, one list per query or Plackett–Luce, and in the sessions of a log."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import getattr_static
from typing import Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from cuolr.errors import InputError, require_type
from cuolr.off_policy.compared_lists import CountedLists
from cuolr.off_policy.logged_lists import ListProbabilities
from cuolr.policies.plackett_luce import (
    StochasticLogger,
    plackett_luce_marginals,
    plackett_luce_probability,
    sample_plackett_luce,
)
from cuolr.policies.policy import RankingInParts, RankingPolicy
from cuolr.policies.random_policy import UniformLogger
from cuolr.progress import Progress, no_progress
from cuolr.random import FIXED_SEED
from cuolr.types import Bools, Candidates, Doubles, IntegerArray, Ints


@dataclass(frozen=True)
class RankedQueries:
    """A policy with its top k of some queries, so that several estimators do not rank these again.

    Attributes:
        policy: Shows one list per query.
        lists: [n_queries, k] candidate indices, −1 = nothing shown; of the ranked queries only.
    """

    policy: RankingPolicy
    lists: Ints

    @classmethod
    def of(
        cls, policy: RankingPolicy, candidates: Candidates, queries: Ints, k: int, progress: Progress = no_progress
    ) -> Self:
        """Rank these queries.

        Args:
            policy: Shows one list per query.
            candidates: The documents of all queries.
            queries: The queries to rank.
            k: Length of the lists.
            progress: Called with the number of queries of each part.
        """
        lists = np.full((candidates.n_queries, k), -1, np.int64)
        lists[queries] = RankingInParts(policy, progress).rank(candidates, k, queries)
        return cls(policy, lists)


# Where an argument comes from, for the error of another type.
OF_MODELS = "load_policy returns one, and a fitted Ranker has one"
Policy: TypeAlias = RankingPolicy | RankedQueries | StochasticLogger | UniformLogger


class FittedRanker(Protocol):
    """A fitted `Ranker`."""

    @property
    def policy_(self) -> RankingPolicy:
        """What it learned."""


def policy_of(name: str, model: RankingPolicy | FittedRanker) -> RankingPolicy:
    """The policy itself, or that of a fitted `Ranker`.

    Args:
        name: Of the argument, for messages.
        model: The argument.
    """
    if getattr_static(model, "policy_", None) is None:
        require_type(name, model, RankingPolicy, OF_MODELS)
    return model if isinstance(model, RankingPolicy) else model.policy_


# Lists of a stochastic policy that are drawn to see whether the log shows them: per query, and in all.
SAMPLED_LISTS, MAX_SAMPLED_LISTS = 64, 1 << 18
# Values of padded candidates that are computed together, to bound memory.
VALUES_AT_A_TIME = 1 << 22


class ListDistribution(ABC):
    """A policy's distribution over the lists of each query."""

    @abstractmethod
    def probabilities(self, query: IntegerArray, ranking: IntegerArray, marginal: bool) -> ListProbabilities:
        """The probabilities of M lists.

        Args:
            query: [M].
            ranking: [M, K] candidate indices, −1 = nothing shown; documents come first.
            marginal: Whether those by position are computed too, which costs more.
        """

    @abstractmethod
    def sample(self, queries: IntegerArray) -> tuple[Ints, Ints]:
        """[T] queries, and [T, K] the lists that stand for the distribution, equally likely within a query."""

    @abstractmethod
    def expected_values(self, query: IntegerArray, ranking: IntegerArray, position: int, values: Doubles) -> Doubles:
        """[M, V] the mean values of the policy's document at a position, given the documents above.

        Args:
            query: [M].
            ranking: [M, K] as in `probabilities`.
            position: From 0.
            values: [n_documents, V].
        """


@dataclass(frozen=True)
class OneListPerQuery(ListDistribution):
    """A deterministic policy.

    Attributes:
        lists: [n_queries, K] its list for each query; −1 after the last document.
        offsets: [n_queries + 1] where each query's documents begin.
    """

    lists: Ints
    offsets: Ints

    def probabilities(self, query: IntegerArray, ranking: IntegerArray, marginal: bool) -> ListProbabilities:
        """1 where the list has the same document at the same position, otherwise 0."""
        same = ((self.lists[query] == ranking) | (ranking < 0)).astype(np.float64)
        return ListProbabilities(same, same)

    def sample(self, queries: IntegerArray) -> tuple[Ints, Ints]:
        """The list of each query."""
        return queries.astype(np.int64), self.lists[queries]

    def expected_values(self, query: IntegerArray, ranking: IntegerArray, position: int, values: Doubles) -> Doubles:
        """Those of the first document of its list that is not above."""
        lists = self.lists[query]
        above = (lists[:, :, None] == ranking[:, None, :position]).any(axis=2) | (lists < 0)
        place = np.argmin(above, axis=1)
        chosen = np.take_along_axis(lists, place[:, None], axis=1)[:, 0]
        some = ~np.take_along_axis(above, place[:, None], axis=1)
        rows = self.offsets[query] + np.maximum(chosen, 0)
        return np.where(some, values[np.where(some[:, 0], rows, 0)], 0.0)


@dataclass(frozen=True)
class PlackettLuceLists(ListDistribution):
    """A stochastic policy: P(d at position k | above) = exp(s_d) / Σ_{e not above} exp(s_e).

    Attributes:
        scores: [n_documents] the scores, already divided by the temperature.
        candidates: The documents of each query.
        k: Length of the lists.
    """

    scores: Doubles
    candidates: Candidates
    k: int

    def probabilities(self, query: IntegerArray, ranking: IntegerArray, marginal: bool) -> ListProbabilities:
        """By the scores of all candidates of a query."""
        given_above = np.empty(ranking.shape)
        for part in self._parts(query):
            rows, where = self.candidates.padded_rows(query[part])
            given_above[part] = plackett_luce_probability(self.scores[rows], where, ranking[part])
        return ListProbabilities(given_above, self._marginal(query, ranking) if marginal else None)

    def _marginal(self, query: IntegerArray, ranking: IntegerArray) -> Doubles:
        queries, of = np.unique(query, return_inverse=True)
        k = ranking.shape[1]
        by_document = np.ones((self.candidates.n_documents, k))
        for part in self._parts(queries):
            rows, where = self.candidates.padded_rows(queries[part])
            by_document[rows[where]] = plackett_luce_marginals(self.scores[rows], where, k)[where]
        documents = self.candidates.offsets[queries[of], None] + np.maximum(ranking, 0)
        marginal = np.minimum(by_document[documents, np.arange(k)], 1.0)
        return np.where(ranking >= 0, marginal, 1.0)

    def sample(self, queries: IntegerArray) -> tuple[Ints, Ints]:
        """Some lists of each query, drawn at random."""
        number = max(1, min(SAMPLED_LISTS, MAX_SAMPLED_LISTS // max(len(queries), 1)))
        drawn = np.repeat(queries.astype(np.int64), number)
        rng = np.random.default_rng(FIXED_SEED)
        lists = np.empty((len(drawn), self.k), np.int64)
        for part in self._parts(drawn):
            rows, where = self.candidates.padded_rows(drawn[part])
            lists[part], _ = sample_plackett_luce(self.scores[rows], where, self.k, rng.random(rows.shape))
        return drawn, lists

    def expected_values(self, query: IntegerArray, ranking: IntegerArray, position: int, values: Doubles) -> Doubles:
        """Σ_d P(d | above) · values of d."""
        expected = np.zeros((len(query), values.shape[1]))
        for part in self._parts(query, values.shape[1]):
            rows, where = self.candidates.padded_rows(query[part])
            above = ranking[part][:, :position]
            row, column = np.nonzero(above >= 0)
            left = where.copy()
            left[row, above[row, column]] = False
            scores = np.where(left, self.scores[rows], -np.inf)
            highest = scores.max(axis=1, keepdims=True)
            weights = np.exp(scores - np.where(np.isfinite(highest), highest, 0.0))
            weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
            expected[part] = np.einsum("mn,mnv->mv", weights, values[rows])
        return expected

    def _parts(self, query: IntegerArray, width: int = 1) -> Iterator[slice]:
        """Parts of rows whose padded candidates fit in memory."""
        longest = int(self.candidates.sizes[query].max(initial=1))
        step = max(1, VALUES_AT_A_TIME // (longest * max(width, 1)))
        return (slice(start, start + step) for start in range(0, len(query), step))


def distribution_of(policy: Policy, candidates: Candidates, queries: IntegerArray, k: int) -> ListDistribution:
    """The lists of a policy for some queries.

    Args:
        policy: A policy, which ranks each query in one way, or one that draws its lists.
        candidates: The documents of all queries.
        queries: The queries to rank; of `RankedQueries`, some of those.
        k: Length of the lists.
    """
    if isinstance(policy, UniformLogger):
        return PlackettLuceLists(np.zeros(candidates.n_documents), candidates, k)
    if isinstance(policy, RankedQueries):
        if policy.lists.shape[1] == k:
            return OneListPerQuery(policy.lists, candidates.offsets)
        policy = policy.policy  # the first of a longer list need not be a shorter one
    chosen = candidates.select(queries)
    if isinstance(policy, StochasticLogger):
        scores = np.zeros(candidates.n_documents)
        scores[candidates.rows_of(queries)] = _finite(policy.policy.score(chosen)) / policy.temperature
        return PlackettLuceLists(scores, candidates, k)
    lists = np.full((candidates.n_queries, k), -1, np.int64)
    lists[queries] = policy.rank(chosen, k)
    return OneListPerQuery(lists, candidates.offsets)


def _finite(scores: npt.NDArray[np.floating]) -> Doubles:
    if not np.isfinite(scores).all():
        raise InputError("policy: expected finite scores, found NaN or infinity")
    return scores.astype(np.float64)


# Lists of a stochastic policy that are drawn for each query.
DRAWN_LISTS = 16


def target_lists(policy: Policy, candidates: Candidates, logged: CountedLists) -> CountedLists:
    """The policy's own top documents for each query, as many as a logged list has, at its positions on the page.

    Args:
        policy: Shows one list per query, or draws it: then some draws share the sessions.
        candidates: The documents.
        logged: The logged lists; indices of pairs are rows of the candidates.
    """
    query, filled, count = _distinct_pages(logged)
    queries, of_page = np.unique(query, return_inverse=True)
    length = max(int(filled.sum(axis=1).max(initial=0)), 1)
    drawn = distribution_of(policy, candidates, queries, length).sample(queries)[1]
    drawn = drawn.reshape(len(queries), -1, length)[:, :DRAWN_LISTS]
    pages = [_on_page(drawn[of_page, number], filled, candidates.offsets[query]) for number in range(drawn.shape[1])]
    number = len(pages)
    return CountedLists(np.tile(query, number), np.concatenate(pages), np.tile(count / number, number))


def _distinct_pages(logged: CountedLists) -> tuple[Ints, Bools, Doubles]:
    """The distinct (query, filled positions) with the number of their sessions."""
    filled = logged.documents >= 0
    rows = np.column_stack([logged.query.astype(np.int64), np.packbits(filled, axis=1).astype(np.int64)])
    # Most logs fill the same positions everywhere.
    by_query = rows[:, :1] if (filled == filled[:1]).all() else rows
    _, first, page = np.unique(by_query, axis=0, return_index=True, return_inverse=True)
    count = np.bincount(page.ravel(), weights=logged.count, minlength=len(first))
    return logged.query[first].astype(np.int64), filled[first], count.astype(np.float64)


def _on_page(ranking: Ints, filled: Bools, offset: Ints) -> Ints:
    """[L, K] the documents of a ranking [L, k], in order at the filled positions; −1 elsewhere."""
    place = np.maximum(np.cumsum(filled, axis=1) - 1, 0)
    index = np.take_along_axis(ranking, place, axis=1)
    return np.where(filled & (index >= 0), offset[:, None] + index, -1)
