"""The base class of rankers whose trees LightGBM grows one at a time."""

from abc import abstractmethod
from typing import Any

from cuolr.data.normalise import Normaliser
from cuolr.learners.rankers.base_ranker import BaseRanker
from cuolr.policies.regression_trees import RegressionTrees
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.types import Doubles, Floats


class BoostedTrees(BaseRanker):
    """Grows a tree in each step. Everything but the number of steps is determined by the lists and the settings."""

    def __init__(self, threads: int, normaliser: Normaliser) -> None:
        """A ranker without trees.

        Args:
            threads: Number of threads.
            normaliser: The normaliser that scaled the features, kept in the policy.
        """
        self._threads, self._normaliser = threads, normaliser
        self._step = 0

    @property
    @abstractmethod
    def booster(self) -> Any:
        """LightGBM's booster."""

    @abstractmethod
    def grow(self) -> None:
        """Grow one more tree, or none where no split is left."""

    def step(self) -> dict[str, float]:
        """Grow one more tree; returns the number of trees."""
        self.grow()
        self._step += 1
        return {"trees": self.booster.num_trees()}

    def score(self, features: Floats) -> Doubles:
        """[n] the sum of the trees' outputs."""
        scores: Doubles = self.booster.predict(self._normaliser.natively(features), num_threads=self._threads)
        return scores

    def policy(self) -> TreesPolicy:
        """The trees grown so far."""
        trees = RegressionTrees.from_lightgbm(self.booster.model_to_string())
        return TreesPolicy(trees, self._threads, self._normaliser)

    def state(self) -> dict[str, Any]:
        """The number of steps taken."""
        # Not the number of trees: a step without one also advances LightGBM's random state.
        return {"trees": self._step}

    def load_state(self, state: dict[str, Any]) -> None:
        """Grow the trees again."""
        assert self._step <= state["trees"], "trees cannot be removed: load an earlier state into a new ranker"
        for _ in range(state["trees"] - self._step):
            self.step()
