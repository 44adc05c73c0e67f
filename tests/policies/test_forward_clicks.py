from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuolr.clicks.cascade import CascadeModel
from cuolr.clicks.click_model import ClickModel
from cuolr.clicks.pbm import PositionBasedModel
from cuolr.clicks.ubm import UserBrowsingModel
from cuolr.policies.forward_clicks import forward_clicks
from cuolr.types import Doubles

K = 5


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
    attractiveness, table = rng.random((3, K)), rng.random((K, K + 1))
    found = forward_clicks(attractiveness, np.ones((3, K), np.bool_), table)
    for row in range(3):
        np.testing.assert_allclose(found[row], by_enumeration(attractiveness[row], table), atol=1e-12)


def table_of(model: ClickModel) -> Doubles:
    """[K, K + 1] examination by position and last click, as the models define it."""
    table = np.full((K, K + 1), np.nan)
    for position in range(K):
        if isinstance(model, UserBrowsingModel):
            table[position, : position + 1] = model.examination_after(position)
        elif isinstance(model, CascadeModel):
            table[position, : position + 1] = [1.0, *[0.0] * position]
        else:
            table[position, : position + 1] = model.examination_probability(np.zeros((1, K)))[0, position]
    return table


@pytest.mark.parametrize("model", [PositionBasedModel(), CascadeModel(), UserBrowsingModel(), UserBrowsingModel(eta=2)])
def test_it_equals_the_click_probability_of_the_click_models(model: ClickModel) -> None:
    relevance = np.random.default_rng(0).random((20, K)).astype(np.float32)
    where = np.ones((20, K), np.bool_)
    attractiveness = model.attractiveness(relevance.astype(np.float64))
    found = forward_clicks(attractiveness, where, table_of(model))
    np.testing.assert_allclose(found, model.click_probability(relevance, where), atol=1e-9)


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
    table, where = rng.random((K, K + 1)), np.ones((1, K), np.bool_)
    low, high = rng.random((1, K)), rng.random((1, K))
    high[:, 1:] = low[:, 1:]
    high[0, 0] = 3.0
    mean = forward_clicks((low + high) / 2, where, table)
    np.testing.assert_allclose(mean, (forward_clicks(low, where, table) + forward_clicks(high, where, table)) / 2)
