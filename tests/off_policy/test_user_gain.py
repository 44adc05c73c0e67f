"""What could be wrong with the gain under fitted users: lists that refute them, and documents not known to the log."""

from dataclasses import replace

import numpy as np
import pytest

from cuolr.off_policy.compared_lists import ComparedLists, CountedLists
from cuolr.off_policy.intervals import heavy_tailed_interval
from cuolr.off_policy.user_gain import (
    correction_by_expectation,
    correction_towards_policy,
    least_attractiveness,
    worst_and_best_change,
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


UNKNOWN_QUERIES, SESSIONS = 40, 100.0


class TopClick:
    """Users who click on the first document by its attractiveness, and on no other."""

    def __init__(self, rates: UnbiasedRates) -> None:
        self.rates = rates

    def clicks(self, documents: Ints, attractiveness: Doubles | None = None) -> Doubles:
        alpha = self.rates.attractiveness if attractiveness is None else attractiveness
        return np.where(np.arange(documents.shape[1]) == 0, alpha[documents], 0.0)


def lists(*documents: int, sessions: float = SESSIONS) -> CountedLists:
    """The same documents of each query, of which there are five."""
    rows = 5 * np.arange(UNKNOWN_QUERIES)[:, None] + np.array(documents)
    return CountedLists(np.arange(UNKNOWN_QUERIES), rows, np.full(UNKNOWN_QUERIES, sessions))


def joined(*several: CountedLists) -> CountedLists:
    names = ("query", "documents", "count")
    return CountedLists(*(np.concatenate([getattr(part, name) for part in several]) for name in names))


def users(examinations: list[float], clicks: list[float]) -> TopClick:
    """Of the five documents of each query; one more click in half of the queries, and one less in the others."""
    more = np.where(np.arange(UNKNOWN_QUERIES) % 2, 1.0, -1.0)[:, None] * (np.array(clicks) > 1)
    return TopClick(
        UnbiasedRates((clicks + more).ravel(), np.tile(examinations, UNKNOWN_QUERIES).astype(np.float64), 1.0)
    )


def compare(target: CountedLists, logged: CountedLists) -> ComparedLists:
    ones, sessions = np.ones(5 * UNKNOWN_QUERIES), np.full(UNKNOWN_QUERIES, SESSIONS)
    query = np.repeat(np.arange(UNKNOWN_QUERIES), 5)
    return ComparedLists(target, logged, logged, UNKNOWN_QUERIES, sessions, sessions, ones, 20 * ones, query)


# Document 0 is always shown, and 1 in four of a hundred sessions; 3 and 4 are never shown.
SHADING_OFF = joined(lists(0, 2, sessions=96.0), lists(0, 1, sessions=4.0))
RESPONSE = users([100, 4, 96, 0, 0], [50, 2, 30, 0, 0])


def test_a_document_that_was_never_shown_is_less_attractive_the_more_of_them_there_are() -> None:
    low = heavy_tailed_interval(RESPONSE.rates.clicks[1::5], np.full(UNKNOWN_QUERIES, 4.0))[1][0]
    assert 0.4 < low < 2 / 4
    least = least_attractiveness(compare(lists(3, 1), SHADING_OFF), RESPONSE)
    assert least[3::5] == pytest.approx(np.full(UNKNOWN_QUERIES, low * 1 / 3))  # 1 is hardly shown; 3 and 4 never
    fewer = joined(lists(0, 2, sessions=92.0), lists(0, 1, sessions=4.0), lists(0, 4, sessions=4.0))
    assert least_attractiveness(compare(lists(3, 1), fewer), RESPONSE)[3] == pytest.approx(low * 2 / 3)


def test_hardly_shown_documents_are_those_of_the_policy() -> None:
    """Document 1 is good; a policy that does not show it has not shown that it finds such ones."""
    assert not least_attractiveness(compare(lists(3, 0), SHADING_OFF), RESPONSE).any()


def test_a_log_of_one_list_per_query_says_nothing_about_other_documents() -> None:
    same = lists(0, 1, 2)
    assert not least_attractiveness(compare(lists(3, 1), same), users([100, 100, 100, 0, 0], [50, 2, 30, 0, 0])).any()


def test_a_document_that_was_shown_but_hardly_examined_is_one_of_them() -> None:
    response = replace(
        RESPONSE.rates, examinations=np.where(np.arange(5 * UNKNOWN_QUERIES) == 1, 0.5, RESPONSE.rates.examinations)
    )
    least = least_attractiveness(compare(lists(3, 1), SHADING_OFF), TopClick(response))
    assert not response.known[1]
    assert least[1] == pytest.approx(3 * least[3])


def test_the_cases_differ_by_the_unknown_documents_of_the_policy() -> None:
    compared = compare(lists(3, 1), SHADING_OFF)
    cases = list(worst_and_best_change(compared, RESPONSE))
    least, logged = least_attractiveness(compared, RESPONSE)[3], compared.by_query(SHADING_OFF, RESPONSE).sum()
    highest = RESPONSE.rates.attractiveness.max()
    assert min(cases) == pytest.approx(UNKNOWN_QUERIES * SESSIONS * least - logged)
    assert max(cases) == pytest.approx(UNKNOWN_QUERIES * SESSIONS * min(highest, 1) - logged)


def test_what_production_earned_does_not_vary() -> None:
    """Production hardly shows document 1, and at the top; how attractive it is changes nothing for [0, 2]."""
    rates = RESPONSE.rates
    unknown = replace(rates, examinations=np.where(np.arange(5 * UNKNOWN_QUERIES) % 5 == 1, 0.5, rates.examinations))
    compared = compare(lists(0, 2), joined(lists(0, 2, sessions=96.0), lists(1, 0, sessions=4.0)))
    assert not unknown.known[1]
    change = compared.total_change(TopClick(unknown))
    assert list(worst_and_best_change(compared, TopClick(unknown))) == pytest.approx([change, change])
