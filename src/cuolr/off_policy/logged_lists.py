"""What off-policy estimators take: logged lists with their rewards, and two policies' probabilities of them."""

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from cuolr.errors import InputError
from cuolr.off_policy.support import Support
from cuolr.types import Bools, Doubles, Floats, Ints

# Which part of a list an estimator weights a reward by: the document at its position, those above it as well, or all.
Level: TypeAlias = Literal["position", "above", "list"]


@dataclass(frozen=True)
class ListProbabilities:
    """A policy's probabilities of the documents of logged lists.

    Attributes:
        given_above: [M, K] P(d_k | q, d_1 … d_{k−1}), the probability of each document given those above it; 1 where
            nothing is shown.
        marginal: [M, K] P(d_k at position k | q), whatever stands above; 1 where nothing is shown. None = not known.
    """

    given_above: Doubles
    marginal: Doubles | None = None


class ListFeatures(Protocol):
    """Features of the documents of logged lists, and of those that the target policy would show instead."""

    def shown(self, position: int, rows: Ints) -> tuple[Floats, Floats]:
        """[R, F] each: the features of the document shown there in these lists, and the mean of those shown above."""

    def projected(self, position: int, of_document: Doubles, of_above: Doubles) -> tuple[Doubles, Doubles]:
        """Linear functions of the features, for all lists.

        Args:
            position: From 0.
            of_document: [F, V] the coefficients of the document at the position.
            of_above: [F, V] those of the mean of the documents shown above, which is 0 at the first position.

        Returns:
            [M, V] each: with the document shown there; and their mean over the target policy's documents, given those
            shown above.
        """


@dataclass(frozen=True)
class LoggedLists:
    """M logged lists, each with the sessions that it was shown in.

    Attributes:
        unit: [M] what the interval is over: the query of each list, or its group of sessions, from 0.
        where: [M, K] true = a document was shown; the shown ones come first.
        reward: [M, K] the mean reward of the list's sessions at each position, times the position's weight; 0 where
            nothing is shown.
        count: [M] the number of sessions.
        logging: The logging policy's probabilities.
        target: The probabilities of the policy to evaluate.
        features: For estimators with a reward model; None = none.
        support: What the log says of the target policy's lists; None = not known.
        reward_limits: [K] each: the lowest and the highest reward that a document without support may have, times the
            position's weight; None = 0, or the lowest if that is negative, and the highest of `reward`.
    """

    unit: Ints
    where: Bools
    reward: Doubles
    count: Ints
    logging: ListProbabilities
    target: ListProbabilities
    features: ListFeatures | None = None
    support: Support | None = None
    reward_limits: tuple[Doubles, Doubles] | None = None

    def __post_init__(self) -> None:
        shape = self.where.shape
        assert self.reward.shape == shape, (self.reward.shape, shape)
        assert self.unit.shape == self.count.shape == shape[:1], (self.unit.shape, self.count.shape, shape)
        if not self.where.any():
            raise InputError("expected a log that shows documents, found none in any session")
        for name, policy, zero in (
            ("logging propensity", self.logging, False),
            ("target probability", self.target, True),
        ):
            check_probabilities(name, policy.given_above, self.where, zero=zero)
            if policy.marginal is not None:
                check_probabilities(f"{name} of the position", policy.marginal, self.where, zero=zero)

    @property
    def sessions(self) -> int:
        """The number of sessions."""
        return int(self.count.sum())

    @property
    def shown(self) -> Doubles:
        """[M, K] the number of sessions that show a document at a position."""
        return np.where(self.where, self.count[:, None], 0).astype(np.float64)

    @property
    def limits(self) -> tuple[Doubles, Doubles]:
        """[K] each: see `reward_limits`."""
        if self.reward_limits is not None:
            return self.reward_limits
        full = np.ones(self.where.shape[1])
        return min(0.0, float(self.reward.min())) * full, max(0.0, float(self.reward.max())) * full

    def by_unit(self, values: Doubles) -> Doubles:
        """[number of units] the sum over all sessions.

        Args:
            values: [M] the mean of each list's sessions.
        """
        return np.bincount(self.unit, weights=values * self.count).astype(np.float64)

    def ratio_above(self) -> Doubles:
        """[M, K] Π_{j ≤ k} π(d_j | above) / μ(d_j | above), target over logging policy, down to each position."""
        return np.multiply.accumulate(self._ratio(self.target.given_above, self.logging.given_above), axis=1)

    def ratio_at(self) -> Doubles:
        """[M, K] π(d_k at k) / μ(d_k at k), target over logging policy, at each position."""
        if self.logging.marginal is None or self.target.marginal is None:
            raise InputError(
                "item-position IPS: expected the logging policy's probability of each document at its position, found "
                "only that given the documents above; use another estimator"
            )
        return self._ratio(self.target.marginal, self.logging.marginal)

    def _ratio(self, target: Doubles, logging: Doubles) -> Doubles:
        """[M, K] target / logging; 1 where nothing is shown."""
        return np.divide(target, logging, out=np.ones(self.where.shape), where=self.where)


def check_probabilities(
    name: str, values: npt.NDArray[np.floating], where: Bools, *, row: str = "list", zero: bool = False
) -> None:
    """Raise if a probability is none.

    Args:
        name: Of the values, for the message.
        values: [M, K] the probabilities.
        where: [M, K] those that count.
        row: What a row is, for the message.
        zero: Whether 0 is allowed.
    """
    assert values.shape == where.shape, (name, values.shape, where.shape)
    valid = (values >= 0) & (values <= 1) & (zero | (values != 0))
    bad = np.argwhere(where & ~valid)
    if len(bad):
        at, position = bad[0]
        more = f" ({len(bad) - 1:,} more)" if len(bad) > 1 else ""
        found = f"{values[at, position]:g} in {row} {at + 1}, position {position + 1}{more}"
        raise InputError(f"{name}: expected {'0 to 1' if zero else 'above 0 and at most 1'}, found {found}")
