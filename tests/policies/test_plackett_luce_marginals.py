from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuolr.policies.plackett_luce import plackett_luce_probability, sample_plackett_luce
from cuolr.policies.plackett_luce_marginals import plackett_luce_marginals
from cuolr.types import Doubles


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
