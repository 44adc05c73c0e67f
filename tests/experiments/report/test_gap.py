import numpy as np
import pytest

from cuolr.experiments.report.gap import gap_closed
from cuolr.types import Doubles


def some(count: int, seed: int = 0) -> tuple[Doubles, Doubles, Doubles]:
    rng = np.random.default_rng(seed)
    logging = rng.uniform(0.2, 0.5, count)
    return logging + 0.1 + 0.01 * rng.normal(size=count), logging, logging + 0.2 + 0.01 * rng.normal(size=count)


def test_half_the_way_is_half_the_gap() -> None:
    method, logging, oracle = some(200)
    found = gap_closed([method], [logging], [oracle])
    assert found is not None
    assert found.value == pytest.approx((method - logging).mean() / (oracle - logging).mean())
    assert found.low < found.value < found.high
    assert found.low > 0.45
    assert found.high < 0.55


def test_every_fold_counts_the_same_whatever_its_size() -> None:
    small, large = some(50, 1), some(500, 2)
    worse = small[1] - 0.05
    found = gap_closed([worse, large[0]], [small[1], large[1]], [small[2], large[2]])
    assert found is not None
    gained = ((worse - small[1]).mean() + (large[0] - large[1]).mean()) / 2
    possible = ((small[2] - small[1]).mean() + (large[2] - large[1]).mean()) / 2
    assert found.value == pytest.approx(gained / possible)


def test_queries_that_do_not_count_change_nothing() -> None:
    method, logging, oracle = some(100)
    nothing = np.array([np.nan])
    more = [np.concatenate([values, nothing]) for values in (method, logging, oracle)]
    assert gap_closed([more[0]], [more[1]], [more[2]]) == gap_closed([method], [logging], [oracle])


def test_there_is_no_gap_where_the_oracle_is_not_significantly_better() -> None:
    rng = np.random.default_rng(3)
    logging = rng.uniform(0, 1, 40)
    assert gap_closed([logging], [logging], [logging + 0.001 + 0.3 * rng.normal(size=40)]) is None
    assert gap_closed([logging], [logging], [logging]) is None
    assert gap_closed([logging], [logging], [logging - 0.2 + 0.01 * rng.normal(size=40)]) is None


def test_one_query_is_not_enough() -> None:
    one = np.array([0.5])
    assert gap_closed([one], [one - 0.1], [one + 0.1]) is None


def test_resamples_that_nothing_can_improve_are_left_out() -> None:
    """Of ten queries, half have no gap: now and then a resample has those alone."""
    logging = np.zeros(10)
    oracle = np.array([0.0] * 5 + [0.5, 0.5, 0.6, 0.5, 0.4])
    found = gap_closed([oracle / 2], [logging], [oracle])
    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5))


def test_without_a_query_that_counts_there_is_no_gap() -> None:
    nothing = np.full(3, np.nan)
    assert gap_closed([nothing], [nothing], [nothing]) is None
