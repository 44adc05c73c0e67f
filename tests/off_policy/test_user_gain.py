"""What could be wrong with the gain under fitted users: lists that refute them."""

import numpy as np
import pytest

from cuolr.off_policy.compared_lists import ComparedLists, CountedLists
from cuolr.off_policy.user_gain import (
    correction_by_expectation,
    correction_towards_policy,
)
from cuolr.off_policy.users.fitted_users import UnbiasedRates
from cuolr.types import Doubles, Ints

QUERIES = 30


class PerDocument:
    """Users who click on each document by its attractiveness, wherever it stands."""

    rates = UnbiasedRates(np.full(4 * QUERIES, 2.0), np.full(4 * QUERIES, 10.0))

    def clicks(self, documents: Ints, attractiveness: Doubles | None = None) -> Doubles:
        return np.where(documents >= 0, self.rates.attractiveness[documents], 0.0)


def compared(clicks_like: Doubles, clicks_other: Doubles, like: float = 30.0, other: float = 70.0) -> ComparedLists:
    """The policy shows documents 0 and 1 of each query, the log [0, 1] in `like` sessions and [2, 3] in `other`.

    Args:
        clicks_like: [QUERIES] clicks per session on the first list.
        clicks_other: [QUERIES] on the other.
        like: Sessions.
        other: Sessions.
    """
    query = np.arange(QUERIES)
    pages = [4 * query[:, None] + np.array(page) for page in ([0, 1], [2, 3])]
    sessions = np.repeat([like, other], QUERIES)
    clicks = np.concatenate([clicks_like, clicks_other])[:, None] / 2 * np.ones(2) * sessions[:, None]
    logged = CountedLists(np.tile(query, 2), np.concatenate(pages), sessions, clicks)
    target = CountedLists(query, pages[0], np.full(QUERIES, like + other))
    ones, of_query = np.ones(4 * QUERIES), np.full(QUERIES, like + other)
    reward = clicks.sum(axis=1)
    rewards = np.bincount(logged.query, weights=reward).astype(np.float64)
    return ComparedLists(target, logged, logged, QUERIES, rewards, of_query, ones, ones, np.repeat(query, 4))


def test_nothing_is_missed_if_lists_have_the_clicks_that_users_expect() -> None:
    noise = np.where(np.arange(QUERIES) % 2, 0.1, -0.1)
    found, (low, high) = correction_towards_policy(compared(0.4 + noise, np.full(QUERIES, 0.4)), PerDocument())
    assert found == pytest.approx(0, abs=1e-12)
    assert low < 0 < high


def test_what_lists_like_the_policys_miss_is_extrapolated_to_its_lists() -> None:
    """Users expect .4 clicks on every list; [0, 1], which the policy always shows, has .1 less, the other .1 more."""
    noise = np.where(np.arange(QUERIES) % 2, 0.01, -0.01)
    found, (low, high) = correction_towards_policy(compared(0.3 + noise, np.full(QUERIES, 0.5)), PerDocument())
    logged = 0.3 * 0.3 + 0.7 * 0.5
    assert found == pytest.approx((0.3 - logged) / logged)
    assert low < found < high < 0


def test_a_log_of_one_list_per_query_refutes_nobody() -> None:
    ones = np.ones(QUERIES)
    _, (low, high) = correction_towards_policy(compared(ones, ones, like=100.0, other=0.0), PerDocument())
    assert (low, high) == (-np.inf, np.inf)


class LikesTheFirstList(PerDocument):
    """Users who expect .6 clicks on [0, 1] and .4 on [2, 3]."""

    rates = UnbiasedRates(np.tile([3.0, 3.0, 2.0, 2.0], QUERIES), np.full(4 * QUERIES, 10.0))


@pytest.mark.parametrize(
    ("on_better", "on_other", "kept"),
    [(0.6, 0.4, 1.0), (0.5, 0.5, 0.0), (0.55, 0.45, 0.5), (0.4, 0.6, -1.0)],
    ids=["as expected", "a fixed number of clicks", "half of the difference", "the other way round"],
)
def test_the_gain_shrinks_as_the_difference_of_better_lists_does(
    on_better: float, on_other: float, kept: float
) -> None:
    """The share of the gain that is kept is the logged difference of the lists over the expected one."""
    noise = np.where(np.arange(QUERIES) % 2, 0.01, -0.01)
    lists = compared(on_better + noise, np.full(QUERIES, on_other))
    found, (low, high) = correction_by_expectation(lists, LikesTheFirstList(), gain=0.1)
    assert found == pytest.approx(0.1 * (kept - 1), abs=1e-12)
    assert low < found < high
    assert (high < 0) == (kept < 1)
    opposite, ends = correction_by_expectation(lists, LikesTheFirstList(), gain=-0.1)
    assert (opposite, ends) == (-found, (-high, -low))


def test_lists_of_which_users_expect_the_same_say_nothing_of_the_gain() -> None:
    lists = compared(np.full(QUERIES, 0.3), np.full(QUERIES, 0.5))
    assert correction_by_expectation(lists, PerDocument(), gain=0.1)[1] == (-np.inf, np.inf)
