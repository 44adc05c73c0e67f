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
    below = np.zeros((folds, len(fold)))  # the value of the next position, by the model that leaves out each fold
    for position in reversed(range(lists.where.shape[1])):
        document, of_target, above = features.at(position)
        where = lists.where[:, position]
        inputs, of_target_inputs = _inputs(document, above), _inputs(of_target, above)
        sessions = lists.count * where.astype(np.float64)
        to_fit, weights = inputs[fitted], sessions[fitted]
        squares = [_squares(to_fit[rows], weights[rows]) for rows in left_out_rows]
        for left_out in range(folds):
            inside = fold == left_out
            target = lists.reward[:, position] + below[left_out]
            products = to_fit.T @ (weights * target[fitted] * ~left_out_rows[left_out])
            coefficients = _ridge(sum(squares) - squares[left_out], products, ridge)
            below[left_out] = np.where(where, of_target_inputs @ coefficients, 0.0)
            shown[inside, position] = (inputs[inside] @ coefficients) * where[inside]
            expected[inside, position] = below[left_out, inside]
    return shown, expected


def _inputs(document: Floats, above: Floats) -> Doubles:
    """[M, 2 F + 1] with the intercept last."""
    return np.concatenate([document, above, np.ones((len(document), 1))], axis=1, dtype=np.float64)


def _squares(inputs: Doubles, sessions: Doubles) -> Doubles:
    squares: Doubles = inputs.T @ (inputs * sessions[:, None])
    return squares


def _ridge(squares: Doubles, products: Doubles, ridge: float) -> Doubles:
    """The coefficients, with a penalty on all but the intercept."""
    penalty = np.full(len(products), ridge)
    penalty[-1] = 1e-9
    return np.linalg.solve(squares + np.diag(penalty), products).astype(np.float64)
