import json

import numpy as np
import pytest

from cuolr.browsing.browsed_model import BrowsedModel
from cuolr.errors import InputError
from cuolr.policies.random_policy import RandomPolicy
from tests.small_log import counted_log, linear_policy, small_log


def test_a_view_has_both_lists_and_the_evidence(browsed: BrowsedModel) -> None:
    query = int(browsed.queries[0])
    view = browsed.view(query)
    log = browsed.log
    production = [one.document_id for one in sorted(view.documents, key=lambda d: d.production or 99) if one.production]
    expected = browsed.evidence.production_list(query, log.k)
    offset = int(log.candidates.offsets[query])
    assert production == [str(row - offset + 1) for row in expected]
    model = [one.document_id for one in view.documents if one.model]
    ranking = browsed.policy.rank(log.candidates, len(expected))[query]
    assert model == [str(index + 1) for index in ranking]
    assert view.sessions == np.count_nonzero(log.query == query)
    for one in view.documents:
        assert one.impressions == sum(times for _, times in one.positions)
        assert one.score == pytest.approx(sum(one.contributions) + one.other_features + one.unexplained, abs=1e-5)
        assert one.unexplained == pytest.approx(0, abs=1e-5)
    assert set(view.features) == {"feature 1", "feature 3"}
    json.dumps(view.as_dict(), allow_nan=False)


def test_queries_of_few_sessions_are_hidden_unless_asked_for() -> None:
    log = small_log(60)
    sessions = np.bincount(log.query)
    few = int(np.argmin(sessions))
    browsed = BrowsedModel.fit(linear_policy(log), log, min_sessions=int(sessions[few]) + 1)
    assert few not in browsed.queries
    assert browsed.hidden == np.count_nonzero(sessions <= sessions[few])
    with pytest.raises(InputError, match=rf"query 'q{few}': has fewer than .* show it with --min-sessions 1"):
        browsed.find(f"q{few}")
    assert BrowsedModel.fit(linear_policy(log), log, min_sessions=1).find(f"q{few}") == few


def test_an_unknown_query_is_refused_with_a_guess(browsed: BrowsedModel) -> None:
    with pytest.raises(InputError, match=r"query 'q11': expected a query of the log.*did you mean 'q1'"):
        browsed.find("q11")


def test_min_sessions_must_be_one_or_more() -> None:
    log = small_log(20)
    with pytest.raises(InputError, match="min_sessions"):
        BrowsedModel.fit(linear_policy(log), log, min_sessions=0)


def test_an_aggregated_log_and_a_policy_without_scores_can_be_browsed() -> None:
    log = counted_log()
    browsed = BrowsedModel.fit(RandomPolicy(1), log)
    view = browsed.view(int(browsed.queries[0]))
    assert view.features == ()
    assert all(one.score is None for one in view.documents)
    assert view.sessions == log.count[log.query == browsed.queries[0]].sum()
