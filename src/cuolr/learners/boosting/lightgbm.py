"""`lightgbm`: LambdaMART trained on clicks with LightGBM, optionally with its position-bias correction."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from cuolr.config import Range
from cuolr.learners.boosting.tree_learner import ShownDocuments, TreeConfig, TreeLearner
from cuolr.learners.rankers.lambdamart import LambdaMartRanker, QueryGroups, graded
from cuolr.training.base_learner import LEARNERS, FitTask, SearchSpace


@dataclass(frozen=True)
class LightGbmConfig(TreeConfig):
    """Settings of LightGBM, in addition to those of `TreeConfig`.

    Attributes:
        min_documents_per_leaf: Minimum number of documents in a leaf.
        position_regularisation: Strength of the regularisation of the position bias; 0 = none.
    """

    min_documents_per_leaf: Annotated[int, Range(1, 1_000_000)] = 50
    position_regularisation: Annotated[float, Range(0)] = 0.0


@LEARNERS.register("lightgbm")
class LightGBM(TreeLearner):
    """LambdaMART with each list as a query and its mean clicks as gains (Burges 2010), or mean rewards.

    With `position_bias`, LightGBM learns a bias for each position, which it adds to the scores during training.
    """

    Config = LightGbmConfig
    config: LightGbmConfig
    cold_start = ""
    search_space: ClassVar[SearchSpace] = {
        "learner.learning_rate": (0.02, 0.05, 0.1),
        "learner.leaves": (7, 15, 31),
        "learner.position_bias": (True, False),
    }

    def ranker(self, documents: ShownDocuments, task: FitTask) -> LambdaMartRanker:
        """A LambdaMART ranker with clicks or rewards as gains, and each list weighted by its sessions."""
        config = self.config
        parameters = {
            "num_leaves": config.leaves,
            "learning_rate": config.learning_rate,
            "min_data_in_leaf": config.min_documents_per_leaf,
            "lambdarank_position_bias_regularization": config.position_regularisation,
            "seed": task.config.seed,
            "num_threads": config.threads,
        }
        position = documents.position if config.position_bias else None
        grades, gain = graded(documents.rewards)
        weight = documents.weight.repeat(documents.sizes)
        lists = QueryGroups(documents.features, grades, documents.sizes, weight, position, gain)
        ranker = LambdaMartRanker(lists, parameters, task.normaliser)
        if task.start is not None:
            ranker.continue_from(task.start.policy)
        return ranker
