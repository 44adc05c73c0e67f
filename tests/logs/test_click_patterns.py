from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuolr.errors import InputError
from cuolr.logs import click_patterns
from cuolr.logs.aggregate import aggregate
from cuolr.logs.click_patterns import FOLDS, ClickPatterns
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import ClickCounts
from cuolr.logs.last_clicks import LastClicks
from cuolr.logs.log_folder import save_click_log
from cuolr.logs.time_window import TimeWindow
from tests.small_log import small_candidates, small_log

Pattern = tuple[int, tuple[int, ...], tuple[bool, ...]]


def plainly(log: ClickLog) -> Counter[Pattern]:
    """Counts of query, documents (rows of the candidates) and clicks."""
    documents = np.where(log.where, log.documents, -1)
    return Counter(
        (int(query), tuple(map(int, shown)), tuple(map(bool, clicks)))
        for query, shown, clicks in zip(log.query, documents, log.clicks, strict=True)
    )


def counted(patterns: ClickPatterns) -> Counter[Pattern]:
    found: Counter[Pattern] = Counter()
    documents = np.where(patterns.where, patterns.pairs[patterns.documents], -1)
    for query, shown, clicks, count in zip(patterns.query, documents, patterns.clicks, patterns.count, strict=True):
        found[int(query), tuple(map(int, shown)), tuple(map(bool, clicks))] += int(count)
    return found


def test_the_counts_are_those_of_a_plain_loop() -> None:
    log = small_log(rows=500)
    patterns = ClickPatterns.of(log)
    assert counted(patterns) == plainly(log)
    assert patterns.sessions == 500


def test_chunks_and_a_folder_give_the_same_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = small_log(rows=300)
    whole = ClickPatterns.of(log)
    save_click_log(log, tmp_path / "log")
    monkeypatch.setattr(click_patterns, "ROWS_AT_A_TIME", 7)
    for other in (ClickPatterns.of(log), ClickPatterns.of(tmp_path / "log")):
        for name in ("query", "documents", "clicks", "count", "fold", "pairs"):
            assert np.array_equal(getattr(other, name), getattr(whole, name)), name


def test_lists_longer_than_a_word_of_clicks_are_counted() -> None:
    candidates = small_candidates(queries=1, least=70, most=70)
    clicks = np.zeros((3, 70), np.uint8)
    clicks[0, 69] = clicks[1, 0] = clicks[2, 64] = 1
    ranking = np.tile(np.arange(70, dtype=np.int16), (3, 1))
    log = ClickLog(candidates, np.zeros(3, np.int32), ranking, clicks, np.ones(3, np.int64))
    assert counted(ClickPatterns.of(log)) == plainly(log)


def test_a_document_stands_in_the_column_of_its_position_on_the_page() -> None:
    candidates = small_candidates(queries=1)
    page = np.array([[0, 3, -1], [1, 2, 5]], np.int32)
    ranking, clicks = np.array([[0, 1, -1], [2, 0, 1]], np.int16), np.array([[0, 1, 0], [1, 0, 0]], np.uint8)
    log = ClickLog(candidates, np.zeros(2, np.int32), ranking, clicks, np.ones(2, np.int64), page_position=page)
    patterns = ClickPatterns.of(log)
    rows = {
        tuple(map(int, documents)): clicks.nonzero()[0].tolist()
        for documents, clicks in zip(patterns.documents, patterns.clicks, strict=True)
    }
    assert rows == {(0, -1, -1, 1, -1, -1): [3], (-1, 2, 0, -1, -1, 1): [1]}


def test_folds_are_random_of_equal_size_and_decided_by_the_seed() -> None:
    log = small_log(rows=20_000)
    one, same, other = (ClickPatterns.of(log, seed) for seed in (1, 1, 2))
    sizes = np.bincount(one.fold, weights=one.count)
    assert len(sizes) == FOLDS
    assert np.abs(sizes - 2_000).max() < 5 * np.sqrt(20_000 * 0.1 * 0.9)
    assert np.array_equal(one.count, same.count)
    assert not np.array_equal(np.bincount(other.fold, weights=other.count), sizes)


def test_held_out_sessions_and_the_others_are_all_sessions() -> None:
    patterns = ClickPatterns.of(small_log(rows=1_000))
    train, held_out = patterns.held_out(2)
    assert train.sessions + held_out.sessions == 1_000
    assert set(held_out.fold.tolist()) == {0, 1}
    assert counted(train) + counted(held_out) == counted(patterns)


def test_cells_are_the_sums_that_the_counts_of_examination_have() -> None:
    log = small_log(rows=800)
    cells, counts = ClickPatterns.of(log).cells, ClickCounts.of(log)
    row, position, last = counts.coordinates()
    documents = counts.lists.documents[row, position]
    shape = (log.candidates.n_documents, 5, 6)
    size = int(np.prod(shape))
    places = np.ravel_multi_index((documents, position, last), shape)
    pairs = ClickPatterns.of(log).pairs
    found = np.ravel_multi_index((pairs[cells.pair], cells.position, cells.last_click), shape)
    for expected, weights in ((counts.impressions, cells.impressions), (counts.clicks, cells.clicks)):
        assert np.array_equal(np.bincount(found, weights, size), np.bincount(places, expected, size))


def test_pairs_are_every_document_or_those_that_are_shown() -> None:
    log = small_log(rows=60)
    log = log.select(np.flatnonzero(log.query != 2))
    patterns = ClickPatterns.of(log)
    every = patterns.with_every_document()
    assert len(every.pairs) == log.candidates.n_documents > len(patterns.pairs)
    shown = every.with_shown_documents()
    assert np.array_equal(shown.pairs, patterns.pairs)
    assert np.array_equal(shown.documents, patterns.documents)
    assert counted(shown) == counted(every) == plainly(log)


@pytest.mark.parametrize("queries", [6, 30])
def test_weights_multiply_the_sessions_of_a_query_or_of_its_folds(queries: int) -> None:
    patterns = ClickPatterns.of(small_log(rows=900, queries=queries))
    assert patterns.few_queries == (queries == 6)
    weights = np.random.default_rng(1).random(patterns.units)
    weighted = patterns.weighted(weights)
    of_row = weights[patterns.query * FOLDS + patterns.fold] if queries == 6 else weights[patterns.query]
    assert weighted.count == pytest.approx(patterns.count * of_row)
    cells = patterns.cells.weighted(weights)
    assert cells.impressions.sum() == pytest.approx((weighted.count @ patterns.where).sum())
    assert cells.clicks.sum() == pytest.approx((weighted.count @ patterns.clicks).sum())


def test_the_sessions_of_a_window_are_counted(tmp_path: Path) -> None:
    log = replace(small_log(rows=50), timestamp=np.arange(50))
    save_click_log(log, tmp_path / "log")
    assert counted(ClickPatterns.of(tmp_path / "log", window=TimeWindow("10", "30"))) == plainly(
        log.select(slice(10, 30))
    )


def test_rows_of_one_context_and_day_can_be_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    log = small_log(rows=200)
    rng = np.random.default_rng(1)
    device, hour = rng.choice(["mobile", "desktop"], 200), rng.integers(0, 72, 200)
    log = replace(log, context={"device": device}, timestamp=np.datetime64("2026-11-01T00") + hour)
    monkeypatch.setattr(click_patterns, "ROWS_AT_A_TIME", 30)
    patterns = ClickPatterns.of(log, by=("context", "day"))
    first = int(np.datetime64("2026-11-01").astype(np.int64))
    assert patterns.day is not None
    assert set(patterns.day.tolist()) == {first, first + 1, first + 2}
    for value, day in (("mobile", 0), ("desktop", 2)):
        chosen = patterns.select((patterns.context["device"] == value) & (patterns.day == first + day))
        assert counted(chosen) == plainly(log.select(np.flatnonzero((device == value) & (hour // 24 == day))))
    assert counted(patterns) == plainly(log)


def test_the_last_days_with_sessions_can_be_held_out() -> None:
    log = small_log(rows=100)
    day = np.repeat([0, 1, 5, 9], 25)
    timed = replace(log, timestamp=np.datetime64("2026-11-01") + day)
    train, held_out = ClickPatterns.of(timed, by=("day",)).held_out_days(2)
    assert counted(train) == plainly(log.select(np.flatnonzero(day < 5)))
    assert counted(held_out) == plainly(log.select(np.flatnonzero(day >= 5)))
    with pytest.raises(InputError, match="the log has no times"):
        ClickPatterns.of(log, by=("day",)).held_out_days(1)


def test_contexts_and_days_are_not_told_apart_unless_asked_for() -> None:
    log = replace(small_log(rows=50), context={"device": np.array(["a", "b"] * 25)}, timestamp=np.arange(50))
    patterns = ClickPatterns.of(log)
    assert (dict(patterns.context), patterns.day) == ({}, None)
    assert ClickPatterns.of(log, by=("day",)).day is None  # numbers that are no times


def test_cells_without_the_last_click_are_the_sums() -> None:
    cells = ClickPatterns.of(small_log(rows=500)).cells
    for position in (True, False):
        found = cells.summed(position)
        totals: Counter[tuple[int, ...]] = Counter()
        clicks: Counter[tuple[int, ...]] = Counter()
        for i in range(len(cells.pair)):
            key = (int(cells.unit[i]), int(cells.pair[i]), int(cells.position[i]) if position else 0)
            totals[key] += int(cells.impressions[i])
            clicks[key] += int(cells.clicks[i])
        keys = list(zip(found.unit.tolist(), found.pair.tolist(), found.position.tolist(), strict=True))
        assert dict(zip(keys, found.impressions.astype(int).tolist(), strict=True)) == dict(totals)
        assert dict(zip(keys, found.clicks.astype(int).tolist(), strict=True)) == dict(clicks)
        assert not found.last_click.any()


def test_an_aggregated_log_is_refused() -> None:
    with pytest.raises(InputError, match="fitting click models needs the clicks of each session"):
        ClickPatterns.of(aggregate(small_log()))


def test_a_log_that_shows_nothing_is_refused() -> None:
    log = small_log(rows=3)
    nothing = replace(log, ranking=np.full_like(log.ranking, -1), clicks=np.zeros_like(log.clicks))
    with pytest.raises(InputError, match="shows no documents"):
        ClickPatterns.of(nothing)


PAIRS, K = 5, 4
# Clicks and skips by pair, clicks above by pair and position, and tails.
Counted = tuple[Counter[int], Counter[int], Counter[tuple[int, int]], Counter[tuple[int, ...]]]


def random_patterns(seed: int, rows: int = 60) -> dict[str, Any]:
    """Lists of five documents with gaps, several click patterns on each, in two units."""
    rng = np.random.default_rng(seed)
    lists = np.array([rng.permutation(PAIRS)[:K] for _ in range(6)])
    lists[rng.random(lists.shape) < 0.3] = -1
    documents = lists[rng.integers(len(lists), size=rows)]
    clicks = (rng.random((rows, K)) < 0.3) & (documents >= 0)
    return {
        "documents": documents,
        "clicks": clicks,
        "count": rng.integers(1, 4, rows).astype(np.float64),
        "unit": rng.integers(2, size=rows),
    }


def nothing() -> Counted:
    return Counter(), Counter(), Counter(), Counter()


def last_clicks_plainly(patterns: dict[str, Any], weights: list[float]) -> Counted:
    """One position after the other."""
    clicks, skips, above, tails = nothing()
    for documents, clicked, count, unit in zip(*patterns.values(), strict=True):
        number = count * weights[unit]
        start = max((k + 1 for k in range(K) if clicked[k]), default=0)
        for k in range(start):
            if documents[k] >= 0:
                (clicks if clicked[k] else skips)[int(documents[k])] += number
                if clicked[k] and k < start - 1:
                    above[int(documents[k]), k] += number
        if number and any(documents[start:] >= 0):
            tails[(*documents.tolist(), int(unit), start)] += number
    return +clicks, +skips, +above, +tails


def counted_last_clicks(last: LastClicks) -> Counted:
    clicks, skips, above, tails = nothing()
    for pair, number, other in zip(last.pair.tolist(), last.clicks, last.skips, strict=True):
        clicks[pair] += number
        skips[pair] += other
    for pair, position, number in zip(
        last.above.pair.tolist(), last.above.position.tolist(), last.above.count, strict=True
    ):
        above[pair, position] += number
    found = last.tails
    for row, start, pair, number in zip(found.row, found.start, found.pair, found.count, strict=True):
        documents = np.where(found.documents[:, row] < PAIRS, found.documents[:, row], -1)
        tails[(*documents.tolist(), int(found.unit[row]), int(start))] += number
        assert pair == (documents[start - 1] if start else PAIRS)
    return +clicks, +skips, +above, +tails


@given(st.integers(0, 10_000), st.sampled_from([[1, 1], [0, 2], [3, 0.5], [0, 0]]))
def test_counts_are_those_of_one_position_after_the_other(seed: int, weights: list[float]) -> None:
    patterns = random_patterns(seed)
    last = LastClicks.of(**patterns, pairs=PAIRS).weighted(np.array(weights, np.float64))
    assert counted_last_clicks(last) == last_clicks_plainly(patterns, weights)


@given(st.integers(0, 10_000))
def test_a_position_is_informative_if_a_document_is_there_and_one_below(seed: int) -> None:
    tails = LastClicks.of(**random_patterns(seed), pairs=PAIRS).tails
    for documents, informative in zip(tails.documents.T, tails.informative.T, strict=True):
        shown = [k for k in range(K) if documents[k] < PAIRS]
        assert informative.tolist() == [k in shown[:-1] for k in range(K)]


@given(st.integers(0, 10_000))
def test_lists_are_in_order_of_their_first_tail(seed: int) -> None:
    tails = LastClicks.of(**random_patterns(seed), pairs=PAIRS).tails
    first = [tails.start[tails.row == row].min() for row in range(tails.documents.shape[1])]
    assert first == sorted(first)


def test_a_log_whose_last_clicks_are_at_the_bottom_has_no_tails() -> None:
    last = LastClicks.of(
        np.array([[0, 1, -1]]), np.array([[False, True, False]]), np.array([2.0]), np.array([0]), pairs=2
    )
    assert last.tails.documents.shape == (3, 0)
    assert (last.clicks.tolist(), last.skips.tolist()) == ([0, 2], [2, 0])
