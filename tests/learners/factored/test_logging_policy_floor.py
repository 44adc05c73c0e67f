from dataclasses import replace

import numpy as np
import pytest

from cuolr.learners.factored.click_rates import ClickRates
from cuolr.learners.factored.logging_policy_floor import (
    LoggingPolicyConfig,
    min_logging_policy_weight,
    with_floor,
)
from cuolr.learners.factored.stacking import stack
from tests.learners.factored.rates import by_feature, random_rates

QUERIES = 60
FOLD = np.arange(QUERIES) % 2


def clicked_by_the_first_feature() -> ClickRates:
    rates = random_rates(QUERIES)
    return replace(rates, rewards=100 * np.exp(2 * rates.features[rates.documents][:, :, 0].astype(np.float64)))


@pytest.mark.parametrize("min_weight", [0.5, 3.0])
def test_the_logging_policy_has_at_least_the_minimum_weight(min_weight: float) -> None:
    fitted, logging_policy = [by_feature(0), by_feature(0)], by_feature(1)  # which explains nothing
    rates = clicked_by_the_first_feature()
    members = with_floor(stack([fitted, [logging_policy] * 2], rates, FOLD, seed=0), min_weight).members()
    from_clicks = sum(weight * ranker.score(rates.features) for ranker, weight in members if ranker in fitted)
    from_log = dict(members)[logging_policy] * logging_policy.score(rates.features)
    assert np.std(from_log) == pytest.approx(min_weight * np.std(from_clicks), rel=1e-4)


def test_a_logging_policy_that_explains_the_clicks_keeps_its_higher_weight() -> None:
    fitted, logging_policy = [by_feature(1), by_feature(1)], by_feature(0)
    stacked = stack([fitted, [logging_policy] * 2], clicked_by_the_first_feature(), FOLD, seed=0)
    weights = [dict(with_floor(stacked, floor).members())[logging_policy] for floor in (0.1, 0.0)]
    assert weights[0] == weights[1] == pytest.approx(2.0, rel=0.01)


def rates_with(clicks: tuple[float, ...]) -> ClickRates:
    """A query for each number of clicks."""
    rates = random_rates(len(clicks))
    return replace(rates, rewards=np.repeat(np.array(clicks)[:, None] / 4, 4, axis=1))


@pytest.mark.parametrize(
    ("clicks_per_query", "steps", "expected"),
    [(2.0, 1_000, 10 / 2), (400.0, 100, 25 / 100), (400.0, 0, 25), (0.0, 1_000, 100)],
    ids=["few clicks", "few steps", "no step yet", "no click"],
)
def test_the_minimum_weight_falls_with_clicks_and_steps(clicks_per_query: float, steps: int, expected: float) -> None:
    config = LoggingPolicyConfig(min_weight_steps=25.0, min_weight_clicks=10.0)
    assert min_logging_policy_weight(rates_with((clicks_per_query,) * 3), steps, config) == pytest.approx(expected)


def test_clicks_on_a_head_query_do_not_lower_the_minimum_for_the_tail() -> None:
    config = LoggingPolicyConfig(min_weight_steps=0.0, min_weight_clicks=10.0)
    weight = min_logging_policy_weight(rates_with((1e6, 4.0, 2.0)), 100, config)
    assert weight == pytest.approx(10 / ((1_000 + 4 + 2) / 3))
