"""`lightgbm`: LambdaMART on clicks by LightGBM, with optional position bias."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from cuolr.config import Range
from cuolr.learners.boosting.tree_learner import ShownDocuments, TreeConfig, TreeLearner
from cuolr.policies.lambdamart_policy import LambdaMartPolicy, load_lightgbm
from cuolr.training.base_learner import LEARNERS, SearchSpace
from cuolr.types import Floats


@dataclass(frozen=True)
class LightGbmConfig(TreeConfig):
    """Settings of LightGBM, on top of those of `TreeConfig`.

    Attributes:
        min_documents_per_leaf: Fewer make no leaf.
        position_regularisation: How strongly the bias of a position is drawn to 0.
    """

    min_documents_per_leaf: Annotated[int, Range(1, 1_000_000)] = 50
    position_regularisation: Annotated[float, Range(0)] = 0.0


@LEARNERS.register("lightgbm")
class LightGBM(TreeLearner):
    """LambdaMART with each session as a query and its clicks as grades (Burges 2010).

    With `position_bias`, LightGBM learns a number for each position, which it adds to the scores in training.
    """

    Config = LightGbmConfig
    config: LightGbmConfig
    search_space: ClassVar[SearchSpace] = {
        "learner.learning_rate": (0.02, 0.05, 0.1),
        "learner.leaves": (7, 15, 31),
        "learner.position_bias": (True, False),
    }

    def start(self, documents: ShownDocuments, seed: int) -> None:
        """Bin the features."""
        config = self.config
        parameters = {
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
        position = documents.position if config.position_bias else None
        lgb = load_lightgbm()
        dataset = lgb.Dataset(
            documents.features, documents.clicks, group=documents.sizes, position=position, params=parameters
        )
        self._booster = lgb.Booster(parameters, dataset)

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
