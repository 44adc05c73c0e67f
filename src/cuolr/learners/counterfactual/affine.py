"""`affine`: the affine correction of clicks for position and trust bias, both estimated from the log."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cuolr.config import Range
from cuolr.examination.trust_bias_em import fit_trust_bias
from cuolr.learners.counterfactual.debiased import EmConfig, EmLearner
from cuolr.learners.counterfactual.pooled_clicks import PooledClicks, largest_reward
from cuolr.training.base_learner import LEARNERS, FitTask
from cuolr.training.batches import WeightedLists


@dataclass(frozen=True)
class AffineConfig(EmConfig):
    """Settings of the affine correction: those of `EmConfig`; `max_weight` is the upper limit on 1 / α_k."""

    em_rounds: Annotated[int, Range(1, 100_000)] = 300


@LEARNERS.register("affine")
class Affine(EmLearner):
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

    def exposed_clicks(self, task: FitTask) -> PooledClicks:
        """The clicks of each list without those of trust, by the slopes of their positions."""
        log, shown, rows, em = self.em_input(task)
        bias = fit_trust_bias(log, shown, rows, em)
        sessions = log.count[:, None].astype(np.float64)
        return PooledClicks(
            WeightedLists.of(log),
            (log.rewards - bias.intercept) * sessions,
            np.maximum(bias.slope, 1 / self.config.max_weight) * sessions,
            largest_reward(log, task.held_out),
        )
