"""The gain of a policy's own lists over the logged ones, under users that were fitted to the log."""

from dataclasses import dataclass

import numpy as np

from cuolr.off_policy.compared_lists import ComparedLists
from cuolr.off_policy.heavy_tails import heavy_tailed_interval
from cuolr.off_policy.refutation import missed_towards_policy
from cuolr.off_policy.units import Units
from cuolr.off_policy.unknown_documents import worst_and_best_change
from cuolr.off_policy.users.fitted_users import FittedUsers, Influence
from cuolr.types import Doubles

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
        missed: How much less than these users expect the policy earns, by the logged lists that are most like its own,
            with its interval; see `missed_towards_policy`.
        changes: [n_queries] expected change of the reward of each query.
    """

    users: str
    gain: float
    interval: tuple[float, float]
    worst_case: float
    best_case: float
    calibration: float
    missed: tuple[float, tuple[float, float]]
    changes: Doubles

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval with what the log cannot say: its lower end in the worst case, upper in the best."""
        low, high = self.interval
        return low + self.worst_case - self.gain, high + self.best_case - self.gain


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
        missed=missed_towards_policy(compared, response),
        changes=changes,
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
