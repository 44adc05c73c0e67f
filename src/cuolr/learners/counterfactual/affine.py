"""`affine`: the affine correction of clicks for position and trust bias, both estimated from the log."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from cuolr.config import Range
from cuolr.examination.regression_based_em import EmSettings
from cuolr.examination.trust_bias_em import fit_trust_bias
from cuolr.learners.counterfactual.debiased import ExposureLearner
from cuolr.learners.counterfactual.debiased_config import DebiasedConfig
from cuolr.learners.counterfactual.pooled_clicks import PooledClicks, largest_reward
from cuolr.logs.page_positions import at_page_positions
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.training.base_learner import LEARNERS, FitTask, SearchSpace
from cuolr.training.batches import WeightedLists


@dataclass(frozen=True)
class AffineConfig(DebiasedConfig):
    """Settings of the affine correction, in addition to those of `DebiasedConfig`.

    Attributes:
        em_rounds: Number of rounds of EM.
        em_steps: Number of gradient steps of the regression in each round.
        em_learning_rate: Learning rate of the regression.
        max_weight: Upper limit on 1 / α_k.
    """

    em_rounds: Annotated[int, Range(1, 100_000)] = 300
    em_steps: Annotated[int, Range(1, 100_000)] = 5
    em_learning_rate: Annotated[float, Range(0, 1)] = 3e-3
    max_weight: Annotated[float, Range(1)] = 100.0


@LEARNERS.register("affine")
class Affine(ExposureLearner):
    """Σ (c − β_k) / Σ α_k of each document, where P(C = 1 | k) = β_k + α_k·γ(q, d): position and trust bias.

    Vardasbi et al. 2020, "When inverse propensity scoring does not work: affine corrections for unbiased learning to
    rank", with α_k = θ_k (ε⁺_k − ε⁻_k) and β_k = θ_k ε⁻_k. Both are estimated by regression-based EM (Agarwal et al.
    2019, "Addressing trust bias for unbiased learning-to-rank"). A reward is corrected as its click, in units of the
    mean reward of a click.

    Deviation: (c − β_k) / α_k is negative without a click, where a softmax loss has no minimum. So the ratio of sums
    over all sessions of a document is taken, and is at least 0. The paper's loss is a bound of a ranking metric.
    """

    Config = AffineConfig
    config: AffineConfig
    search_space: ClassVar[SearchSpace] = {**ExposureLearner.search_space, "learner.em_learning_rate": (1e-3, 3e-3)}

    def exposed_clicks(self, task: FitTask) -> PooledClicks:
        """The clicks of each list without those of trust, by the slopes of their positions."""
        config, log = self.config, at_page_positions(task.log)
        shown = ScaledDocuments.of(log, task.normaliser)
        rows = np.flatnonzero(~np.isin(log.query, task.held_out))
        em = EmSettings(config.em_rounds, config.em_steps, config.em_learning_rate, task.config.seed)
        bias = fit_trust_bias(log, shown, rows, em)
        sessions = log.count[:, None].astype(np.float64)
        return PooledClicks(
            WeightedLists.of(log),
            (log.rewards - bias.intercept) * sessions,
            np.maximum(bias.slope, 1 / config.max_weight) * sessions,
            largest_reward(log, task.held_out),
        )
