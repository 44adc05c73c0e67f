"""The weights of several rankers, from clicks on queries that none of them has learned from."""

import numpy as np
import numpy.typing as npt

from cuolr.types import Bools, Doubles

# How strongly weights are drawn to 0, against the mean log-likelihood of a click; just enough for one solution.
RIDGE = 1e-3
# Of a document that was shown and that nobody looked at: its logarithm is taken.
LEAST_LOOKS = 1e-3


def stacking_weights(scores: Doubles, clicked: Doubles, looked: Doubles, where: Bools) -> Doubles:
    """The weights w ≥ 0 by which Σ_i w_i s_i explains best which of a query's documents were clicked.

    Clicks on document d are Poisson with mean looks_d · exp(Σ_i w_i s_id + what the query's users click at all). Given
    how many clicks the query has, they fall on its documents by softmax_d(Σ_i w_i s_id + log looks_d): that is the
    likelihood, so that a document seldom looked at says little, and what is not known of the query does not matter.

    Args:
        scores: [number of rankers, R, N] of each document, by a ranker that has not learned from this query.
        clicked: [R, N] clicks on each.
        looked: [R, N] looks at each.
        where: [R, N] true = a document.

    Returns:
        [number of rankers]; all alike where there are no clicks.
    """
    from scipy.optimize import minimize  # takes half a second to load

    with_clicks = (clicked * where).sum(axis=1) > 0
    if not with_clicks.any():
        return np.full(len(scores), 1 / len(scores))
    scores, clicked, where = scores[:, with_clicks], (clicked * where)[with_clicks], where[with_clicks]
    offset = np.where(where, np.log(np.maximum(looked[with_clicks], LEAST_LOOKS)), -np.inf)
    clicks_of_query = clicked.sum(axis=1, keepdims=True)
    total = clicked.sum()

    def loss(weights: npt.NDArray[np.float64]) -> tuple[float, Doubles]:
        logits = np.tensordot(weights, scores, axes=1) + offset
        highest = logits.max(axis=1, keepdims=True)
        logs = logits - highest - np.log(np.exp(logits - highest).sum(axis=1, keepdims=True))
        unexplained = clicked - clicks_of_query * np.exp(logs)
        likelihood = (clicked * np.where(where, logs, 0.0)).sum() / total
        gradient = np.tensordot(scores, unexplained, axes=((1, 2), (0, 1))) / total
        return -likelihood + RIDGE * (weights**2).sum(), -gradient + 2 * RIDGE * weights

    start = np.full(len(scores), 0.1)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * len(scores))
    weights: Doubles = found.x
    return weights if weights.any() else np.full(len(scores), 1 / len(scores))
