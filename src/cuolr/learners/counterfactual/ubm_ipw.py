"""`ubm-ipw`: examination by position and last click above, estimated from clicks, as the exposure of documents."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from cuolr.config import Range
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.learners.counterfactual.debiased import DebiasedConfig, ExposureLearner
from cuolr.learners.counterfactual.pooled_clicks import PooledClicks, largest_reward
from cuolr.logs.counts import ClickCounts
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.policies.logging_policy_model import LoggingPolicyModel
from cuolr.training.base_learner import LEARNERS, FitTask, SearchSpace
from cuolr.training.batches import WeightedLists


@dataclass(frozen=True)
class UbmIpwConfig(DebiasedConfig):
    """Settings of the examination table, in addition to those of `DebiasedConfig`.

    Attributes:
        cap_at_first_position: Whether to cap examination (with no click above) at that of position 1.
        max_weight: Upper limit on the weight of a click.
    """

    cap_at_first_position: bool = True
    max_weight: Annotated[float, Range(1)] = 100.0


@LEARNERS.register("ubm-ipw")
class UbmIpw(ExposureLearner):
    """Clicks / Σ χ(k, j) of each document, with χ in the parametrisation of the user browsing model, from the log.

    χ(k, j) is the examination of position k with the last click above at j (Dupret and Piwowarski 2008). It is
    estimated as in stage 1 of `factored`, see `ExaminationModel`; there is no prior of click rates and no
    pessimism. Propensities are not needed.

    Deviation: weighting each click by 1 / χ(k, j) leaves out sessions that never examine a position, such as those with
    a click above in the cascade model; the ratio of sums does not.
    """

    Config = UbmIpwConfig
    config: UbmIpwConfig
    log_form = "sessions"
    search_space: ClassVar[SearchSpace] = {**ExposureLearner.search_space, "learner.max_weight": (10.0, 100.0)}

    def exposed_clicks(self, task: FitTask) -> PooledClicks:
        """The clicks of each list, and the sum of χ over its sessions."""
        config = self.config
        counts = ClickCounts.of(task.log, task.stages)
        shown = ScaledDocuments.of(counts.lists, task.normaliser)
        logging_policy = LoggingPolicyModel.fit(
            counts.lists, task.normaliser, task.config.seed, config.rankers.folds, task.stages
        )
        scores = logging_policy.scores(shown.parts())[shown.documents]
        rows = np.flatnonzero(~np.isin(counts.lists.query, task.held_out))
        examination = ExaminationModel.from_counts(
            counts, scores, rows, cap_at_first_position=config.cap_at_first_position, stages=task.stages
        )
        least = counts.lists.count[:, None] / config.max_weight
        return PooledClicks(
            WeightedLists.of(counts.lists),
            counts.by_position(counts.rewards),
            np.maximum(examination.expected_examinations(counts), least),
            largest_reward(task.log, task.held_out),
        )
