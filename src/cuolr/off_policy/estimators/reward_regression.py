"""The reward model of doubly robust estimators: a ridge regression per position, fitted from the last one up."""

import numpy as np

from cuolr.off_policy.logged_lists import ListFeatures, LoggedLists
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
