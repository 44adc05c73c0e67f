"""Users run forward: the clicks on a list, by examination and attractiveness."""

import numpy as np

from cuolr.types import Bools, Doubles


def forward_clicks(attractiveness: Doubles, where: Bools, examination: Doubles) -> Doubles:
    """[L, K] P(C_k = 1) under P(C_k = 1 | last click above at j) = χ(k, j) · α(d_k).

    Dynamic programming over the last click: with p_j the probability that the last click above k is at j,
    P(C_k = 1) = Σ_j p_j χ(k, j) α(d_k), which leaves p_j · (1 − χ(k, j) α(d_k)) for k + 1, and a last click at k with
    the rest. Exact for UBM and for what it includes: PBM and the cascade model. The result is linear in each α, so that
    unbiased and uncorrelated estimates of α, which may be above 1, give unbiased clicks.

    Args:
        attractiveness: [L, K] α of the document at each position.
        where: [L, K] true = a document is shown.
        examination: [K, K + 1] χ by position and last click above, as in `ExaminationModel`. χ of a last click that the
            log does not have is that without a click above; 0 if the log does not have this either.

    >>> no_more_after_a_click = np.array([[1.0, np.nan, np.nan], [1.0, 0.0, np.nan]])
    >>> forward_clicks(np.array([[0.5, 0.8]]), np.ones((1, 2), np.bool_), no_more_after_a_click).tolist()
    [[0.5, 0.4]]
    """
    number, k = attractiveness.shape
    known = np.nan_to_num(np.where(np.isnan(examination), examination[:, :1], examination))
    alpha = np.where(where, attractiveness, 0.0)
    clicks = np.zeros((number, k))
    last_click = np.zeros((k + 1, number))  # the probability that it is at position 0 (none), 1, … from 1
    last_click[0] = 1
    for position in range(k):
        above = last_click[: position + 1]
        clicked = above * known[position, : position + 1, None] * alpha[:, position]
        clicks[:, position] = clicked.sum(axis=0)
        above -= clicked
        last_click[position + 1] = clicks[:, position]
    return clicks
