"""The interface of users that were fitted to a log: their clicks on lists that the log does not have."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from cuolr.types import Bools, Doubles, Ints

# Fewer expected examinations of a pair say nothing about it.
MIN_EXAMINATIONS = 1e-3
# Nor does less than one examination, if a click would count for that of so many sessions.
MAX_WEIGHT = 200.0


class UserResponse(Protocol):
    """Users with given parameters."""

    @property
    def rates(self) -> "UnbiasedRates":
        """α̂ of each query–document pair: it may be above 1."""

    def clicks(self, documents: Ints, attractiveness: Doubles | None = None) -> Doubles:
        """[M, K] P(C_k = 1); 0 where nothing is shown.

        Args:
            documents: [M, K] indices of pairs, −1 = nothing shown.
            attractiveness: [P] instead of α̂.
        """


@dataclass(frozen=True)
class Influence:
    """How the parameters that all queries share depend on each group of queries.

    They solve Σ_g score_g(θ) = 0, so that group g moves them by −jacobian⁻¹ · score_g: the influence function of an
    M-estimator. What the log does not identify has a jacobian of 0, and is taken as known.

    Attributes:
        scores: [G, p] of each group, at the estimate.
        jacobian: [p, p] the derivative of the sum of the scores, the pairs' parameters following θ.
    """

    scores: Doubles
    jacobian: Doubles

    @cached_property
    def shifts(self) -> Doubles:
        """[G, p] how much each group moves the parameters; the sum over groups is 0."""
        if not self.jacobian.size:
            return self.scores
        shifts: Doubles = -self.scores @ np.linalg.pinv(self.jacobian.T, rcond=1e-8)
        centred: Doubles = shifts - shifts.mean(axis=0)
        return centred


class FittedUsers(ABC):
    """Users of one click model."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Registered name of the click model."""

    @property
    @abstractmethod
    def size(self) -> int:
        """p, the number of parameters that all queries share."""

    @abstractmethod
    def response(self, shift: Doubles | None = None, weights: Doubles | None = None) -> UserResponse:
        """The users with other parameters.

        Args:
            shift: [p] how much the shared parameters are moved, on the scale of `Influence`; None = as fitted.
            weights: [units] the weight of each unit in the attractiveness of the pairs; None = all alike.
        """

    @abstractmethod
    def influence(self, group: Ints, groups: int) -> Influence:
        """How the shared parameters depend on groups of units.

        Args:
            group: [units] the group of each unit, see `ClickPatterns.unit`.
            groups: G.
        """


def least_examinations(sessions: Doubles) -> Doubles:
    """[P] the examinations from which a pair is known: one, or one in 200 sessions of its query.

    A policy shows a pair in up to all sessions of its query. So a click on a pair with fewer examinations would have a
    weight above 200, and a few such clicks would decide the gain. Whether a pair has them does not depend on its own
    clicks: leaving them to the worst and the best case is no bias.

    Args:
        sessions: [P] the sessions of each pair's query.
    """
    least: Doubles = np.clip(sessions / MAX_WEIGHT, MIN_EXAMINATIONS, 1.0)
    return least


@dataclass(frozen=True)
class UnbiasedRates:
    """α̂ = clicks / expected examinations of each pair, given the clicks above.

    No prior: the gain is a sum over documents, in which noise averages out and shrinkage does not.

    Attributes:
        clicks: [P] clicks on each pair, less those without examination (trust bias).
        examinations: [P] expected examinations.
        least: [P] the examinations from which a pair is known, or one number for all.
    """

    clicks: Doubles
    examinations: Doubles
    least: Doubles | float = MIN_EXAMINATIONS

    @cached_property
    def known(self) -> Bools:
        """[P] whether a pair has enough examinations."""
        known: Bools = self.examinations >= self.least
        return known

    @cached_property
    def attractiveness(self) -> Doubles:
        """[P] α̂. A pair that is not known has the mean of the others.

        They count alike, as production shows the better ones more often, but for those with less than one examination.
        """
        rates = self.clicks / np.where(self.known, self.examinations, 1.0)
        weights = np.where(self.known, np.minimum(self.examinations, 1.0), 0.0)
        mean = float((rates * weights).sum() / max(float(weights.sum()), 1e-300))
        return np.where(self.known, rates, mean)
