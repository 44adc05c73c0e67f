"""Cascade doubly robust: reward-interaction IPS around a reward model."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from cuolr.config import Range
from cuolr.errors import InputError
from cuolr.off_policy.estimators.off_policy_estimator import ESTIMATORS, Contributions, OffPolicyEstimator
from cuolr.off_policy.estimators.reward_regression import cross_fitted_rewards
from cuolr.off_policy.logged_lists import Level, LoggedLists
from cuolr.random import FIXED_SEED
from cuolr.types import Doubles, Ints


@ESTIMATORS.register("cascade-dr")
@dataclass(frozen=True, kw_only=True)
class CascadeDoublyRobust(OffPolicyEstimator):
    """V̂ = 1/n Σ_i Σ_k [ w_{1:k} (r_k − Q̂_k(d_1 … d_k)) + w_{1:k−1} Σ_d π(d | above) Q̂_k(d_1 … d_{k−1}, d) ].

    Kiyohara et al. 2022, "Doubly robust off-policy evaluation for ranking policies under the cascade behavior model",
    with w_{1:k} the weights of reward-interaction IPS. Unbiased where that is, whatever Q̂; the better Q̂,
    the less variance.

    Deviation: Q̂ is a ridge regression on the documents' features (`cross_fitted_rewards`), not a tree. It is
    cross-fitted over queries: each is predicted by a model that was fitted to the queries of other folds. Folds of
    lists within queries would give a bias, because a list of one fold never occurs in another.

    Attributes:
        folds: Number of folds of the reward model.
        ridge: Strength of the reward model's penalty, in sessions; features are between −1 and 1.
    """

    level: ClassVar[Level] = "above"
    has_reward_model: ClassVar[bool] = True

    folds: Annotated[int, Range(2)] = 3
    ridge: Annotated[float, Range(above=0)] = 10.0

    def contributions(self, lists: LoggedLists) -> Contributions:
        """See the class."""
        weights, share = self.clipped(lists.ratio_above(), lists)
        shown, expected = self._predictions(lists)
        values = doubly_robust(lists.reward, weights, shown, expected)
        # Of documents without support the estimate has what the model predicts, which may be any reward.
        k = lists.where.shape[1]
        return Contributions(values, weights, share, (np.full(k, -np.inf), np.full(k, np.inf)))

    def _predictions(self, lists: LoggedLists) -> tuple[Doubles, Doubles]:
        """[M, K] Q̂ of the documents shown, and its mean over the target policy's."""
        if lists.features is None:
            raise InputError("cascade-dr: expected features of documents for its reward model, found none")
        units = int(lists.unit.max()) + 1
        fold: Ints = np.random.default_rng(FIXED_SEED).permutation(units) % self.folds
        return cross_fitted_rewards(lists, lists.features, fold[lists.unit], self.ridge)


def doubly_robust(reward: Doubles, weights: Doubles, shown: Doubles, expected: Doubles) -> Doubles:
    """[M] Σ_k w_{1:k} (r_k − Q̂_k) + w_{1:k−1} Σ_d π(d | above) Q̂_k.

    Args:
        reward: [M, K] r_k.
        weights: [M, K] w_{1:k}.
        shown: [M, K] Q̂_k of the documents shown.
        expected: [M, K] the mean of Q̂_k over the target policy's documents.
    """
    above = np.concatenate([np.ones((len(weights), 1)), weights[:, :-1]], axis=1)
    values: Doubles = (weights * (reward - shown) + above * expected).sum(axis=1)
    return values
