"""`lightgbm`: LambdaMART on clicks, as a practitioner would take it from the shelf."""

from dataclasses import dataclass

import numpy as np

from cuolr.data.normalise import Normaliser
from cuolr.learners.boosting.tree_learner import ShownDocuments, TreeConfig, TreeLearner
from cuolr.learners.gradient import expect
from cuolr.policies.lambdamart_policy import LambdaMartPolicy, load_lightgbm
from cuolr.training.base_learner import LEARNERS
from cuolr.types import Floats


@dataclass(frozen=True)
class LightGbmConfig(TreeConfig):
    """Settings of LightGBM, on top of those of `TreeConfig`.

    Attributes:
        min_documents_per_leaf: Fewer make no leaf.
        position_regularisation: How strongly the bias of a position is drawn to 0.
    """

    min_documents_per_leaf: int = 50
    position_regularisation: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        expect(self, min_documents_per_leaf=(1, 1_000_000), position_regularisation=(0, float("inf")))


@LEARNERS.register("lightgbm")
class ClickLambdaMart(TreeLearner):
    """LambdaMART with each session as a query and its clicks as grades (Burges 2010).

    With `position_bias`, LightGBM learns a number for each position, which it adds to the scores in training.
    """

    Config = LightGbmConfig
    config: LightGbmConfig

    def __init__(self, config: LightGbmConfig, n_features: int, k: int, seed: int, normaliser: Normaliser) -> None:
        super().__init__(config, n_features, k, seed, normaliser)
        self._parameters = {
            "objective": "lambdarank",
            "num_leaves": config.leaves,
            "learning_rate": config.learning_rate,
            "min_data_in_leaf": config.min_documents_per_leaf,
            "lambdarank_position_bias_regularization": config.position_regularisation,
            "seed": seed,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": config.threads,
            "verbosity": -1,
        }
        lgb = load_lightgbm()
        nothing = lgb.Dataset(np.zeros((1, n_features), np.float32), [0], group=[1], params=self._parameters)
        self._booster = lgb.Booster(self._parameters, nothing)

    def start(self, documents: ShownDocuments) -> None:
        """Bin the features."""
        position = documents.position if self.config.position_bias else None
        lgb = load_lightgbm()
        dataset = lgb.Dataset(
            documents.features, documents.clicks, group=documents.sizes, position=position, params=self._parameters
        )
        self._booster = lgb.Booster(self._parameters, dataset)

    def grow(self) -> None:
        """One step of boosting."""
        self._booster.update()

    def scores(self, features: Floats) -> Floats:
        """[n] the sum over trees."""
        scores: Floats = self._booster.predict(features, num_threads=self.config.threads).astype(np.float32)
        return scores

    def policy(self) -> LambdaMartPolicy:
        """The trees grown so far."""
        return LambdaMartPolicy(self._booster.model_to_string(), self.config.threads, self.normaliser)
