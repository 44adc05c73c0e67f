"""All off-policy estimators: unbiased under their own assumption, exact for the logging policy itself."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuolr.errors import InputError
from cuolr.off_policy.estimators.cascade_dr import CascadeDoublyRobust, _ridge, cross_fitted_rewards, doubly_robust
from cuolr.off_policy.estimators.item_position_ips import ItemPositionIPS
from cuolr.off_policy.estimators.list_ips import ListIPS
from cuolr.off_policy.estimators.off_policy_estimator import ESTIMATORS, ImportanceWeighting, off_policy_estimator
from cuolr.off_policy.estimators.reward_interaction_ips import RewardInteractionIPS
from cuolr.off_policy.estimators.snips import SelfNormalisedIPS
from cuolr.off_policy.logged_lists import ListProbabilities, LoggedLists
from cuolr.types import Doubles
from tests.off_policy.enumerated import Enumerated, Users, cascade, enumerated, position_based, sampled, whole_list
from tests.off_policy.policies import OneHot

LOGGING = [4.0, 3.0, 2.0, 1.0]
TARGETS = [[1.0, 1.0, 5.0, 2.0], (2, 0, 3)]
WEIGHTING: list[ImportanceWeighting] = [ListIPS(), SelfNormalisedIPS(), ItemPositionIPS(), RewardInteractionIPS()]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("estimator", "users"),
    [
        (ListIPS(), position_based),
        (ListIPS(), cascade),
        (ListIPS(), whole_list),
        (RewardInteractionIPS(), position_based),
        (RewardInteractionIPS(), cascade),
        (ItemPositionIPS(), position_based),
    ],
)
def test_it_is_unbiased_for_the_users_that_it_assumes(
    estimator: ImportanceWeighting, users: Users, target: list[float] | tuple[int, ...]
) -> None:
    problem = enumerated(users, LOGGING, target)
    assert problem.expected(estimator.contributions(problem.lists).values) == pytest.approx(problem.value, rel=1e-12)


@pytest.mark.parametrize(
    ("estimator", "users"),
    [(RewardInteractionIPS(), whole_list), (ItemPositionIPS(), cascade), (ItemPositionIPS(), whole_list)],
)
def test_it_is_biased_for_others(estimator: ImportanceWeighting, users: Users) -> None:
    problem = enumerated(users, LOGGING, (2, 0, 3))
    assert abs(problem.expected(estimator.contributions(problem.lists).values) - problem.value) > 0.01


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("estimator", WEIGHTING)
def test_the_expected_weight_of_each_position_is_1(
    estimator: ImportanceWeighting, target: list[float] | tuple[int, ...]
) -> None:
    problem = enumerated(cascade, LOGGING, target)
    np.testing.assert_allclose(problem.logging @ estimator.weights(problem.lists), 1.0)


@pytest.mark.parametrize("estimator", WEIGHTING)
def test_the_logging_policy_itself_has_the_logged_rewards(estimator: ImportanceWeighting) -> None:
    lists = enumerated(cascade, LOGGING, LOGGING).lists
    lists = replace(lists, count=np.arange(1, len(lists.count) + 1), target=lists.logging)
    assert estimator.contributions(lists).values == pytest.approx(lists.reward.sum(axis=1), abs=1e-15)


@dataclass(frozen=True, kw_only=True)
class KnownWeights(SelfNormalisedIPS):
    """Self-normalised, with weights that are given."""

    known: tuple[tuple[float, ...], ...]

    def weights(self, lists: LoggedLists) -> Doubles:
        """Those that are given."""
        return np.array(self.known)


def test_a_position_that_one_session_fills_is_normalised_by_its_own_weight_even_below_1() -> None:
    lists = replace(two_sessions(), count=np.array([1, 1]))
    first = (4 / 3 * 1.0 + 2 / 3 * 0.25) / 2  # weights 2 and 1 over their mean 3/2
    found = KnownWeights(known=((2.0, 0.5), (1.0, 0.0))).contributions(lists)
    expected = [first + 4 / 3 * (1.0 - first) + 0.5, first + 2 / 3 * (0.25 - first)]
    assert found.values == pytest.approx(expected)
    assert found.assumed[0] == pytest.approx([first, 0.5])
    assert found.centred
    assert not ListIPS().contributions(lists).centred


def test_a_position_without_any_weight_earns_nothing() -> None:
    lists = replace(two_sessions(), count=np.array([1, 1]))
    found = KnownWeights(known=((1.0, 0.0), (1.0, 0.0))).contributions(lists)
    assert found.values == pytest.approx([1.0, 0.25])


def two_sessions() -> LoggedLists:
    """Two lists of two positions; the second shows one document."""
    return LoggedLists(
        unit=np.array([0, 1]),
        where=np.array([[True, True], [True, False]]),
        reward=np.array([[1.0, 0.5], [0.25, 0.0]]),
        count=np.array([1, 3]),
        logging=ListProbabilities(np.array([[0.5, 0.25], [0.5, 1.0]]), np.array([[0.5, 0.4], [0.5, 1.0]])),
        target=ListProbabilities(np.array([[0.25, 1.0], [0.75, 1.0]]), np.array([[0.25, 0.8], [0.75, 1.0]])),
    )


def test_values_by_hand() -> None:
    lists = two_sessions()
    # List: weights 0.25 / 0.125 = 2 and 0.75 / 0.5 = 1.5.
    assert ListIPS().contributions(lists).values.tolist() == [2 * (1 + 0.5), 1.5 * 0.25]
    # Down to each position: 0.25 / 0.5 = 0.5, then 0.5 · 1 / 0.25 = 2.
    assert RewardInteractionIPS().contributions(lists).values.tolist() == [0.5 * 1 + 2 * 0.5, 1.5 * 0.25]
    # At each position: 0.25 / 0.5 = 0.5 and 0.8 / 0.4 = 2.
    assert ItemPositionIPS().contributions(lists).values.tolist() == [0.5 * 1 + 2 * 0.5, 1.5 * 0.25]


def test_self_normalised_values_by_hand() -> None:
    lists = two_sessions()
    first = (2 * 1 + 3 * 1.5 * 0.25) / (2 + 3 * 1.5)  # all four sessions show a document at position 1
    second = 2 * 0.5 / 2  # one of the four shows one at position 2
    values = SelfNormalisedIPS().contributions(lists).values
    assert values @ lists.count / 4 == pytest.approx(first + second / 4)


def test_weights_are_clipped_and_counted() -> None:
    found = ListIPS(max_weight=1.8).contributions(two_sessions())
    assert found.values.tolist() == [1.8 * 1.5, 1.5 * 0.25]
    assert found.share_clipped == 1 / 4


@given(st.integers(0, 1000))
def test_a_self_normalised_estimate_is_within_the_rewards(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lists = enumerated(cascade, rng.uniform(0.1, 5, 4).tolist(), rng.uniform(0.1, 5, 4).tolist()).lists
    lists = replace(lists, reward=rng.normal(size=lists.reward.shape), count=rng.integers(1, 9, len(lists.count)))
    for estimator in (SelfNormalisedIPS(), ItemPositionIPS(self_normalised=True)):
        estimate = estimator.contributions(lists).values @ lists.count / lists.sessions
        assert lists.reward.min(axis=0).sum() <= estimate <= lists.reward.max(axis=0).sum()


@pytest.mark.parametrize("name", ESTIMATORS.names())
def test_an_estimator_is_made_by_name(name: str) -> None:
    assert off_policy_estimator(name, max_weight=7).max_weight == 7


def test_a_maximum_below_1_is_refused() -> None:
    with pytest.raises(InputError, match="expected a finite number >= 1"):
        off_policy_estimator("snips", max_weight=0.5)


def test_item_position_ips_needs_the_probabilities_of_positions() -> None:
    lists = two_sessions()
    with pytest.raises(InputError, match="found only that given the documents above; use another estimator"):
        ItemPositionIPS().contributions(replace(lists, logging=replace(lists.logging, marginal=None)))


CASCADE_LOGGING, TARGET = [4.0, 3.0, 2.0, 1.0], [1.0, 1.0, 5.0, 2.0]


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
    problem = enumerated(cascade, CASCADE_LOGGING, TARGET)
    shown, expected = predictions(problem, seed)
    values = doubly_robust(problem.lists.reward, problem.lists.ratio_above(), shown, expected)
    assert problem.expected(values) == pytest.approx(problem.value, rel=1e-12)


def test_without_a_reward_model_it_is_reward_interaction_ips() -> None:
    lists = enumerated(cascade, CASCADE_LOGGING, TARGET).lists
    zero = np.zeros(lists.reward.shape)
    expected = RewardInteractionIPS().contributions(lists).values
    assert doubly_robust(lists.reward, lists.ratio_above(), zero, zero) == pytest.approx(expected)


def sampled_with_features(problem: Enumerated, sessions: int, seed: int) -> LoggedLists:
    """Sessions drawn from the logging policy, with clicks."""
    lists, rows = sampled(problem, sessions, seed)
    return replace(lists, features=OneHot(problem.rankings[rows], np.array(TARGET)))


def test_over_many_logs_its_mean_is_the_value_and_its_variance_is_less_than_without_a_model() -> None:
    problem = enumerated(cascade, CASCADE_LOGGING, TARGET)
    logs = [sampled_with_features(problem, 300, seed) for seed in range(200)]
    robust, plain = (
        np.array([estimator.contributions(log).values.mean() for log in logs])
        for estimator in (CascadeDoublyRobust(), RewardInteractionIPS())
    )
    error = robust.std() / np.sqrt(len(logs))
    assert abs(robust.mean() - problem.value) < 3.5 * error
    assert robust.var() < 0.8 * plain.var()


def test_each_unit_is_predicted_without_its_own_rewards() -> None:
    problem = enumerated(cascade, CASCADE_LOGGING, TARGET)
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
        CascadeDoublyRobust().contributions(enumerated(cascade, CASCADE_LOGGING, TARGET).lists)


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
