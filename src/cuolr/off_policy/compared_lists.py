"""Lists to compare: those of a policy, and those that production, or another policy, shows in the same sessions."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from cuolr.logs.last_clicks import PatternCells
from cuolr.off_policy.position_discount import weights_in_lists
from cuolr.off_policy.support import ShownLists
from cuolr.off_policy.users.examination_users import ExaminationResponse
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

    @property
    def total(self) -> float:
        """Number of sessions."""
        return float(self.count.sum())

    def sessions_of_pairs(self, pairs: int) -> Doubles:
        """[P] the sessions that show each pair."""
        where = self.documents >= 0
        count = np.broadcast_to(self.count[:, None], where.shape)[where]
        return np.bincount(self.documents[where], weights=count, minlength=pairs).astype(np.float64)

    def sessions_of_queries(self, queries: int) -> Doubles:
        """[n_queries] number of sessions."""
        return np.bincount(self.query, weights=self.count, minlength=queries).astype(np.float64)

    def scaled(self, factor: float) -> Self:
        """With so many times the sessions."""
        return replace(self, count=self.count * factor)

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
class CountedDocuments:
    """The documents that production showed, counted one by one: its lists are not known.

    What users would click on them follows from the position and the last click above, which is that of the log. Of the
    lists, this has the same expectation.

    Attributes:
        cells: The counts; `pair` is an index of query–document pairs.
        query: [n] the query of each cell.
        level: [n] the level of context of each cell.
    """

    cells: PatternCells
    query: Ints
    level: Ints

    @property
    def documents(self) -> Ints:
        """[n, 1] the pairs."""
        return self.cells.pair[:, None]

    def select(self, rows: Bools) -> Self:
        """These cells."""
        return type(self)(self.cells.select(rows), self.query[rows], self.level[rows])

    @property
    def total(self) -> float:
        """Number of impressions."""
        return float(self.cells.impressions.sum())

    def sessions_of_pairs(self, pairs: int) -> Doubles:
        """[P] the sessions that show each pair."""
        return np.bincount(self.cells.pair, weights=self.cells.impressions, minlength=pairs).astype(np.float64)

    def sessions_of_queries(self, queries: int) -> Doubles:
        """[n_queries] number of sessions: those that fill the position which is filled most often."""
        k = int(self.cells.position.max(initial=0)) + 1
        places = self.query * k + self.cells.position
        shown = np.bincount(places, weights=self.cells.impressions, minlength=queries * k)
        most: Doubles = shown.astype(np.float64).reshape(queries, k).max(axis=1)
        return most

    def scaled(self, factor: float) -> Self:
        """With so many times the impressions."""
        return replace(self, cells=replace(self.cells, impressions=self.cells.impressions * factor))

    def sample(self, number: int) -> Self:
        """All of them: they are bounded by documents and positions."""
        return self

    def pages(self, k: int) -> CountedLists:
        """The first k positions that each query fills, in how many sessions; their documents are not known.

        The sessions that fill position k also fill those above. With gaps on the page this is not exact.
        """
        position, count = self.cells.position, self.cells.impressions
        width = min(k, int(position.max(initial=0)) + 1)
        queries, row = np.unique(self.query, return_inverse=True)
        top = position < width
        places = row[top] * width + position[top]
        filled = np.bincount(places, weights=count[top], minlength=len(queries) * width).reshape(-1, width)
        filled = np.minimum.accumulate(filled, axis=1)
        number = filled - np.column_stack([filled[:, 1:], np.zeros(len(queries))])
        of_query, last = np.nonzero(number > 0)
        documents = np.where(np.arange(width) <= last[:, None], 0, -1)
        return CountedLists(queries[of_query], documents, number[of_query, last].astype(np.float64))


@dataclass(frozen=True)
class ComparedLists:
    """The lists of a policy against those of production, for the same sessions.

    Attributes:
        target: The policy's lists.
        baseline: What they are compared with: the logged lists or documents, or the lists of another policy.
        logged: The logged lists or documents.
        n_queries: Number of queries of the candidates.
        reward: [units] the logged reward of each unit, see `Units`.
        sessions: [units] the sessions of each unit.
        worth: [P] mean reward of a click on each pair.
        clicks: [P] the clicks on each pair.
        query_of_pair: [P] the query of each pair.
        position_weights: [k] what a click at each rank counts; None = 1.
    """

    target: CountedLists
    baseline: CountedLists | CountedDocuments
    logged: CountedLists | CountedDocuments
    n_queries: int
    reward: Doubles
    sessions: Doubles
    worth: Doubles
    clicks: Doubles
    query_of_pair: Ints
    position_weights: Doubles | None = None

    def by_query(
        self, lists: CountedLists | CountedDocuments, users: UserResponse, attractiveness: Doubles | None = None
    ) -> Doubles:
        """[n_queries] the expected reward of lists or documents."""
        if isinstance(lists, CountedDocuments):
            return self._of_documents(lists, users, attractiveness)
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

    def _of_documents(
        self, documents: CountedDocuments, users: UserResponse, attractiveness: Doubles | None
    ) -> Doubles:
        """[n_queries] the expected reward of documents; only users of their form can be fitted to them."""
        assert isinstance(users, ExaminationResponse)
        cells = documents.cells
        rewards = users.clicks_given(cells, documents.level, attractiveness) * self.worth[cells.pair]
        if self.position_weights is not None:
            rewards = (
                rewards * np.append(self.position_weights, 0.0)[np.minimum(cells.position, len(self.position_weights))]
            )
        sums = np.bincount(documents.query, weights=rewards * cells.impressions, minlength=self.n_queries)
        return sums.astype(np.float64)

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
        sizes = [side for side in both if isinstance(side, CountedLists)]
        number = np.max([np.bincount(side.query, minlength=self.n_queries) for side in sizes], axis=0)
        order = np.random.default_rng(FIXED_SEED).permutation(np.flatnonzero(number))
        chosen = order[np.cumsum(number[order]) - number[order] < lists]
        target = self.target.select(np.isin(self.target.query, chosen)).sample(2 * lists)
        baseline = self.baseline.select(np.isin(self.baseline.query, chosen)).sample(2 * lists)
        scales = self.target.total / target.total, self.baseline.total / baseline.total
        return replace(self, target=target.scaled(scales[0]), baseline=baseline.scaled(scales[1]))
