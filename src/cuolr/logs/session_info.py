"""What is odd about the sessions of a log: no session without a click, gaps, duplicates, robots, drift."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy.special

from cuolr.logs.clicklog import ClickLog
from cuolr.logs.drift import Drift, DriftCounts, Period, Periods, middle
from cuolr.logs.log_folder import read_click_log, read_timestamps
from cuolr.logs.time_window import ALL_TIME, Timestamps, TimeWindow, as_times, time_text, unit_note, within
from cuolr.progress import Stages, no_stages

# Without a single one of so many sessions, fewer than 3 % are without a click, with 95 % confidence (rule of three).
MIN_SESSIONS = 100
# A list of so many documents that are all clicked is not the work of a person.
MIN_ALL_CLICKED = 5
# Sessions of one user on one day.
MAX_SESSIONS_PER_DAY = 200
# The same list with the same clicks, so often within a minute; and improbable at five times its mean rate in the log.
MIN_BURST, MINUTE, PEAK, IMPROBABLE = 10, 60_000_000, 5.0, 1e-6
DAY = 86_400_000_000
# The share of sessions that are odd in one way from which on there is a warning.
MAX_ODD = 0.01


@dataclass(frozen=True)
class SessionInfo:
    """What is odd about the sessions of a log.

    Attributes:
        sessions: Number of sessions.
        share_without_clicks: Share of sessions without a click.
        only_clicked: Whether, of at least 100 sessions, none is without a click.
        starting_late: Share of sessions whose first document is not at position 1.
        with_gaps: Share of sessions with a gap between positions.
        largest_gap: The largest number of positions without a document between two documents.
        all_clicked: Sessions of at least 5 documents, all of them clicked.
        repeated_ids: Sessions with the id of an earlier one; None if the log has no session ids.
        duplicates: Sessions with the query, list, clicks and timestamp of an earlier one; None if timestamps are
            missing or are dates without a time.
        bursts: Sessions that are one of at least 10 with the same query, list and clicks within a minute, with a
            probability below 10⁻⁶ at five times the mean rate of that list and clicks (Poisson); None without times.
        busy_users: Users with more than 200 sessions on a day; None without user ids and times.
        busy_user_sessions: Sessions of these users.
        first: The earliest timestamp; None without timestamps.
        last: The latest.
        unit: What was guessed of timestamps that are numbers.
        periods: The sessions of each day, or of each week of a longer log.
        drift: The comparison of the earlier with the later half; None without timestamps, or with fewer than 100
            sessions in a half.
    """

    sessions: int
    share_without_clicks: float
    only_clicked: bool
    starting_late: float
    with_gaps: float
    largest_gap: int
    all_clicked: int
    repeated_ids: int | None = None
    duplicates: int | None = None
    bursts: int | None = None
    busy_users: int | None = None
    busy_user_sessions: int | None = None
    first: str | None = None
    last: str | None = None
    unit: str | None = None
    periods: tuple[Period, ...] = ()
    drift: Drift | None = None

    @property
    def warnings(self) -> list[str]:
        """A sentence for each thing that biases what is learned from the log."""
        return list(_warnings(self))


def sessions_of_folder(folder: Path, window: TimeWindow = ALL_TIME, stages: Stages = no_stages) -> SessionInfo:
    """What is odd about the sessions of a saved log, read in chunks."""
    timestamp = read_timestamps(folder)
    if timestamp is not None and window:
        timestamp = timestamp[within(timestamp, window.bounds(timestamp.max()))]
    return describe_sessions(read_click_log(folder, window=window, stages=stages), timestamp)


def describe_sessions(chunks: Iterable[ClickLog], timestamp: Timestamps | None = None) -> SessionInfo:
    """What is odd about the sessions of a log.

    Args:
        chunks: The log, raw, in chunks.
        timestamp: [M] the timestamps of all chunks; None if the log has none.
    """
    times = None if timestamp is None else as_times(timestamp)
    split = None if timestamp is None else middle(timestamp)
    drift = None if split is None else DriftCounts(split)
    periods = None if times is None else Periods.spanning(times)
    counts = _Counts()
    for chunk in chunks:
        start = counts.sessions
        counts.add(chunk)
        if drift is not None:
            drift.add(chunk)
        if periods is not None and times is not None:
            periods.add(times[start : start + len(chunk)], chunk)
    return SessionInfo(
        sessions=counts.sessions,
        share_without_clicks=counts.without_clicks / counts.sessions,
        only_clicked=counts.sessions >= MIN_SESSIONS and not counts.without_clicks,
        starting_late=counts.starting_late / counts.sessions,
        with_gaps=counts.with_gaps / counts.sessions,
        largest_gap=counts.largest_gap,
        all_clicked=counts.all_clicked,
        repeated_ids=counts.repeated_ids(),
        **_by_time(counts, times),
        first=None if timestamp is None else time_text(timestamp.min()),
        last=None if timestamp is None else time_text(timestamp.max()),
        unit=None if timestamp is None else unit_note(timestamp.max()),
        periods=() if periods is None else periods.result(),
        drift=None if drift is None else drift.result(),
    )


@dataclass
class _Counts:
    """What is counted chunk by chunk; of each session only hashes are kept."""

    sessions: int = 0
    without_clicks: int = 0
    starting_late: int = 0
    with_gaps: int = 0
    largest_gap: int = 0
    all_clicked: int = 0
    contents: list[pl.Series] = field(default_factory=list)
    session_ids: list[pl.Series] = field(default_factory=list)
    users: list[pl.Series] = field(default_factory=list)

    def add(self, log: ClickLog) -> None:
        where, clicked = log.where, log.clicks > 0
        self.sessions += len(log)
        self.without_clicks += int((~clicked.any(axis=1)).sum())
        self.all_clicked += int(((where.sum(axis=1) >= MIN_ALL_CLICKED) & (clicked == where).all(axis=1)).sum())
        if log.page_position is not None:
            self.starting_late += int((log.page_position[:, 0] > 0).sum())
            gaps = (np.diff(log.page_position, axis=1) - 1) * where[:, 1:]
            self.with_gaps += int((gaps > 0).any(axis=1).sum())
            self.largest_gap = max(self.largest_gap, int(gaps.max(initial=0)))
        by_position = {f"{name}.{k}": getattr(log, name)[:, k] for name in ("ranking", "clicks") for k in range(log.k)}
        self.contents.append(pl.DataFrame({"query": log.query, **by_position}).hash_rows())
        for hashes, ids in ((self.session_ids, log.session_id), (self.users, log.user_id)):
            if ids is not None:
                # An unknown id is like no other.
                texts = pl.Series(ids)
                hashes.append(pl.select(pl.when(texts != "").then(texts.hash())).to_series())

    def repeated_ids(self) -> int | None:
        if not self.session_ids:
            return None
        known = pl.concat(self.session_ids).drop_nulls()
        return len(known) - known.n_unique()


def _by_time(counts: _Counts, times: npt.NDArray[np.datetime64] | None) -> dict[str, Any]:
    """What needs times: duplicates, bursts and busy users."""
    if times is None:
        return {}
    microseconds = times.astype(np.int64)
    if not (microseconds % DAY).any():
        return {}  # dates without a time
    frame = pl.DataFrame({"content": pl.concat(counts.contents), "time": microseconds})
    found: dict[str, Any] = {"duplicates": len(frame) - frame.n_unique(), "bursts": _bursts(frame)}
    if counts.users:
        users = frame.with_columns(user=pl.concat(counts.users), day=pl.col("time") // DAY).drop_nulls("user")
        busy = users.group_by("user", "day").len().filter(pl.col("len") > MAX_SESSIONS_PER_DAY)["user"].unique()
        found["busy_users"] = len(busy)
        found["busy_user_sessions"] = int(users["user"].is_in(busy.implode()).sum())
    return found


def _bursts(frame: pl.DataFrame) -> int:
    """The number of sessions in bursts."""
    low, high = frame["time"].min(), frame["time"].max()
    minutes = 1 + int(high - low) // MINUTE  # type: ignore[operator, arg-type]
    of_list = frame.group_by("content").len("total").filter(pl.col("total") >= MIN_BURST)
    # Minutes that are often repeats of one list.
    often = (
        frame.join(of_list, on="content")
        .group_by("content", pl.col("time") // MINUTE, "total")
        .len("times")
        .filter(pl.col("times") >= MIN_BURST)
    )
    expected = PEAK * often["total"].to_numpy() / minutes
    # P(Poisson(λ) ≥ n) = the regularised lower incomplete gamma function P(n, λ).
    improbable = scipy.special.gammainc(often["times"].to_numpy(), expected) < IMPROBABLE
    return int(often["times"].to_numpy()[improbable].sum())


def _warnings(info: SessionInfo) -> Iterator[str]:
    odd = {
        "repeated_ids": "have the id of an earlier session; import each table once",
        "duplicates": "repeat another session: the same query, list, clicks and time; remove them before the import",
        "bursts": "are in bursts: the same list with the same clicks 10 times or more within a minute, as of a robot",
        "all_clicked": f"have a click on every document of a list of {MIN_ALL_CLICKED} or more, as of a robot",
        "busy_user_sessions": f"are of users with more than {MAX_SESSIONS_PER_DAY} sessions on a day, as of a robot",
    }
    if info.only_clicked:
        yield (
            f"only clicked sessions were logged: none of {info.sessions:,} is without a click. Click rates are too "
            "high by an unknown factor, and lists that nobody liked are missing. Log every list that is shown."
        )
    for name, what in odd.items():
        number: int | None = getattr(info, name)
        if number is not None and number > MAX_ODD * info.sessions:
            yield f"{number:,} sessions ({number / info.sessions:.1%}) {what}."
    if info.drift is not None:
        yield from _drift_warnings(info.drift)


def _drift_warnings(drift: Drift) -> Iterator[str]:
    if drift.changed_positions:
        positions = ", ".join(map(str, drift.changed_positions))
        yield (
            f"click rates at position {positions} differ between the sessions before {drift.split}, the middle of the "
            "log, and those after it: the page, the ranker or the logging changed."
        )
    for new, what, of in (
        (drift.new_queries, "queries", "sessions"),
        (drift.new_documents, "documents", "impressions"),
    ):
        if new.drift:
            yield (
                f"{new.share:.1%} of the {of} since {drift.split} have {what} that were not there before; "
                f"{new.expected:.1%} would be by chance: train on recent sessions, and again soon."
            )
