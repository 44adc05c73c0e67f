"""The interface of users that were fitted to a log: their clicks on lists that the log does not have."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from cuolr.types import Bools, Doubles, Ints

# Fewer expected examinations of a pair say nothing about it.
MIN_EXAMINATIONS = 1e-3


class UserResponse(Protocol):
    """Users with given parameters."""

    @property
    def attractiveness(self) -> Doubles:
        """[P] α̂ of each query–document pair, unbiased: it may be above 1. The mean of the others if not known."""

    @property
    def known(self) -> Bools:
        """[P] whether the log says anything about the attractiveness of a pair."""

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


def unbiased_rates(clicks: Doubles, examinations: Doubles) -> tuple[Doubles, Bools]:
    """[P] α̂ = clicks / expected examinations, given the clicks above; and whether there are any examinations.

    No prior: the gain is a sum over documents, in which noise averages out and shrinkage does not. A pair that was
    never examined has the mean of the others. They count alike, as production shows the better ones more often, but
    for those with less than one examination.
    """
    known = examinations > MIN_EXAMINATIONS
    rates = clicks / np.where(known, examinations, 1.0)
    weights = np.where(known, np.minimum(examinations, 1.0), 0.0)
    mean = float((rates * weights).sum() / max(float(weights.sum()), 1e-300))
    return np.where(known, rates, mean), known
