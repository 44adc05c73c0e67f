"""The gain of a policy's own lists over the logged ones, under users that were fitted to the log."""

from dataclasses import dataclass

import numpy as np

from cuolr.off_policy.compared_lists import ComparedLists, CountedDocuments, CountedLists
from cuolr.off_policy.gain_estimate import Correction
from cuolr.off_policy.intervals import UNKNOWN, Units, heavy_tailed_interval
from cuolr.off_policy.position_discount import discount_weights, weights_in_lists
from cuolr.off_policy.unknown_documents import UnknownDocuments
from cuolr.off_policy.users.fitted_users import FittedUsers, Influence, UserResponse
from cuolr.types import Doubles

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
        bounds: The interval with what the log cannot say: its lower end if documents that the log says too little about
            are the worst for the policy, its upper end if they are the best.
        calibration: Reward of the logged lists by these users, over the logged reward.
        corrections: What of the gain the logged lists refute, each with its interval: those that are most like the
            policy's (`correction_towards_policy`), and those that should have more clicks than others
            (`correction_by_expectation`).
        changes: [n_queries] expected change of the reward of each query.
    """

    users: str
    gain: float
    interval: tuple[float, float]
    bounds: tuple[float, float]
    calibration: float
    corrections: tuple[Correction, Correction]
    changes: Doubles


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
    sample = compared.sample(MAX_LISTS_OF_DERIVATIVE)
    if units.of_sessions:
        change_of_group = _lost_without(users, sample, float(changes.sum()))
    else:
        change_of_group = units.by_group(changes)
    effects = _effects(users, influence, sample)
    interval = heavy_tailed_interval(change_of_group + effects, units.by_group(compared.reward))[1]
    logged = baseline if compared.logged is compared.baseline else compared.by_query(compared.logged, response)
    return UserGain(
        users=users.name,
        gain=gain,
        interval=interval,
        bounds=_bounds(UnknownDocuments.of(compared, response, baseline), changes, effects, interval, units),
        calibration=float(logged.sum()) / total,
        corrections=(
            correction_towards_policy(compared, response),
            correction_by_expectation(compared, response, gain),
        ),
        changes=changes,
    )


def _bounds(
    unknown: UnknownDocuments, changes: Doubles, effects: Doubles, interval: tuple[float, float], units: Units
) -> tuple[float, float]:
    """The interval with the worst and the best case of documents that the log says too little about."""
    low, high = interval
    total = max(float(unknown.compared.reward.sum()), 1e-300)
    shifts = [float((case - changes).sum()) / total for case in unknown.cases(unknown.least.low)]
    # The least attractiveness has an interval over queries. Of groups of sessions, both are at their lower ends.
    lowest = low + min(shifts) if units.of_sessions else unknown.lowest_end(changes, effects, units)
    # The reward of the logged lists can be lost only once.
    limit = -1.0 if unknown.compared.baseline is unknown.compared.logged else -np.inf
    return max(min(low, lowest), limit), high + max(*shifts, 0.0)


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
