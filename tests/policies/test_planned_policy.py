"""Planned lists, with a scorer of one feature; planning against exhaustive search; users run forward."""

import itertools
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from cuolr.clicks.cascade import CascadeModel
from cuolr.clicks.ccm import ClickChainModel
from cuolr.clicks.click_model import ClickModel, click_model
from cuolr.clicks.dbn import DynamicBayesianModel
from cuolr.clicks.pbm import PositionBasedModel
from cuolr.clicks.ubm import UserBrowsingModel
from cuolr.data.normalise import UNSCALED
from cuolr.policies.browsing_users import BrowsingUsers, LastClickUsers, TopDownUsers
from cuolr.policies.forward_clicks import forward_clicks
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.model_folder import load_policy, save_policy
from cuolr.policies.planned_policy import PlannedPolicy, best_lists
from cuolr.types import Bools, Candidates, Doubles, Ints

K = 4
# The published user browsing model looks more often at what follows a click directly.
TABLE = np.array(
    [
        [1.0, np.nan, np.nan, np.nan, np.nan],
        [1.0, 0.98, np.nan, np.nan, np.nan],
        [0.95, 0.62, 1.0, np.nan, np.nan],
        [0.82, 0.42, 0.77, 1.0, np.nan],
    ]
)


def candidates_of(sizes: list[int]) -> Candidates:
    features = np.random.default_rng(3).standard_normal((sum(sizes), 1)).astype(np.float32)
    return Candidates(features, np.cumsum([0, *sizes]), np.arange(len(sizes)).astype(np.str_))


def policy_of(min_gain: float = 0.0, table: Doubles = TABLE, slope: float = 2.0) -> PlannedPolicy:
    scorer = LinearPolicy(np.ones(1, np.float32), UNSCALED)
    return PlannedPolicy(scorer, LastClickUsers(table), -1.0, slope, min_gain)


def expected(policy: PlannedPolicy, candidates: Candidates, ranking: Ints) -> Doubles:
    where = ranking >= 0
    rows = candidates.offsets[:-1, None] + np.maximum(ranking, 0)
    alpha = expit(policy.intercept + policy.slope * candidates.features[rows, 0].astype(np.float64))
    return policy.users.expected_clicks(alpha, where)


def test_planned_lists_have_more_expected_clicks_than_sorted_ones_and_never_fewer() -> None:
    candidates, policy = candidates_of([9] * 30), policy_of()
    planned, plain = policy.rank(candidates, K), policy.scorer.rank(candidates, K)
    gain = expected(policy, candidates, planned) - expected(policy, candidates, plain)
    assert (gain >= 0).all()
    assert (gain > 0.001).mean() > 0.5


def test_every_document_is_shown_once_and_short_queries_end_with_nothing() -> None:
    candidates = candidates_of([1, 2, 3, 30])
    ranking = policy_of().rank(candidates, 6)
    for row, size in zip(ranking.tolist(), [1, 2, 3, 30], strict=True):
        shown = [index for index in row if index >= 0]
        assert len(shown) == len(set(shown)) == min(size, 6)
        assert row == shown + [-1] * (6 - len(shown))


def test_users_who_continue_or_stop_are_saved_with_the_policy(tmp_path: Path) -> None:
    """Clicks on relevant documents end most sessions, so that the sorted list is not the best."""
    users = TopDownUsers(4, after_skip=0.9, after_irrelevant=0.8, after_relevant=0.1)
    policy = PlannedPolicy(policy_of().scorer, users, -1.0, 2.0, 0.0)
    save_policy(policy, tmp_path / "model")
    loaded = load_policy(tmp_path / "model")
    assert isinstance(loaded, PlannedPolicy)
    assert loaded.users == users
    candidates = candidates_of([5, 8, 1])
    np.testing.assert_array_equal(loaded.rank(candidates, 4), policy.rank(candidates, 4))


def test_a_list_changes_only_for_the_least_gain() -> None:
    candidates, plain = candidates_of([9] * 30), policy_of().scorer.rank(candidates_of([9] * 30), K)
    assert policy_of(min_gain=10).rank(candidates, K).tolist() == plain.tolist()
    demanding = policy_of(min_gain=0.02)
    changed = (demanding.rank(candidates, K) != plain).any(axis=1)
    gains = expected(demanding, candidates, demanding.rank(candidates, K)) / expected(demanding, candidates, plain) - 1
    assert changed.any()
    assert (gains[changed] >= 0.02).all()


def test_positions_that_the_log_does_not_have_are_filled_by_score() -> None:
    candidates, policy = candidates_of([30] * 5), policy_of()
    ranking = policy.rank(candidates, 8)
    assert ranking[:, :K].tolist() == policy.rank(candidates, K).tolist()
    for row, order in zip(ranking.tolist(), policy.scorer.rank(candidates, 30).tolist(), strict=True):
        assert row[K:] == [index for index in order if index not in row[:K]][: 8 - K]


@pytest.mark.parametrize("slope", [0.0, 2.0])
def test_scores_decide_where_sorting_is_optimal_or_attractiveness_is_not_known(slope: float) -> None:
    table = TABLE if slope == 0 else np.array([1.0, 0.5, 0.3, 0.2])[:, None] * np.ones(K + 1)
    policy, candidates = policy_of(table=table, slope=slope), candidates_of([9] * 20)
    assert policy.rank(candidates, K).tolist() == policy.scorer.rank(candidates, K).tolist()


def published_ubm() -> Doubles:
    model = click_model("ubm")
    assert isinstance(model, UserBrowsingModel)
    table = np.full((K, K + 1), np.nan)
    for position in range(K):
        table[position, : position + 1] = model.examination_after(position)
    return table


def sorted_attractiveness(queries: int, documents: int) -> Doubles:
    return -np.sort(-np.random.default_rng(2).beta(1, 3, (queries, documents)), axis=1)


def values_of(users: BrowsingUsers, attractiveness: Doubles, lists: Ints) -> Doubles:
    shown = np.take_along_axis(attractiveness, np.maximum(lists, 0), axis=1)
    return users.expected_clicks(shown, lists >= 0)


@pytest.mark.parametrize("users", [LastClickUsers(published_ubm()), TopDownUsers(K, 0.95, 1.0, 0.1)])
def test_the_search_finds_the_best_of_all_lists(users: BrowsingUsers) -> None:
    attractiveness = sorted_attractiveness(40, 6)
    lists, gain = best_lists(users.expected_clicks, attractiveness, np.full(40, 6), K)
    orders = np.array(list(itertools.permutations(range(6), K)))
    every = np.stack([users.expected_clicks(row[orders], np.ones(orders.shape, np.bool_)) for row in attractiveness])
    found = values_of(users, attractiveness, lists)
    assert (found >= 0.998 * every.max(axis=1)).all()
    assert (found >= every.max(axis=1) - 1e-9).mean() > 0.9
    np.testing.assert_allclose(found, every[:, 0] * (1 + gain))
    assert gain.max() > 0.02


def test_where_sorting_is_optimal_nothing_changes() -> None:
    falling = np.array([1.0, 0.6, 0.4, 0.3])[:, None] * np.ones(K + 1)
    cascade = np.zeros((K, K + 1))
    cascade[:, 0] = 1
    for table in (falling, cascade):
        lists, gain = best_lists(LastClickUsers(table).expected_clicks, sorted_attractiveness(30, 9), np.full(30, 9), K)
        assert lists.tolist() == [list(range(K))] * 30
        assert (gain == 0).all()


def test_short_queries_have_no_gaps() -> None:
    def later_is_better(attractiveness: Doubles, where: Bools) -> Doubles:
        return (attractiveness * where) @ np.arange(1.0, 5.0)

    sizes = np.array([0, 1, 2, 3, 6])
    lists, _ = best_lists(later_is_better, sorted_attractiveness(5, 6), sizes, K)
    assert ((lists >= 0).sum(axis=1) == np.minimum(sizes, K)).all()
    assert lists[1:4].tolist() == [[0, -1, -1, -1], [1, 0, -1, -1], [2, 1, 0, -1]]
    assert lists[4].tolist() == [3, 2, 1, 0]


def test_lists_longer_than_the_documents_end_with_nothing() -> None:
    lists, _ = best_lists(LastClickUsers(published_ubm()).expected_clicks, np.array([[0.9, 0.1]]), np.array([2]), 5)
    assert sorted(lists[0, :2].tolist()) == [0, 1]
    assert lists[0, 2:].tolist() == [-1, -1, -1]


FORWARD_K = 5


def by_enumeration(attractiveness: Doubles, table: Doubles) -> Doubles:
    """[K] the click probabilities of a list: the sum over all click patterns."""
    k = len(attractiveness)
    total = np.zeros(k)
    for pattern in product((0, 1), repeat=k):
        probability, last = 1.0, 0
        for position, clicked in enumerate(pattern):
            chance = table[position, last] * attractiveness[position]
            probability *= chance if clicked else 1 - chance
            last = position + 1 if clicked else last
        total += probability * np.array(pattern)
    return total


@given(st.integers(0, 1000))
def test_it_equals_the_sum_over_all_click_patterns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    attractiveness, table = rng.random((3, FORWARD_K)), rng.random((FORWARD_K, FORWARD_K + 1))
    found = forward_clicks(attractiveness, np.ones((3, FORWARD_K), np.bool_), table)
    for row in range(3):
        np.testing.assert_allclose(found[row], by_enumeration(attractiveness[row], table), atol=1e-12)


def table_of(model: ClickModel) -> Doubles:
    """[K, K + 1] examination by position and last click, as the models define it."""
    table = np.full((FORWARD_K, FORWARD_K + 1), np.nan)
    for position in range(FORWARD_K):
        if isinstance(model, UserBrowsingModel):
            table[position, : position + 1] = model.examination_after(position)
        elif isinstance(model, CascadeModel):
            table[position, : position + 1] = [1.0, *[0.0] * position]
        else:
            table[position, : position + 1] = model.examination_probability(np.zeros((1, FORWARD_K)))[0, position]
    return table


@pytest.mark.parametrize("model", [PositionBasedModel(), CascadeModel(), UserBrowsingModel(), UserBrowsingModel(eta=2)])
def test_it_equals_the_click_probability_of_the_click_models(model: ClickModel) -> None:
    relevance = np.random.default_rng(0).random((20, FORWARD_K)).astype(np.float32)
    where = np.ones((20, FORWARD_K), np.bool_)
    attractiveness = model.attractiveness(relevance.astype(np.float64))
    found = forward_clicks(attractiveness, where, table_of(model))
    np.testing.assert_allclose(found, model.click_probability(relevance, where), atol=1e-9)


@pytest.mark.parametrize(
    ("users", "model"),
    [
        (TopDownUsers(FORWARD_K, 1.0, 0.0, 0.0), CascadeModel()),
        (TopDownUsers(FORWARD_K, 0.9, 0.5, 0.25), ClickChainModel(relevance_is_attractiveness=True)),
        # s = 0.9 · relevance, which is 0.9 · (α − 0.1) / 0.9: from 1.1 − α on, of which a click has γ.
        (TopDownUsers(FORWARD_K, 0.9, 0.99, 0.09), DynamicBayesianModel()),
    ],
)
def test_top_down_users_have_the_clicks_of_the_click_models(users: TopDownUsers, model: ClickModel) -> None:
    relevance = np.random.default_rng(0).random((20, FORWARD_K)).astype(np.float32)
    where = np.ones((20, FORWARD_K), np.bool_)
    where[:5, 3:] = False
    found = users.expected_clicks(model.attractiveness(relevance.astype(np.float64)), where)
    np.testing.assert_allclose(found, model.click_probability(relevance, where).sum(axis=1), atol=1e-7)


def test_a_gap_is_passed() -> None:
    users = TopDownUsers(3, 0.5, 0.4, 0.4)
    found = users.expected_clicks(np.array([[0.5, 0.9, 0.8]]), np.array([[True, False, True]]))
    assert found == pytest.approx([0.5 + 0.8 * (0.5 * 0.5 + 0.5 * 0.4)])


def test_nothing_is_clicked_where_nothing_is_shown_and_the_rest_is_as_without_a_click_there() -> None:
    table = np.random.default_rng(0).random((3, 4))
    where = np.array([[True, False, True]])
    found = forward_clicks(np.array([[0.5, 0.9, 0.7]]), where, table)[0]
    first = table[0, 0] * 0.5
    assert found == pytest.approx([first, 0, 0.7 * (first * table[2, 1] + (1 - first) * table[2, 0])])


def test_an_unknown_cell_is_that_without_a_click_above() -> None:
    known = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    unknown = np.array([[1.0, np.nan, np.nan], [0.5, np.nan, np.nan]])
    arguments = (np.array([[0.3, 0.6]]), np.ones((1, 2), np.bool_))
    assert forward_clicks(*arguments, unknown).tolist() == forward_clicks(*arguments, known).tolist()


def test_it_is_linear_in_each_attractiveness_also_above_1() -> None:
    """Noise of unbiased estimates then averages out."""
    rng = np.random.default_rng(0)
    table, where = rng.random((FORWARD_K, FORWARD_K + 1)), np.ones((1, FORWARD_K), np.bool_)
    low, high = rng.random((1, FORWARD_K)), rng.random((1, FORWARD_K))
    high[:, 1:] = low[:, 1:]
    high[0, 0] = 3.0
    mean = forward_clicks((low + high) / 2, where, table)
    np.testing.assert_allclose(mean, (forward_clicks(low, where, table) + forward_clicks(high, where, table)) / 2)
