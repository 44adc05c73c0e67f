"""Planning against exhaustive search."""

import itertools

import numpy as np
import pytest

from cuolr.clicks.click_model import click_model
from cuolr.clicks.ubm import UserBrowsingModel
from cuolr.policies.planned_policy import BrowsingUsers, best_lists
from cuolr.types import Bools, Doubles, Ints

K = 4


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


@pytest.mark.parametrize("satisfaction", [0.0, 0.7])
def test_the_search_finds_the_best_of_all_lists(satisfaction: float) -> None:
    users = BrowsingUsers(published_ubm(), satisfaction)
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
        lists, gain = best_lists(BrowsingUsers(table).expected_clicks, sorted_attractiveness(30, 9), np.full(30, 9), K)
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
    lists, _ = best_lists(BrowsingUsers(published_ubm()).expected_clicks, np.array([[0.9, 0.1]]), np.array([2]), 5)
    assert sorted(lists[0, :2].tolist()) == [0, 1]
    assert lists[0, 2:].tolist() == [-1, -1, -1]
