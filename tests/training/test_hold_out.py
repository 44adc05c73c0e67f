"""Which queries or sessions are held out."""

import numpy as np
import pytest

from cuolr.errors import InputError
from cuolr.logs.aggregate import aggregate
from cuolr.training.fit import FitRequest, fit
from cuolr.training.hold_out import held_out_queries, held_out_sessions, split_by_query, with_held_out_sessions
from cuolr.training.log_form import TrainingLog
from cuolr.training.presets.configure import configure
from tests.small_log import small_log

ONE_QUERY = small_log(rows=200, queries=1)


def test_the_split_keeps_the_rows_of_a_query_together() -> None:
    log = small_log(rows=300, queries=20)
    train, held_out = split_by_query(log, held_out_queries(log, 0.1, seed=3))
    assert sorted([*train, *held_out]) == list(range(300))
    assert len(np.unique(log.query[held_out])) == 2
    assert not set(log.query[train]) & set(log.query[held_out])
    others = {tuple(split_by_query(log, held_out_queries(log, 0.1, seed=seed))[1]) for seed in range(5)}
    assert len(others) > 1


def test_the_split_leaves_at_least_a_query_on_each_side() -> None:
    log = small_log(queries=2)
    for share in (0.01, 0.99):
        train, held_out = split_by_query(log, held_out_queries(log, share, seed=0))
        assert len(train)
        assert len(held_out)
    with pytest.raises(InputError, match="log: expected at least 2 queries with shown documents"):
        split_by_query(small_log(queries=1), held_out_queries(small_log(queries=1), 0.1, seed=0))
    with pytest.raises(InputError, match=r"above 0 and below 1, found 1\.5"):
        split_by_query(log, held_out_queries(log, 1.5, seed=0))


def test_a_share_of_the_sessions_of_few_queries_is_held_out() -> None:
    log = small_log(rows=200, queries=3)
    rows = held_out_sessions(log, 0.1, seed=1)
    assert len(rows) == round(0.1 * log.where.any(axis=1).sum())
    assert log.where[rows].any(axis=1).all()
    grouped, queries = with_held_out_sessions(log, 0.1, seed=1)
    _, held_out = split_by_query(grouped, queries)
    np.testing.assert_array_equal(held_out, rows)
    np.testing.assert_array_equal(grouped.query % 3, log.query)
    np.testing.assert_array_equal(np.unique(grouped.query // 3), np.arange(10))


def test_at_least_a_session_is_on_each_side() -> None:
    for share in (0.001, 0.999):
        assert 0 < len(held_out_sessions(ONE_QUERY, share, seed=1)) < 200
    with pytest.raises(InputError, match="at least 2 sessions with shown documents, found 1"):
        held_out_sessions(ONE_QUERY.select(np.array([0])), 0.1, seed=1)
    with pytest.raises(InputError, match="fewer than 10 queries needs the clicks of each session"):
        held_out_sessions(aggregate(ONE_QUERY), 0.1, seed=1)


@pytest.mark.parametrize(("queries", "held_out"), [(9, "held_out_sessions"), (10, "held_out_queries")])
def test_sessions_are_held_out_below_ten_queries(queries: int, held_out: str) -> None:
    log = small_log(rows=300, queries=queries)
    config = configure("naive", settings={"training.steps": 1, "learner.hidden": [4]})
    result = fit(FitRequest(TrainingLog.of(log), config))
    assert result.provenance["settings"]["validated_by"] == {held_out: 0.1}
