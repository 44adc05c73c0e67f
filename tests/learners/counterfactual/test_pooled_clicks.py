from dataclasses import replace

import numpy as np
import pytest

from cuolr.learners.counterfactual.pooled_clicks import PooledClicks, largest_reward
from cuolr.logs.aggregate import aggregate
from cuolr.training.batches import WeightedLists
from tests.data.small_data import candidates_of, log_of, random_log
from tests.learners.lists import no_scaling

CANDIDATES = candidates_of(3, 2)
# Query 0 in three sessions with two lists, query 1 in one.
LOG = log_of(CANDIDATES, [0, 0, 0, 1], [[0, 1], [0, 1], [2, 0], [1, -1]], [[1, 0], [1, 1], [1, 0], [0, 0]])
LISTS = WeightedLists.of(aggregate(LOG))
EVERY_LIST = np.arange(3)


def test_clicks_of_a_document_are_pooled_over_the_lists_of_its_query() -> None:
    rates = PooledClicks.of(LISTS).rates(EVERY_LIST, no_scaling())
    assert rates.query.tolist() == [0, 1]
    assert rates.sessions.tolist() == [3, 1]
    # The most shown first: document 0 of query 0 in three sessions, 1 in two, 2 in one.
    assert rates.expected_examinations.tolist() == [[3, 2, 1], [1, 0, 0]]
    np.testing.assert_allclose(rates.rate, [[2 / 3, 1 / 2, 1.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(rates.rewards, [[2.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(rates.features[rates.documents[0]], CANDIDATES.features[:3])
    np.testing.assert_array_equal(rates.features[rates.documents[1, 0]], CANDIDATES.features[4])


def test_the_rate_is_the_ratio_of_the_sums_and_not_the_mean_of_ratios() -> None:
    clicks, exposure = np.array([[2, 1], [0.5, 1], [0, 0]]), np.array([[4, 2], [1, 1], [1, 1]])
    pooled = PooledClicks(LISTS, clicks, exposure)
    # By document 0, 1 and 2 of query 0: lists [0, 1] and [2, 0].
    expected = {0: (2 + 1) / (4 + 1), 1: 1 / 2, 2: 0.5 / 1}
    rates = pooled.rates(EVERY_LIST, no_scaling())
    np.testing.assert_allclose(rates.rate[0], [expected[document] for document in rates.documents[0].tolist()])


@pytest.mark.parametrize(("max_rate", "expected"), [(1.0, [1.0, 0.25, 0.0]), (5.0, [4.0, 0.25, 0.0])])
def test_rates_are_from_0_to_the_largest(max_rate: float, expected: list[float]) -> None:
    lists = WeightedLists.of(aggregate(log_of(candidates_of(3), [0], [[0, 1, 2]], [[0, 0, 0]])))
    pooled = PooledClicks(lists, np.array([[4, 0.25, -2]]), np.ones((1, 3)), max_rate)
    rates = pooled.rates(np.array([0]), no_scaling())
    assert rates.rate.tolist() == rates.rewards.tolist() == [expected]


def test_only_the_given_lists_count() -> None:
    rates = PooledClicks.of(LISTS).rates(np.array([0]), no_scaling())
    assert (rates.query.tolist(), rates.sessions.tolist(), rates.rate.tolist()) == ([0], [2], [[1, 0.5]])


def test_documents_without_exposure_have_the_rate_0() -> None:
    pooled = PooledClicks(LISTS, np.ones((3, 2)), np.zeros((3, 2)))
    assert not pooled.rates(EVERY_LIST, no_scaling()).rate.any()


def test_pooled_sessions_and_pooled_lists_are_the_same() -> None:
    log = random_log(candidates_of(5, 4, 6), sessions=80, k=4)
    by_session, by_list = (
        PooledClicks.of(WeightedLists.of(rows)).rates(np.arange(len(rows)), no_scaling())
        for rows in (log, aggregate(log))
    )
    np.testing.assert_array_equal(by_session.documents, by_list.documents)
    np.testing.assert_allclose(by_session.rate, by_list.rate)


def test_the_largest_reward_is_that_of_a_click_on_a_query_that_is_not_held_out() -> None:
    assert largest_reward(LOG, np.empty(0, np.int64)) == 1
    log = replace(LOG, reward=(LOG.clicks * [[2], [3], [5], [7]]).astype(np.float32))
    assert largest_reward(log, np.empty(0, np.int64)) == 5
    assert largest_reward(log, np.array([0])) == 1
