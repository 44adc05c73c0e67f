"""The worst and the best case of documents that the log says too little about."""

from dataclasses import replace

import numpy as np
import pytest

from cuolr.off_policy.compared_lists import ComparedLists, CountedLists
from cuolr.off_policy.intervals import Units, heavy_tailed_interval
from cuolr.off_policy.unknown_documents import LeastAttractiveness, UnknownDocuments
from cuolr.off_policy.users.fitted_users import UnbiasedRates
from cuolr.types import Doubles, Ints

QUERIES, SESSIONS = 40, 100.0


class TopClick:
    """Users who click on the first document by its attractiveness, and on no other."""

    def __init__(self, rates: UnbiasedRates) -> None:
        self.rates = rates

    def clicks(self, documents: Ints, attractiveness: Doubles | None = None) -> Doubles:
        alpha = self.rates.attractiveness if attractiveness is None else attractiveness
        return np.where(np.arange(documents.shape[1]) == 0, alpha[documents], 0.0)


def lists(*documents: int, sessions: float = SESSIONS) -> CountedLists:
    """The same documents of each query, of which there are five."""
    rows = 5 * np.arange(QUERIES)[:, None] + np.array(documents)
    return CountedLists(np.arange(QUERIES), rows, np.full(QUERIES, sessions))


def joined(*several: CountedLists) -> CountedLists:
    names = ("query", "documents", "count")
    return CountedLists(*(np.concatenate([getattr(part, name) for part in several]) for name in names))


def users(examinations: list[float], clicks: list[float]) -> TopClick:
    """Of the five documents of each query; one more click in half of the queries, and one less in the others."""
    more = np.where(np.arange(QUERIES) % 2, 1.0, -1.0)[:, None] * (np.array(clicks) > 1)
    return TopClick(UnbiasedRates((clicks + more).ravel(), np.tile(examinations, QUERIES).astype(np.float64), 1.0))


def compare(target: CountedLists, logged: CountedLists) -> ComparedLists:
    ones, sessions = np.ones(5 * QUERIES), np.full(QUERIES, SESSIONS)
    query = np.repeat(np.arange(QUERIES), 5)
    return ComparedLists(target, logged, logged, QUERIES, sessions, sessions, ones, 20 * ones, query)


def unknown_of(compared: ComparedLists, users: TopClick) -> UnknownDocuments:
    return UnknownDocuments.of(compared, users, compared.by_query(compared.baseline, users))


# Document 0 is always shown, and 1 in four of a hundred sessions; 3 and 4 are never shown.
SHADING_OFF = joined(lists(0, 2, sessions=96.0), lists(0, 1, sessions=4.0))
RESPONSE = users([100, 4, 96, 0, 0], [50, 2, 30, 0, 0])


def test_a_document_that_was_never_shown_is_less_attractive_the_more_of_them_there_are() -> None:
    rate, (low, _) = heavy_tailed_interval(RESPONSE.rates.clicks[1::5], np.full(QUERIES, 4.0))
    assert 0.4 < low < rate == 2 / 4
    least = LeastAttractiveness.of(compare(lists(3, 1), SHADING_OFF), RESPONSE)
    assert (least.rate, least.low) == pytest.approx((rate, low))
    assert least.share[3::5] == pytest.approx(np.full(QUERIES, 1 / 3))  # 1 is hardly shown; 3 and 4 never
    fewer = joined(lists(0, 2, sessions=92.0), lists(0, 1, sessions=4.0), lists(0, 4, sessions=4.0))
    assert LeastAttractiveness.of(compare(lists(3, 1), fewer), RESPONSE).share[3] == pytest.approx(2 / 3)


def test_hardly_shown_documents_are_those_of_the_policy() -> None:
    """Document 1 is good; a policy that does not show it has not shown that it finds such ones."""
    assert LeastAttractiveness.of(compare(lists(3, 0), SHADING_OFF), RESPONSE).rate == 0


def test_a_log_of_one_list_per_query_says_nothing_about_other_documents() -> None:
    same = lists(0, 1, 2)
    least = LeastAttractiveness.of(compare(lists(3, 1), same), users([100, 100, 100, 0, 0], [50, 2, 30, 0, 0]))
    assert least.rate == 0
    assert not least.share[3::5].any()


def test_a_document_that_was_shown_but_hardly_examined_is_one_of_them() -> None:
    response = replace(
        RESPONSE.rates, examinations=np.where(np.arange(5 * QUERIES) == 1, 0.5, RESPONSE.rates.examinations)
    )
    least = LeastAttractiveness.of(compare(lists(3, 1), SHADING_OFF), TopClick(response))
    assert not response.known[1]
    assert least.share[1] == 1 == pytest.approx(3 * least.share[3])


def test_the_cases_differ_by_the_unknown_documents_of_the_policy() -> None:
    compared = compare(lists(3, 1), SHADING_OFF)
    cases = [changes.sum() for changes in unknown_of(compared, RESPONSE).cases(0.3)]
    logged = compared.by_query(SHADING_OFF, RESPONSE).sum()
    highest = RESPONSE.rates.attractiveness.max()
    assert min(cases) == pytest.approx(QUERIES * SESSIONS * 0.3 / 3 - logged)
    assert max(cases) == pytest.approx(QUERIES * SESSIONS * min(highest, 1) - logged)


def test_what_production_earned_does_not_vary() -> None:
    """Production hardly shows document 1, and at the top; how attractive it is changes nothing for [0, 2]."""
    rates = RESPONSE.rates
    unknown = replace(rates, examinations=np.where(np.arange(5 * QUERIES) % 5 == 1, 0.5, rates.examinations))
    compared = compare(lists(0, 2), joined(lists(0, 2, sessions=96.0), lists(1, 0, sessions=4.0)))
    assert not unknown.known[1]
    change = compared.total_change(TopClick(unknown))
    cases = unknown_of(compared, TopClick(unknown)).cases(0.3)
    assert [changes.sum() for changes in cases] == pytest.approx([change, change])


def noisy(seed: int) -> TopClick:
    """Users whose clicks on documents 0, 1 and 2 of each query are noise."""
    clicks = np.zeros((QUERIES, 5))
    clicks[:, :3] = np.random.default_rng(seed).poisson([50, 3, 30], (QUERIES, 3))
    return TopClick(UnbiasedRates(clicks.ravel(), np.tile([100.0, 4.0, 96.0, 0.0, 0.0], QUERIES), 1.0))


# Every query is a unit, in a group of its own.
UNITS = Units(np.arange(QUERIES), np.arange(QUERIES), QUERIES, of_sessions=False)


def test_the_lower_end_of_the_worst_case_is_that_of_a_bootstrap_over_queries() -> None:
    """The plain version: c and the change from queries drawn with replacement. Half of the lists begin with document 1,
    which is hardly shown, so that the change and c have the same noise."""
    target = joined(lists(3, 1, sessions=50.0), lists(1, 0, sessions=50.0))
    users, rng, changes = noisy(1), np.random.default_rng(2), []
    compared = compare(target, SHADING_OFF)
    of_zero, hardly = (users.rates.attractiveness[document::5] for document in (0, 1))
    for _ in range(4_000):
        drawn = rng.integers(0, QUERIES, QUERIES)
        never = hardly[drawn].mean() / 3
        changes.append((50 * never + 50 * hardly[drawn] - 100 * of_zero[drawn]).mean() / SESSIONS)
    unknown = unknown_of(compared, users)
    low = unknown.lowest_end(compared.changes(users), np.zeros(QUERIES), UNITS)
    centre = next(unknown.cases(unknown.least.rate)).sum() / compared.reward.sum()
    assert centre == pytest.approx(np.mean(changes), abs=0.005)
    assert centre - low == pytest.approx(2.2 * np.std(changes), rel=0.15)  # 2.2: Student's t of some 13 queries


def test_the_worst_case_is_no_worse_than_documents_that_nobody_clicks() -> None:
    """One click on all hardly shown documents: what c is, is not known."""
    rates = replace(RESPONSE.rates, clicks=np.where(np.arange(5 * QUERIES) % 5 == 1, 0.0, RESPONSE.rates.clicks))
    rates.clicks[1] = 1.0
    unknown = unknown_of(compare(lists(3, 1), SHADING_OFF), TopClick(rates))
    assert unknown.least.low == 0 < unknown.least.rate
    changes = unknown.compared.changes(unknown.response)
    zeros, reward = np.zeros(QUERIES), unknown.compared.reward
    low = heavy_tailed_interval(changes, reward)[1][0]
    nobody = low + (next(unknown.cases(0.0)) - changes).sum() / reward.sum()
    assert unknown.lowest_end(changes, zeros, UNITS) == pytest.approx(nobody)
