import numpy as np
import pytest

import cuolr
from cuolr.browsing.browsed_model import BrowsedModel
from cuolr.browsing.overview import chosen_queries
from cuolr.browsing.query_changes import QueryChanges
from cuolr.data.normalise import Normaliser
from cuolr.off_policy.assess import assess
from cuolr.off_policy.users.fitted_users import UserResponse
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.random_policy import RandomPolicy
from cuolr.types import Doubles
from tests.browsing.hand_made import hand_made_log
from tests.small_log import linear_policy, small_log


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


@pytest.mark.thorough
@pytest.mark.parametrize("model", ["pbm", "cascade", "trust"])
def test_an_interval_is_no_wider_than_what_documents_can_change(model: str) -> None:
    train, _, _ = cuolr.generate_splits("tiny", 30, 2, 2, seed=3)
    log = cuolr.simulate(train, cuolr.fit_ranksvm(train, 0.1), cuolr.click_model(model), sessions=900)
    browsed = BrowsedModel.fit(RandomPolicy(1), log)
    changes = browsed.changes()
    known = np.isfinite(changes.change)
    assert known.any()
    assert changes.error[known].max() > 0  # under the cascade model the order of the same documents changes nothing
    # The error of an attractiveness is at most 0.5, and 20 documents are in the two lists.
    assert (changes.error[known] <= 0.5 * np.sqrt(20) * browsed.evidence.sessions[known]).all()
    assert np.median(changes.error[known] / browsed.evidence.sessions[known]) < 0.5


def test_the_error_is_that_of_attractiveness_and_of_what_all_queries_share() -> None:
    # Two documents in one order, 400 sessions each way; the model turns the first query's list around.
    clicks = np.zeros((800, 2), np.uint8)
    clicks[:100, 0] = clicks[200:240, 1] = clicks[400:560, 0] = clicks[600:660, 1] = 1
    lists = np.repeat([[0, 1], [1, 0]], 400, axis=0)
    log = hand_made_log(lists.tolist(), clicks.tolist(), documents=2)
    browsed = BrowsedModel.fit(LinearPolicy(np.ones(1, np.float32), Normaliser.fit("min-max", log.candidates)), log)
    users, influence = browsed.users.fitted[0], browsed.users.influences[0]
    changes, response = browsed.changes(), users.response()
    assert changes.users == users.name

    def total(alpha: Doubles, response: UserResponse = response) -> float:
        model, logged = response.clicks(np.array([[1, 0]]), alpha), response.clicks(np.array([[0, 1], [1, 0]]), alpha)
        return 800 * float(model.sum()) - 400 * float(logged.sum())

    alpha = response.rates.attractiveness
    slopes = [(total(alpha + 1e-4 * np.eye(2)[i]) - total(alpha)) / 1e-4 for i in range(2)]
    rates = [browsed.evidence.rate_of([i]) for i in range(2)]
    errors = [(rate.high - rate.low) / 2 / 1.96 for rate in rates if rate.low is not None and rate.high is not None]
    scale = (
        alpha
        @ browsed.evidence.clicks
        / sum((rate.rate or 0) * number for rate, number in zip(rates, browsed.evidence.clicks, strict=True))
    )
    of_documents = sum((slope * scale * error) ** 2 for slope, error in zip(slopes, errors, strict=True))
    # Examination without each thirtieth of the sessions, with the attractiveness that follows from it.
    moved = [users.response(shift) for shift in influence.shifts]
    of_examination = sum((total(other.rates.attractiveness, other) - total(alpha)) ** 2 for other in moved)
    assert of_documents > 0
    assert of_examination > 0.05 * of_documents
    assert changes.error[0] == pytest.approx(np.sqrt(of_documents + of_examination), rel=0.02)


def test_errors_that_are_not_asked_for_are_not_known(browsed: BrowsedModel) -> None:
    quick, whole = browsed.changes(errors=False), browsed.changes()
    np.testing.assert_array_equal(quick.change, whole.change)
    assert np.isnan(quick.error).all()
    some = browsed.changes(browsed.queries[:2])
    np.testing.assert_allclose(some.error[browsed.queries[:2]], whole.error[browsed.queries[:2]])
    assert np.isnan(some.error[browsed.queries[2:]]).all()


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
    assert chosen_queries(changes, sessions, np.arange(6), 1).tolist() == [1]
    assert chosen_queries(changes, sessions, np.arange(6), 5).tolist() == [1, 4, 0, 3, 5]


def test_losses_are_chosen_though_gains_are_larger() -> None:
    change = np.array([50.0, 60.0, -1.0, 70.0, -2.0, 80.0, -3.0])
    changes, sessions = QueryChanges(change, np.ones(7), np.ones(7), "pbm"), np.full(7, 10.0)
    assert chosen_queries(changes, sessions, np.arange(7), 4).tolist() == [6, 4, 3, 5]
    assert chosen_queries(changes, sessions, np.arange(7), 6).tolist() == [6, 4, 2, 1, 3, 5]
    assert chosen_queries(changes, sessions, np.array([2, 4, 6, 0]), 3).tolist() == [6, 4, 0]
