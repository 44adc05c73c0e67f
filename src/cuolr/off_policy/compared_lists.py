"""Lists to compare: those of a policy, and those that production, or another policy, shows in the same sessions."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from cuolr.off_policy.position_discount import weights_in_lists
from cuolr.off_policy.support import ShownLists
from cuolr.off_policy.users.fitted_users import UserResponse
from cuolr.random import FIXED_SEED
from cuolr.types import Bools, Doubles, Ints


@dataclass(frozen=True)
class CountedLists:
    """Lists of query–document pairs, with the number of sessions that show them.

    Attributes:
        query: [L].
        documents: [L, K] indices of pairs by position on the page, −1 = nothing shown.
        count: [L] number of sessions.
        clicks: [L, K] number of clicks in these sessions; None if not logged.
    """

    query: Ints
    documents: Ints
    count: Doubles
    clicks: Doubles | None = None

    def select(self, rows: Ints | Bools) -> Self:
        """These lists."""
        clicks = None if self.clicks is None else self.clicks[rows]
        return type(self)(self.query[rows], self.documents[rows], self.count[rows], clicks)

    def distinct(self) -> Self:
        """Each list once, with all its sessions and clicks."""
        keys = ShownLists(self.query, self.documents, self.count).prefixes()[:, -1]
        _, first, place = np.unique(keys, return_index=True, return_inverse=True)
        count = np.bincount(place, weights=self.count).astype(np.float64)
        clicks = None
        if self.clicks is not None:
            columns = [np.bincount(place, weights=column) for column in self.clicks.T]
            clicks = np.stack(columns, axis=1).astype(np.float64)
        return type(self)(self.query[first], self.documents[first], count, clicks)

    def sample(self, number: int) -> Self:
        """A random sample of so many lists that stands for all sessions; all lists, if there are no more."""
        if len(self.query) <= number:
            return self
        kept = self.select(np.sort(np.random.default_rng(FIXED_SEED).permutation(len(self.query))[:number]))
        return replace(kept, count=kept.count * (self.count.sum() / kept.count.sum()))


@dataclass(frozen=True)
class ComparedLists:
    """The lists of a policy against those of production, for the same sessions.

    Attributes:
        target: The policy's lists.
        baseline: What they are compared with: the logged lists, or those of another policy.
        logged: The logged lists.
        n_queries: Number of queries of the candidates.
        reward: [units] the logged reward of each unit, see `Units`.
        sessions: [units] the sessions of each unit.
        worth: [P] mean reward of a click on each pair.
        clicks: [P] the clicks on each pair.
        query_of_pair: [P] the query of each pair.
        position_weights: [k] what a click at each rank counts; None = 1.
    """

    target: CountedLists
    baseline: CountedLists
    logged: CountedLists
    n_queries: int
    reward: Doubles
    sessions: Doubles
    worth: Doubles
    clicks: Doubles
    query_of_pair: Ints
    position_weights: Doubles | None = None

    def by_query(self, lists: CountedLists, users: UserResponse, attractiveness: Doubles | None = None) -> Doubles:
        """[n_queries] the expected reward of lists."""
        of_lists = self.of_lists(lists, users, attractiveness) * lists.count
        return np.bincount(lists.query, weights=of_lists, minlength=self.n_queries).astype(np.float64)

    def of_lists(self, lists: CountedLists, users: UserResponse, attractiveness: Doubles | None = None) -> Doubles:
        """[L] the expected reward of a session of each list."""
        return self.reward_of(lists.documents, users.clicks(lists.documents, attractiveness))

    def reward_of(self, documents: Ints, clicks: Doubles) -> Doubles:
        """[L] the reward of clicks [L, K] on documents [L, K]."""
        if self.position_weights is not None:
            clicks = clicks * weights_in_lists(documents >= 0, self.position_weights)
        reward: Doubles = (clicks * self.worth[documents]).sum(axis=1)
        return reward

    def changes(self, users: UserResponse, attractiveness: Doubles | None = None) -> Doubles:
        """[n_queries] the expected reward of the policy's lists minus that of the baseline."""
        target, baseline = (self.by_query(lists, users, attractiveness) for lists in (self.target, self.baseline))
        return target - baseline

    def total_change(self, users: UserResponse, attractiveness: Doubles | None = None) -> float:
        """The same, summed over queries."""
        both = [self.by_query(lists, users, attractiveness).sum() for lists in (self.target, self.baseline)]
        return float(both[0] - both[1])

    def sample(self, lists: int) -> Self:
        """The lists of some queries, the same for both policies, that stand for all sessions.

        Args:
            lists: About how many of each policy. If a single query has more of them, they are a sample, too.
        """
        both = (self.target, self.baseline)
        number = np.maximum(*(np.bincount(side.query, minlength=self.n_queries) for side in both))
        order = np.random.default_rng(FIXED_SEED).permutation(np.flatnonzero(number))
        chosen = order[np.cumsum(number[order]) - number[order] < lists]
        target, baseline = (side.select(np.isin(side.query, chosen)).sample(2 * lists) for side in both)
        scales = [whole.count.sum() / kept.count.sum() for whole, kept in zip(both, (target, baseline), strict=True)]
        return replace(
            self,
            target=replace(target, count=target.count * scales[0]),
            baseline=replace(baseline, count=baseline.count * scales[1]),
        )
