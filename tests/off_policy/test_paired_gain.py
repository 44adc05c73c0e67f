from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuolr.off_policy.estimators.item_position_ips import ItemPositionIPS
from cuolr.off_policy.estimators.list_ips import ListIPS
from cuolr.off_policy.estimators.off_policy_estimator import OffPolicyEstimator
from cuolr.off_policy.estimators.reward_interaction_ips import RewardInteractionIPS
from cuolr.off_policy.estimators.snips import SelfNormalisedIPS
from cuolr.off_policy.logged_lists import ListProbabilities, LoggedLists
from cuolr.off_policy.paired_gain import best_baseline, paired_gain
from cuolr.off_policy.support import Support
from cuolr.types import Doubles
from tests.off_policy.enumerated import cascade, enumerated, position_based, sampled

ALL: list[OffPolicyEstimator] = [ListIPS(), SelfNormalisedIPS(), ItemPositionIPS(), RewardInteractionIPS()]


def some_lists(seed: int, units: int = 8, same: bool = False) -> LoggedLists:
    rng = np.random.default_rng(seed)
    target = None if same else rng.uniform(0.1, 5, 4).tolist()
    lists = enumerated(cascade, logging := rng.uniform(0.1, 5, 4).tolist(), target or logging).lists
    size = len(lists.count)
    unit = np.concatenate([np.arange(units), rng.integers(0, units, size - units)])
    counted = replace(lists, unit=unit, count=rng.integers(1, 20, size), reward=rng.random(lists.reward.shape))
    return replace(counted, target=counted.logging) if same else counted


@pytest.mark.parametrize("estimator", ALL)
def test_the_logging_policy_gains_nothing_for_certain(estimator: OffPolicyEstimator) -> None:
    lists = some_lists(0, same=True)
    found = paired_gain(lists, estimator)
    mean = (lists.reward.sum(axis=1) @ lists.count) / lists.sessions
    assert found.production == pytest.approx(mean)
    assert found.value == pytest.approx(mean)
    assert (found.gain, *found.interval) == pytest.approx((0, 0, 0), abs=1e-12)
    assert found.effective_sample_size == pytest.approx(lists.sessions)
    assert found.mean_weights == pytest.approx((1, 1, 1))
    assert found.doubts == []


@given(st.integers(0, 1000))
def test_the_control_variate_never_increases_the_variance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    difference, control, sessions = rng.normal(size=20), rng.normal(size=20), rng.integers(1, 9, 20).astype(np.float64)

    def variance(beta: float) -> float:
        corrected = difference - beta * control
        residual = corrected - sessions * corrected.sum() / sessions.sum()
        return float(residual @ residual)

    beta, leverage = best_baseline(difference, control, sessions)
    assert variance(beta) <= min(variance(0.0), variance(beta - 0.01), variance(beta + 0.01))
    assert leverage.sum() == pytest.approx(1)


def test_with_one_list_per_unit_beta_is_that_of_delta_ope() -> None:
    rng = np.random.default_rng(0)
    lists = some_lists(1)
    size = len(lists.count)
    lists = replace(lists, unit=np.arange(size), count=np.ones(size, np.int64), reward=rng.random((size, 3)))
    reward, weight = lists.reward.sum(axis=1), ListIPS().weights(lists)[:, 0]
    covariance = np.cov((weight - 1) * reward, weight - 1)
    # Ours is in units of the mean reward.
    assert paired_gain(lists, ListIPS()).control_variate * reward.mean() == pytest.approx(
        covariance[0, 1] / covariance[1, 1]
    )


def test_the_best_baseline_by_hand() -> None:
    one = np.ones(3)
    # The control is −1, 0, 1 and the difference 2 times that, and 5 more.
    assert best_baseline(np.array([3.0, 5.0, 7.0]), np.array([-1.0, 0.0, 1.0]), one)[0] == 2
    assert best_baseline(np.array([3.0, 5.0, 7.0]), one, one)[0] == 0
    # What differs by rounding only is constant.
    assert best_baseline(np.array([3.0, 5.0, 7.0]), np.array([0.0, 1e-15, -1e-16]), one)[0] == 0


def test_the_gain_is_paired() -> None:
    """Units whose rewards differ much more than the two policies have an interval of the difference alone."""
    lists = some_lists(2)
    level = np.arange(8) * 100.0
    high = replace(lists, reward=lists.reward + level[lists.unit, None])
    close = replace(high, target=replace(high.logging, given_above=high.logging.given_above * (1 - 1e-6)))
    found = paired_gain(close, SelfNormalisedIPS())
    assert found.value_interval[1] - found.value_interval[0] > 100
    assert found.interval[1] - found.interval[0] < 1e-3


def no_overlap() -> LoggedLists:
    lists = some_lists(3)
    none = np.zeros(lists.reward.shape)
    return replace(lists, target=ListProbabilities(none, none))


@pytest.mark.parametrize("estimator", ALL)
def test_without_overlap_nothing_is_known_but_the_limits(estimator: OffPolicyEstimator) -> None:
    lists = replace(no_overlap(), reward_limits=(np.zeros(3), np.ones(3)))
    found = paired_gain(lists, estimator)
    assert not found.overlap
    assert (found.gain, found.interval, found.effective_sample_size) == (0, (-np.inf, np.inf), 0)
    assert found.worst_case == pytest.approx(-found.production)
    assert found.best_case == pytest.approx(3 - found.production)
    assert found.unsupported == 1
    assert found.doubts == ["no logged session shows what the policy would show: the log cannot tell its gain"]
    assert not any(np.isnan(value) for value in found.as_dict().values() if isinstance(value, float))
    assert found.as_dict()["interval"] == [None, None]


def supported(unsupported: Doubles) -> Support:
    by_level = dict.fromkeys(("position", "above", "list"), unsupported)
    return Support(never_shown=0.1, unsupported=by_level, unobserved=by_level)


def test_what_the_log_cannot_say_is_a_worst_and_a_best_case() -> None:
    lists = replace(some_lists(4), support=supported(np.array([0.0, 0.1, 0.2])))
    lists = replace(lists, reward_limits=(np.zeros(3), np.array([1.0, 0.5, 0.25])))
    found = paired_gain(lists, ListIPS(), control_variate=False)
    assert found.worst_case == pytest.approx(found.gain)  # IPS has 0 for what was not shown
    assert found.best_case == pytest.approx(found.gain + 0.1 * 0.5 + 0.2 * 0.25)
    assert found.bounds == pytest.approx((found.interval[0], found.interval[1] + 0.1 * 0.5 + 0.2 * 0.25))
    assert found.unsupported == pytest.approx(0.3 / 3)
    assert (found.never_shown, found.unobserved) == pytest.approx((0.1, 0.1))
    assert "the log cannot say the reward of 10.0% of the policy's list positions" in found.doubts


def test_self_normalised_estimates_assume_the_mean_of_what_was_shown() -> None:
    lists = replace(some_lists(4), support=supported(np.array([0.0, 0.0, 0.2])))
    lists = replace(lists, reward_limits=(np.zeros(3), np.ones(3)))
    found = paired_gain(lists, SelfNormalisedIPS())
    weights = ListIPS().weights(lists)[:, 2] * lists.count
    mean = weights @ lists.reward[:, 2] / weights.sum()
    assert found.worst_case == pytest.approx(found.gain - 0.2 * mean)
    assert found.best_case == pytest.approx(found.gain + 0.2 * (1 - mean))


def test_a_position_without_weight_is_not_supported() -> None:
    lists = some_lists(5)
    given_above = lists.target.given_above.copy()
    given_above[:, 2] = 0
    lists = replace(lists, target=ListProbabilities(given_above), reward_limits=(np.zeros(3), np.ones(3)))
    found = paired_gain(lists, RewardInteractionIPS(), control_variate=False)
    assert found.overlap
    assert found.best_case == pytest.approx(found.gain + 1)
    assert found.unsupported == pytest.approx(1 / 3)


def test_wrong_propensities_show_in_the_mean_weight() -> None:
    lists = some_lists(6, units=20)
    half = ListProbabilities(lists.logging.given_above / 2)
    found = paired_gain(replace(lists, target=lists.logging, logging=half), RewardInteractionIPS())
    assert found.mean_weights == pytest.approx((2, 4, 8))
    wrong = "propensities are wrong, or the log does not support the policy's lists"
    assert f"the mean weight at position 1 is 2.000, expected 1: {wrong}" in found.doubts


def test_few_effective_sessions_are_a_doubt() -> None:
    lists = enumerated(cascade, [1.0, 1.0, 1.0, 1.0], (0, 1, 2)).lists
    found = paired_gain(lists, ListIPS())
    assert found.effective_sample_size == pytest.approx(1)
    assert "the effective sample size is 1 of 24 sessions: the interval is not reliable" in found.doubts


def test_clipping_is_said() -> None:
    found = paired_gain(some_lists(7), ListIPS(max_weight=1))
    assert 0 < found.share_clipped < 1
    assert f"weights of {found.share_clipped:.1%} of the sessions were clipped to 1" in found.doubts


@pytest.mark.thorough
@pytest.mark.parametrize("estimator", ALL)
def test_95_percent_of_the_intervals_have_the_true_gain(estimator: OffPolicyEstimator) -> None:
    problem = enumerated(position_based, [4.0, 3.0, 2.0, 1.0], [1.0, 1.0, 3.0, 2.0])
    truth = problem.value - problem.expected(problem.lists.reward.sum(axis=1))
    found = [paired_gain(sampled(problem, 300, seed)[0], estimator) for seed in range(300)]
    level = np.mean([low <= truth <= high for low, high in (estimate.interval for estimate in found)])
    assert 0.92 <= level <= 0.98
    error = np.std([estimate.gain for estimate in found]) / np.sqrt(len(found))
    assert np.mean([estimate.gain for estimate in found]) == pytest.approx(truth, abs=3.5 * error)
