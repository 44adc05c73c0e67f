"""The gain of a policy over production by the direct method, from any click log."""

import dataclasses
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cuolr.config import Range, check_arguments
from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import ClickCounts
from cuolr.logs.session_groups import in_groups
from cuolr.off_policy.estimate_gain import (
    REWARD_OF_LOG,
    Estimand,
    Fitted,
    Policy,
    position_weights,
    rewards_of,
    session_groups,
)
from cuolr.off_policy.estimators.direct_method import DirectMethod, FittedUsers
from cuolr.off_policy.intervals import ratio_interval
from cuolr.off_policy.list_distributions import distribution_of
from cuolr.training.hold_out import MANY_QUERIES
from cuolr.types import Bools, Doubles, Ints

# Lists of a stochastic policy that are drawn for each query.
DRAWN_LISTS = 16
# Relative error of the fitted users' clicks on the logged lists from which the gain is in doubt.
MAX_MISFIT = 0.05
DEFAULT_METHOD = DirectMethod()


@dataclass(frozen=True)
class DirectGain:
    """Clicks or rewards per session on a policy's own lists, against those on the logged lists, by fitted users.

    Attributes:
        units: Number of queries, or of groups of sessions, that the interval is over.
        sessions: Number of sessions.
        production: Mean logged reward.
        fitted_production: Expected reward of the logged lists, by the fitted users.
        gain: Expected reward of the policy's lists minus that of the logged lists.
        interval: Its 95 % interval. It does not have the error of examination, which all queries share.
        never_shown: Share of the policy's documents that the log never shows for their query. Their attractiveness is
            taken to be the query's mean.
        worst_case: The gain if these are never clicked.
        best_case: The gain if they are as attractive as the best document of the log.
        highest_attractiveness: That of the best document.
    """

    units: int
    sessions: int
    production: float
    fitted_production: float
    gain: float
    interval: tuple[float, float]
    never_shown: float
    worst_case: float
    best_case: float
    highest_attractiveness: float

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval of the gain with what the log cannot say: its lower end in the worst case, upper in the best."""
        low, high = self.interval
        return low + self.worst_case - self.gain, high + self.best_case - self.gain

    @property
    def doubts(self) -> list[str]:
        """Reasons not to rely on the estimate, a line each."""
        doubts = []
        if abs(self.fitted_production - self.production) > MAX_MISFIT * self.production:
            doubts.append(
                f"the expected reward of the logged lists is {self.fitted_production:.3f} per session by the fitted "
                f"users, the logged one {self.production:.3f}"
            )
        if self.never_shown > 0:
            doubts.append(f"{self.never_shown:.1%} of the policy's documents were never shown for their query")
        return doubts

    def as_dict(self) -> dict[str, Any]:
        """The estimate as JSON values; the ends of an infinite interval are None."""
        values = dataclasses.asdict(self)
        for name, (low, high) in (("interval", self.interval), ("bounds", self.bounds)):
            values[name] = [end if np.isfinite(end) else None for end in (low, high)]
        return values | {"doubts": self.doubts}


def direct_gain(
    policy: Policy | Fitted, log: ClickLog, estimand: Estimand = REWARD_OF_LOG, method: DirectMethod = DEFAULT_METHOD
) -> DirectGain:
    """Estimate the reward of a policy's own lists by fitted users, as a gain over the logged lists.

    Biased if users are not those of the user browsing model, whose special cases are PBM and the cascade model; under
    DCM and DBN the gain is overestimated. No propensities are needed, and the variance is small: whatever is known of a
    document counts, wherever it was shown. The log must be new to the policy.

    Examination is cross-fitted over queries. Click rates are not cross-fitted over sessions: a policy that did not
    learn from these sessions does not profit from their noise.

    Args:
        policy: A policy or a fitted `Ranker`, which show one list per query, or one that draws its lists.
        log: Raw sessions, or an aggregated log, for which examination is estimated by position only.
        estimand: What is estimated. A reward is that of a click on the document, whose mean does not depend on the
            position. `reward_limits` are those of the attractiveness of documents that were never shown.
        method: How users are fitted.
    """
    rewards_of(log, estimand)
    target = policy if isinstance(policy, Policy) else policy.policy_
    log = log.select(np.flatnonzero(log.where.any(axis=1)))
    log = replace(log, reward=None) if estimand.reward == "clicks" else log
    if not len(log):
        raise InputError("expected a log that shows documents, found none in any session")
    if len(np.unique(log.query)) < MANY_QUERIES and not log.aggregated:
        group = session_groups(len(log))
        log = in_groups(log, group, int(group.max()) + 1)
    counts = ClickCounts.of(log)
    check_arguments(k=(estimand.k or counts.lists.k, Range(1, counts.lists.k)))
    lists, level = counts.lists if estimand.k is None else counts.top(estimand.k).lists, counts.level_of_list
    users = FittedUsers.fit(counts, method)
    users = replace(users, tables=users.tables[:, :, : lists.k, : lists.k + 1])
    weights = position_weights(estimand, lists.k)
    logged = users.rewards((lists.query, level), lists.documents, lists.where) @ weights
    cases, never_shown = _on_target_lists(target, (lists, level), users, weights, estimand)
    queries, unit = np.unique(lists.query, return_inverse=True)

    def by_query(values: Doubles) -> Doubles:
        return np.bincount(unit, weights=values * lists.count, minlength=len(queries)).astype(np.float64)

    sessions = by_query(np.ones(len(lists)))
    gain, interval = ratio_interval(by_query(cases[0] - logged), sessions)
    gains = [float(by_query(case - logged).sum() / sessions.sum()) for case in cases]
    return DirectGain(
        units=len(queries),
        sessions=lists.sessions,
        production=float((lists.rewards * lists.count[:, None] * lists.where).sum(axis=0) @ weights / lists.sessions),
        fitted_production=float(by_query(logged).sum() / sessions.sum()),
        gain=gain,
        interval=interval,
        never_shown=never_shown,
        worst_case=min(gains),
        best_case=max(gains),
        highest_attractiveness=users.highest if estimand.reward_limits is None else estimand.reward_limits[1],
    )


def _on_target_lists(
    policy: Policy, logged: tuple[ClickLog, Ints], users: FittedUsers, weights: Doubles, estimand: Estimand
) -> tuple[Doubles, float]:
    """Rewards of the policy's lists, at the positions that each logged list fills.

    Returns:
        cases: [3, L] with the prior for documents that were never shown, and in the worst and the best case.
        never_shown: Share of the policy's documents that were never shown.
    """
    lists, level = logged
    queries, of_list = np.unique(lists.query, return_inverse=True)
    drawn = distribution_of(policy, lists.candidates, queries, lists.k).sample(queries)[1]
    drawn = drawn.reshape(len(queries), -1, lists.k)[:, :DRAWN_LISTS]
    low, high = (0.0, users.highest) if estimand.reward_limits is None else estimand.reward_limits
    cases, new, shown = np.zeros((3, len(lists))), 0.0, 0.0
    for number in range(drawn.shape[1]):
        documents, where = _at_filled_positions(lists, drawn[of_list, number])
        for case, never_shown in enumerate((None, low, high)):
            found = users.rewards((lists.query, level), documents, where, never_shown)
            cases[case] += found @ weights / drawn.shape[1]
        counted = where * lists.count[:, None]
        new += float((counted * ~users.shown[documents]).sum())
        shown += float(counted.sum())
    return cases, new / max(shown, 1.0)


def _at_filled_positions(lists: ClickLog, ranking: Ints) -> tuple[Ints, Bools]:
    """[L, K] the documents of a ranking, in order at the positions that a logged list fills, and where they are."""
    filled = lists.where
    place = np.maximum(np.cumsum(filled, axis=1) - 1, 0)
    index = np.take_along_axis(ranking, place, axis=1)
    where = filled & (index >= 0)
    return np.where(where, lists.candidates.offsets[lists.query, None] + index, 0), where
