"""The gain of a policy's own lists over the logged ones, under users that were fitted to the log."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from cuolr.off_policy.heavy_tails import heavy_tailed_interval
from cuolr.off_policy.position_discount import weights_in_lists
from cuolr.off_policy.users.fitted_users import MAX_GROUPS, FittedUsers, UserResponse
from cuolr.random import FIXED_SEED
from cuolr.types import Bools, Doubles, Ints

# Lists from which the derivative of the gain is computed, at most.
MAX_LISTS_OF_DERIVATIVE = 4_096
# Step of that derivative, on the scale of logarithms and logits.
STEP = 0.05
# Clicks from which the rate of a document counts as its attractiveness, for the best case.
ENOUGH_CLICKS = 10.0


@dataclass(frozen=True)
class CountedLists:
    """Lists of query–document pairs, with the number of sessions that show them.

    Attributes:
        query: [L].
        documents: [L, K] indices of pairs by position on the page, −1 = nothing shown.
        count: [L] number of sessions.
    """

    query: Ints
    documents: Ints
    count: Doubles

    def select(self, rows: Ints | Bools) -> "CountedLists":
        """These lists."""
        return CountedLists(self.query[rows], self.documents[rows], self.count[rows])


@dataclass(frozen=True)
class ComparedLists:
    """The lists of a policy against those of production, for the same sessions.

    Attributes:
        target: The policy's lists.
        baseline: What they are compared with: the logged lists, or those of another policy.
        logged: The logged lists.
        reward: [n_queries] the logged reward of each query.
        worth: [P] mean reward of a click on each pair.
        clicks: [P] the clicks on each pair.
        position_weights: [k] what a click at each rank counts; None = 1.
    """

    target: CountedLists
    baseline: CountedLists
    logged: CountedLists
    reward: Doubles
    worth: Doubles
    clicks: Doubles
    position_weights: Doubles | None = None

    def by_query(self, lists: CountedLists, users: UserResponse, attractiveness: Doubles | None = None) -> Doubles:
        """[n_queries] the expected reward of lists."""
        clicks = users.clicks(lists.documents, attractiveness)
        if self.position_weights is not None:
            clicks = clicks * weights_in_lists(lists.documents >= 0, self.position_weights)
        of_lists = (clicks * self.worth[lists.documents]).sum(axis=1)
        return np.bincount(lists.query, weights=of_lists * lists.count, minlength=len(self.reward)).astype(np.float64)

    def total_change(self, users: UserResponse, attractiveness: Doubles | None = None) -> float:
        """The expected reward of the policy's lists minus that of the baseline."""
        both = [self.by_query(lists, users, attractiveness).sum() for lists in (self.target, self.baseline)]
        return float(both[0] - both[1])


@dataclass(frozen=True)
class UserGain:
    """The gain under the users of one click model, relative to the logged reward: 0.05 = 5 % more.

    Attributes:
        users: Registered name of the click model.
        gain: With the mean attractiveness for documents that were never shown.
        interval: 95 % confidence interval of it over queries, with the error of the users' parameters.
        worst_case: The gain if documents that the log says nothing about are the worst for the policy.
        best_case: The gain if they are the best: as attractive as the best of the log.
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


def user_gain(users: FittedUsers, compared: ComparedLists, queries: Ints) -> UserGain:
    """Run fitted users forward over both policies' lists.

    The gain is linear in the queries, given what all queries share: the parameters of the users. These depend on the
    queries by their influence function, and the gain on them by its derivative. So each query's part of the gain has
    a term for its part in the parameters, and the interval over queries is that of a bootstrap which fits the users
    again each time, without its noise (the nonparametric delta method).

    Args:
        users: The users.
        compared: The lists.
        queries: The queries that users were fitted to, which may be more than those of the lists.
    """
    response = users.response()
    baseline = compared.by_query(compared.baseline, response)
    changes = compared.by_query(compared.target, response) - baseline
    total = max(float(compared.reward.sum()), 1e-300)
    gain = float(changes.sum()) / total
    cases = list(_cases(compared, response))
    group, groups = _groups(queries, len(compared.reward))
    effects = users.influence(group, groups).effects(_derivative(users, compared))
    change_of_group, reward_of_group = (
        np.bincount(group[queries], weights=values[queries], minlength=groups) for values in (changes, compared.reward)
    )
    logged = baseline if compared.logged is compared.baseline else compared.by_query(compared.logged, response)
    return UserGain(
        users=users.name,
        gain=gain,
        interval=heavy_tailed_interval(change_of_group + effects, reward_of_group.astype(np.float64))[1],
        worst_case=min(gain, *(case / total for case in cases)),
        best_case=max(gain, *(case / total for case in cases)),
        calibration=float(logged.sum()) / total,
        changes=changes,
    )


def _cases(compared: ComparedLists, response: UserResponse) -> Iterator[float]:
    """The change if documents that the log says nothing about are the worst for the policy, and the best.

    Documents of one side only are as bad, or as good, as can be; those of both sides either.
    """
    enough = response.known & (compared.clicks >= ENOUGH_CLICKS)
    highest = min(float(response.attractiveness[enough].max()), 1.0) if enough.any() else 1.0
    unknown = ~response.known
    in_target, in_baseline = (_contains(lists, len(unknown)) for lists in (compared.target, compared.baseline))
    for of_target, of_baseline in ((0.0, highest), (highest, 0.0)):
        for of_both in (0.0, highest):
            alpha = np.where(unknown & in_target & in_baseline, of_both, response.attractiveness)
            alpha = np.where(unknown & in_target & ~in_baseline, of_target, alpha)
            alpha = np.where(unknown & in_baseline & ~in_target, of_baseline, alpha)
            yield compared.total_change(response, alpha)


def _contains(lists: CountedLists, pairs: int) -> Bools:
    """[P] whether one of the lists has the pair."""
    found = np.zeros(pairs, np.bool_)
    found[lists.documents[lists.documents >= 0]] = True
    return found


def _groups(queries: Ints, n_queries: int) -> tuple[Ints, int]:
    """[n_queries] the group of each of these queries; each has its own, unless there are very many."""
    groups = min(len(queries), MAX_GROUPS)
    group = np.zeros(n_queries, np.int64)
    group[np.random.default_rng(FIXED_SEED).permutation(queries)] = np.arange(len(queries)) % groups
    return group, groups


def _derivative(users: FittedUsers, compared: ComparedLists) -> Doubles:
    """[p] the derivative of the total change of reward in the shared parameters, from a sample of the lists."""
    rng = np.random.default_rng(FIXED_SEED)

    def sampled(lists: CountedLists) -> CountedLists:
        number = len(lists.query)
        if number <= MAX_LISTS_OF_DERIVATIVE:
            return lists
        rows = np.sort(rng.permutation(number)[:MAX_LISTS_OF_DERIVATIVE])
        kept = lists.select(rows)
        return replace(kept, count=kept.count * (lists.count.sum() / kept.count.sum()))

    sample = replace(compared, target=sampled(compared.target), baseline=sampled(compared.baseline))

    at_estimate = sample.total_change(users.response(np.zeros(users.size)))
    steps = np.eye(users.size) * STEP
    return np.array([(sample.total_change(users.response(step)) - at_estimate) / STEP for step in steps])
