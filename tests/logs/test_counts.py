from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from cuolr.logs import counts as module
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import count_lists, last_click_above
from tests.small_log import small_log


def plain_counts(log: ClickLog, query: int, ranking: list[int]) -> dict[tuple[int, int], list[int]]:
    """Session by session: how often a position was passed and clicked, by the last click above."""
    counts: dict[tuple[int, int], list[int]] = {}
    for row in range(len(log)):
        if log.query[row] != query or log.ranking[row].tolist() != ranking:
            continue
        last = 0
        for position in range(log.k):
            if log.ranking[row, position] < 0:
                break
            passed = counts.setdefault((position, last), [0, 0])
            passed[0] += 1
            if log.clicks[row, position]:
                passed[1] += 1
                last = position + 1
    return counts


def test_the_last_click_above_a_position_is_never_its_own() -> None:
    clicks = np.array([[1, 0, 1, 0], [0, 0, 0, 1]], np.uint8)
    assert last_click_above(clicks).tolist() == [[0, 1, 1, 3], [0, 0, 0, 0]]


def test_counts_are_those_of_a_loop_over_sessions() -> None:
    log = small_log(rows=200)
    counted = count_lists(log)
    assert counted.passed.sum() == log.where.sum()
    passed, clicked = counted.dense(np.arange(len(counted.lists)))
    for row in range(len(counted.lists)):
        expected = plain_counts(log, int(counted.lists.query[row]), counted.lists.ranking[row].tolist())
        found = {
            (position, last): [int(passed[row, position, last]), int(clicked[row, position, last])]
            for position, last in zip(*np.nonzero(passed[row]), strict=True)
        }
        assert found == expected


def test_some_lists_are_as_among_all_in_any_order_and_twice() -> None:
    counted = count_lists(small_log(rows=200))
    every, rows = counted.dense(np.arange(len(counted.lists))), np.array([7, 0, 7, len(counted.lists) - 1])
    for some, whole in zip(counted.dense(rows), every, strict=True):
        np.testing.assert_array_equal(some, whole[rows])


def test_sums_by_position_forget_the_last_click() -> None:
    counted = count_lists(small_log(rows=200))
    passed, clicked = counted.dense(np.arange(len(counted.lists)))
    np.testing.assert_array_equal(counted.by_position(counted.passed), passed.sum(axis=2))
    np.testing.assert_array_equal(counted.by_position(counted.clicked), clicked.sum(axis=2))


def test_in_an_aggregated_log_no_click_is_above() -> None:
    log = small_log(rows=200)
    counted, aggregated = count_lists(log), count_lists(aggregate(log))
    np.testing.assert_array_equal(aggregated.cases % (log.k + 1), 0)
    for of_sessions, of_lists in ((counted.passed, aggregated.passed), (counted.clicked, aggregated.clicked)):
        np.testing.assert_allclose(aggregated.by_position(of_lists), counted.by_position(of_sessions), rtol=1e-6)


def test_no_more_is_held_than_was_shown() -> None:
    log = small_log(rows=200)
    assert len(count_lists(log).cases) <= log.where.sum()


def test_lists_of_two_loggers_are_one_list() -> None:
    log = small_log(rows=60)
    propensity = np.where(log.where, 0.5, 0.0).astype(np.float32)
    propensity[::2] /= 2
    assert len(count_lists(replace(log, logging_propensity=propensity)).lists) == len(count_lists(log).lists)


def test_many_sessions_are_counted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    log = small_log(rows=300)
    whole = count_lists(log)
    monkeypatch.setattr("cuolr.logs.counts.SESSIONS_AT_A_TIME", 7)
    in_parts = count_lists(log)
    np.testing.assert_array_equal(in_parts.cases, whole.cases)
    np.testing.assert_array_equal(in_parts.passed, whole.passed)
    np.testing.assert_array_equal(in_parts.clicked, whole.clicked)


def test_counting_part_by_part_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    log = small_log(rows=200)
    whole = count_lists(log)
    monkeypatch.setattr(module, "SESSIONS_AT_A_TIME", 7)
    monkeypatch.setattr(module, "CASES_BEFORE_MERGE", 20)
    parts = count_lists(log)
    for name in ("cases", "passed", "clicked"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))


def test_of_too_many_lists_some_are_counted_and_of_repeated_ones_all(monkeypatch: pytest.MonkeyPatch) -> None:
    log = small_log(rows=200)
    lists = len(aggregate(log))
    monkeypatch.setattr(module, "MAX_LISTS", lists)
    repeated = log.select(np.repeat(np.arange(200), 3))
    assert count_lists(repeated).lists.sessions == 600
    monkeypatch.setattr(module, "MAX_LISTS", lists // 2)
    some = count_lists(repeated).lists
    assert lists // 4 < len(some) < 3 * lists // 4
    whole = {(query, tuple(ranking)): count for query, ranking, count in rows_of(aggregate(repeated))}
    assert all(whole[query, tuple(ranking)] == count for query, ranking, count in rows_of(some)), "with all sessions"


def rows_of(lists: ClickLog) -> Iterator[tuple[int, list[int], int]]:
    return zip(lists.query.tolist(), lists.ranking.tolist(), lists.count.tolist(), strict=True)
