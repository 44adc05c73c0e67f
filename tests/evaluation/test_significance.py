import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cuolr.errors import InputError
from cuolr.evaluation.significance import compare, holm, stars


def test_wins_ties_and_losses_are_counted() -> None:
    result = compare(np.array([0.5, 0.2, 0.9, 0.1]), np.array([0.4, 0.2, 0.1, 0.3]))
    assert (result.queries, result.wins, result.ties, result.losses) == (4, 2, 1, 1)
    assert result.difference == pytest.approx((0.1 + 0 + 0.8 - 0.2) / 4)


def test_queries_that_do_not_count_for_both_are_left_out() -> None:
    result = compare(np.array([np.nan, 0.5, 0.7]), np.array([0.1, 0.4, 0.4]))
    assert result.queries == 2
    assert result.difference == pytest.approx((0.1 + 0.3) / 2)


def test_rounding_is_a_tie() -> None:
    assert compare(np.array([0.1 + 0.2, 0.5]), np.array([0.3, 0.5])).ties == 2


def test_the_t_test_is_the_paired_one() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.random(50), rng.random(50)
    assert compare(first, second).t_test == pytest.approx(stats.ttest_rel(first, second).pvalue)


def test_the_permutation_test_of_few_queries_is_exact() -> None:
    differences = np.array([0.3, -0.1, 0.4, 0.25])
    signed = [abs(np.mean(differences * signs)) for signs in itertools.product((1, -1), repeat=4)]
    expected = np.mean(np.array(signed) >= abs(differences.mean()) - 1e-12)
    assert compare(differences, np.zeros(4)).permutation_test == pytest.approx(expected)


def test_equal_rankers_are_not_different() -> None:
    values = np.array([0.3, 0.5, 0.1])
    result = compare(values, values)
    assert (result.t_test, result.permutation_test, result.interval) == (1.0, 1.0, (0.0, 0.0))


def test_a_constant_difference_is_certain() -> None:
    result = compare(np.full(20, 0.75), np.full(20, 0.5))
    assert result.t_test == 0.0
    assert result.permutation_test < 0.001
    assert result.interval == (0.25, 0.25)


def test_the_interval_covers_the_true_difference_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    covered = 0
    for seed in range(100):
        differences = rng.exponential(0.1, 60)
        low, high = compare(differences, np.zeros(60), seed, resamples=999).interval
        covered += low <= 0.1 <= high
    assert 88 <= covered <= 99


def test_p_values_under_no_difference_are_uniform() -> None:
    rng = np.random.default_rng(2)
    p_values = [compare(rng.random(40), rng.random(40), seed, resamples=499) for seed in range(100)]
    for values in ([c.t_test for c in p_values], [c.permutation_test for c in p_values]):
        assert stats.kstest(values, "uniform").pvalue > 0.001


def test_the_same_seed_gives_the_same_result() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.random(30), rng.random(30)
    assert compare(first, second, seed=5) == compare(first, second, seed=5)


def test_different_queries_are_refused() -> None:
    with pytest.raises(InputError, match="expected values on the same queries, found 3 and 2"):
        compare(np.zeros(3), np.zeros(2))
    with pytest.raises(InputError, match="expected at least 2 queries to compare, found 1"):
        compare(np.array([0.5, np.nan]), np.zeros(2))


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.02, 0.03]) == pytest.approx([0.01 * 3, 0.02 * 2, 0.02 * 2])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_keeps_the_order_and_never_lowers(p_values: list[float]) -> None:
    corrected = holm(p_values)
    assert all(p <= c <= 1 for p, c in zip(p_values, corrected, strict=True))
    assert all(c <= min(1, p * len(p_values)) + 1e-12 for p, c in zip(p_values, corrected, strict=True))
    order = np.argsort(p_values, kind="stable")
    assert (np.diff(np.array(corrected)[order]) >= 0).all()


@pytest.mark.parametrize(("p", "mark"), [(0.2, ""), (0.05, ""), (0.049, "*"), (0.01, "*"), (0.0099, "**")])
def test_stars_are_those_of_the_paper(p: float, mark: str) -> None:
    assert stars(p) == mark
