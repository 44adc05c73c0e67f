"""The gain of a policy's own lists over the logged ones, under users that were fitted to the log."""

from dataclasses import dataclass, replace

import numpy as np

from cuolr.off_policy.intervals import ratio_interval
from cuolr.off_policy.users.fitted_users import MAX_GROUPS, FittedUsers, UserResponse
from cuolr.random import FIXED_SEED
from cuolr.types import Doubles, Ints

# Lists from which the derivative of the gain is computed, at most.
MAX_LISTS_OF_DERIVATIVE = 4_096
# Step of that derivative, on the scale of logarithms and logits.
STEP = 0.05


@dataclass(frozen=True)
class CountedLists:
    """Lists of a query–document pairs, with the number of sessions that show them.

    Attributes:
        query: [L].
        documents: [L, K] indices of pairs by position on the page, −1 = nothing shown.
        count: [L] number of sessions.
    """

    query: Ints
    documents: Ints
    count: Doubles

    def select(self, rows: Ints) -> "CountedLists":
        """These lists."""
        return CountedLists(self.query[rows], self.documents[rows], self.count[rows])


@dataclass(frozen=True)
class Comparison:
    """The lists of a policy against those of production, for the same sessions.

    Attributes:
        target: The policy's lists.
        logged: Production's.
        reward: [n_queries] the logged reward of each query.
        worth: [P] mean reward of a click on each pair.
        position_weights: [K] what a reward at each position counts.
        highest: The highest attractiveness that a pair without impressions can have.
    """

    target: CountedLists
    logged: CountedLists
    reward: Doubles
    worth: Doubles
    position_weights: Doubles
    highest: float = 1.0

    def by_query(self, lists: CountedLists, users: UserResponse, attractiveness: Doubles | None = None) -> Doubles:
        """[n_queries] the expected reward of lists."""
        clicks = users.clicks(lists.documents, attractiveness)
        of_lists = (clicks * self.worth[lists.documents]) @ self.position_weights[: lists.documents.shape[1]]
        return np.bincount(lists.query, weights=of_lists * lists.count, minlength=len(self.reward)).astype(np.float64)


@dataclass(frozen=True)
class UserGain:
    """The gain under the users of one click model, relative to the logged reward: 0.05 = 5 % more.

    Attributes:
        users: Registered name of the click model.
        gain: With the mean attractiveness for documents that were never shown.
        interval: 95 % confidence interval of it over queries, with the error of the users' parameters.
        worst_case: The gain if documents that were never shown attract nobody.
        best_case: The gain if they attract as much as the best of the log.
        calibration: Reward of the logged lists by these users, over the logged reward.
        changes: [n_queries] expected change of the reward of each query.
    """

    users: str
    gain: float
    interval: tuple[float, float]
    worst_case: float
    best_case: float
    calibration: float
    changes: Doubles

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval with what the log cannot say: its lower end in the worst case, upper in the best."""
        low, high = self.interval
        return low + self.worst_case - self.gain, high + self.best_case - self.gain


def user_gain(users: FittedUsers, compared: Comparison, unit: Ints) -> UserGain:
    """Run fitted users forward over both policies' lists.

    The gain is linear in the queries, given what all queries share: the parameters of the users. These depend on the
    queries by their influence function, and the gain on them by its derivative. So each query's part of the gain has
    a term for its part in the parameters, and the interval over queries is that of a bootstrap which fits the users
    again each time, without its noise (the nonparametric delta method).

    Args:
        users: The users.
        compared: The lists.
        unit: [n_queries] the number of each query among the units of `ClickPatterns`.
    """
    response = users.response()
    logged = compared.by_query(compared.logged, response)
    changes = compared.by_query(compared.target, response) - logged
    cases = [
        float((compared.by_query(compared.target, response, never_shown) - logged).sum())
        for never_shown in (_never_shown(users, response, value) for value in (0.0, compared.highest))
    ]
    total = max(float(compared.reward.sum()), 1e-300)
    there = np.flatnonzero(np.bincount(compared.logged.query, minlength=len(compared.reward)) > 0)
    group_of_query, groups = _groups(there, len(compared.reward))
    of_unit = np.full(int(unit.max()) + 1, 0)
    of_unit[unit[there]] = group_of_query[there]
    effects = users.influence(of_unit, groups).effects(_derivative(users, compared))
    sums = [np.bincount(group_of_query[there], weights=v[there], minlength=groups) for v in (changes, compared.reward)]
    gain, interval = ratio_interval(sums[0] + effects, sums[1].astype(np.float64))
    return UserGain(
        users=users.name,
        gain=float(changes.sum()) / total,
        interval=interval,
        worst_case=min(min(cases) / total, float(changes.sum()) / total),
        best_case=max(max(cases) / total, float(changes.sum()) / total),
        calibration=float(logged.sum()) / total,
        changes=changes,
    )


def _never_shown(users: FittedUsers, response: UserResponse, value: float) -> Doubles:
    """[P] α̂ with another one for pairs that the log does not show."""
    return np.where(users.shown, response.attractiveness, value)


def _groups(queries: Ints, n_queries: int) -> tuple[Ints, int]:
    """[n_queries] the group of each of these queries: each has its own, unless there are very many."""
    groups = min(len(queries), MAX_GROUPS)
    group = np.zeros(n_queries, np.int64)
    group[np.random.default_rng(FIXED_SEED).permutation(queries)] = np.arange(len(queries)) % groups
    return group, groups


def _derivative(users: FittedUsers, compared: Comparison) -> Doubles:
    """[p] the derivative of the total change of reward in the shared parameters, from a sample of the lists."""
    rng = np.random.default_rng(FIXED_SEED)

    def sampled(lists: CountedLists) -> CountedLists:
        number = len(lists.query)
        if number <= MAX_LISTS_OF_DERIVATIVE:
            return lists
        rows = np.sort(rng.permutation(number)[:MAX_LISTS_OF_DERIVATIVE])
        kept = lists.select(rows)
        return replace(kept, count=kept.count * (lists.count.sum() / kept.count.sum()))

    sample = replace(compared, target=sampled(compared.target), logged=sampled(compared.logged))

    def change(response: UserResponse) -> float:
        both = [sample.by_query(lists, response).sum() for lists in (sample.target, sample.logged)]
        return float(both[0] - both[1])

    at_estimate = change(users.response())
    steps = np.eye(users.size) * STEP
    return np.array([(change(users.response(step)) - at_estimate) / STEP for step in steps])
