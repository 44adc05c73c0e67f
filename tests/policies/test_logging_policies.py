import math
from itertools import permutations
from math import exp, inf, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cuolr.errors import InputError
from cuolr.policies.plackett_luce import (
    StochasticLogger,
    plackett_luce_marginals,
    plackett_luce_probability,
    sample_plackett_luce,
)
from cuolr.policies.policy import rank_by_score
from cuolr.policies.random_policy import RandomPolicy, sample_uniformly
from cuolr.types import Bools, Candidates, Doubles, Ints


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


def step_by_step(
    scores: list[float], where: list[bool], k: int, uniforms: list[float]
) -> tuple[list[int], list[float]]:
    """One position after the other, in plain Python."""
    left = [document for document, real in enumerate(where) if real]
    noisy = {document: scores[document] - log(-log(uniforms[document])) for document in left}
    ranking, propensity = [], []
    for _ in range(k):
        if not left:
            ranking.append(-1)
            propensity.append(1.0)
            continue
        best = max(left, key=lambda document: noisy[document])
        most = max(scores[document] for document in left)
        total = sum(exp(scores[document] - most) for document in left)
        ranking.append(best)
        propensity.append(exp(scores[best] - most) / total)
        left.remove(best)
    return ranking, propensity


batches = st.tuples(st.integers(1, 4), st.integers(1, 8)).flatmap(
    lambda shape: st.tuples(
        arrays(np.float64, shape, elements=st.floats(-50, 50)),
        arrays(np.bool_, shape),
        arrays(np.float64, shape, elements=st.floats(1e-9, 1 - 1e-9), unique=True),
    )
)


@given(batches, st.integers(1, 10))
def test_it_equals_drawing_step_by_step(batch: tuple[Doubles, Bools, Doubles], k: int) -> None:
    scores, where, uniforms = batch
    noisy = np.where(where, scores - np.log(-np.log(uniforms)), np.nan)
    if any(len(np.unique(row[~np.isnan(row)])) < (~np.isnan(row)).sum() for row in noisy):
        return  # equal up to rounding: either order is right
    ranking, propensity = sample_plackett_luce(scores, where, k, uniforms)
    for row in range(len(scores)):
        expected = step_by_step(scores[row].tolist(), where[row].tolist(), k, uniforms[row].tolist())
        assert ranking[row].tolist() == expected[0]
        assert propensity[row] == pytest.approx(expected[1], rel=1e-9)


def test_orders_of_three_documents_come_as_often_as_they_should() -> None:
    scores, sessions = np.log([5.0, 3.0, 2.0]), 200_000
    uniforms = np.random.default_rng(1).random((sessions, 3))
    ranking, propensity = sample_plackett_luce(
        np.tile(scores, (sessions, 1)), np.ones((sessions, 3), bool), 3, uniforms
    )
    weight = {0: 5.0, 1: 3.0, 2: 2.0}
    for first, second, third in permutations(range(3)):
        exact = weight[first] / 10 * weight[second] / (10 - weight[first])
        drawn = (ranking == [first, second, third]).all(axis=1)
        assert drawn.mean() == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / sessions))
        expected = [weight[first] / 10, weight[second] / (10 - weight[first]), 1.0]
        np.testing.assert_allclose(propensity[drawn], np.tile(expected, (drawn.sum(), 1)))


def test_propensities_stay_exact_when_one_document_has_nearly_all_of_the_probability() -> None:
    scores = np.array([[800.0, 1.0, 0.0]])
    ranking, propensity = sample_plackett_luce(scores, np.ones((1, 3), bool), 3, np.full((1, 3), 0.5))
    assert ranking.tolist() == [[0, 1, 2]]
    assert propensity[0] == pytest.approx([1.0, exp(1) / (exp(1) + exp(0)), 1.0])


def test_a_uniform_of_zero_still_ranks_the_document_above_padding() -> None:
    ranking, propensity = sample_plackett_luce(
        np.zeros((1, 3)), np.array([[False, True, False]]), 2, np.array([[0.9, 0.0, 0.9]])
    )
    assert ranking.tolist() == [[1, -1]]
    assert propensity.tolist() == [[1.0, 1.0]]


def test_no_documents_give_empty_lists() -> None:
    for candidates in (0, 2):
        ranking, propensity = sample_plackett_luce(
            np.zeros((2, candidates)), np.zeros((2, candidates), bool), 3, np.zeros((2, candidates))
        )
        assert ranking.tolist() == [[-1] * 3] * 2
        assert propensity.tolist() == [[1.0] * 3] * 2


def three_queries() -> Candidates:
    return Candidates(np.zeros((9, 1), np.float32), np.array([0, 4, 4, 9]), np.array(["a", "b", "c"]))


def sampled(logger: StochasticLogger, candidates: Candidates, k: int) -> tuple[Ints, Doubles]:
    """A ranking of each query, as the simulator draws it."""
    rows, where = candidates.padded_rows(np.arange(candidates.n_queries))
    scores = logger.policy.score(candidates).astype(np.float64) / logger.temperature
    return sample_plackett_luce(scores[rows], where, k, np.random.default_rng(0).random(where.shape))


def test_a_temperature_near_zero_gives_the_policys_own_ranking() -> None:
    policy, candidates = RandomPolicy(5), three_queries()
    ranking, propensity = sampled(StochasticLogger(policy, 1e-9), candidates, 4)
    np.testing.assert_array_equal(ranking, policy.rank(candidates, 4))
    np.testing.assert_allclose(propensity, 1.0)


def test_a_high_temperature_gives_every_document_the_same_chance() -> None:
    _, propensity = sampled(StochasticLogger(RandomPolicy(5), 1e9), three_queries(), 5)
    expected = np.array([[1 / 4, 1 / 3, 1 / 2, 1, 1], [1, 1, 1, 1, 1], [1 / 5, 1 / 4, 1 / 3, 1 / 2, 1]])
    np.testing.assert_allclose(propensity, expected)


def test_the_temperature_divides_the_scores() -> None:
    policy, candidates = RandomPolicy(5), three_queries()
    ranking, propensity = sampled(StochasticLogger(policy, 0.25), candidates, 2)
    weights = np.exp(policy.score(candidates)[4:].astype(np.float64) / 0.25)
    first, second = ranking[2]
    assert propensity[2] == pytest.approx(
        [weights[first] / weights.sum(), weights[second] / (weights.sum() - weights[first])]
    )
    assert (rank_by_score(weights, np.array([0, 5]), 5) == policy.rank(candidates, 5)[2]).all()


@pytest.mark.parametrize("temperature", [0.0, -1.0, inf, float("nan")])
def test_a_temperature_that_is_no_positive_number_is_refused(temperature: float) -> None:
    with pytest.raises(InputError, match="temperature: expected a finite number above 0"):
        StochasticLogger(RandomPolicy(), temperature)


def by_enumeration(rates: list[float], k: int) -> Doubles:
    """[N, k] the sum over all lists."""
    marginals = np.zeros((len(rates), k))
    for ranking in permutations(range(len(rates)), k):
        probability, left = 1.0, sum(rates)
        for document in ranking:
            probability *= rates[document] / left
            left -= rates[document]
        marginals[list(ranking), range(k)] += probability
    return marginals


@given(st.lists(st.floats(-6, 6), min_size=3, max_size=6), st.integers(1, 3))
def test_marginals_are_the_sums_over_all_lists(scores: list[float], k: int) -> None:
    found = plackett_luce_marginals(np.array([scores]), np.ones((1, len(scores)), np.bool_), k)
    np.testing.assert_allclose(found[0], by_enumeration(np.exp(scores).tolist(), k), atol=1e-9)


def test_padding_has_no_probability_and_changes_nothing() -> None:
    scores = np.array([[0.5, -1.0, 9.0, 2.0]])
    found = plackett_luce_marginals(scores, np.array([[True, True, False, True]]), 2)
    assert found[0, 2].tolist() == [0, 0]
    np.testing.assert_allclose(found[0, [0, 1, 3]], by_enumeration(np.exp([0.5, -1.0, 2.0]).tolist(), 2), atol=1e-9)


def test_a_list_longer_than_the_documents_has_nothing_at_its_end() -> None:
    found = plackett_luce_marginals(np.zeros((1, 2)), np.ones((1, 2), np.bool_), 3)
    np.testing.assert_allclose(found[0], [[0.5, 0.5, 0], [0.5, 0.5, 0]], atol=1e-9)


def test_scores_far_apart_keep_their_precision() -> None:
    found = plackett_luce_marginals(np.array([[60.0, 0.0, -60.0]]), np.ones((1, 3), np.bool_), 3)
    np.testing.assert_allclose(found[0], np.eye(3), atol=1e-9)


@pytest.mark.parametrize("k", [1, 3, 7])
def test_the_probability_of_a_drawn_list_is_that_it_was_drawn_with(k: int) -> None:
    rng = np.random.default_rng(0)
    scores, where = rng.normal(0, 4, (50, 6)), rng.random((50, 6)) < 0.8
    ranking, propensity = sample_plackett_luce(scores, where, k, rng.random((50, 6)))
    np.testing.assert_allclose(plackett_luce_probability(scores, where, ranking), propensity, rtol=1e-12)
