from collections.abc import Iterator
from dataclasses import fields, replace

import numpy as np
import pytest

from cuolr.examination.effects import DocumentGroups
from cuolr.examination.identifiability import Identifiability
from cuolr.logs import counts as module
from cuolr.logs import session_files
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import ClickCounts, last_click_above
from tests.small_log import small_log


def plain_counts(log: ClickLog, query: int, ranking: list[int]) -> dict[tuple[int, int], list[int]]:
    """Session by session: impressions and clicks of each position, by the last click above."""
    counts: dict[tuple[int, int], list[int]] = {}
    for row in range(len(log)):
        if log.query[row] != query or log.ranking[row].tolist() != ranking:
            continue
        last = 0
        for position in range(log.k):
            if log.ranking[row, position] < 0:
                break
            cell = counts.setdefault((position, last), [0, 0])
            cell[0] += 1
            if log.clicks[row, position]:
                cell[1] += 1
                last = position + 1
    return counts


def test_the_last_click_above_a_position_is_never_its_own() -> None:
    clicks = np.array([[1, 0, 1, 0], [0, 0, 0, 1]], np.uint8)
    assert last_click_above(clicks).tolist() == [[0, 1, 1, 3], [0, 0, 0, 0]]


def test_counts_are_those_of_a_loop_over_sessions() -> None:
    log = small_log(rows=200)
    counts = ClickCounts.of(log)
    assert counts.impressions.sum() == log.where.sum()
    impressions, clicks = counts.dense(np.arange(len(counts.lists)))
    for row in range(len(counts.lists)):
        expected = plain_counts(log, int(counts.lists.query[row]), counts.lists.ranking[row].tolist())
        found = {
            (position, last): [int(impressions[row, position, last]), int(clicks[row, position, last])]
            for position, last in zip(*np.nonzero(impressions[row]), strict=True)
        }
        assert found == expected


def test_counting_and_reading_cells_in_parts_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    log = small_log(rows=200)
    whole = ClickCounts.of(log)
    expected = Identifiability.of(whole), DocumentGroups.of(whole, np.arange(5, len(whole.lists)))
    monkeypatch.setattr(module, "LISTS_AT_A_TIME", 3)
    monkeypatch.setattr(module, "CELLS_AT_A_TIME", 10)
    counts = ClickCounts.of(log)
    for name in ("cells", "impressions", "clicks"):
        np.testing.assert_array_equal(getattr(counts, name), getattr(whole, name))
    parts = list(counts.parts())
    assert len(parts) > 2
    queries = [np.unique(counts.lists.query[counts.coordinates(part)[0]]) for part in parts]
    assert np.concatenate(queries).tolist() == np.unique(counts.lists.query).tolist()
    groups = DocumentGroups.of(counts, np.arange(5, len(whole.lists)))
    assert Identifiability.of(counts) == expected[0]
    for column in fields(groups):
        np.testing.assert_array_equal(getattr(groups, column.name), getattr(expected[1], column.name))


def test_a_log_without_cells_has_one_empty_part() -> None:
    counts = ClickCounts.of(small_log(rows=200))
    empty = replace(counts, lists=counts.lists.select(slice(0)), cells=counts.cells[:0])
    assert list(empty.parts()) == [slice(0, 0)]


def test_dense_counts_of_selected_lists_are_those_among_all_in_any_order_and_twice() -> None:
    counts = ClickCounts.of(small_log(rows=200))
    every, rows = counts.dense(np.arange(len(counts.lists))), np.array([7, 0, 7, len(counts.lists) - 1])
    for some, whole in zip(counts.dense(rows), every, strict=True):
        np.testing.assert_array_equal(some, whole[rows])


def test_sums_by_position_forget_the_last_click() -> None:
    counts = ClickCounts.of(small_log(rows=200))
    impressions, clicks = counts.dense(np.arange(len(counts.lists)))
    np.testing.assert_array_equal(counts.by_position(counts.impressions), impressions.sum(axis=2))
    np.testing.assert_array_equal(counts.by_position(counts.clicks), clicks.sum(axis=2))


def test_sums_by_document_are_those_of_a_loop_over_impressions() -> None:
    log = small_log(rows=200)
    counts = ClickCounts.of(log)
    expected = np.zeros(log.candidates.n_documents)
    for row, position in zip(*np.nonzero(log.where), strict=True):
        document = log.candidates.offsets[log.query[row]] + log.ranking[row, position]
        expected[document] += log.clicks[row, position]
    np.testing.assert_array_equal(counts.by_document(counts.by_position(counts.clicks)), expected)


def test_the_top_of_all_lists_is_counted_as_if_they_ended_there() -> None:
    log = small_log(rows=200)
    cut = replace(log, ranking=log.ranking[:, :3], clicks=log.clicks[:, :3])
    top, expected = ClickCounts.of(log).top(3), ClickCounts.of(cut)
    assert top.lists.k == 3
    for mine, theirs in ((top.impressions, expected.impressions), (top.clicks, expected.clicks)):
        np.testing.assert_array_equal(
            top.by_document(top.by_position(mine)), expected.by_document(expected.by_position(theirs))
        )
    first, second = (np.bincount(counts.coordinates()[2], counts.impressions) for counts in (top, expected))
    np.testing.assert_array_equal(first, second)


def test_positions_that_no_list_fills_are_left_out() -> None:
    log = small_log(rows=200)
    wide = replace(
        log,
        ranking=np.pad(log.ranking, ((0, 0), (0, 2)), constant_values=-1),
        clicks=np.pad(log.clicks, ((0, 0), (0, 2))),
    )
    counts, of_wide = ClickCounts.of(log), ClickCounts.of(wide)
    assert of_wide.lists.k == log.k
    np.testing.assert_array_equal(of_wide.cells, counts.cells)
    nothing = replace(log, ranking=np.full_like(log.ranking, -1), clicks=np.zeros_like(log.clicks))
    assert ClickCounts.of(nothing).lists.k == 1


def test_an_aggregated_log_has_no_last_click() -> None:
    log = small_log(rows=200)
    counts, aggregated = ClickCounts.of(log), ClickCounts.of(aggregate(log))
    np.testing.assert_array_equal(aggregated.cells % (log.k + 1), 0)
    for of_sessions, of_lists in ((counts.impressions, aggregated.impressions), (counts.clicks, aggregated.clicks)):
        np.testing.assert_allclose(aggregated.by_position(of_lists), counts.by_position(of_sessions), rtol=1e-6)


def test_no_more_is_held_than_was_shown() -> None:
    log = small_log(rows=200)
    assert len(ClickCounts.of(log).cells) <= log.where.sum()


def test_the_same_list_of_two_logging_policies_is_one_list() -> None:
    log = small_log(rows=60)
    propensity = np.where(log.where, 0.5, 0.0).astype(np.float32)
    propensity[::2] /= 2
    assert len(ClickCounts.of(replace(log, logging_propensity=propensity)).lists) == len(ClickCounts.of(log).lists)


def test_many_sessions_are_counted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    log = small_log(rows=300)
    whole = ClickCounts.of(log)
    monkeypatch.setattr("cuolr.logs.counts.SESSIONS_AT_A_TIME", 7)
    in_parts = ClickCounts.of(log)
    np.testing.assert_array_equal(in_parts.cells, whole.cells)
    np.testing.assert_array_equal(in_parts.impressions, whole.impressions)
    np.testing.assert_array_equal(in_parts.clicks, whole.clicks)


def test_merging_the_counts_of_parts_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    log = small_log(rows=200)
    whole = ClickCounts.of(log)
    monkeypatch.setattr(module, "SESSIONS_AT_A_TIME", 7)
    monkeypatch.setattr(session_files, "ROWS_AT_A_TIME", 20)
    parts = ClickCounts.of(log)
    for name in ("cells", "impressions", "clicks"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))


def test_of_too_many_lists_a_sample_is_counted_with_all_their_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    log = small_log(rows=200)
    lists = len(aggregate(log))
    monkeypatch.setattr(module, "MAX_LISTS", lists)
    repeated = log.select(np.repeat(np.arange(200), 3))
    assert ClickCounts.of(repeated).lists.sessions == 600
    monkeypatch.setattr(module, "MAX_LISTS", lists // 2)
    some = ClickCounts.of(repeated).lists
    assert lists // 4 < len(some) < 3 * lists // 4
    whole = {(query, tuple(ranking)): count for query, ranking, count in rows_of(aggregate(repeated))}
    assert all(whole[query, tuple(ranking)] == count for query, ranking, count in rows_of(some)), "with all sessions"


def rows_of(lists: ClickLog) -> Iterator[tuple[int, list[int], int]]:
    return zip(lists.query.tolist(), lists.ranking.tolist(), lists.count.tolist(), strict=True)


def test_counts_by_level_of_context_add_up_to_those_of_all() -> None:
    log = small_log(rows=400)
    device = np.random.default_rng(0).choice(["desktop", "mobile"], len(log))
    counts, pooled = ClickCounts.of(replace(log, context={"device": device})), ClickCounts.of(log)
    assert counts.levels == ("desktop", "mobile")
    assert pooled.level is None

    def by_place(found: ClickCounts, level: int | None) -> dict[tuple[int, ...], tuple[float, float]]:
        sums: dict[tuple[int, ...], tuple[float, float]] = {}
        row, position, last = found.coordinates()
        for i in range(len(found.cells)):
            if level is None or found.level_of_list[row[i]] == level:
                ranking = found.lists.ranking[row[i]]
                key = (int(found.lists.query[row[i]]), *ranking.tolist(), int(position[i]), int(last[i]))
                n, c = sums.get(key, (0.0, 0.0))
                sums[key] = n + found.impressions[i], c + found.clicks[i]
        return sums

    assert by_place(counts, None) == by_place(pooled, None)
    for number, level in enumerate(counts.levels):
        assert by_place(counts, number) == by_place(ClickCounts.of(log.select(np.flatnonzero(device == level))), None)
    top = counts.top(2)
    assert top.levels == counts.levels
    np.testing.assert_array_equal(top.level_of_list, counts.level_of_list)


def test_rewards_are_counted_with_clicks() -> None:
    log = small_log(rows=400)
    counts = ClickCounts.of(replace(log, reward=(log.clicks * (1.0 + log.ranking)).astype(np.float32)))
    plain = ClickCounts.of(log)
    np.testing.assert_array_equal(counts.clicks, plain.clicks)
    assert plain.rewards is plain.clicks
    row, position, _ = counts.coordinates()
    np.testing.assert_allclose(counts.rewards, counts.clicks * (1 + counts.lists.ranking[row, position]))
