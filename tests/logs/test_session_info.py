"""What is odd about the sessions of a log."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cuolr.logs.clicklog import ClickLog
from cuolr.logs.log_folder import save_click_log
from cuolr.logs.session_info import SessionInfo, describe_sessions, sessions_of_folder
from cuolr.logs.time_window import TimeWindow
from tests.data.small_data import candidates_of, log_of

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
