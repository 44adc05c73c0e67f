"""The gain by importance sampling, by every estimator: for logs with propensities."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from cuolr.logs.clicklog import ClickLog
from cuolr.off_policy.estimate_gain import Estimand, logged_lists
from cuolr.off_policy.estimators.off_policy_estimator import ESTIMATORS, OffPolicyEstimator, off_policy_estimator
from cuolr.off_policy.gain_estimate import GainByEstimator, GainEstimate, Requirement
from cuolr.off_policy.list_distributions import Policy
from cuolr.off_policy.logged_lists import check_probabilities
from cuolr.off_policy.paired_gain import paired_gain

# A model is shipped only if it gains by this estimator: users read from the top, and what is below changes no click.
DECIDING = "reward-interaction-ips"
# What is said of estimators that weight a reward by its position alone.
POSITION_BASED = "right for position-based users only"
# Estimators with a reward model are left out if the lists have more values of features: they would not fit in memory.
MAX_VALUES_OF_REWARD_MODEL = 1 << 25


def importance_gains(policy: Policy, log: ClickLog, estimand: Estimand) -> Iterator[GainByEstimator]:
    """The gain over the logged lists by each estimator, the one that decides first."""
    lists = logged_lists(policy, log, estimand, marginals=True)
    values = len(lists.unit) * log.candidates.features.shape[1]
    for name in sorted(ESTIMATORS.names(), key=lambda name: (name != DECIDING, name)):
        estimator = off_policy_estimator(name)
        if not estimator.has_reward_model or values <= MAX_VALUES_OF_REWARD_MODEL:
            found = _relative(paired_gain(lists, estimator), _requirement(estimator))
            yield found if found.requirement != "none" else replace(found, doubts=(POSITION_BASED, *found.doubts))


def check_propensities(log: ClickLog) -> None:
    """Raise if a propensity of a log that has any is no probability, or 0."""
    if log.logging_propensity is not None:
        row = "session" if log.of_sessions else "row"
        check_probabilities("logging_propensity", log.logging_propensity, log.where, row=row)


def _requirement(estimator: OffPolicyEstimator) -> Requirement:
    if ESTIMATORS.name_of(type(estimator)) == DECIDING:
        return "must gain"
    # Weights of positions alone are right for position-based users only.
    return "none" if estimator.level == "position" else "must not lose"


def _relative(found: GainEstimate, requirement: Requirement) -> GainByEstimator:
    """Relative to the logged reward, no more of which than all can be lost."""
    production = max(found.production, np.finfo(np.float64).tiny)
    low, high = found.relative_interval
    worst, best = found.worst_case - found.gain, found.best_case - found.gain
    return GainByEstimator(
        found.estimator,
        found.relative_gain,
        found.relative_interval,
        (max(low + worst / production, -1.0), high + best / production),
        effective_sample_size=found.effective_sample_size,
        requirement=requirement,
        doubts=tuple(found.doubts),
    )
