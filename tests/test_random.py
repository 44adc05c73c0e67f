import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuolr.random import shuffled


@given(n=st.integers(1, 500), seed=st.integers(0, 2**32), number=st.integers(0, 100))
def test_each_number_stands_at_one_place(n: int, seed: int, number: int) -> None:
    assert sorted(shuffled(np.arange(n), n, seed, number).tolist()) == list(range(n))


@given(n=st.integers(2, 10**12), places=st.lists(st.integers(0, 10**12), min_size=1, max_size=20))
def test_a_part_is_the_same_as_in_the_whole(n: int, places: list[int]) -> None:
    part = np.array(places) % n
    whole = np.concatenate([part, np.array([0, n - 1])])
    np.testing.assert_array_equal(shuffled(part, n, 1, 2), shuffled(whole, n, 1, 2)[:-2])


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_every_number_is_as_likely_at_every_place(n: int) -> None:
    orders = np.stack([shuffled(np.arange(n), n, 3, number) for number in range(3_000)])
    shares = np.stack([(orders == value).mean(axis=0) for value in range(n)])
    assert np.abs(shares - 1 / n).max() < 4.5 * np.sqrt((1 / n) * (1 - 1 / n) / 3_000)


def test_orders_of_another_number_or_seed_differ() -> None:
    first, second, third = (shuffled(np.arange(1_000), 1_000, s, n) for s, n in ((1, 0), (1, 1), (2, 0)))
    assert (first == second).mean() < 0.02
    assert (first == third).mean() < 0.02
