"""Drift is found where it is, and noise is not called drift."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from cuolr.logs.clicklog import ClickLog
from cuolr.logs.drift import DriftCounts, middle, novelty, z_test
from tests.data.small_data import candidates_of, log_of


def log_with(
    rates: tuple[float, float], seed: int, sessions: int = 4000, queries: tuple[int, int] = (20, 20), first: int = 0
) -> ClickLog:
    """Two halves with their own click rates, and with so many queries each, those of the second from `first` on."""
    rng = np.random.default_rng(seed)
    later = np.arange(sessions) >= sessions // 2
    query = np.where(later, first + rng.integers(0, queries[1], sessions), rng.integers(0, queries[0], sessions))
    clicks = rng.random((sessions, 2)) < np.where(later, rates[1], rates[0])[:, None]
    candidates = candidates_of(*([2] * (int(query.max()) + 1)))
    log = log_of(candidates, query.tolist(), [[0, 1]] * sessions, clicks.astype(int).tolist())
    return replace(log, timestamp=np.arange(sessions))


def drift_of(log: ClickLog, chunk: int = 1000):  # type: ignore[no-untyped-def]
    assert log.timestamp is not None
    counts = DriftCounts(middle(log.timestamp))
    for start in range(0, len(log), chunk):
        counts.add(log.select(slice(start, start + chunk)))
    return counts.result()


def test_the_z_test_is_the_chi_square_test() -> None:
    clicks, shown, clicks_later, shown_later = (np.array([value]) for value in (30.0, 200.0, 60.0, 250.0))
    table = [[30, 170], [60, 190]]
    expected = scipy.stats.chi2_contingency(table, correction=False).pvalue
    assert z_test(clicks, shown, clicks_later, shown_later)[0] == pytest.approx(expected)
    nothing, some = np.array([0.0]), np.array([5.0])
    assert z_test(nothing, nothing, some, some)[0] == 1
    assert z_test(some, some, some, some)[0] == 1


def test_a_changed_click_rate_is_drift() -> None:
    drift = drift_of(log_with((0.2, 0.3), seed=1))
    assert (drift.earlier, drift.later, drift.split) == (2000, 2000, "2000")
    assert drift.changed_positions == (1, 2)
    assert drift.found
    for earlier, later in drift.click_rate:
        assert earlier == pytest.approx(0.2, abs=0.03)
        assert later == pytest.approx(0.3, abs=0.03)


def test_noise_is_no_drift() -> None:
    assert not any(drift_of(log_with((0.2, 0.2), seed)).found for seed in range(60))


def test_a_significant_but_small_change_is_no_drift() -> None:
    rng = np.random.default_rng(0)
    n = 1_000_000
    clicks = rng.random((n, 1)) < np.where(np.arange(n) < n // 2, 0.300, 0.307)[:, None]
    log = log_of(candidates_of(1), [0], [[0]], [[0]]).select(np.zeros(n, np.int64))
    drift = drift_of(replace(log, clicks=clicks.astype(np.uint8), timestamp=np.arange(n)), chunk=n)
    (earlier, later) = drift.click_rate[0]
    assert later / earlier == pytest.approx(1.023, abs=0.01)
    assert drift.changed_positions == ()


def test_new_queries_are_drift_unless_the_log_always_has_new_ones() -> None:
    moved = drift_of(log_with((0.2, 0.2), seed=1, first=10))
    assert moved.new_queries.share == pytest.approx(0.5, abs=0.05)
    assert moved.new_queries.expected < 0.01
    assert moved.new_queries.drift
    assert moved.new_documents.drift
    # A long tail: most queries occur once or twice, and half of the later ones are new all the same.
    tail = drift_of(log_with((0.2, 0.2), seed=1, queries=(4000, 4000)))
    assert tail.new_queries.share == pytest.approx(tail.new_queries.expected, abs=0.03)
    assert tail.new_queries.share > 0.5
    assert not tail.found


def test_what_is_expected_to_be_new_worked_by_hand() -> None:
    # Later sessions 1, 0, 2, 3 of 6 in all: p = 6/10. By chance: 1·p + 2·p² + 2·p² + 5·p⁵ later sessions.
    found = novelty(np.array([0, 2, 0, 2]), np.array([1, 0, 2, 3]))
    assert found.share == 3 / 6
    assert found.expected == pytest.approx((0.6 + 2 * 0.36 + 2 * 0.36 + 5 * 0.6**5) / 6)


def test_the_later_half_begins_in_the_middle() -> None:
    assert middle(np.array([1, 2, 3, 4])) == 3
    assert middle(np.array([4, 1, 1, 1])) == 4
    assert middle(np.array([1, 1])) is None
    assert drift_of(log_with((0.2, 0.9), seed=1, sessions=150)) is None
