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
