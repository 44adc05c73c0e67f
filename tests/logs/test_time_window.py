"""Time windows and splits, by hand."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cuolr.errors import InputError
from cuolr.logs.aggregate import aggregate, aggregate_folder
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.log_folder import load_click_log, read_click_log, save_click_log
from cuolr.logs.time_window import TimeWindow, as_times, sessions_between, split_by_time, time_text, unit_note, unit_of
from tests.small_log import small_log

# Ten sessions, one every twelve hours.
HOURS = np.arange(0, 120, 12)
TIMES = np.datetime64("2026-11-01T00:00", "us") + HOURS.astype("timedelta64[h]")
SECONDS = TIMES.astype("datetime64[s]").astype(np.int64)


def timed_log(timestamp: np.ndarray = TIMES) -> ClickLog:
    return replace(small_log(len(timestamp)), timestamp=timestamp)


def kept_hours(window: TimeWindow, timestamp: np.ndarray) -> list[int]:
    log = replace(timed_log(timestamp), context={"hour": HOURS})
    return [int(hour) for hour in window.select(log).context["hour"]]


EVERY_FORM = pytest.mark.parametrize(
    "timestamp",
    [TIMES, TIMES.astype("datetime64[ns]"), SECONDS, SECONDS * 1000, SECONDS * 10**6, SECONDS.astype(np.float64)],
    ids=["times", "nanosecond times", "seconds", "milliseconds", "microseconds", "float seconds"],
)


@EVERY_FORM
@pytest.mark.parametrize(
    ("since", "until", "hours"),
    [
        ("2026-11-02", None, [24, 36, 48, 60, 72, 84, 96, 108]),
        (None, "2026-11-02", [0, 12]),
        ("2026-11-02", "2026-11-03", [24, 36]),
        ("2026-11-02T12:00", "2026-11-03T00:00:01Z", [36, 48]),
        ("2026-11-02T13:00+01:00", "2026-11-03", [36]),
        ("1d", None, [84, 96, 108]),  # the bound is included
        ("36h", "12h", [72, 84]),
        ("1w", "2026-11-01T00:00:00.5", [0]),
    ],
)
def test_the_first_time_is_included_and_the_second_is_not(
    timestamp: np.ndarray, since: str | None, until: str | None, hours: list[int]
) -> None:
    assert kept_hours(TimeWindow(since, until), timestamp) == hours


def test_numbers_are_compared_as_they_are() -> None:
    log = timed_log(np.arange(10))
    assert TimeWindow("3", "5.5").select(log).timestamp.tolist() == [3, 4, 5]  # type: ignore[union-attr]
    assert kept_hours(TimeWindow(str(SECONDS[8])), SECONDS) == [96, 108]


@pytest.mark.parametrize(
    ("latest", "unit"), [(99, None), (1.7e9, "s"), (1.7e12, "ms"), (1.7e15, "us"), (1.7e18, "ns"), (-5, None)]
)
def test_the_unit_of_numbers_is_guessed_by_their_size(latest: float, unit: str | None) -> None:
    assert unit_of(latest) == unit


def test_the_guess_is_said() -> None:
    assert unit_note(SECONDS[0] * 1000) == (
        "timestamps are read as milliseconds since 1970 (latest: 2026-11-01T00:00:00Z)"
    )
    assert unit_note(TIMES[0]) is None
    assert unit_note(np.int64(5)) is None


@EVERY_FORM
def test_timestamps_become_times(timestamp: np.ndarray) -> None:
    assert np.array_equal(as_times(timestamp), TIMES)  # type: ignore[arg-type]
    assert time_text(timestamp[1]) == "2026-11-01T12:00:00Z"


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "20261101", "28", "5x", "2026-11-01T25:00", ""])
def test_what_is_no_time_is_refused(text: str) -> None:
    if text in ("20261101", "28"):  # a number, for timestamps that are numbers
        with pytest.raises(InputError, match="are no numbers"):
            TimeWindow(text).select(timed_log())
        return
    with pytest.raises(InputError, match=r"^since: expected a date such as .*, found "):
        TimeWindow(text)
    with pytest.raises(InputError, match=r"^until: "):
        TimeWindow(None, text)


def test_a_window_needs_timestamps_sessions_and_order() -> None:
    with pytest.raises(InputError, match="the log has no timestamps; import it from a table with a column timestamp"):
        TimeWindow("1d").select(small_log(5))
    with pytest.raises(InputError, match="an aggregated log has no timestamps"):
        TimeWindow("1d").select(aggregate(timed_log()))
    with pytest.raises(
        InputError, match="no session in this window; the log is from 2026-11-01T00:00:00Z to 2026-11-05"
    ):
        TimeWindow("2027-01-01").select(timed_log())
    with pytest.raises(InputError, match="expected since before until"):
        TimeWindow("2026-11-03", "2026-11-02").select(timed_log())
    with pytest.raises(InputError, match="expected a number, found '1d'"):
        TimeWindow("1d").select(timed_log(np.arange(10)))


def test_a_saved_log_is_read_by_time(tmp_path: Path) -> None:
    log, window = timed_log(), TimeWindow("2026-11-02", "2026-11-04")
    log = replace(log, session_id=np.array([f"s{i}" * (i + 1) for i in range(10)]))
    save_click_log(log, tmp_path / "log")
    read, expected = load_click_log(tmp_path / "log", window), window.select(log)
    for name, values in expected.columns.items():
        assert np.array_equal(read.columns[name], values), name
    chunks = [chunk.timestamp.tolist() for chunk in read_click_log(tmp_path / "log", 3, window)]  # type: ignore[union-attr]
    assert [len(chunk) for chunk in chunks] == [1, 3]
    assert load_click_log(tmp_path / "log", window, ids=False).session_id is None
    assert aggregate_folder(tmp_path / "log", window).sessions == 4
    with pytest.raises(InputError, match="log: since 2027-01-01: no session"):
        load_click_log(tmp_path / "log", TimeWindow("2027-01-01"))
    save_click_log(small_log(), tmp_path / "untimed")
    with pytest.raises(InputError, match="untimed: the log has no timestamps"):
        load_click_log(tmp_path / "untimed", window)


@EVERY_FORM
def test_sessions_up_to_a_time_are_counted(timestamp: np.ndarray) -> None:
    log = timed_log(timestamp)
    first = time_text(timestamp[0])
    assert [sessions_between(log, first, time_text(timestamp[row])) for row in (0, 3, 9)] == [1, 4, 10]
    assert sessions_between(log, time_text(timestamp[2]), time_text(timestamp[3])) == 2
    assert sessions_between(log, "2026-10-01T00:00:00Z", "2026-10-31T23:59:59Z") == 0
    assert sessions_between(log, "6", "7") == sessions_between(small_log(5), first, first) == 0


@pytest.mark.parametrize(("share", "later"), [(0.3, 3), (0.01, 1), (0.99, 9), (0.5, 5)])
def test_a_log_is_split_by_time(share: float, later: int) -> None:
    shuffled = timed_log(np.random.default_rng(0).permutation(TIMES))
    before, after = split_by_time(shuffled, share)
    assert (len(before), len(after)) == (10 - later, later)
    assert before.timestamp.max() < after.timestamp.min()  # type: ignore[union-attr]


def test_sessions_of_the_same_time_stay_together() -> None:
    before, after = split_by_time(timed_log(np.array([1, 1, 1, 2, 2, 2, 2, 2, 2, 3])), 0.5)
    assert (len(before), len(after)) == (3, 7)
    with pytest.raises(InputError, match="at least 2 times"):
        split_by_time(timed_log(np.ones(10)), 0.5)
    with pytest.raises(InputError, match="share"):
        split_by_time(timed_log(), 1.0)
