import numpy as np
import pytest

from cuolr.browsing.browsed_model import BrowsedModel
from cuolr.browsing.overview import chosen_queries
from cuolr.browsing.query_changes import QueryChanges
from cuolr.off_policy.assess import assess
from tests.browsing.conftest import linear_policy
from tests.small_log import small_log


def test_changes_add_up_to_the_gain_that_assess_estimates(browsed: BrowsedModel) -> None:
    changes = browsed.changes()
    evaluation = assess(browsed.policy, browsed.log, users=browsed.users)
    total = float(browsed.log.clicks.sum())
    assert np.nansum(changes.change) / total == pytest.approx(evaluation.gain)
    for row in evaluation.changed:
        query = browsed.find(row.query_id)
        assert changes.change[query] == pytest.approx(row.change)


def test_a_model_that_shows_the_logged_lists_changes_nothing_for_certain() -> None:
    log = small_log(300)
    policy = linear_policy(log)
    ranking = policy.rank(log.candidates, log.k)[log.query]
    browsed = BrowsedModel.fit(policy, type(log)(log.candidates, log.query, ranking, log.clicks, log.count))
    changes = browsed.changes()
    assert changes.change == pytest.approx(0)
    assert changes.error == pytest.approx(0)


def test_more_sessions_make_the_relative_error_smaller() -> None:
    few, many = (BrowsedModel.fit(linear_policy(log), log) for log in (small_log(300), small_log(4_800)))
    relative = [np.nanmean(b.changes().error / b.evidence.sessions) for b in (few, many)]
    assert relative[1] == pytest.approx(relative[0] / 4, rel=0.3)


def test_without_clicks_nothing_is_estimated() -> None:
    log = small_log(100)
    silent = type(log)(log.candidates, log.query, log.ranking, np.zeros_like(log.clicks), log.count)
    browsed = BrowsedModel.fit(linear_policy(log), silent)
    assert np.isnan(browsed.changes().change).all()
    view = browsed.view(int(browsed.queries[0]))
    assert (view.change, view.interval) == (None, None)


def test_the_largest_changes_are_chosen_and_the_worst_losses_come_first() -> None:
    change = np.array([1.0, -5.0, np.nan, 3.0, -2.0, np.nan])
    changes = QueryChanges(change, np.ones(6), np.ones(6), "pbm")
    sessions = np.array([10.0, 10, 20, 10, 10, 30])
    assert chosen_queries(changes, sessions, np.arange(6), 6).tolist() == [1, 4, 0, 3, 5, 2]
    assert chosen_queries(changes, sessions, np.arange(6), 3).tolist() == [1, 4, 3]
    assert chosen_queries(changes, sessions, np.array([2, 0]), 5).tolist() == [0, 2]
