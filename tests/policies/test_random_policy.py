import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuolr.policies.random_policy import RandomPolicy, sample_uniformly
from cuolr.types import Candidates


def candidates_of(sizes: list[int], prefix: str = "q") -> Candidates:
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    names = np.array([f"{prefix}{i}" for i in range(len(sizes))])
    return Candidates(np.zeros((offsets[-1], 1), np.float32), offsets, names)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=10), st.integers(0, 2**40), st.data())
def test_the_order_of_a_query_does_not_depend_on_the_queries_around_it(
    sizes: list[int], seed: int, data: st.DataObject
) -> None:
    candidates = candidates_of(sizes)
    some = np.array(data.draw(st.lists(st.integers(0, len(sizes) - 1), min_size=1)))
    policy = RandomPolicy(seed)
    np.testing.assert_array_equal(policy.rank(candidates.select(some), 20), policy.rank(candidates, 20)[some])


def test_each_document_is_ranked_once() -> None:
    ranking = RandomPolicy(1).rank(candidates_of([5, 3]), 5)
    assert sorted(ranking[0]) == [0, 1, 2, 3, 4]
    assert sorted(ranking[1][:3]) == [0, 1, 2]
    assert ranking[1][3:].tolist() == [-1, -1]


def test_another_seed_gives_another_order() -> None:
    candidates = candidates_of([50])
    assert (RandomPolicy(1).rank(candidates, 50) != RandomPolicy(2).rank(candidates, 50)).any()


def test_all_orders_are_equally_likely() -> None:
    lists = 60_000
    rankings = RandomPolicy(3).rank(candidates_of([3] * lists), 3)
    _, counts = np.unique(rankings, axis=0, return_counts=True)
    assert counts / lists == pytest.approx(np.full(6, 1 / 6), abs=4 * np.sqrt(1 / 6 * 5 / 6 / lists))


def test_scores_are_uniform() -> None:
    scores = RandomPolicy(0).score(candidates_of([200] * 500))
    assert scores.dtype == np.float32
    counts, _ = np.histogram(scores, bins=10, range=(0, 1))
    assert counts / len(scores) == pytest.approx(np.full(10, 0.1), abs=4 * np.sqrt(0.1 * 0.9 / len(scores)))


@given(st.lists(st.integers(0, 12), min_size=1, max_size=8), st.integers(1, 15), st.integers(0, 99))
def test_a_uniform_logger_shows_each_document_at_most_once(sizes: list[int], k: int, seed: int) -> None:
    ranking, propensity = sample_uniformly(np.array(sizes), k, np.random.default_rng(seed).random((len(sizes), k)))
    for row, chances, size in zip(ranking.tolist(), propensity.tolist(), sizes, strict=True):
        length = min(size, k)
        assert len(set(row[:length])) == length
        assert all(0 <= slot < size for slot in row[:length])
        assert row[length:] == [-1] * (k - length)
        assert chances == [1 / (size - position) if position < length else 1 for position in range(k)]


@pytest.mark.parametrize(("documents", "k"), [(3, 3), (4, 2), (5, 3)])
def test_a_uniform_logger_shows_all_lists_equally_often(documents: int, k: int) -> None:
    lists = 60_000
    ranking, _ = sample_uniformly(np.full(lists, documents), k, np.random.default_rng(0).random((lists, k)))
    found, counts = np.unique(ranking, axis=0, return_counts=True)
    share = 1 / math.perm(documents, k)
    assert len(found) == math.perm(documents, k)
    assert counts / lists == pytest.approx(share, abs=4 * np.sqrt(share / lists))


def test_a_list_depends_on_its_own_random_numbers_alone() -> None:
    sizes, uniforms = np.array([3, 50, 7, 0, 12]), np.random.default_rng(1).random((5, 6))
    ranking, _ = sample_uniformly(sizes, 6, uniforms)
    for row in range(5):
        alone, _ = sample_uniformly(sizes[row : row + 1], 6, uniforms[row : row + 1])
        np.testing.assert_array_equal(alone[0], ranking[row])
