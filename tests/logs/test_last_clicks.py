from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cuolr.logs.last_clicks import LastClicks

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


def plainly(patterns: dict[str, Any], weights: list[float]) -> Counted:
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


def counted(last: LastClicks) -> Counted:
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
    assert counted(last) == plainly(patterns, weights)


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
