"""What inverse-propensity estimators share: they differ in the weights of rewards."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from cuolr.off_policy.estimators.off_policy_estimator import Contributions, OffPolicyEstimator
from cuolr.off_policy.logged_lists import LoggedLists
from cuolr.types import Doubles


@dataclass(frozen=True, kw_only=True)
class ImportanceWeighting(OffPolicyEstimator):
    """V̂ = 1/n Σ_i Σ_k w_{i,k} · r_{i,k}, with r_{i,k} the reward at position k in session i.

    Self-normalised (Swaminathan and Joachims 2015), by position: V̂ = Σ_k Σ_i w_{i,k} r_{i,k} / Σ_i w_{i,k} · n_k / n,
    n_k the number of sessions that show a document at position k. It has a small bias and less variance, and does not
    change with a constant that is added to all rewards.

    Attributes:
        self_normalised: Whether weights are divided by their mean at the position.
    """

    self_normalised: bool = False

    @abstractmethod
    def weights(self, lists: LoggedLists) -> Doubles:
        """[M, K] the importance weight of each position."""

    def contributions(self, lists: LoggedLists) -> Contributions:
        """Summed over positions, w · r; self-normalised, r̄_k + w̃ · (r − r̄_k), with r̄_k the estimate of position k.

        Both have the estimate as their mean over sessions. The second also has the error of the ratio, by the delta
        method.
        """
        weights, share = self.clipped(self.weights(lists), lists)
        k = lists.where.shape[1]
        if not self.self_normalised:
            return Contributions((weights * lists.reward).sum(axis=1), weights, share, (np.zeros(k), np.zeros(k)))
        total, sessions = (weights * lists.shown).sum(axis=0), lists.shown.sum(axis=0)
        relative = weights * (sessions / np.where(total > 0, total, 1.0))
        mean = (relative * lists.shown * lists.reward).sum(axis=0) / np.maximum(sessions, 1.0)
        values = np.where(lists.where, mean + relative * (lists.reward - mean), 0.0).sum(axis=1)
        return Contributions(values, weights, share, (mean, mean), centred=True)
