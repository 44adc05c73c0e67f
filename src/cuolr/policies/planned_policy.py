"""A policy that plans: of all lists, it shows the one with the most expected clicks by users estimated from the log."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from cuolr.config import Range, check_arguments
from cuolr.policies.best_lists import best_lists
from cuolr.policies.forward_clicks import forward_clicks
from cuolr.policies.policy import POLICIES, RankingPolicy, ScoringPolicy, rank_by_score
from cuolr.types import Bools, Candidates, Doubles, FeatureRecipe, Ints, Strings

# Documents below the shown ones that may be shown instead.
MORE_DOCUMENTS = 10
# Queries that are planned at a time.
QUERIES_AT_A_TIME = 1_024

USERS = "users"


@dataclass(frozen=True)
class BrowsingUsers:
    """Users who examine position k by the last click above, and stop after a click that satisfied them.

    P(C_k = 1 | last click above at j) = χ(k, j) · (1 − σ · α(d_j)) · α(d_k), the user browsing model with satisfaction.

    Attributes:
        examination: [K, K + 1] χ, as in `ExaminationModel`.
        satisfaction: σ, from 0 to 1.
    """

    examination: Doubles
    satisfaction: float = 0.0

    def expected_clicks(self, attractiveness: Doubles, where: Bools) -> Doubles:
        """[B] the expected clicks on lists [B, k], k at most K: the return of the ranking MDP."""
        table = self.examination[: attractiveness.shape[1]]
        total: Doubles = forward_clicks(attractiveness, where, table, self.satisfaction).sum(axis=1)
        return total


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
        planned = min(k, len(self.users.examination))
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
        """Those of the scorer, and the users' examination."""
        return {**{f"scorer.{name}": values for name, values in self.scorer.arrays().items()}, USERS: self._table}

    @property
    def _table(self) -> Doubles:
        return self.users.examination

    def settings(self) -> dict[str, Any]:
        """The scorer, and the numbers."""
        scorer = {"policy": POLICIES.name_of(type(self.scorer)), "settings": self.scorer.settings()}
        return {
            "scorer": scorer,
            "satisfaction": self.users.satisfaction,
            "intercept": self.intercept,
            "slope": self.slope,
            "min_gain": self.min_gain,
        }

    @classmethod
    def from_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Rebuild a policy from its `arrays` and `settings`."""
        saved = settings["scorer"]
        own = {n.removeprefix("scorer."): values for n, values in arrays.items() if n.startswith("scorer.")}
        scorer = POLICIES.get(saved["policy"]).from_parts(own, saved["settings"])
        if not isinstance(scorer, ScoringPolicy):
            raise ValueError(f"scorer: expected a policy that scores documents, found {saved['policy']}")
        table = arrays[USERS]
        if table.ndim != 2 or table.shape[1] != table.shape[0] + 1 or not len(table):
            raise ValueError(f"{USERS}: expected an array of K rows and K + 1 columns, found {table.shape}")
        if np.isinf(table).any() or (table < 0).any():
            raise ValueError(f"{USERS}: expected finite numbers from 0 up")
        check_arguments(
            satisfaction=(settings["satisfaction"], Range(0, 1)),
            intercept=(settings["intercept"], Range()),
            slope=(settings["slope"], Range()),
            min_gain=(settings["min_gain"], Range()),
        )
        users = BrowsingUsers(table.astype(np.float64), float(settings["satisfaction"]))
        return cls(scorer, users, settings["intercept"], settings["slope"], settings["min_gain"])
