from dataclasses import replace

import numpy as np
import pytest

from cuolr.errors import InputError
from cuolr.off_policy.estimators.cascade_dr import CascadeDoublyRobust, _ridge, cross_fitted_rewards, doubly_robust
from cuolr.off_policy.estimators.reward_interaction_ips import RewardInteractionIPS
from cuolr.off_policy.logged_lists import ListProbabilities, LoggedLists
from cuolr.types import Doubles
from tests.off_policy.enumerated import Enumerated, cascade, enumerated, sampled
from tests.off_policy.one_hot import OneHot

LOGGING, TARGET = [4.0, 3.0, 2.0, 1.0], [1.0, 1.0, 5.0, 2.0]


def predictions(problem: Enumerated, seed: int) -> tuple[Doubles, Doubles]:
    """[M, K] an arbitrary Q̂ of each document after those above it, and its mean over the target policy's."""
    rng = np.random.default_rng(seed)
    rankings, given_above = problem.rankings, problem.lists.target.given_above
    shown, expected = np.zeros(rankings.shape), np.zeros(rankings.shape)
    table: dict[tuple[int, ...], float] = {}
    for row, ranking in enumerate(rankings.tolist()):
        for k in range(len(ranking)):
            shown[row, k] = table.setdefault(tuple(ranking[: k + 1]), float(rng.normal()))
    for row, ranking in enumerate(rankings.tolist()):
        for k in range(len(ranking)):
            below = {  # each document that can follow, once
                other[k]: given_above[number, k] * shown[number, k]
                for number, other in enumerate(rankings.tolist())
                if other[:k] == ranking[:k]
            }
            expected[row, k] = sum(below.values())
    return shown, expected


@pytest.mark.parametrize("seed", range(3))
def test_it_is_unbiased_whatever_the_reward_model(seed: int) -> None:
    problem = enumerated(cascade, LOGGING, TARGET)
    shown, expected = predictions(problem, seed)
    values = doubly_robust(problem.lists.reward, problem.lists.ratio_above(), shown, expected)
    assert problem.expected(values) == pytest.approx(problem.value, rel=1e-12)


def test_without_a_reward_model_it_is_reward_interaction_ips() -> None:
    lists = enumerated(cascade, LOGGING, TARGET).lists
    zero = np.zeros(lists.reward.shape)
    expected = RewardInteractionIPS().contributions(lists).values
    assert doubly_robust(lists.reward, lists.ratio_above(), zero, zero) == pytest.approx(expected)


def sampled_with_features(problem: Enumerated, sessions: int, seed: int) -> LoggedLists:
    """Sessions drawn from the logging policy, with clicks."""
    lists, rows = sampled(problem, sessions, seed)
    return replace(lists, features=OneHot(problem.rankings[rows], np.array(TARGET)))


def test_over_many_logs_its_mean_is_the_value_and_its_variance_is_less_than_without_a_model() -> None:
    problem = enumerated(cascade, LOGGING, TARGET)
    logs = [sampled_with_features(problem, 300, seed) for seed in range(200)]
    robust, plain = (
        np.array([estimator.contributions(log).values.mean() for log in logs])
        for estimator in (CascadeDoublyRobust(), RewardInteractionIPS())
    )
    error = robust.std() / np.sqrt(len(logs))
    assert abs(robust.mean() - problem.value) < 3.5 * error
    assert robust.var() < 0.8 * plain.var()


def test_each_unit_is_predicted_without_its_own_rewards() -> None:
    problem = enumerated(cascade, LOGGING, TARGET)
    log = sampled_with_features(problem, 60, 0)
    reward = log.reward.copy()
    reward[7] += 100
    estimator = CascadeDoublyRobust()
    before, after = estimator.contributions(log), estimator.contributions(replace(log, reward=reward))
    expected = before.values[7] + 100 * log.ratio_above()[7].sum()
    assert after.values[7] == pytest.approx(expected)
    assert np.abs(after.values - before.values)[np.arange(60) != 7].max() > 0.1


def test_it_needs_features() -> None:
    with pytest.raises(InputError, match="expected features of documents"):
        CascadeDoublyRobust().contributions(enumerated(cascade, LOGGING, TARGET).lists)


def test_the_penalty_of_the_reward_model_spares_the_intercept_which_is_last() -> None:
    inputs = np.array([[1.0, -1.0, 1.0], [-1.0, 1.0, 1.0], [0.5, 2.0, 1.0]])
    rewards = np.full(3, 0.7)
    found = _ridge(inputs.T @ inputs, inputs.T @ rewards, ridge=1e9)
    assert found == pytest.approx([0, 0, 0.7], abs=1e-6)


def test_a_list_is_predicted_by_a_model_of_the_other_folds_alone() -> None:
    rng = np.random.default_rng(1)
    documents, fold = rng.integers(0, 3, (12, 1)), np.arange(12) % 3
    lists = LoggedLists(
        unit=np.arange(12),
        where=np.ones((12, 1), np.bool_),
        reward=rng.random((12, 1)),
        count=rng.integers(1, 5, 12),
        logging=ListProbabilities(np.full((12, 1), 1 / 3), np.full((12, 1), 1 / 3)),
        target=ListProbabilities(np.full((12, 1), 1 / 3), np.full((12, 1), 1 / 3)),
    )
    shown, _ = cross_fitted_rewards(lists, OneHot(documents, np.ones(3)), fold, ridge=0.5)
    for row in range(12):
        others = np.flatnonzero(fold != fold[row])
        inputs = np.column_stack([np.eye(3)[documents[others, 0]], np.ones(len(others))])
        weighted = inputs.T * lists.count[others]
        slow = np.linalg.solve(weighted @ inputs + np.diag([0.5, 0.5, 0.5, 1e-9]), weighted @ lists.reward[others, 0])
        assert shown[row, 0] == pytest.approx(slow[documents[row, 0]] + slow[-1])
