"""`xgboost`: LambdaMART trained on clicks with XGBoost; needs the extra `cuolr[xgboost]`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from cuolr.config import Range
from cuolr.data.normalise import Normaliser
from cuolr.errors import load_extra
from cuolr.learners.boosting.tree_learner import ShownDocuments, TreeConfig, TreeLearner
from cuolr.learners.rankers.base_ranker import BaseRanker
from cuolr.policies.regression_trees import RegressionTrees, require_room_for_a_tree
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.training.base_learner import LEARNERS, FitTask
from cuolr.types import Doubles, Floats


@dataclass(frozen=True)
class XGBoostConfig(TreeConfig):
    """Settings of XGBoost, in addition to those of `TreeConfig`.

    Attributes:
        min_leaf_weight: Minimum sum of second derivatives in a leaf (`min_child_weight` of XGBoost).
    """

    position_bias: bool = True
    min_leaf_weight: Annotated[float, Range(0)] = 1.0


@LEARNERS.register("xgboost")
class XGBoost(TreeLearner):
    """LambdaMART with each list as a query and its mean clicks as gains, or mean rewards.

    With `position_bias`, the weight of a pair is divided by the biases of both positions, which are learned along with
    the trees (`lambdarank_unbiased`; Hu et al. 2019, "Unbiased LambdaMART").
    """

    Config = XGBoostConfig
    config: XGBoostConfig
    cold_start = "XGBoost cannot go on with its position biases on another log"

    def ranker(self, documents: ShownDocuments, task: FitTask) -> "XGBoostRanker":
        """A LambdaMART ranker. XGBoost takes positions from the order of the documents."""
        config = self.config
        parameters = {
            "objective": "rank:ndcg",
            "lambdarank_unbiased": config.position_bias,
            "lambdarank_pair_method": "topk",
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_depth": 0,
            "max_leaves": config.leaves,
            "eta": config.learning_rate,
            "min_child_weight": config.min_leaf_weight,
            "seed": task.config.seed,
            "nthread": config.threads,
            "verbosity": 0,
        }
        if (documents.rewards > 1).any() or (documents.rewards % 1).any():
            parameters["ndcg_exp_gain"] = False  # the reward is the gain
        return XGBoostRanker(documents, parameters, task.normaliser)


def load_xgboost() -> Any:
    """Import XGBoost; raises `InputError` with instructions if it is not installed."""
    return load_extra("xgboost", "xgboost", "XGBoost is not installed")


class XGBoostRanker(BaseRanker):
    """LambdaMART by XGBoost. A step grows one tree."""

    def __init__(self, documents: ShownDocuments, parameters: Mapping[str, Any], normaliser: Normaliser) -> None:
        """Create a ranker without trees.

        Args:
            documents: The documents to train on.
            parameters: XGBoost's parameters.
            normaliser: The normaliser that scaled the features, kept in the policy.
        """
        self._xgboost = load_xgboost()
        self._threads = int(parameters["nthread"])
        self._normaliser = normaliser
        features = normaliser.natively(documents.features)
        self._documents = self._xgboost.DMatrix(
            features, documents.rewards, weight=documents.weight, group=documents.sizes, nthread=self._threads
        )
        self._booster = self._xgboost.Booster(dict(parameters), [self._documents])

    def step(self) -> dict[str, float]:
        """Grow one more tree; returns the number of trees."""
        require_room_for_a_tree(self._trees)
        self._booster.update(self._documents, self._trees)
        return {"trees": self._trees}

    @property
    def _trees(self) -> int:
        return int(self._booster.num_boosted_rounds())

    def score(self, features: Floats) -> Doubles:
        """[n] the sum of the trees' outputs."""
        documents = self._xgboost.DMatrix(self._normaliser.natively(features), nthread=self._threads)
        scores: Floats = self._booster.predict(documents)
        return scores.astype(np.float64)

    def policy(self) -> TreesPolicy:
        """The trees grown so far."""
        trees = RegressionTrees.from_xgboost(bytes(self._booster.save_raw("json")))
        return TreesPolicy(trees, self._threads, self._normaliser)

    def state(self) -> dict[str, Any]:
        """The number of trees; everything else is determined by the documents, the parameters and the seed."""
        return {"trees": self._trees}

    def load_state(self, state: dict[str, Any]) -> None:
        """Grow the trees again."""
        assert self._trees <= state["trees"], "trees cannot be removed: load an earlier state into a new ranker"
        while self._trees < state["trees"]:
            self.step()
