import numpy as np
import pytest
from scipy import stats

from cuolr.off_policy.intervals import heavy_tailed_interval, ratio_interval


def test_the_interval_of_equal_queries_is_students() -> None:
    """Three queries of 10 clicks: a mean ratio of .1 with a standard deviation of .1, and t(2) = 4.303."""
    ratio, (low, high) = ratio_interval(np.array([0.0, 1.0, 2.0]), np.array([10.0, 10.0, 10.0]))
    assert ratio == pytest.approx(0.1)
    assert (low, high) == pytest.approx((0.1 - 4.303 * 0.1 / 3**0.5, 0.1 + 4.303 * 0.1 / 3**0.5), rel=1e-3)


def test_the_interval_is_infinite_with_one_query_or_without_clicks() -> None:
    assert ratio_interval(np.array([1.0]), np.array([10.0])) == (0.1, (-np.inf, np.inf))
    assert ratio_interval(np.array([0.0, 0.0]), np.array([0.0, 0.0])) == (0.0, (-np.inf, np.inf))


def test_one_query_with_nearly_all_clicks_makes_it_wide() -> None:
    numerator = np.array([1.0, 0.0, 0.1, 0.0])
    _, (low, high) = ratio_interval(numerator, np.array([10.0, 10.0, 10.0, 10.0]))
    _, (wide_low, wide_high) = ratio_interval(numerator, np.array([40.0, 1.0, 1.0, 1.0]))
    assert wide_high - wide_low > 2 * (high - low)


def test_of_many_normal_residuals_it_is_the_usual_interval() -> None:
    numerator = np.random.default_rng(0).normal(2, 1, 5_000)
    found, usual = heavy_tailed_interval(numerator, np.ones(5_000)), ratio_interval(numerator, np.ones(5_000))
    assert found[0] == usual[0]
    assert found[1] == pytest.approx(usual[1], rel=1e-3)


def test_one_large_residual_leaves_few_degrees_of_freedom() -> None:
    numerator = np.zeros(100)
    numerator[0] = 1
    ratio, (low, high) = heavy_tailed_interval(numerator, np.ones(100))
    squares = np.concatenate([[0.99**2], np.full(99, 0.01**2)])
    freedom = max(squares.sum() ** 2 / (squares**2).sum() - 1, 0.5)
    error = np.sqrt(100 / 99 * squares.sum()) / 100 * stats.t.ppf(0.975, freedom)
    assert (ratio, low, high) == pytest.approx((0.01, 0.01 - error, 0.01 + error))
    assert high > 1


def test_a_unit_of_high_leverage_has_a_larger_residual() -> None:
    numerator = np.array([1.0, -1.0, 0.5, -0.5])
    leverage = np.array([0.5, 0.0, 0.0, 0.0])
    found = heavy_tailed_interval(numerator, np.ones(4), leverage)
    assert found[0] == 0
    larger = np.array([2.0, -1.0, 0.5, -0.5])  # twice the first residual
    squares = larger**2
    freedom = min(3.0, squares.sum() ** 2 / (squares**2).sum() - 1)
    error = np.sqrt(4 / 3 * squares.sum()) / 4 * stats.t.ppf(0.975, freedom)
    assert found[1] == pytest.approx((-error, error))


def test_without_variation_there_is_no_error() -> None:
    assert heavy_tailed_interval(np.array([2.0, 4.0]), np.array([1.0, 2.0])) == (2, (2, 2))


@pytest.mark.parametrize("denominator", [[0.0, 0.0], [1.0, 0.0], [3.0]])
def test_too_few_units_say_nothing(denominator: list[float]) -> None:
    _, interval = heavy_tailed_interval(np.ones(len(denominator)), np.array(denominator))
    assert interval == (-np.inf, np.inf)


def test_its_level_is_nearer_to_95_percent_for_heavy_tails() -> None:
    samples = np.random.default_rng(0).lognormal(0, 2, (2_000, 50))
    truth = np.exp(2)

    def level(interval: object) -> float:
        assert callable(interval)
        ends = [interval(sample, np.ones(50))[1] for sample in samples]
        return float(np.mean([low <= truth <= high for low, high in ends]))

    assert level(ratio_interval) + 0.05 < level(heavy_tailed_interval) < 0.96
