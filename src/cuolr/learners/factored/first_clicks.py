"""Clicks without a click above: how well scores explain them at the same position, with standard errors.

Given no click above, P(C_k = 1) = χ(k) · α(d_k) under PBM, UBM, the cascade model and DCM. The model here is
log α = Σ_i w_i z_i with scores z, and an effect of each position in place of log χ. So the weights do not depend on
an estimate of examination, and their errors include that position and relevance may be hard to separate: if the
logging policy shows one list per query, its score nearly follows from the position, and its weight has a large error.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from cuolr.examination.identifiability import MAX_POSITIONS, Identifiability
from cuolr.learners.factored.click_rates import ClickRates
from cuolr.logs.counts import ClickCounts
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.types import Doubles, IntegerArray, Ints

# Queries with fewer sessions are joined to groups: in a single session, the first click is below all other impressions
# without a click above, so that clicks would seem to fall on the last position.
MIN_SESSIONS_OF_A_GROUP = 5
# Maximum number of (document, position) pairs; with more, queries are sampled.
MAX_PAIRS = 200_000
# Precision of the normal prior on position effects and weights, whose mean is 0.
PRECISION = 1.0
# Newton's method ends after this many rounds, or if a step raises the log posterior by less than this.
ROUNDS, MIN_RISE = 50, 1e-6


@dataclass(frozen=True)
class Weights:
    """The weight of each score with its standard error.

    Attributes:
        value: [number of scores].
        error: [number of scores].
    """

    value: Doubles
    error: Doubles


@dataclass(frozen=True)
class FirstClicks:
    """n pairs of a document and a position, with impressions without a click above.

    Attributes:
        document: [n] the row of the document among those of the log.
        position: [n] from 0.
        impressions: [n] number of sessions.
        rewards: [n] number of clicks, or the sum of their rewards.
        identifiable: Whether documents shown at several positions separate position bias from relevance.
    """

    document: IntegerArray
    position: IntegerArray
    impressions: Doubles
    rewards: Doubles
    identifiable: bool = False

    @classmethod
    def of(cls, counts: ClickCounts, shown: ScaledDocuments, lists: Ints) -> Self:
        """Those of a log, at its first `MAX_POSITIONS` positions.

        Args:
            counts: The counts of the log.
            shown: The documents shown in the log.
            lists: The lists that say whether position bias is identifiable.
        """
        identifiable = Identifiability.of(counts, lists).identifiable  # before there are pairs in memory
        top, parts = counts.top(MAX_POSITIONS), []
        for part in top.parts():
            row, position, last = top.coordinates(part)
            first = last == 0
            key = shown.documents[row[first], position[first]].astype(np.int64) * top.lists.k + position[first]
            keys, place = np.unique(key, return_inverse=True)
            sums = (np.bincount(place, values[part][first], len(keys)) for values in (top.impressions, top.rewards))
            parts.append((keys, *sums))
        keys, impressions, rewards = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        document, position = np.divmod(keys, top.lists.k)
        return cls(document.astype(np.int32), position.astype(np.int16), impressions, rewards, identifiable)

    def weights(self, scores: Doubles, rates: ClickRates, seed: int) -> Weights:
        """The maximum a posteriori weights of scores.

        Clicks fall on the pairs of a group in proportion to impressions · exp(effect of the position + Σ_i w_i z_i), a
        concave likelihood (`conditional_likelihood`). A group is a query, or several with few sessions; scores are
        centred by query. Errors are the larger of the cluster-robust ones over queries and those of independent clicks.

        Args:
            scores: [number of scores, R, N] of the documents of R queries.
            rates: The queries.
            seed: Seed of the order in which queries are sampled and joined.
        """
        where = rates.where
        centred = scores - (scores * where).sum(axis=2, keepdims=True) / np.maximum(where.sum(axis=1), 1)[:, None]
        # [rows of features] the place of each document in a flattened [R, N] table; -1 = of no query here.
        place_of_document = np.full(len(rates.features), -1)
        place_of_document[rates.documents[where]] = np.flatnonzero(where)
        # [R] the place of each query in a random order, in which queries are sampled and joined.
        turn = np.empty(len(rates), np.int64)
        turn[np.random.default_rng(seed).permutation(len(rates))] = np.arange(len(rates))
        place = place_of_document[self.document]
        pairs = np.flatnonzero(place >= 0)
        turn_of_pair = turn[place[pairs] // where.shape[1]]
        order = np.argsort(turn_of_pair, kind="stable")[:MAX_PAIRS]
        pairs, turn_of_pair = pairs[order], turn_of_pair[order]
        sessions_by_turn = np.empty(len(rates))
        sessions_by_turn[turn] = rates.sessions
        covariates = np.zeros((len(pairs), len(scores) + int(self.position.max(initial=0)) + 1))
        covariates[:, : len(scores)] = centred.reshape(len(scores), -1)[:, place[pairs]].T
        covariates[np.arange(len(pairs)), len(scores) + self.position[pairs]] = 1.0
        model = _Model(
            group=_groups(sessions_by_turn)[turn_of_pair],
            query=turn_of_pair,
            covariates=covariates,
            offset=np.log(self.impressions[pairs]),
            rewards=self.rewards[pairs],
        )
        return model.weights(len(scores))


def _groups(sessions: Doubles) -> Ints:
    """[R] the group of each query: those with fewer sessions than `MIN_SESSIONS_OF_A_GROUP` are joined in order.

    A group of joined queries ends with the query that brings it to so many sessions. Below, the first and the third
    query are joined (1 + 4 sessions); the last one begins another group.

    >>> _groups(np.array([1.0, 200.0, 4.0, 2.0]))
    array([1, 0, 1, 2])
    """
    many = sessions >= MIN_SESSIONS_OF_A_GROUP
    few = np.where(many, 0, sessions)
    joined = many.sum() + (np.cumsum(few) - few) // MIN_SESSIONS_OF_A_GROUP
    _, groups = np.unique(np.where(many, np.cumsum(many) - 1, joined), return_inverse=True)
    return groups


@dataclass(frozen=True)
class _Model:
    """Rewards that fall on the pairs of a group by softmax(offset + covariates · values); the values have a prior."""

    group: Ints
    query: Ints
    covariates: Doubles
    offset: Doubles
    rewards: Doubles

    def weights(self, scores: int) -> Weights:
        """The first values, which are the weights of scores, by Newton's method."""
        values = np.zeros(self.covariates.shape[1])
        posterior, residual, curvature = self._expand(values)
        for _ in range(ROUNDS):
            step = np.linalg.solve(curvature, self.covariates.T @ residual - PRECISION * values)
            risen = self._expand(values + step)
            while risen[0] < posterior - MIN_RISE:
                step = step / 2
                risen = self._expand(values + step)
            values, rise = values + step, risen[0] - posterior
            posterior, residual, curvature = risen
            if rise < MIN_RISE:
                break
        inverse = np.linalg.inv(curvature)
        queries, unit = np.unique(self.query, return_inverse=True)
        gradient = self._sums(unit, residual, len(queries))
        factor = len(queries) / max(len(queries) - 1, 1)
        robust = inverse @ (factor * gradient.T @ gradient + PRECISION * np.eye(len(values))) @ inverse
        error = np.sqrt(np.maximum(np.diag(robust), np.diag(inverse)))
        return Weights(values[:scores], error[:scores])

    def _sums(self, place: Ints, factor: Doubles, size: int) -> Doubles:
        """[size, number of covariates] the sums of the covariates times a factor [n], by place [n]."""
        columns = [np.bincount(place, column * factor, size) for column in self.covariates.T]
        return np.stack(columns, axis=1)

    def _expand(self, values: Doubles) -> tuple[float, Doubles, Doubles]:
        """The log posterior, the residuals [n] and the negative second derivative, at these values."""
        n_groups = int(self.group.max(initial=-1)) + 1

        def total(of_pair: Doubles) -> Doubles:
            """[n] the sum over the group of each pair."""
            return np.bincount(self.group, weights=of_pair, minlength=n_groups).astype(np.float64)[self.group]

        logits = self.offset + self.covariates @ values
        logits -= logits.max(initial=0.0)
        odds = np.exp(logits)
        sums = np.maximum(total(odds), 1e-300)
        expected = total(self.rewards) * odds / sums
        mean = self._sums(self.group, odds / sums, n_groups)
        rewards = np.bincount(self.group, weights=self.rewards, minlength=n_groups)
        curvature = (self.covariates * expected[:, None]).T @ self.covariates - (mean * rewards[:, None]).T @ mean
        posterior = float(self.rewards @ (logits - np.log(sums))) - PRECISION / 2 * float(values @ values)
        return posterior, self.rewards - expected, curvature + PRECISION * np.eye(len(values))
