"""`xgboost`: LambdaMART on clicks by XGBoost; needs the extra `cuolr[xgboost]`."""

from dataclasses import dataclass

import numpy as np

from cuolr.data.normalise import Normaliser
from cuolr.learners.boosting.tree_learner import ShownDocuments, TreeConfig, TreeLearner
from cuolr.learners.gradient import expect
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
    min_leaf_weight: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        expect(self, min_leaf_weight=(0, float("inf")))


@LEARNERS.register("xgboost")
class XGBoostLambdaMart(TreeLearner):
    """LambdaMART with each session as a query and its clicks as grades.

    With `position_bias`, the weights of pairs are divided by the bias of both positions, learned as it goes
    (`lambdarank_unbiased`; Hu et al. 2019, "Unbiased LambdaMART").
    """

    Config = XGBoostConfig
    config: XGBoostConfig

    def __init__(self, config: XGBoostConfig, n_features: int, k: int, seed: int, normaliser: Normaliser) -> None:
        super().__init__(config, n_features, k, seed, normaliser)
        self._xgboost = load_xgboost()
        self._parameters = {
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
        nothing = ShownDocuments(
            np.zeros((1, n_features), np.float32), np.zeros(1, np.int8), np.zeros(1, np.int32), np.ones(1, np.int64)
        )
        self.start(nothing)

    def start(self, documents: ShownDocuments) -> None:
        """Bin the features. Positions are told by the order of the documents."""
        self._sample = self._xgboost.DMatrix(
            documents.features, documents.clicks, group=documents.sizes, nthread=self.config.threads
        )
        self._booster = self._xgboost.Booster(self._parameters, [self._sample])

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
