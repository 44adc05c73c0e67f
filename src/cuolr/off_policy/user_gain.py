"""The gain of a policy's own lists over the logged ones, under users that were fitted to the log."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cuolr.off_policy.compared_lists import ComparedLists, CountedDocuments, CountedLists
from cuolr.off_policy.gain_estimate import Correction
from cuolr.off_policy.intervals import UNKNOWN, Units, heavy_tailed_interval
from cuolr.off_policy.position_discount import discount_weights, weights_in_lists
from cuolr.off_policy.users.fitted_users import FittedUsers, Influence, UserResponse
from cuolr.types import Bools, Doubles

# Sum of squared places of a query's lists, per session of the log, up to which they do not differ but for rounding.
MIN_SQUARED_PLACE = 1e-20


def correction_towards_policy(compared: ComparedLists, users: UserResponse) -> Correction:
    """How wrong fitted users are at the policy's lists, judged by logged ones, relative to the logged reward; interval.

    A list is the vector of its documents' exposures, 1 / log2(1 + position). On the line from the mean of a query's
    logged lists, a = 0, to the policy's list, a = 1, each logged list has a place a_i. The residual of list i is its
    logged reward per session minus what the users expect. Its slope in a_i, over all queries, is by how much they are
    wrong at the policy's lists, if they are wrong proportionally. 0 is expected if they are the users of the log;
    below 0, part of the gain is not there. The interval is over queries, and infinite if lists do not differ, or are
    not known.
    """
    logged = compared.logged
    if isinstance(logged, CountedDocuments):
        return 0.0, UNKNOWN
    slope, (low, high) = _slope_of_residuals(compared, logged, users, _places(compared, logged))
    scale = float(logged.count.sum()) / max(float(compared.reward.sum()), 1e-300)
    return scale * slope, (scale * low, scale * high)


def correction_by_expectation(compared: ComparedLists, users: UserResponse, gain: float) -> Correction:
    """What of the gain is not there if lists that should have more clicks do not have them, with its interval.

    Of a query's logged lists, some are better than others by these users. The slope of the residual, the logged reward
    minus the expected one, in the expected reward is 0 if these are the users of the log, and −1 if the reward does not
    depend on the list at all, as that of people who come for a fixed number of results. The correction is the slope
    times the gain: the gain is expected reward, too. The interval is over queries, and infinite if lists do not differ,
    or are not known.
    """
    logged = compared.logged
    if isinstance(logged, CountedDocuments):
        return 0.0, UNKNOWN
    expected = compared.of_lists(logged, users)
    sums, sessions = (
        np.bincount(logged.query, weights=values, minlength=compared.n_queries)
        for values in (expected * logged.count, logged.count)
    )
    mean = sums / np.maximum(sessions, 1e-300)
    slope, ends = _slope_of_residuals(compared, logged, users, expected - mean[logged.query])
    low, high = sorted(gain * end for end in ends) if gain else UNKNOWN
    return slope * gain, (low, high)


def _slope_of_residuals(
    compared: ComparedLists, logged: CountedLists, users: UserResponse, place: Doubles
) -> Correction:
    """The slope of logged minus expected reward per session in the place [L] of each list, with its interval."""
    if logged.clicks is None:
        return 0.0, UNKNOWN
    reward = compared.reward_of(logged.documents, np.where(logged.documents >= 0, logged.clicks, 0.0))
    residual = reward - logged.count * compared.of_lists(logged, users)
    of_query = [
        np.bincount(logged.query, weights=values, minlength=compared.n_queries).astype(np.float64)
        for values in (place * residual, place**2 * logged.count)
    ]
    there = of_query[1] > MIN_SQUARED_PLACE * logged.count.sum()
    if not there.any():
        return 0.0, UNKNOWN
    return heavy_tailed_interval(of_query[0][there], of_query[1][there])


def _places(compared: ComparedLists, logged: CountedLists) -> Doubles:
    """[L] the place a of each logged list."""
    pairs = len(compared.query_of_pair)
    sessions = np.bincount(logged.query, weights=logged.count, minlength=compared.n_queries)[compared.query_of_pair]
    mean, policy = (_exposures(lists, pairs) / np.maximum(sessions, 1e-300) for lists in (logged, compared.target))
    change = policy - mean
    along, length = (
        np.bincount(compared.query_of_pair, weights=values, minlength=compared.n_queries)
        for values in (mean * change, change**2)
    )
    own = (_exposure(logged) * np.where(logged.documents >= 0, change[logged.documents], 0.0)).sum(axis=1)
    far = length[logged.query]
    places: Doubles = np.where(far > 1e-12, (own - along[logged.query]) / np.maximum(far, 1e-12), 0.0)
    return places


def _exposure(lists: CountedLists) -> Doubles:
    """[L, K] 1 / log2(1 + position)."""
    return weights_in_lists(lists.documents >= 0, discount_weights("dcg", lists.documents.shape[1]))


def _exposures(lists: CountedLists, pairs: int) -> Doubles:
    """[P] the exposure of each pair in all sessions."""
    where = lists.documents >= 0
    weights = (_exposure(lists) * lists.count[:, None])[where]
    return np.bincount(lists.documents[where], weights=weights, minlength=pairs).astype(np.float64)


# Clicks from which the rate of a document counts as its attractiveness, for the best case.
ENOUGH_CLICKS = 10.0
# A document that at most this share of its query's sessions shows is hardly shown.
HARDLY_SHOWN = 0.1


def worst_and_best_change(compared: ComparedLists, response: UserResponse) -> Iterator[float]:
    """The change of reward in the cases that may be the worst for the policy, and the best.

    Documents are as bad, or as good, as can be: as good as the best document of the log, as bad as
    `least_attractiveness`. What production earned is logged, so only the policy's documents vary. Compared with another
    policy, documents of that one only are the other way round, and 0 if they are bad; those of both sides either.
    """
    enough = response.rates.known & (compared.clicks >= ENOUGH_CLICKS)
    highest = min(float(response.rates.attractiveness[enough].max()), 1.0) if enough.any() else 1.0
    unknown = ~response.rates.known
    least = least_attractiveness(compared, response)
    if compared.baseline is compared.logged:
        production = compared.by_query(compared.baseline, response).sum()
        for of_policy in (least, highest):
            alpha = np.where(unknown, of_policy, response.rates.attractiveness)
            yield float(compared.by_query(compared.target, response, alpha).sum() - production)
        return
    in_target, in_baseline = (_contains(lists, len(unknown)) for lists in (compared.target, compared.baseline))
    for of_target, of_baseline in ((least, highest), (highest, 0.0)):
        for of_both in (least, highest):
            alpha = np.where(unknown & in_target & in_baseline, of_both, response.rates.attractiveness)
            alpha = np.where(unknown & in_target & ~in_baseline, of_target, alpha)
            alpha = np.where(unknown & in_baseline & ~in_target, of_baseline, alpha)
            yield compared.total_change(response, alpha)


def least_attractiveness(compared: ComparedLists, response: UserResponse) -> Doubles:
    """[P] how attractive a document of the policy's lists is at least, if the log says too little about it.

    The documents most like those that a logging policy never shows are those that it hardly shows (`HARDLY_SHOWN`). Let
    c be the lower end of the 95 % interval, over queries, of the clicks per examination of hardly shown documents in
    the policy's lists: if the policy chooses bad documents, c is low. The least attractiveness is

    - c for a document that was shown too seldom to be known,
    - c · h / (h + n) for one that was never shown, where h and n are the numbers of hardly and never shown documents of
      its query: the fewer are hardly shown, the more a logging policy excludes documents instead of showing them less.

    If the log shows the same documents in all sessions of a query, h = 0, and so is the least attractiveness.
    """
    rates, queries = response.rates, compared.n_queries
    shown, query = compared.logged.sessions_of_pairs(len(rates.known)), compared.query_of_pair
    of_query = compared.logged.sessions_of_queries(queries)
    in_target = _contains(compared.target, len(rates.known))
    hardly = (shown > 0) & (shown <= HARDLY_SHOWN * of_query[query])
    of_target = hardly & in_target
    clicks, examinations = (
        np.bincount(query[of_target], weights=of_pairs[of_target], minlength=queries).astype(np.float64)
        for of_pairs in (rates.clicks, rates.examinations)
    )
    low = heavy_tailed_interval(clicks, examinations)[1][0]
    number, never = (np.bincount(query[of], minlength=queries) for of in (hardly, shown == 0))
    share_hardly_shown = (number / np.maximum(number + never, 1))[query]
    least: Doubles = min(max(low, 0.0), 1.0) * np.where(shown > 0, 1.0, share_hardly_shown)
    return least


def _contains(lists: CountedLists | CountedDocuments, pairs: int) -> Bools:
    """[P] whether one of the lists has the pair."""
    return lists.sessions_of_pairs(pairs) > 0


# Lists from which the derivative of the gain is computed, at most.
MAX_LISTS_OF_DERIVATIVE = 4_096
# Step of that derivative, on the scale of logarithms and logits.
STEP = 0.05


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
        corrections: What of the gain the logged lists refute, each with its interval: those that are most like the
            policy's (`correction_towards_policy`), and those that should have more clicks than others
            (`correction_by_expectation`).
        changes: [n_queries] expected change of the reward of each query.
        lowest: The lowest gain that there can be: −1 over the logged lists, whose reward can be lost only once.
    """

    users: str
    gain: float
    interval: tuple[float, float]
    worst_case: float
    best_case: float
    calibration: float
    corrections: tuple[Correction, Correction]
    changes: Doubles
    lowest: float

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval with what the log cannot say: its lower end in the worst case, upper in the best."""
        low, high = self.interval
        return max(low + self.worst_case - self.gain, self.lowest), high + self.best_case - self.gain


def user_gain(users: FittedUsers, influence: Influence, compared: ComparedLists, units: Units) -> UserGain:
    """Run fitted users forward over both policies' lists.

    The interval is over groups of units. A group's part of the gain is what the gain loses without the group; that has
    a term for the group's part in the parameters that all queries share, by their influence function and the derivative
    of the gain. So the interval is that of a bootstrap which fits the users again each time, without its noise (the
    nonparametric delta method).

    Args:
        users: The users.
        influence: Of the groups on their shared parameters.
        compared: The lists.
        units: The units of the log.
    """
    response = users.response()
    baseline = compared.by_query(compared.baseline, response)
    changes = compared.by_query(compared.target, response) - baseline
    total = max(float(compared.reward.sum()), 1e-300)
    gain = float(changes.sum()) / total
    cases = list(worst_and_best_change(compared, response))
    sample = compared.sample(MAX_LISTS_OF_DERIVATIVE)
    if units.of_sessions:
        change_of_group = _lost_without(users, sample, float(changes.sum()))
    else:
        change_of_group = units.by_group(changes)
    effects = _effects(users, influence, sample)
    logged = baseline if compared.logged is compared.baseline else compared.by_query(compared.logged, response)
    return UserGain(
        users=users.name,
        gain=gain,
        interval=heavy_tailed_interval(change_of_group + effects, units.by_group(compared.reward))[1],
        worst_case=min(gain, *(case / total for case in cases)),
        best_case=max(gain, *(case / total for case in cases)),
        calibration=float(logged.sum()) / total,
        corrections=(
            correction_towards_policy(compared, response),
            correction_by_expectation(compared, response, gain),
        ),
        changes=changes,
        lowest=-1.0 if compared.baseline is compared.logged else -np.inf,
    )


def _lost_without(users: FittedUsers, compared: ComparedLists, change: float) -> Doubles:
    """[G] the change of reward minus that without each group of sessions: without its part in the attractiveness.

    Args:
        users: The users.
        compared: A sample of the lists.
        change: The change of reward of all lists.
    """
    at_estimate = compared.total_change(users.response())
    share = compared.sessions / compared.sessions.sum()
    without = [compared.total_change(users.response(weights=weights)) for weights in 1 - np.eye(len(share))]
    lost: Doubles = share * change + (1 - share) * (at_estimate - np.array(without))
    return lost


def _effects(users: FittedUsers, influence: Influence, compared: ComparedLists) -> Doubles:
    """[G] how much each group changes the reward through the shared parameters, from a sample of the lists.

    By the derivative in each parameter or, if there are fewer groups than parameters, in the direction of each group.
    """
    shifts = influence.shifts
    directions = np.eye(users.size) if users.size <= len(shifts) else shifts
    steps = STEP / np.maximum(np.abs(directions).max(axis=1, initial=0), 1e-300)
    at_estimate = compared.total_change(users.response(np.zeros(users.size)))
    derivative = np.array(
        [
            (compared.total_change(users.response(step * direction)) - at_estimate) / step
            for step, direction in zip(steps, directions, strict=True)
        ]
    )
    effects: Doubles = shifts @ derivative if users.size <= len(shifts) else derivative
    return effects
