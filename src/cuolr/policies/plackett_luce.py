"""A stochastic logging policy: rankings drawn from a Plackett–Luce distribution, with their probabilities."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from cuolr.config import Range, check_arguments
from cuolr.policies.policy import ScoringPolicy
from cuolr.types import Bools, Doubles, IntegerArray, Ints


@dataclass(frozen=True)
class StochasticLogger:
    """Draws each document from the softmax of score / temperature over those not yet placed.

    A temperature near 0 gives the policy's own ranking, a high temperature a random order.

    Attributes:
        policy: The policy that scores the documents.
        temperature: Temperature of the softmax, above 0, in units of the policy's scores.
    """

    policy: ScoringPolicy
    temperature: float

    def __post_init__(self) -> None:
        check_arguments(temperature=(self.temperature, Range(above=0)))


def sample_plackett_luce(
    scores: npt.NDArray[np.floating], where: Bools, k: int, uniforms: npt.NDArray[np.floating]
) -> tuple[Ints, Doubles]:
    """Draw one ranking per row: P(d at position k | above) = exp(s_d) / Σ_{e not above} exp(s_e).

    Sorting by score plus Gumbel noise draws all positions at once. A row depends only on its own scores and uniforms,
    so the rankings do not depend on how rows are divided into batches.

    Args:
        scores: [B, N] the scores, already divided by the temperature.
        where: [B, N] true = a document.
        k: Length of the lists.
        uniforms: [B, N] random numbers from [0, 1).

    Returns:
        ranking: [B, k] candidate indices, −1 after the last document.
        propensity: [B, k] the probability of each document given those placed above it; 1 where there is none.
    """
    batch, candidates = scores.shape
    length = min(k, candidates)
    known = np.where(where, scores, -np.inf).astype(np.float64)
    # The smallest normal number keeps a uniform of 0 from becoming −∞, which is reserved for padding.
    gumbel = -np.log(-np.log(np.maximum(uniforms, np.finfo(np.float64).tiny, dtype=np.float64)))
    drawn = np.argsort(-(known + gumbel), axis=1, kind="stable")[:, :length]
    shown = np.take_along_axis(where, drawn, axis=1)

    ranking = np.full((batch, k), -1, np.int64)
    ranking[:, :length] = np.where(shown, drawn, -1)
    propensity = np.ones((batch, k))
    if length:
        chosen = np.take_along_axis(known, drawn, axis=1)
        propensity[:, :length] = np.where(shown, np.exp(chosen - _log_sum_left(known, drawn, chosen)), 1.0)
    return ranking, propensity


def plackett_luce_probability(scores: npt.NDArray[np.floating], where: Bools, ranking: IntegerArray) -> Doubles:
    """[B, K] the probability of each document given those above it, as `sample_plackett_luce` draws rankings.

    Args:
        scores: [B, N] the scores, already divided by the temperature.
        where: [B, N] true = a document.
        ranking: [B, K] candidate indices, −1 = nothing shown, which has probability 1.
    """
    known = np.where(where, scores, -np.inf).astype(np.float64)
    shown = ranking >= 0
    rest = np.concatenate([known, np.full((len(known), 1), -np.inf)], axis=1)
    drawn = np.where(shown, ranking, known.shape[1]).astype(np.int64)
    chosen = np.take_along_axis(rest, drawn, axis=1)
    probability: Doubles = np.where(shown, np.exp(chosen - _log_sum_left(rest, drawn, chosen)), 1.0)
    return probability


def _log_sum_left(known: Doubles, drawn: Ints, chosen: Doubles) -> Doubles:
    """[B, K] log Σ exp(score) over the remaining documents at each position; 0 where there are none.

    Summed from the last position up: subtracting the placed documents from the total would lose all digits if the first
    documents have nearly all of the probability.
    """
    rest = known.copy()
    np.put_along_axis(rest, drawn, -np.inf, axis=1)
    from_below = np.concatenate([scipy.special.logsumexp(rest, axis=1, keepdims=True), chosen[:, ::-1]], axis=1)
    sums = np.logaddexp.accumulate(from_below, axis=1)[:, :0:-1]
    return np.where(np.isneginf(sums), 0.0, sums)


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
