"""Statistics of a log, what is odd about its sessions, and drift: found where it is, and noise is not called drift."""

import json
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from cuolr.logs import log_info
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.drift import DriftCounts, middle, novelty, z_test
from cuolr.logs.log_folder import read_click_log, save_click_log
from cuolr.logs.log_info import describe_folder, describe_log
from cuolr.logs.session_info import SessionInfo, describe_sessions, sessions_of_folder
from cuolr.logs.time_window import TimeWindow
from tests.data.small_data import candidates_of, log_of, random_log


def worked_log() -> ClickLog:
    """Two lists of one query and one of another; a third query is never shown."""
    return log_of(
        candidates_of(3, 1, 4),
        query=[0, 0, 0, 1, 1],
        ranking=[[0, 1], [0, 1], [2, 0], [0, -1], [0, -1]],
        clicks=[[1, 1], [0, 1], [0, 0], [1, 0], [0, 0]],
    )


def test_the_numbers_of_a_log_worked_by_hand() -> None:
    info = describe_log([worked_log()])
    assert info.sessions == 5
    assert info.queries == 2
    assert info.share_of_queries_seen == 2 / 3
    assert info.distinct_lists == 3
    assert info.clicks_per_session == 4 / 5
    # Three of five sessions showed a second document.
    assert info.click_rate == (2 / 5, 2 / 3)
    assert info.share_without_clicks == 2 / 5
    assert info.documents_seen == 4
    # Document 0 of query 0, out of three seen there and one of query 1.
    assert info.share_at_several_positions == 1 / 4


def test_an_aggregated_log_has_the_same_numbers_but_for_sessions_without_clicks() -> None:
    log = worked_log()
    assert describe_log([aggregate(log)]) == replace(describe_log([log]), share_without_clicks=None)


def test_the_numbers_can_be_had_part_by_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = random_log(candidates_of(5, 2, 9), sessions=50, k=4)
    save_click_log(log, tmp_path / "log")
    monkeypatch.setattr(log_info, "read_click_log", partial(read_click_log, rows_at_a_time=7))
    assert describe_folder(tmp_path / "log") == describe_log([log])


def test_positions_where_nothing_was_shown_have_no_click_rate() -> None:
    log = log_of(candidates_of(1), [0], [[0, -1]], [[1, 0]])
    assert describe_log([log]).click_rate == (1.0, None)


def test_json_can_hold_the_numbers() -> None:
    assert json.loads(json.dumps(asdict(describe_log([worked_log()]))))["sessions"] == 5


def test_the_lists_are_counted_without_regard_to_propensities() -> None:
    log = worked_log()
    propensity = np.linspace(0.1, 1, log.clicks.size, dtype=np.float32).reshape(log.clicks.shape)
    log = replace(log, logging_propensity=propensity)
    assert describe_log([log]).distinct_lists == describe_log([aggregate(log)]).distinct_lists == 3


def test_positions_are_those_on_the_page() -> None:
    """One document below an advertisement, or on page 5: a slot each."""
    pages = np.array([[0, 2], [0, 2], [1, 40], [0, -1], [3, -1]], np.int32)
    log = replace(worked_log(), page_position=pages)
    info = describe_log([log.select(slice(0, 2)), log.select(slice(2, 5))])
    assert info.click_rate == (2 / 3, 0, 1, 0, *[None] * 26, 0)
    # A document was at positions 1 and 31 (of 41: only the order is kept so far down), another at 1 and 4.
    assert info.share_at_several_positions == 2 / 4


START = np.datetime64("2026-11-01T08:00", "us")
SECOND = np.timedelta64(1, "s")


def ordinary(sessions: int = 1000, seed: int = 0, every: int = 60) -> ClickLog:
    """A session every so many seconds, of random lists."""
    rng = np.random.default_rng(seed)
    query = rng.integers(0, 5, sessions)
    ranking = np.argsort(rng.random((sessions, 8)), axis=1)[:, :6]
    clicks = rng.random((sessions, 6)) < 0.15
    log = log_of(candidates_of(*[8] * 5), query.tolist(), ranking.tolist(), clicks.astype(int).tolist())
    return replace(
        log,
        timestamp=START + np.arange(sessions) * every * SECOND,
        session_id=np.array([f"s{number}" for number in range(sessions)]),
        user_id=np.array([f"u{number % 50}" for number in range(sessions)]),
    )


def info_of(log: ClickLog) -> SessionInfo:
    return describe_sessions([log], log.timestamp)


def test_ordinary_sessions_give_no_warning() -> None:
    info = info_of(ordinary())
    assert info.warnings == []
    assert (info.sessions, info.only_clicked, info.repeated_ids, info.duplicates) == (1000, False, 0, 0)
    assert (info.bursts, info.busy_users, info.all_clicked, info.with_gaps) == (0, 0, 0, 0)
    assert info.share_without_clicks == pytest.approx(0.85**6, abs=0.05)
    assert (info.first, info.last) == ("2026-11-01T08:00:00Z", "2026-11-02T00:39:00Z")


def test_a_log_of_clicked_sessions_only_is_found_out() -> None:
    log = ordinary()
    clicked = log.select(np.flatnonzero(log.clicks.any(axis=1)))
    info = info_of(clicked)
    assert info.only_clicked
    assert info.warnings[0].startswith(
        f"only clicked sessions were logged: none of {len(clicked)} is without a click. Click rates are too high by an "
    )
    assert not info_of(clicked.select(np.arange(99))).only_clicked  # too few to say
    nobody = np.flatnonzero(~log.clicks.any(axis=1))[:1]
    assert not info_of(log.select(np.append(np.flatnonzero(log.clicks.any(axis=1)), nobody))).only_clicked


def test_gaps_and_late_starts_are_counted() -> None:
    log = ordinary(4)
    pages = np.tile(np.arange(6, dtype=np.int32), (4, 1))
    pages[1] += 10
    pages[2, 3:] += 7
    pages[3] = [0, 2, 3, 4, 6, 7]
    info = info_of(replace(log, page_position=pages))
    assert (info.starting_late, info.with_gaps, info.largest_gap) == (1 / 4, 2 / 4, 7)
    # Nothing after the last document is a gap.
    short = replace(log, ranking=np.where(np.arange(6) < 2, log.ranking, -1).astype(np.int16), clicks=log.clicks * 0)
    pages = np.where(np.arange(6) < 2, np.arange(6), -1).astype(np.int32) * np.ones((4, 1), np.int32)
    assert info_of(replace(short, page_position=pages)).with_gaps == 0


def test_duplicates_and_repeated_ids_are_counted() -> None:
    log = ordinary(200)
    twice = log.select(np.append(np.arange(200), [3, 3, 5]))
    info = info_of(twice)
    assert (info.repeated_ids, info.duplicates) == (3, 3)
    assert [warning[:20] for warning in info.warnings] == ["3 sessions (1.5%) ha", "3 sessions (1.5%) re"]
    assert twice.timestamp is not None
    later = np.append(twice.timestamp[:200], twice.timestamp[200:] + np.array([1, 2, 3]) * SECOND)
    assert info_of(replace(twice, timestamp=later)).duplicates == 0
    unknown = replace(log, session_id=np.full(200, ""))
    assert info_of(unknown).repeated_ids == 0
    assert info_of(replace(log, session_id=None)).repeated_ids is None


def test_dates_without_a_time_cannot_tell_duplicates() -> None:
    log = ordinary(300)
    info = info_of(replace(log, timestamp=np.repeat(START.astype("datetime64[D]"), 300)))
    assert (info.duplicates, info.bursts, info.busy_users, info.drift) == (None, None, None, None)
    info = describe_sessions([replace(log, timestamp=None)])
    assert (info.duplicates, info.first, info.periods) == (None, None, ())


def test_a_burst_of_the_same_list_and_clicks_is_found() -> None:
    log = ordinary(600)
    assert log.timestamp is not None
    robot = log.select(np.zeros(40, np.int64))
    burst = START + np.timedelta64(3, "h") + np.arange(40) * SECOND
    both = log.select(np.append(np.arange(600), np.zeros(40, np.int64)))
    info = info_of(replace(both, timestamp=np.append(log.timestamp, burst)))
    assert info.bursts == 40
    assert any("are in bursts" in warning for warning in info.warnings)
    # A popular list at a steady rate is none: 30 times a minute, all day.
    steady = robot.select(np.arange(3000) % 40)
    info = info_of(replace(steady, timestamp=START + np.arange(3000) * 2 * SECOND))
    assert info.bursts == 0


def test_a_user_with_hundreds_of_sessions_a_day_is_found() -> None:
    log = ordinary(1000, every=10)
    assert log.user_id is not None
    users = np.where(np.arange(1000) < 250, "robot", log.user_id)
    info = info_of(replace(log, user_id=users))
    assert (info.busy_users, info.busy_user_sessions) == (1, 250)
    assert info_of(replace(log, user_id=np.full(1000, ""))).busy_users == 0
    assert info_of(replace(log, user_id=None)).busy_users is None


def test_lists_of_which_everything_is_clicked_are_counted() -> None:
    log = ordinary(100)
    clicks = np.array(log.clicks)
    clicks[:3] = 1
    info = info_of(replace(log, clicks=clicks))
    assert info.all_clicked == 3
    assert info.warnings == ["3 sessions (3.0%) have a click on every document of a list of 5 or more, as of a robot."]


def test_sessions_are_counted_by_day_and_in_a_long_log_by_week() -> None:
    log = ordinary(4)
    days = np.array([0, 0, 2, 2]) * np.timedelta64(1, "D")
    clicks = np.zeros((4, 6), np.uint8)
    clicks[0, :2] = 1
    info = info_of(replace(log, clicks=clicks, timestamp=START + days))
    assert [(p.start, p.days, p.sessions, p.clicks_per_session, p.share_without_clicks) for p in info.periods] == [
        ("2026-11-01", 1, 2, 1.0, 0.5),
        ("2026-11-02", 1, 0, None, None),
        ("2026-11-03", 1, 2, 0.0, 1.0),
    ]
    info = info_of(replace(log, timestamp=START + 15 * days))
    assert [(p.start, p.days, p.sessions) for p in info.periods] == [
        ("2026-11-01", 7, 2),
        ("2026-11-08", 7, 0),
        ("2026-11-15", 7, 0),
        ("2026-11-22", 7, 0),
        ("2026-11-29", 7, 2),
    ]


def test_a_saved_log_is_described_in_chunks_and_by_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = ordinary(1000)
    save_click_log(log, tmp_path / "log")
    assert sessions_of_folder(tmp_path / "log") == info_of(log)
    window = TimeWindow("6h")
    assert sessions_of_folder(tmp_path / "log", window) == info_of(window.select(log))
    chunks = [log.select(slice(start, start + 70)) for start in range(0, 1000, 70)]
    assert describe_sessions(chunks, log.timestamp) == info_of(log)


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
