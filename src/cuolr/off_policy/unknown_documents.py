"""The worst and the best case of documents that the log says too little about."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.stats import norm

from cuolr.off_policy.compared_lists import ComparedLists, CountedDocuments, CountedLists
from cuolr.off_policy.intervals import CONFIDENCE, Units, heavy_tailed_interval
from cuolr.off_policy.users.fitted_users import UserResponse
from cuolr.types import Bools, Doubles

# Clicks from which the rate of a document counts as its attractiveness, for the best case.
ENOUGH_CLICKS = 10.0
# A document that at most this share of its query's sessions shows is hardly shown.
HARDLY_SHOWN = 0.1


@dataclass(frozen=True)
class LeastAttractiveness:
    """How attractive a document of the policy's lists is at least, if the log says too little about it.

    The documents most like those that a logging policy never shows are those that it hardly shows (`HARDLY_SHOWN`). Let
    c be the clicks per examination of hardly shown documents in the policy's lists: if the policy chooses bad
    documents, c is low. The least attractiveness is

    - c for a document that was shown too seldom to be known,
    - c · h / (h + n) for one that was never shown, where h and n are the numbers of hardly and never shown documents of
      its query: the fewer are hardly shown, the more a logging policy excludes documents instead of showing them less.

    If the log shows the same documents in all sessions of a query, h = 0, and so is the least attractiveness.

    Attributes:
        rate: c; 0 if there are too few such documents for an interval.
        low: The lower end of its 95 % interval over queries, 0 or more.
        share: [P] the share of c.
        influence: [n_queries] of the query on log c, with the standard error that the interval has.
    """

    rate: float
    low: float
    share: Doubles
    influence: Doubles

    @classmethod
    def of(cls, compared: ComparedLists, response: UserResponse) -> Self:
        """The least attractiveness by the users of one click model."""
        rates, queries = response.rates, compared.n_queries
        shown, query = compared.logged.sessions_of_pairs(len(rates.known)), compared.query_of_pair
        of_query = compared.logged.sessions_of_queries(queries)
        hardly = (shown > 0) & (shown <= HARDLY_SHOWN * of_query[query])
        of_target = hardly & _contains(compared.target, len(rates.known))
        clicks, examinations = (
            np.bincount(query[of_target], weights=of_pairs[of_target], minlength=queries).astype(np.float64)
            for of_pairs in (rates.clicks, rates.examinations)
        )
        number, never = (np.bincount(query[of], minlength=queries) for of in (hardly, shown == 0))
        share = np.where(shown > 0, 1.0, (number / np.maximum(number + never, 1))[query])
        rate, (low, _) = heavy_tailed_interval(clicks, examinations)
        if not (np.isfinite(low) and rate > 0):
            return cls(0.0, 0.0, share, np.zeros(queries))
        residual = clicks - rate * examinations
        # Of few queries, the interval is wider than by the sum of squares.
        size = float(np.sqrt((residual**2).sum())) * float(norm.ppf((1 + CONFIDENCE) / 2))
        influence = residual * ((rate - low) / (rate * size) if size > 0 else 0.0)
        return cls(min(rate, 1.0), min(max(low, 0.0), 1.0), share, influence)


@dataclass(frozen=True)
class UnknownDocuments:
    """What documents that the log says too little about may change, under the users of one click model.

    Documents are as bad, or as good, as can be: as good as the best document of the log, as bad as the least
    attractiveness. What production earned is logged, so only the policy's documents vary. Compared with another policy,
    documents of that one only are the other way round, and 0 if they are bad; those of both sides either.

    Attributes:
        compared: The lists.
        response: The users.
        baseline: [n_queries] the expected reward of the lists that are compared with.
        least: The least attractiveness.
    """

    compared: ComparedLists
    response: UserResponse
    baseline: Doubles
    least: LeastAttractiveness

    @classmethod
    def of(cls, compared: ComparedLists, response: UserResponse, baseline: Doubles) -> Self:
        """The documents of these lists."""
        return cls(compared, response, baseline, LeastAttractiveness.of(compared, response))

    def cases(self, rate: float) -> Iterator[Doubles]:
        """[n_queries] each: the change of reward in the cases that may be the worst for the policy, and the best.

        Args:
            rate: c of the least attractiveness.
        """
        compared, rates, least = self.compared, self.response.rates, rate * self.least.share
        enough = rates.known & (compared.clicks >= ENOUGH_CLICKS)
        highest = min(float(rates.attractiveness[enough].max()), 1.0) if enough.any() else 1.0
        unknown = ~rates.known
        if compared.baseline is compared.logged:
            for of_policy in (least, highest):
                alpha = np.where(unknown, of_policy, rates.attractiveness)
                yield compared.by_query(compared.target, self.response, alpha) - self.baseline
            return
        in_target, in_baseline = (_contains(lists, len(unknown)) for lists in (compared.target, compared.baseline))
        for of_target, of_baseline in ((least, highest), (highest, 0.0)):
            for of_both in (least, highest):
                alpha = np.where(unknown & in_target & in_baseline, of_both, rates.attractiveness)
                alpha = np.where(unknown & in_target & ~in_baseline, of_target, alpha)
                alpha = np.where(unknown & in_baseline & ~in_target, of_baseline, alpha)
                yield compared.changes(self.response, alpha)

    def lowest_end(self, changes: Doubles, effects: Doubles, units: Units) -> float:
        """The lower end of the 95 % interval of the change in the worst case, relative to the reward.

        c is estimated from the same clicks as the change. So its error is part of the interval, with the covariance of
        both: they are not at their lower ends together. And c is 0 at least, which bounds what grows with it.

        Args:
            changes: [n_queries] the change of reward, with the mean attractiveness.
            effects: [G] how much each group of queries changes the reward through the shared parameters.
            units: The units of the log: queries.
        """
        reward, change = units.by_group(self.compared.reward), float(changes.sum())

        def low(of_queries: Doubles, case: float) -> float:
            end = heavy_tailed_interval(units.by_group(of_queries) + effects, reward)[1][0]
            return end + (case - change) / float(reward.sum())

        at_rates, at_zeros = ([float(case.sum()) for case in self.cases(rate)] for rate in (self.least.rate, 0.0))
        ends = []
        for at_rate, at_zero in zip(at_rates, at_zeros, strict=True):
            end = low(changes + (at_rate - at_zero) * self.least.influence, at_rate)
            ends.append(max(end, low(changes, at_zero)) if at_zero <= at_rate else end)
        return min(ends)


def _contains(lists: CountedLists | CountedDocuments, pairs: int) -> Bools:
    """[P] whether one of the lists has the pair."""
    return lists.sessions_of_pairs(pairs) > 0
