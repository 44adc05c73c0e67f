from dataclasses import replace

import numpy as np
import pytest

from cuolr.learners.factored.click_rates import ClickRates
from cuolr.learners.factored.first_clicks import FirstClicks
from cuolr.learners.factored.logging_policy_weight import mean_if_positive, with_pessimism
from cuolr.learners.factored.stacking import Stack, stack
from cuolr.types import Doubles
from tests.learners.factored.rates import by_feature, random_rates
from tests.learners.factored.test_first_clicks import clicks_by, scores_of

# The feature of the ranker that was fitted to clicks, and that of the logging policy.
FITTED, LOGGING = 0, 1


def stacked_on(queries: int, sessions: int, weights: tuple[float, float]) -> tuple[Stack, ClickRates, FirstClicks]:
    """A stack of both, with clicks by log α = their weighted sum."""
    rates = replace(random_rates(queries), sessions=np.full(queries, sessions))
    attractiveness = np.tensordot(weights, scores_of(rates, FITTED, LOGGING), axes=1)
    first_clicks = clicks_by(rates, attractiveness, sessions)
    rewards: Doubles = np.zeros(rates.rewards.shape)
    rewards.ravel()[first_clicks.document] = first_clicks.rewards
    rates = replace(rates, rewards=rewards)
    kinds = [[by_feature(FITTED)] * 2, [by_feature(LOGGING)] * 2]
    return stack(kinds, rates, np.arange(queries) % 2, seed=0), rates, first_clicks


def test_each_weight_is_at_the_end_of_its_interval_near_the_logging_policy() -> None:
    stacked, rates, first_clicks = stacked_on(300, 20, (1.0, 0.5))
    [fitted, logging] = stacked.out_of_fold
    found = first_clicks.weights(np.stack([fitted / fitted.std(), logging]), rates, seed=0)
    of_fitted, of_logging = with_pessimism(stacked, rates, first_clicks, 2.0, seed=0).weights
    # Both are many errors above 0, so that their sign says nothing more.
    assert of_fitted * fitted.std() == pytest.approx(found.value[0] - 2 * found.error[0])
    assert of_logging == pytest.approx(found.value[1] + 2 * found.error[1], rel=1e-3)


def test_a_weight_that_the_clicks_do_not_tell_is_about_its_error() -> None:
    found = mean_if_positive(np.array([-0.2, 0.0, 0.3, 5.0]), np.array([1.0, 1.0, 1.0, 0.5]))
    by_integration = []
    grid = np.linspace(0, 12, 200_001)
    for value, error in ((-0.2, 1.0), (0.0, 1.0), (0.3, 1.0), (5.0, 0.5)):
        density = np.exp(-0.5 * ((grid - value) / error) ** 2)
        by_integration.append((grid * density).sum() / density.sum())
    np.testing.assert_allclose(found, by_integration, rtol=1e-3)


def test_the_weight_of_the_logging_policy_is_at_least_its_error_where_position_bias_is_not_identifiable() -> None:
    """With ten queries and no weight in truth, its estimate is negative in this sample."""
    stacked, rates, first_clicks = stacked_on(10, 20, (2.0, -0.1))
    [fitted, logging] = stacked.out_of_fold
    found = first_clicks.weights(np.stack([fitted / fitted[rates.where].std(), logging]), rates, seed=0)
    assert -found.error[1] < found.value[1] < 0.5 * found.error[1]
    unknown = with_pessimism(stacked, rates, first_clicks, 0.0, seed=0).weights
    known = with_pessimism(stacked, rates, replace(first_clicks, identifiable=True), 0.0, seed=0).weights
    assert unknown[1] == pytest.approx(found.error[1])
    assert 0 < known[1] < unknown[1]


def test_the_evidence_is_in_all_queries_together() -> None:
    """As many sessions of as many queries as they have: the tail is believed no less than the head."""
    ratios = []
    for queries, sessions in ((100, 40), (4_000, 1)):
        of_fitted, of_logging = with_pessimism(*stacked_on(queries, sessions, (1.0, 0.2)), 1.0, seed=0).weights
        ratios.append(of_fitted / of_logging)
    assert ratios[1] == pytest.approx(ratios[0], rel=0.5)
    few = with_pessimism(*stacked_on(10, 1, (1.0, 0.2)), 1.0, seed=0).weights
    assert few[0] / few[1] < ratios[1] / 4


@pytest.mark.parametrize(
    "weights",
    [(-0.5, 1.0), (1.0, -1.5)],
    ids=["the rankers are wrong", "position and relevance are confounded"],
)
def test_the_logging_policy_alone_is_kept(weights: tuple[float, float]) -> None:
    stacked, rates, first_clicks = stacked_on(200, 20, weights)
    assert with_pessimism(stacked, rates, first_clicks, 1.0, seed=0).weights.tolist() == [0.0, 1.0]


def test_a_logging_policy_that_is_wrong_loses_its_weight_where_position_bias_is_identifiable() -> None:
    stacked, rates, first_clicks = stacked_on(200, 20, (1.0, -1.5))
    known = replace(first_clicks, identifiable=True)
    of_fitted, of_logging = with_pessimism(stacked, rates, known, 0.0, seed=0).weights
    assert of_fitted > 0
    assert 0 <= of_logging < 0.05 * of_fitted


def test_the_logging_policy_alone_is_kept_without_clicks() -> None:
    stacked, rates, first_clicks = stacked_on(50, 5, (1.0, 0.0))
    without = replace(first_clicks, rewards=np.zeros_like(first_clicks.rewards))
    assert with_pessimism(stacked, rates, without, 1.0, seed=0).weights.tolist() == [0.0, 1.0]
