import numpy as np
import pytest
from scipy import stats

from cuolr.browsing.browsed_model import BrowsedModel
from tests.browsing.hand_made import evidence_of, hand_made_log

LISTS = [[0, 1], [0, 1], [1, 0], [0, 2]]
CLICKS = [[1, 0], [0, 1], [1, 0], [0, 0]]


def test_impressions_by_position_clicks_and_examinations_are_counted() -> None:
    evidence = evidence_of(hand_made_log(LISTS, CLICKS), [1.0, 0.5])
    assert evidence.positions_of(0) == [(1, 3), (2, 1)]
    assert evidence.positions_of(1) == [(1, 1), (2, 2)]
    assert evidence.positions_of(2) == [(2, 1)]
    assert evidence.positions_of(3) == []
    assert evidence.clicks.tolist() == [1, 2, 0, 0]
    assert evidence.examinations.tolist() == [3 + 0.5, 1 + 2 * 0.5, 0.5, 0]
    assert evidence.sessions.tolist() == [4]


def test_the_rate_is_clicks_per_expected_examination_and_pools_documents() -> None:
    evidence = evidence_of(hand_made_log(LISTS, CLICKS), [1.0, 0.5])
    assert evidence.rate_of([0]).rate == pytest.approx(1 / 3.5)
    both = evidence.rate_of([0, 1])
    assert both.rate == pytest.approx((1 + 2) / (3.5 + 2.0))
    assert both.low is not None
    assert both.high is not None
    assert both.low < 3 / 5.5 < both.high


def test_with_full_examination_the_interval_is_that_of_wilson() -> None:
    evidence = evidence_of(hand_made_log([[0, 1]] * 40, [[1, 0]] * 10 + [[0, 0]] * 30), [1.0, 1.0])
    wilson = stats.binomtest(10, 40).proportion_ci(method="wilson")
    found = evidence.rate_of([0])
    assert found.low == pytest.approx(wilson.low)
    assert found.high == pytest.approx(wilson.high)


def test_a_document_that_was_never_shown_has_no_rate() -> None:
    found = evidence_of(hand_made_log(LISTS, CLICKS), [1.0, 0.5]).rate_of([3])
    assert (found.examinations, found.rate, found.low, found.high) == (0, None, None, None)


def test_productions_list_is_the_logged_one_where_there_is_one() -> None:
    evidence = evidence_of(hand_made_log([[2, 0, 3]] * 3, [[0, 0, 0]] * 3), [1.0, 0.5, 0.3])
    assert evidence.production_list(0, k=3) == [2, 0, 3]
    assert evidence.production_list(0, k=2) == [2, 0]


def test_of_several_lists_productions_is_by_mean_height_and_of_their_mean_length() -> None:
    evidence = evidence_of(hand_made_log(LISTS, CLICKS), [1.0, 0.5])
    # Heights: document 0 has 3 · 2 + 1, document 1 has 2 + 2 · 1, document 2 has 1.
    assert evidence.production_list(0, k=10) == [0, 1]
    short = hand_made_log([[0, -1], [1, -1], [0, 2]], [[0, 0]] * 3)
    assert evidence_of(short, [1.0, 0.5]).production_list(0, k=10) == [0, 1]  # 4 impressions in 3 sessions


def test_queries_of_a_larger_log_are_not_mixed_up(browsed: BrowsedModel) -> None:
    log, evidence = browsed.log, browsed.evidence
    for query in range(log.candidates.n_queries):
        rows = np.flatnonzero(log.query == query)
        shown = log.documents[rows][log.where[rows]]
        assert set(evidence.production_list(query, log.k)) <= set(shown.tolist())
        for row in np.unique(shown):
            assert sum(times for _, times in evidence.positions_of(int(row))) == np.count_nonzero(shown == row)
