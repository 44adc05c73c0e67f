"""`xgboost`: LambdaMART on clicks by XGBoost; needs the extra `cuolr[xgboost]`."""

from dataclasses import dataclass
from typing import Annotated

from cuolr.config import Range
from cuolr.learners.boosting.tree_learner import ShownDocuments, TreeConfig, TreeLearner
from cuolr.policies.xgboost_policy import XGBoostPolicy, load_xgboost
from cuolr.training.base_learner import LEARNERS
from cuolr.types import Floats


@dataclass(frozen=True)
class XGBoostConfig(TreeConfig):
    """Settings of XGBoost, on top of those of `TreeConfig`.

    Attributes:
        min_leaf_weight: Least sum of second derivatives in a leaf.
    """

    position_bias: bool = True
    min_leaf_weight: Annotated[float, Range(0)] = 1.0


@LEARNERS.register("xgboost")
class XGBoost(TreeLearner):
    """LambdaMART with each session as a query and its clicks as grades.

    With `position_bias`, the weights of pairs are divided by the bias of both positions, learned as it goes
    (`lambdarank_unbiased`; Hu et al. 2019, "Unbiased LambdaMART").
    """

    Config = XGBoostConfig
    config: XGBoostConfig

    def start(self, documents: ShownDocuments, seed: int) -> None:
        """Bin the features. XGBoost takes positions from the order of the documents."""
        config = self.config
        self._xgboost = load_xgboost()
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
            "seed": seed,
            "nthread": config.threads,
            "verbosity": 0,
        }
        self._sample = self._xgboost.DMatrix(
            documents.features, documents.clicks, group=documents.sizes, nthread=config.threads
        )
        self._booster = self._xgboost.Booster(parameters, [self._sample])

    def grow(self) -> None:
        """One step of boosting."""
        self._booster.update(self._sample, self._booster.num_boosted_rounds())

    def scores(self, features: Floats) -> Floats:
        """[n] the sum over trees."""
        scores: Floats = self._booster.predict(self._xgboost.DMatrix(features, nthread=self.config.threads))
        return scores

    def policy(self) -> XGBoostPolicy:
        """The trees grown so far."""
        return XGBoostPolicy(bytes(self._booster.save_raw("ubj")), self.config.threads, self.normaliser)
