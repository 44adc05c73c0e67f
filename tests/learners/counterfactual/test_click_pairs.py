import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from cuolr.learners.counterfactual import click_pairs
from cuolr.learners.counterfactual.click_pairs import ClickPairs
from tests.data.small_data import candidates_of, log_of
from tests.small_log import small_log

SECOND = 1 / math.log2(3)


def weights(pairs: ClickPairs, lists: list[tuple[int, ...]]) -> dict[tuple[tuple[int, ...], int, int], float]:
    """By the list, the clicked and the skipped position."""
    rows = zip(pairs.list.tolist(), pairs.clicked.tolist(), pairs.skipped.tolist(), pairs.weight.tolist(), strict=True)
    return {(lists[pairs.first[row]], i, j): weight for row, i, j, weight in rows}


def test_pairs_of_a_list_are_summed_over_its_sessions() -> None:
    rankings = [[0, 1, 2], [0, 1, 2], [2, 1, -1], [0, 1, 2], [2, 1, -1]]
    clicks = [[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 0], [1, 1, 0]]
    log = log_of(candidates_of(3), [0] * 5, rankings, clicks)
    both = 1 / (1 + SECOND)
    expected = {
        ((0, 1, 2), 0, 1): 1.0,
        ((0, 1, 2), 0, 2): 1.0 + both,
        ((0, 1, 2), 1, 2): both,
        ((2, 1, -1), 1, 0): 1.0,
    }
    assert weights(ClickPairs.of(log), [tuple(row) for row in rankings]) == pytest.approx(expected)


def test_lists_of_different_queries_are_different_lists() -> None:
    log = log_of(candidates_of(2, 2), [0, 1], [[0, 1], [0, 1]], [[1, 0], [1, 0]])
    assert sorted(ClickPairs.of(log).list.tolist()) == [0, 1]


def test_a_pair_has_the_reward_of_its_click() -> None:
    log = log_of(candidates_of(2), [0, 0], [[0, 1], [0, 1]], [[1, 0], [1, 0]])
    log = replace(log, reward=np.array([[2.5, 0], [0.5, 0]], np.float32))
    assert ClickPairs.of(log).weight.tolist() == [3.0]


def test_sessions_in_chunks_give_the_same_as_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click_pairs, "SESSIONS_AT_A_TIME", 7)
    log = small_log(rows=60, queries=2)
    expected: dict[tuple[tuple[int, ...], int, int], float] = defaultdict(float)
    keys = [(int(q), *map(int, row)) for q, row in zip(log.query, log.ranking, strict=True)]
    for key, row, clicks in zip(keys, log.ranking.tolist(), log.clicks.tolist(), strict=True):
        ideal = sum(1 / math.log2(place + 2) for place in range(sum(clicks)))
        for i in range(len(row)):
            for j in range(len(row)):
                if clicks[i] and not clicks[j] and row[j] >= 0:
                    expected[key, i, j] += 1 / ideal
    assert weights(ClickPairs.of(log), keys) == pytest.approx(dict(expected))


def test_without_clicks_there_is_no_pair() -> None:
    log = log_of(candidates_of(2), [0], [[0, 1]], [[0, 0]])
    assert len(ClickPairs.of(log).weight) == 0
