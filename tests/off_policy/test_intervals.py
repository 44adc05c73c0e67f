import numpy as np
import pytest

from cuolr.off_policy.intervals import ratio_interval


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
