"""Parts of a log by time: a window between two times, and a split into earlier and later sessions."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cuolr.config import Range, check_arguments
from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.types import Bools

# Timestamps [M]: dates and times in UTC, or numbers.
Timestamps: TypeAlias = npt.NDArray[Any]
# A time of a log, as its timestamps are.
Time: TypeAlias = Any

# Numbers are times since 1970 in the first unit in which the latest one is below the limit, the year 5138. Numbers that
# would be before 1973 in seconds are no times.
UNITS = {"s": 1e11, "ms": 1e14, "us": 1e17, "ns": 1e20}
FIRST_SECOND = 1e8
UNIT_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}

SECONDS = {"h": 3_600, "d": 86_400, "w": 7 * 86_400}
BEFORE_LATEST = re.compile(r"(\d+(?:\.\d+)?)([hdw])")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
EXPECTED = "a date such as 2026-11-01, a date and time such as 2026-11-01T12:30Z, or a time before the latest session "
EXPECTED += "such as 28d (h, d, w)"


@dataclass(frozen=True)
class TimeWindow:
    """The sessions between two times. The first is included, the second is not.

    A time is a date (midnight, UTC), a date and time (UTC, unless it says its zone), or a time before the latest
    session of the log: 12h, 28d or 4w. A number is compared with timestamps that are numbers.

    >>> TimeWindow("2026-11-01", "2026-11-08")
    TimeWindow(since='2026-11-01', until='2026-11-08')

    Attributes:
        since: The first time; None = from the first session on.
        until: The first time that is too late; None = up to the latest session.
    """

    since: str | None = None
    until: str | None = None

    def __post_init__(self) -> None:
        for name, text in (("since", self.since), ("until", self.until)):
            if text is None or BEFORE_LATEST.fullmatch(text) or NUMBER.fullmatch(text):
                continue
            if _date(text) is None:
                raise InputError(f"{name}: expected {EXPECTED}, found '{text}'")

    def __bool__(self) -> bool:
        """Whether it leaves out anything."""
        return self.since is not None or self.until is not None

    def bounds(self, latest: Time) -> tuple[Time, Time]:
        """The window in the unit of a log's timestamps; None = no bound.

        Args:
            latest: The latest timestamp of the log, a NumPy scalar.
        """
        low = None if self.since is None else _in_units_of(latest, "since", self.since)
        high = None if self.until is None else _in_units_of(latest, "until", self.until)
        if low is not None and high is not None and low >= high:
            raise InputError(f"since, until: expected since before until, found '{self.since}' and '{self.until}'")
        return low, high

    def select(self, log: ClickLog) -> ClickLog:
        """The sessions of a log in the window."""
        if not self:
            return log
        timestamp = require_timestamps(log)
        kept = within(timestamp, self.bounds(timestamp.max()))
        if not kept.any():
            raise no_session_in(self, timestamp.min(), timestamp.max())
        return log.select(np.flatnonzero(kept))


ALL_TIME = TimeWindow()


def split_by_time(log: ClickLog, share: float) -> tuple[ClickLog, ClickLog]:
    """The earlier sessions of a log, to train on, and the later `share` of them, to assess on.

    Sessions of the same time stay together, so the share is approximate; neither part is empty.

    Args:
        log: A log with timestamps.
        share: Share of the sessions that are later, above 0 and below 1.
    """
    check_arguments(share=(share, Range(above=0, below=1)))
    timestamp = require_timestamps(log)
    distinct, sessions = np.unique(timestamp, return_counts=True)
    if len(distinct) < 2:
        raise InputError("timestamp: expected sessions of at least 2 times, to split them, found 1")
    # By the number of sessions from each time on.
    later = sessions[::-1].cumsum()[::-1]
    first = distinct[1 + np.abs(later[1:] - share * len(timestamp)).argmin()]
    return log.select(np.flatnonzero(timestamp < first)), log.select(np.flatnonzero(timestamp >= first))


def require_timestamps(log: ClickLog) -> Timestamps:
    """The timestamps of a log, or an error that says how to get some."""
    if log.timestamp is None:
        raise no_timestamps(log.aggregated)
    return log.timestamp


def no_timestamps(aggregated: bool) -> InputError:
    """The error for a log that cannot be divided by time."""
    if aggregated:
        return InputError("an aggregated log has no timestamps; use the log from before aggregation")
    return InputError(
        "the log has no timestamps; import it from a table with a column timestamp, or name the column that has them: "
        "cuolr import-log … --column timestamp=NAME"
    )


def no_session_in(window: TimeWindow, first: Time, last: Time) -> InputError:
    """The error for a window without a session."""
    given = ", ".join(f"{name} {text}" for name, text in (("since", window.since), ("until", window.until)) if text)
    return InputError(f"{given}: no session in this window; the log is from {time_text(first)} to {time_text(last)}")


def within(timestamp: Timestamps, bounds: tuple[Time, Time]) -> Bools:
    """[M] whether each time is within the bounds of a window."""
    low, high = bounds
    kept = np.ones(len(timestamp), np.bool_)
    if low is not None:
        kept &= timestamp >= low
    if high is not None:
        kept &= timestamp < high
    return kept


def unit_of(latest: Time) -> str | None:
    """The unit of timestamps that are numbers, guessed by the latest; None = they are no times since 1970."""
    return None if latest < FIRST_SECOND else next((unit for unit, limit in UNITS.items() if latest < limit), None)


def is_number(time: Time) -> bool:
    """Whether timestamps are numbers, not dates and times."""
    return np.asarray(time).dtype.kind in "iuf"


def as_times(timestamp: Timestamps) -> npt.NDArray[np.datetime64] | None:
    """[M] timestamps as dates and times in UTC; None if they are numbers that are no times since 1970."""
    if not is_number(timestamp):
        return timestamp.astype("datetime64[us]")
    unit = unit_of(timestamp.max())
    if unit is None:
        return None
    if timestamp.dtype.kind == "f":
        return np.rint(timestamp * (1e6 / PER_SECOND[unit])).astype(np.int64).astype("datetime64[us]")
    return timestamp.astype(np.int64).astype(f"datetime64[{unit}]").astype("datetime64[us]")


def sessions_between(log: ClickLog, first: str, last: str) -> int:
    """The number of sessions from one time to another, as `time_text` gives them; 0 if that cannot be said."""
    times = None if log.timestamp is None else as_times(log.timestamp)
    if times is None or not (first.endswith("Z") and last.endswith("Z")):
        return 0
    low, high = (np.datetime64(time.removesuffix("Z"), "us") for time in (first, last))
    # The texts are cut to the second.
    return int(log.count[(times >= low) & (times < high + np.timedelta64(1, "s"))].sum())


def time_text(time: Time) -> str:
    """A time of a log for people and for JSON, to the second; a number that is no time as it is.

    >>> time_text(np.int64(1_793_534_400)), time_text(np.datetime64("2026-11-01T12:30:00.5")), time_text(np.int64(7))
    ('2026-11-01T12:00:00Z', '2026-11-01T12:30:00Z', '7')
    """
    times = as_times(np.asarray([time]))
    return f"{time:g}" if times is None else f"{times[0].astype('datetime64[s]')}Z"


def unit_note(latest: Time) -> str | None:
    """What was guessed of timestamps that are numbers, to be said; None for dates and times."""
    unit = unit_of(latest) if is_number(latest) else None
    return (
        None if unit is None else f"timestamps are read as {UNIT_NAMES[unit]} since 1970 (latest: {time_text(latest)})"
    )


def _in_units_of(latest: Time, name: str, text: str) -> Time:
    """A bound as a timestamp of the log."""
    before = BEFORE_LATEST.fullmatch(text)
    if not is_number(latest):
        if before:
            microseconds = round(float(before[1]) * SECONDS[before[2]] * 1e6)
            return latest.astype("datetime64[us]") - np.timedelta64(microseconds, "us")
        date = _date(text)
        if date is None:
            raise InputError(f"{name}: expected {EXPECTED}, found '{text}'; the log's timestamps are no numbers")
        return np.datetime64(date, "us")
    if NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    unit = unit_of(latest)
    if unit is None:
        raise InputError(
            f"{name}: expected a number, found '{text}'; the log's timestamps, up to {latest:g}, are no times since "
            "1970"
        )
    if before:
        return latest - float(before[1]) * SECONDS[before[2]] * PER_SECOND[unit]
    date = _date(text)
    assert date is not None, "checked when the window was made"
    return (date - datetime(1970, 1, 1)).total_seconds() * PER_SECOND[unit]


def _date(text: str) -> datetime | None:
    """A date, with or without a time, in UTC; None if it is none. Years, months and days need dashes."""
    if not re.match(r"\d{4}-\d{2}-\d{2}", text):
        return None
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        return None
    return date if date.tzinfo is None else date.astimezone(UTC).replace(tzinfo=None)
