"""Which users a log is from: those who examine by the last click above, or those who read down until they stop."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.counts import last_click_above
from cuolr.policies.browsing_users import BrowsingUsers, LastClickUsers, TopDownUsers
from cuolr.types import Bools, Doubles, Ints

# Standard errors by which the likelihood must be higher for users to be taken for top-down.
MIN_STANDARD_ERRORS = 2.0
# How often the attractiveness is estimated anew with the top-down users, and these with it.
ROUNDS = 4
# Click probabilities are clipped to this distance from 0 and 1, so that one impossible click does not dominate.
MIN_PROBABILITY = 1e-6
# Logits of the probabilities to continue: where the search starts, and how far it goes.
START, FARTHEST = (2.0, 0.0, -1.0), 12.0


@dataclass(frozen=True)
class Attractiveness:
    """α of each pair as it was estimated with examination by the last click, and the prior that it has.

    Attributes:
        rate: [P] α̂.
        prior_clicks: [P] the clicks that its prior counts as.
        prior_strength: The examinations that its prior counts as.
    """

    rate: Doubles
    prior_clicks: Doubles
    prior_strength: float

    def with_examinations(self, clicks: Doubles, examinations: Doubles) -> Doubles:
        """[P] α̂ with other expected examinations, and the same prior."""
        total = examinations + self.prior_strength
        rate = np.divide(clicks + self.prior_clicks, total, out=self.rate.copy(), where=total > 0)
        return np.clip(rate, 0, 1)


def likely_users(patterns: ClickPatterns, attractiveness: Attractiveness, examination: Doubles) -> BrowsingUsers:
    """The users under whom the clicks of a log are more likely.

    Vuong (1989): two models that do not contain each other are compared by the mean difference of their log-likelihood
    with its standard error, here over queries. Users who examine by the last click are kept unless the top-down users
    are better by two standard errors. Both have a maximum likelihood estimate of attractiveness with the same prior.

    Args:
        patterns: The counts of the log, with a pair for every document.
        attractiveness: α of each pair, relative to examination at position 1.
        examination: [K, K + 1] χ, as in `ExaminationModel`.
    """
    clicks = _Clicks.of(patterns, len(examination))
    by_last_click = clicks.log_likelihood(clicks.by_last_click(attractiveness.rate, examination))
    alpha, logits = attractiveness.rate, np.array(START)
    for _ in range(ROUNDS):
        logits = clicks.fitted(alpha, logits)
        examined = clicks.examined(alpha, *expit(logits))
        alpha = attractiveness.with_examinations(
            clicks.by_pair(clicks.clicks, len(alpha)), clicks.by_pair(examined, len(alpha))
        )
    difference = clicks.top_down_log_likelihood(alpha, logits) - by_last_click
    error = np.sqrt(((difference - difference.mean()) ** 2).sum())
    if not difference.sum() > MIN_STANDARD_ERRORS * error:
        return LastClickUsers(examination)
    return TopDownUsers(len(examination), *map(float, expit(logits)))


@dataclass(frozen=True)
class _Clicks:
    """The clicks of a log by list and pattern, and how likely each is given those above it; all [M, K] or [M]."""

    documents: Ints
    where: Bools
    clicks: Bools
    count: Doubles
    query: Ints

    @classmethod
    def of(cls, patterns: ClickPatterns, k: int) -> "_Clicks":
        _, query = np.unique(patterns.query, return_inverse=True)
        where = patterns.where[:, :k]
        return cls(patterns.documents[:, :k], where, patterns.clicks[:, :k] & where, patterns.count, query)

    def by_pair(self, values: Doubles | Bools, pairs: int) -> Doubles:
        """[P] the sums of values [M, K] over all sessions that show a pair."""
        weights = (self.count[:, None] * values)[self.where]
        return np.bincount(self.documents[self.where], weights=weights, minlength=pairs).astype(np.float64)

    def log_likelihood(self, chance: Doubles) -> Doubles:
        """[queries] of the clicks, whose probabilities are [M, K]."""
        chance = np.clip(chance, MIN_PROBABILITY, 1 - MIN_PROBABILITY)
        of_each = np.where(self.clicks, np.log(chance), np.log1p(-chance))
        of_lists = self.count * np.where(self.where, of_each, 0.0).sum(axis=1)
        return np.bincount(self.query, weights=of_lists).astype(np.float64)

    def by_last_click(self, alpha: Doubles, examination: Doubles) -> Doubles:
        """[M, K] χ(k, j) · α(d_k); a χ that the log does not have is that without a click above."""
        known = np.nan_to_num(np.where(np.isnan(examination), examination[:, :1], examination))
        last = last_click_above(self.clicks)
        chance: Doubles = known[np.arange(last.shape[1]), last] * alpha[self.documents]
        return chance

    def fitted(self, alpha: Doubles, start: Doubles) -> Doubles:
        """[3] the logits of the probabilities to continue, by maximum likelihood."""

        def loss(logits: Doubles) -> float:
            return -float(self.top_down_log_likelihood(alpha, logits).sum() / self.count.sum())

        found: Doubles = minimize(loss, start, method="L-BFGS-B", bounds=[(-FARTHEST, FARTHEST)] * len(start)).x
        return found

    def top_down_log_likelihood(self, alpha: Doubles, logits: Doubles) -> Doubles:
        """[queries]."""
        return self.log_likelihood(self.examined(alpha, *expit(logits)) * alpha[self.documents])

    def examined(self, alpha: Doubles, *continuation: float) -> Doubles:
        """[M, K] P(E_k = 1 | the clicks above) of top-down users, by filtering from the top."""
        users = TopDownUsers(self.documents.shape[1], *continuation)
        examined = np.ones(self.documents.shape)
        of_lists = alpha[self.documents]
        for k in range(self.documents.shape[1] - 1):
            now, attracted = examined[:, k], of_lists[:, k]
            skipped = now * (1 - attracted) / np.maximum(1 - now * attracted, MIN_PROBABILITY)
            onward = np.where(self.clicks[:, k], users.after_click(attracted), users.after_skip * skipped)
            examined[:, k + 1] = np.where(self.where[:, k], onward, now)
        return examined
