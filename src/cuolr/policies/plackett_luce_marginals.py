"""How often a Plackett–Luce policy shows a document at a position, whatever stands above it."""

import numpy as np
import numpy.typing as npt

from cuolr.types import Bools, Doubles

# Distance of the nodes of the trapezoidal rule in log time, which converges exponentially for these integrands.
STEP = 0.4
# How far the nodes reach before the first arrival and after the last one, in log time.
BEFORE, AFTER = 24.0, 4.0
# Values that are held at a time, to bound memory.
VALUES_AT_A_TIME = 1 << 23


def plackett_luce_marginals(scores: npt.NDArray[np.floating], where: Bools, k: int) -> Doubles:
    """[B, N, k] P(document d at position k) under Plackett–Luce, the sum over all lists of the documents above.

    If document d arrives at an exponential time with rate λ_d = exp(s_d), the order of arrival has the Plackett–Luce
    distribution, so that

        P(d at position k) = ∫ λ_d exp(−λ_d t) P(k − 1 of the other documents arrive before t) dt.

    Given t, arrivals are independent: their number has a Poisson-binomial distribution, which is computed document by
    document. The integral is a trapezoidal sum over log t. The cost per query is N · k² times the number of
    nodes.

    Args:
        scores: [B, N] the scores, already divided by the temperature.
        where: [B, N] true = a document.
        k: Length of the lists.

    >>> plackett_luce_marginals(np.log([[3.0, 1.0]]), np.ones((1, 2), np.bool_), 2).round(6).tolist()
    [[[0.75, 0.25], [0.25, 0.75]]]
    """
    queries, candidates = scores.shape
    marginals = np.zeros((queries, candidates, k))
    for query in range(queries):
        rows = np.flatnonzero(where[query])
        if len(rows):
            marginals[query, rows] = _of_query(scores[query, rows].astype(np.float64), k)
    return marginals


def _of_query(scores: Doubles, k: int) -> Doubles:
    """[N, k] the marginals of one query."""
    log_rate = scores - np.logaddexp.reduce(scores)
    log_time = np.arange(-BEFORE, AFTER - float(log_rate.min()) + STEP, STEP)
    nodes = max(1, VALUES_AT_A_TIME // (len(scores) * k))
    marginals = np.zeros((len(scores), k))
    for start in range(0, len(log_time), nodes):
        log_arrival = log_rate + log_time[start : start + nodes, None]  # [T, N] log(λ t)
        passed = np.exp(np.minimum(log_arrival, 700.0))
        density = np.exp(log_arrival - passed) * STEP  # of the arrival time on the scale of log t
        marginals += np.einsum("tn,tnk->nk", density, _arrivals_of_others(-np.expm1(-passed), k))
    return marginals


def _arrivals_of_others(arrived: Doubles, k: int) -> Doubles:
    """[T, N, k] the probability that 0 … k − 1 documents other than n have arrived.

    The documents before n and those after it are counted apart, so that the cost is linear in N.

    Args:
        arrived: [T, N] the probability of each document.
        k: Counts from k on are not needed.
    """
    before, after = _arrivals_of_first(arrived, k), _arrivals_of_first(arrived[:, ::-1], k)[:, ::-1]
    number = np.zeros((*arrived.shape, k))
    for count in range(k):
        for of_before in range(count + 1):
            number[:, :, count] += before[:, :, of_before] * after[:, :, count - of_before]
    return number


def _arrivals_of_first(arrived: Doubles, k: int) -> Doubles:
    """[T, N, k] the probability that 0 … k − 1 of the first n documents have arrived, for n = 0 … N − 1."""
    times, candidates = arrived.shape
    number = np.zeros((times, candidates, k))
    number[:, 0, 0] = 1
    for n in range(candidates - 1):
        chance = arrived[:, n, None]
        number[:, n + 1] = number[:, n] * (1 - chance)
        number[:, n + 1, 1:] += number[:, n, :-1] * chance
    return number
