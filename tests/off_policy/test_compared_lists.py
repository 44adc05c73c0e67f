"""Lists to compare, and samples of them."""

from dataclasses import replace

import numpy as np
import pytest

from cuolr.off_policy.compared_lists import ComparedLists, CountedLists
from cuolr.off_policy.users.fitted_users import UnbiasedRates
from cuolr.types import Doubles, Ints

LISTS = CountedLists(np.array([0, 0, 0, 1]), np.array([[0, 1], [1, 0], [0, 1], [2, -1]]), np.array([1.0, 2, 3, 4]))


class AllClick:
    """Users who click on everything."""

    rates = UnbiasedRates(np.ones(10_000), np.ones(10_000))

    def clicks(self, documents: Ints, attractiveness: Doubles | None = None) -> Doubles:
        return (documents >= 0).astype(np.float64)


def compared(target: CountedLists, baseline: CountedLists, queries: int) -> ComparedLists:
    ones = np.ones(10_000)
    of_pair = np.zeros(10_000, np.int64)
    return ComparedLists(target, baseline, baseline, queries, np.ones(queries), np.ones(queries), ones, ones, of_pair)


def test_a_list_of_several_rows_is_one_with_their_sessions() -> None:
    found = LISTS.distinct()
    rows = {(q, *docs): n for q, docs, n in zip(found.query, found.documents.tolist(), found.count, strict=True)}
    assert rows == {(0, 0, 1): 4, (0, 1, 0): 2, (1, 2, -1): 4}


def test_a_change_is_the_expected_reward_of_one_side_minus_the_other() -> None:
    shorter = replace(LISTS, documents=np.where(np.arange(2) < 1, LISTS.documents, -1))
    assert compared(LISTS, shorter, 2).total_change(AllClick()) == 1 + 2 + 3


def test_a_sample_has_the_same_queries_on_both_sides_and_stands_for_all_sessions() -> None:
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(200), 5)
    several = CountedLists(query, rng.permuted(np.tile(np.arange(4), (1_000, 1)), axis=1), rng.uniform(1, 9, 1_000))
    sessions = np.bincount(query, several.count).astype(np.float64)
    single = CountedLists(np.arange(200), np.tile(np.arange(4), (200, 1)), sessions)
    found = compared(single, several, 200).sample(100)
    assert set(found.target.query) == set(found.baseline.query)
    assert len(set(found.target.query)) == 20
    for side in (found.target, found.baseline):
        assert side.total == pytest.approx(several.total)


def test_the_lists_of_a_single_query_are_sampled_as_well() -> None:
    many = CountedLists(np.zeros(1_000, np.int64), np.arange(4_000).reshape(-1, 4), np.ones(1_000))
    found = compared(many, many, 1).sample(50)
    assert len(found.baseline.query) == 100
    assert found.baseline.total == pytest.approx(1_000)
