"""`unbiased-lambdamart`: LambdaMART on pairs of clicked and skipped documents, with pairwise debiasing."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np

from cuolr.config import Range, SettingError, check_ranges
from cuolr.learners.counterfactual.click_pairs import ClickPairs
from cuolr.learners.counterfactual.debiased_config import RankerName
from cuolr.learners.counterfactual.pairwise_trees import PairwiseLists, UnbiasedTrees
from cuolr.learners.rankers.ensemble import EnsembleConfig, lightgbm_parameters
from cuolr.learners.rankers.ranker_steps import RankerSteps
from cuolr.logs.aggregate import aggregate
from cuolr.logs.page_positions import at_page_positions
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.policies.policy import RankingPolicy
from cuolr.training.base_learner import LEARNERS, FitTask, Learner, SearchSpace
from cuolr.training.batches import WeightedLists


@dataclass(frozen=True)
class UnbiasedLambdaMartConfig:
    """Settings of Unbiased LambdaMART. A training step grows one tree.

    Attributes:
        ranker: The ranker; pairwise debiasing has lambdamart only.
        rankers: Settings of LambdaMART: leaves, tree_learning_rate, min_documents_per_leaf and feature_fraction.
        bias_regularisation: p, the regularisation of the position biases; the larger, the closer they are to 1.
        threads: Number of threads of LightGBM.
    """

    ranker: RankerName = "lambdamart"
    rankers: EnsembleConfig = field(default_factory=EnsembleConfig)
    bias_regularisation: Annotated[float, Range(0, 1e6)] = 0.0
    threads: Annotated[int, Range(1, 1_000)] = 2

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.ranker != "lambdamart":
            raise SettingError(
                {"ranker": f"pairwise debiasing weights the pairs of LambdaMART; use lambdamart, found '{self.ranker}'"}
            )


@LEARNERS.register("unbiased-lambdamart")
class UnbiasedLambdaMart(Learner):
    """LambdaMART on pairs (clicked i, skipped j) of a session, each divided by t⁺_i and t⁻_j; see `UnbiasedTrees`.

    Hu et al. 2019, "Unbiased LambdaMART: an unbiased pairwise learning-to-rank algorithm". Both biases are learned
    along with the trees. All sessions are learned from: equal pairs of a list are one pair with their sum as weight. A
    pair has the reward of its click as gain.

    Deviation: held-out queries are scored by their clicks as they are; the biases are of pairs, and correct no click.
    """

    Config = UnbiasedLambdaMartConfig
    config: UnbiasedLambdaMartConfig
    role = "baseline"
    log_form = "sessions"
    cold_start: ClassVar[str] = "its position biases are learned along with the trees, from the first one on"
    search_space: ClassVar[SearchSpace] = {
        "learner.rankers.tree_learning_rate": (0.02, 0.05, 0.1),
        "learner.rankers.leaves": (7, 15, 31),
        "learner.bias_regularisation": (0.0, 1.0),
    }

    def fit(self, task: FitTask) -> RankingPolicy:
        """Count the pairs, then grow trees step by step."""
        log = at_page_positions(task.log)
        _, held_out = task.batches(WeightedLists.of(aggregate(log)))
        learned_from = log.select(np.flatnonzero(~np.isin(log.query, task.held_out)))
        parameters = lightgbm_parameters(self.config.rankers, self.config.threads, task.config.seed)
        shown, pairs = ScaledDocuments.of(learned_from, task.normaliser), ClickPairs.of(learned_from)
        lists = PairwiseLists(shown.features[:-1], shown.documents[pairs.first], pairs)
        ranker = UnbiasedTrees(lists, parameters, self.config.bias_regularisation, task.normaliser)
        return task.loop.run(RankerSteps(ranker, held_out))
