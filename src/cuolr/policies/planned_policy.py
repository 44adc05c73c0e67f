"""A policy that plans: of all lists, it shows the one with the most expected clicks by users estimated from the log."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from cuolr.config import Range, check_arguments
from cuolr.policies.browsing_users import BrowsingUsers, users_as_parts, users_from_parts
from cuolr.policies.policy import POLICIES, RankingPolicy, ScoringPolicy, rank_by_score
from cuolr.types import Bools, Candidates, Doubles, FeatureRecipe, Ints, Strings

# [B] the values of lists of documents with this attractiveness [B, k]; true = a document.
ListValue: TypeAlias = Callable[[Doubles, Bools], Doubles]

# Positions of lists that are evaluated at a time.
POSITIONS_AT_A_TIME = 1_000_000
# Smaller differences are rounding errors.
TOLERANCE = 1e-9
# Moves of a list, at most; far more than are needed.
MAX_MOVES = 200


def best_lists(value: ListValue, attractiveness: Doubles, sizes: Ints, k: int) -> tuple[Ints, Doubles]:
    """Lists that no single move improves, from the given order on.

    A move exchanges two documents, one of which may not be shown, or puts one elsewhere, so that those between move up
    or down. The best move is taken again and again. Where the given order is optimal, it stays.

    Args:
        value: The value of lists.
        attractiveness: [B, N] of the documents to choose from.
        sizes: [B] number of documents; any number may stand after them.
        k: Length of the lists.

    Returns:
        lists: [B, k] the places of the chosen documents in the given order; −1 after the last one.
        gain: [B] the relative gain in value over the given order; 0.05 = 5 % more.
    """
    number, pool = attractiveness.shape
    search = _Search(value, attractiveness, sizes, min(k, pool))
    orders = np.tile(np.arange(pool), (number, 1))
    start = search.values(np.arange(number), orders[:, None])[:, 0]
    values, rows = start.copy(), np.flatnonzero(sizes > 1)
    for _ in range(MAX_MOVES):
        rows = search.improve(rows, orders, values)
        if not len(rows):
            break
    lists = np.full((number, k), -1, np.int64)
    lists[:, : search.k] = np.where(np.arange(search.k) < sizes[:, None], orders[:, : search.k], -1)
    gain: Doubles = np.divide(values, start, out=np.ones_like(start), where=start > 0) - 1
    return lists, gain


@dataclass(frozen=True)
class _Search:
    """What is searched; see `best_lists`."""

    value: ListValue
    attractiveness: Doubles
    sizes: Ints
    k: int

    def improve(self, rows: Ints, orders: Ints, values: Doubles) -> Ints:
        """Take the best move of each of these rows, in place; returns the rows that a move improved."""
        moves = _moves(orders.shape[1], self.k)
        if not len(moves):
            return rows[:0]
        step = max(1, POSITIONS_AT_A_TIME // (len(moves) * self.k))
        improved = []
        for first in range(0, len(rows), step):
            block = rows[first : first + step]
            found = self.values(block, orders[block][:, moves])
            best = found.argmax(axis=1)
            found_best = found[np.arange(len(block)), best]
            better = found_best > values[block] + TOLERANCE
            changed = block[better]
            orders[changed] = np.take_along_axis(orders[changed], moves[best[better]], axis=1)
            values[changed] = found_best[better]
            improved.append(changed)
        return np.concatenate(improved) if improved else rows[:0]

    def values(self, rows: Ints, orders: Ints) -> Doubles:
        """[B, m] the values of the first k documents in m orders [B, m, N] of each row; −∞ of lists with a gap."""
        lists = orders[:, :, : self.k]
        number, of_each, k = lists.shape
        where = lists < self.sizes[rows, None, None]
        shown = np.take_along_axis(self.attractiveness[rows], lists.reshape(number, -1), axis=1)
        values = self.value(shown.reshape(-1, k), where.reshape(-1, k)).reshape(number, of_each)
        full = where.sum(axis=2) == np.minimum(self.sizes[rows], k)[:, None]
        no_gap = (where[:, :, :-1] >= where[:, :, 1:]).all(axis=2)
        of_lists: Doubles = np.where(full & no_gap, values, -np.inf)
        return of_lists


@lru_cache(maxsize=16)
def _moves(pool: int, k: int) -> Ints:
    """[m, N] the permutations of N places that change the first k by one move."""
    places, moves = np.arange(pool), []
    for one in range(k):
        for other in range(one + 1, pool):
            exchanged = places.copy()
            exchanged[[one, other]] = other, one
            moves.append(exchanged)
            if other > one + 1:
                moves.append(np.insert(np.delete(places, other), one, other))
                if other < k:
                    moves.append(np.insert(np.delete(places, one), other, one))
    return np.array(moves, np.int64).reshape(-1, pool)


# Documents below the shown ones that may be shown instead.
MORE_DOCUMENTS = 10
# Queries that are planned at a time.
QUERIES_AT_A_TIME = 1_024


@POLICIES.register("planned")
class PlannedPolicy(RankingPolicy):
    """Sorts by the scores of another policy, and changes the list where users would click more.

    Attributes:
        scorer: Scores documents.
        users: Who sees the list.
        intercept: a of the attractiveness α = σ(a + b · score).
        slope: b.
        min_gain: Least relative gain in expected clicks for which a list is changed.
    """

    def __init__(
        self, scorer: ScoringPolicy, users: BrowsingUsers, intercept: float, slope: float, min_gain: float
    ) -> None:
        self.scorer = scorer
        self.users = users
        self.intercept = float(intercept)
        self.slope = float(slope)
        self.min_gain = float(min_gain)

    @property
    def n_features(self) -> int | None:
        """Those of the scorer."""
        return self.scorer.n_features

    @property
    def recipe(self) -> FeatureRecipe | None:
        """That of the scorer."""
        return self.scorer.recipe

    @property
    def feature_names(self) -> Strings | None:
        """Those of the scorer."""
        return self.scorer.feature_names

    def rank(self, candidates: Candidates, k: int) -> Ints:
        """The planned list of each query; positions that the log does not have are filled by score."""
        check_arguments(k=(k, Range(1)))
        scores = self.scorer.score(candidates)
        planned = min(k, self.users.positions)
        longest = int(candidates.sizes.max(initial=1))
        ranking = rank_by_score(scores, candidates.offsets, max(k, min(longest, planned + MORE_DOCUMENTS)))
        for start in range(0, candidates.n_queries, QUERIES_AT_A_TIME):
            rows = np.arange(start, min(start + QUERIES_AT_A_TIME, candidates.n_queries))
            ranking[rows] = self._planned(ranking[rows], scores, candidates.offsets[rows], planned)
        return ranking[:, :k]

    def _planned(self, ranking: Ints, scores: npt.NDArray[np.floating], offsets: Ints, k: int) -> Ints:
        """[B, n] the rankings with the best first k; the documents left out follow in their order."""
        pool = ranking[:, : k + MORE_DOCUMENTS]
        sizes = (pool >= 0).sum(axis=1)
        of_pool = scores[offsets[:, None] + np.maximum(pool, 0)].astype(np.float64)
        attractiveness = expit(self.intercept + self.slope * of_pool)
        lists, gain = best_lists(self.users.expected_clicks, attractiveness, sizes, k)
        lists = np.where((gain >= max(self.min_gain, 1e-9))[:, None], lists, np.arange(k))
        # The chosen documents first, the others after them.
        place = np.full(pool.shape, k, np.int64)
        rows, columns = np.nonzero((lists >= 0) & (lists < pool.shape[1]))
        place[rows, lists[rows, columns]] = columns
        order = np.argsort(place, axis=1, kind="stable")
        changed = ranking.copy()
        changed[:, : pool.shape[1]] = np.take_along_axis(pool, order, axis=1)
        return changed

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Those of the scorer, and of the users."""
        return {**{f"scorer.{name}": values for name, values in self.scorer.arrays().items()}, **self._users[0]}

    @property
    def _users(self) -> tuple[dict[str, npt.NDArray[Any]], dict[str, float]]:
        return users_as_parts(self.users)

    def settings(self) -> dict[str, Any]:
        """The scorer, and the numbers."""
        scorer = {"policy": POLICIES.name_of(type(self.scorer)), "settings": self.scorer.settings()}
        numbers = {"intercept": self.intercept, "slope": self.slope, "min_gain": self.min_gain}
        return {"scorer": scorer, "users": self._users[1], **numbers}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Rebuild a policy from its `arrays` and `settings`."""
        saved = settings["scorer"]
        own = {n.removeprefix("scorer."): values for n, values in arrays.items() if n.startswith("scorer.")}
        scorer = POLICIES.get(saved["policy"]).from_parts(own, saved["settings"])
        if not isinstance(scorer, ScoringPolicy):
            raise ValueError(f"scorer: expected a policy that scores documents, found {saved['policy']}")
        check_arguments(
            intercept=(settings["intercept"], Range()),
            slope=(settings["slope"], Range()),
            min_gain=(settings["min_gain"], Range()),
        )
        if settings.get("satisfaction"):  # of users that are estimated in another way now
            raise ValueError("planned for users of an earlier version of cuolr; train it again")
        users = users_from_parts(arrays, settings.get("users", {}))
        return cls(scorer, users, settings["intercept"], settings["slope"], settings["min_gain"])
