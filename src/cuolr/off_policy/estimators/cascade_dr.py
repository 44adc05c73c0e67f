"""Cascade doubly robust: reward-interaction IPS around a reward model."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from cuolr.config import Range
from cuolr.errors import InputError
from cuolr.off_policy.estimators.off_policy_estimator import ESTIMATORS, Contributions, OffPolicyEstimator
from cuolr.off_policy.logged_lists import Level, ListFeatures, LoggedLists
from cuolr.random import FIXED_SEED
from cuolr.types import Doubles, Floats, Ints

# Lists that the regressions are fitted to, at most; a random sample of more.
MAX_FITTED_LISTS = 10_000


def cross_fitted_rewards(
    lists: LoggedLists, features: ListFeatures, fold: Ints, ridge: float
) -> tuple[Doubles, Doubles]:
    """Predict Q̂_k(d_1 … d_k), the expected rewards from position k on, if the target policy continues below it.

    Fitted Q evaluation: from the last position up, Q̂_k is regressed on r_k + Σ_d π(d | above) Q̂_{k+1}(…, d). It is
    linear in the features of d_k and in the mean features of the documents above. So the mean of Q̂_k over the target
    policy's documents needs their mean features only.

    Args:
        lists: The logged lists.
        features: Their features.
        fold: [M] the fold of each list, from 0; it is predicted by a model of the other folds.
        ridge: Strength of the penalty, in sessions.

    Returns:
        shown: [M, K] Q̂_k of the documents shown; 0 where nothing is shown.
        expected: [M, K] its mean over the target policy's document at k, given the shown documents above.
    """
    folds = int(fold.max()) + 1
    fitted = np.sort(np.random.default_rng(FIXED_SEED).permutation(len(fold))[:MAX_FITTED_LISTS])
    left_out_rows = [fold[fitted] == number for number in range(folds)]
    shown, expected = np.zeros(lists.where.shape), np.zeros(lists.where.shape)
    below = np.zeros((len(fold), folds))  # the value of the next position, by the model that leaves out each fold
    every = np.arange(len(fold))
    for position in reversed(range(lists.where.shape[1])):
        where = lists.where[:, position]
        inputs = _inputs(*features.shown(position, fitted))
        weights = (lists.count * where)[fitted].astype(np.float64)
        squares = [_squares(inputs[rows], weights[rows]) for rows in left_out_rows]
        targets = weights[:, None] * (lists.reward[fitted, position, None] + below[fitted])
        coefficients = np.empty((inputs.shape[1], folds))
        for left_out, rows in enumerate(left_out_rows):
            products = inputs.T @ (targets[:, left_out] * ~rows)
            coefficients[:, left_out] = _ridge(sum(squares) - squares[left_out], products, ridge)
        of_document, of_above = np.split(coefficients[:-1], 2)
        of_shown, of_target = features.projected(position, of_document, of_above)
        below = np.where(where[:, None], of_target + coefficients[-1], 0.0)
        shown[:, position] = (of_shown + coefficients[-1])[every, fold] * where
        expected[:, position] = below[every, fold]
    return shown, expected


def _inputs(document: Floats, above: Floats) -> Doubles:
    """[R, 2 F + 1] with the intercept last."""
    return np.concatenate([document, above, np.ones((len(document), 1))], axis=1, dtype=np.float64)


def _squares(inputs: Doubles, sessions: Doubles) -> Doubles:
    weighted = inputs * np.sqrt(sessions)[:, None]
    # A product of one array with itself takes half the time.
    squares: Doubles = weighted.T @ weighted
    return squares


def _ridge(squares: Doubles, products: Doubles, ridge: float) -> Doubles:
    """The coefficients, with a penalty on all but the intercept."""
    penalty = np.full(len(products), ridge)
    penalty[-1] = 1e-9
    return np.linalg.solve(squares + np.diag(penalty), products).astype(np.float64)


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
