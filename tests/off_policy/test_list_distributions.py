from itertools import permutations

import numpy as np
import pytest

from cuolr.data.normalise import UNSCALED
from cuolr.off_policy.list_distributions import OneListPerQuery, PlackettLuceLists, RankedQueries, distribution_of
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.plackett_luce import StochasticLogger
from cuolr.policies.random_policy import RandomPolicy, UniformLogger
from cuolr.types import Candidates, Ints
from tests.off_policy.enumerated import marginals, plackett_luce
from tests.small_log import small_candidates

CANDIDATES = small_candidates(queries=3, least=4, most=5)
SCORES = np.random.default_rng(0).normal(size=CANDIDATES.n_documents)


def all_lists(query: int, k: int) -> Ints:
    return np.array(list(permutations(range(CANDIDATES.sizes[query]), k)))


@pytest.mark.parametrize("query", range(3))
def test_plackett_luce_equals_the_sum_over_lists(query: int) -> None:
    rankings = all_lists(query, 3)
    rates = np.exp(SCORES[CANDIDATES.rows_of(np.array([query]))]).tolist()
    lists = PlackettLuceLists(SCORES, CANDIDATES, 3)
    found = lists.probabilities(np.full(len(rankings), query), rankings, marginal=True)
    expected = np.array([plackett_luce(rates, tuple(ranking)) for ranking in rankings])
    np.testing.assert_allclose(found.given_above, expected)
    assert found.marginal is not None
    np.testing.assert_allclose(found.marginal, marginals(rankings, expected), atol=1e-9)


def test_expected_values_are_the_mean_over_documents_that_are_not_above() -> None:
    lists = PlackettLuceLists(SCORES, CANDIDATES, 2)
    rows = CANDIDATES.rows_of(np.array([1]))
    rates, features = np.exp(SCORES[rows]), CANDIDATES.features[rows]
    found = lists.expected_values(
        np.array([1, 1]), np.array([[0, 2], [1, 3]]), 1, CANDIDATES.features.astype(np.float64)
    )
    for row, above in enumerate((0, 1)):
        left = np.delete(np.arange(len(rows)), above)
        expected = (rates[left, None] * features[left]).sum(axis=0) / rates[left].sum()
        np.testing.assert_allclose(found[row], expected, rtol=1e-5)


def test_drawn_lists_come_as_often_as_their_probability() -> None:
    lists = PlackettLuceLists(SCORES, CANDIDATES, 2)
    queries, drawn = lists.sample(np.repeat(np.array([1]), 100))
    first = np.bincount(drawn[:, 0], minlength=CANDIDATES.sizes[1]) / len(drawn)
    rates = np.exp(SCORES[CANDIDATES.rows_of(np.array([1]))])
    assert (queries == 1).all()
    np.testing.assert_allclose(first, rates / rates.sum(), atol=0.03)


def test_a_deterministic_policy_has_one_list() -> None:
    policy = RandomPolicy(1)
    lists = distribution_of(policy, CANDIDATES, np.arange(3), 3)
    own = policy.rank(CANDIDATES, 3)
    other = own.copy()
    other[:, [1, 2]] = own[:, [2, 1]]
    assert (lists.probabilities(np.arange(3), own, marginal=True).given_above == 1).all()
    found = lists.probabilities(np.arange(3), other, marginal=True)
    assert found.given_above.tolist() == [[1, 0, 0]] * 3
    assert lists.sample(np.array([2, 0]))[1].tolist() == own[[2, 0]].tolist()


class CountsRankings(RandomPolicy):
    ranked = 0

    def rank(self, candidates: Candidates, k: int) -> Ints:
        type(self).ranked += 1
        return super().rank(candidates, k)


def test_ranked_queries_are_not_ranked_again_but_for_another_length() -> None:
    policy, queries = CountsRankings(1), np.array([0, 2])
    ranked = RankedQueries.of(policy, CANDIDATES, queries, 3)
    own = RandomPolicy(1).rank(CANDIDATES, 3)
    assert ranked.lists.tolist() == [own[0].tolist(), [-1, -1, -1], own[2].tolist()]
    before = policy.ranked
    same = distribution_of(ranked, CANDIDATES, np.array([2]), 3)
    assert (same.sample(np.array([2]))[1].tolist(), policy.ranked) == ([own[2].tolist()], before)
    shorter = distribution_of(ranked, CANDIDATES, queries, 2)
    assert (shorter.sample(queries)[1].tolist(), policy.ranked) == (own[queries, :2].tolist(), before + 1)


def test_a_deterministic_policy_continues_with_its_best_document_that_is_left() -> None:
    lists = OneListPerQuery(np.array([[2, 0, 1]]), np.array([0, 3]))
    features = np.array([[1.0], [2.0], [3.0]], np.float32)
    ranking = np.array([[2, 0, 1], [0, 2, 1]])
    expected = [
        lists.expected_values(np.zeros(2, np.int64), ranking, position, features.astype(np.float64))[:, 0]
        for position in range(3)
    ]
    assert np.array(expected).tolist() == [[3, 3], [1, 3], [2, 2]]


def test_a_uniform_policy_has_every_list_alike() -> None:
    lists = distribution_of(UniformLogger(), CANDIDATES, np.arange(3), 2)
    found = lists.probabilities(np.array([0]), np.array([[1, 0]]), marginal=True)
    size = int(CANDIDATES.sizes[0])
    assert found.given_above[0] == pytest.approx([1 / size, 1 / (size - 1)])
    assert found.marginal is not None
    assert found.marginal[0] == pytest.approx([1 / size, 1 / size])


def test_a_low_temperature_gives_the_policys_own_list() -> None:
    policy = RandomPolicy(1)
    own = policy.rank(CANDIDATES, 3)
    lists = distribution_of(StochasticLogger(policy, 1e-4), CANDIDATES, np.arange(3), 3)
    assert lists.probabilities(np.arange(3), own, marginal=False).given_above == pytest.approx(np.ones((3, 3)))


def test_queries_of_a_log_are_ranked_without_copying_all_their_features(monkeypatch: pytest.MonkeyPatch) -> None:
    candidates = small_candidates(queries=9)
    queries, policy, selected = (
        np.array([7, 1, 2, 8, 4]),
        LinearPolicy(np.arange(4, dtype=np.float32), UNSCALED),
        list[list[int]](),
    )
    expected = policy.rank(candidates.select(queries), 3)
    select = Candidates.select

    def selecting(of: Candidates, chosen: Ints) -> Candidates:
        selected.append(chosen.tolist())
        return select(of, chosen)

    monkeypatch.setattr(Candidates, "select", selecting)
    monkeypatch.setattr("cuolr.policies.policy.QUERIES_AT_A_TIME", 2)
    ranked = RankedQueries.of(policy, candidates, queries, 3)
    assert selected == [[7, 1], [2, 8], [4]]
    np.testing.assert_array_equal(ranked.lists[queries], expected)
    assert (ranked.lists[[0, 3, 5, 6]] == -1).all()
