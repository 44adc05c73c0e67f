"""The sessions of each day or week of a log."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from cuolr.logs.clicklog import ClickLog
from cuolr.types import Ints

# A longer log is described by the week.
MAX_DAYS = 21
# More weeks are put together, so that there are at most so many periods.
MAX_WEEKS = 60


@dataclass(frozen=True)
class Period:
    """The sessions of a day or of a week.

    Attributes:
        start: Its first day.
        days: Its number of days, 1 or 7.
        sessions: Number of sessions.
        clicks_per_session: Their mean number of clicks; None if there are none.
        share_without_clicks: Their share without a click; None if there are none.
    """

    start: str
    days: int
    sessions: int
    clicks_per_session: float | None
    share_without_clicks: float | None


class Periods:
    """Counts the sessions of each day or week, chunk by chunk."""

    def __init__(self, first: np.datetime64, days: int, number: int) -> None:
        self._first, self._days = first, days
        # Sessions, clicks, and sessions without a click.
        self._counts: Ints = np.zeros((3, number), np.int64)

    @classmethod
    def spanning(cls, times: npt.NDArray[np.datetime64]) -> Self:
        """Periods from the day of the earliest time (UTC) to that of the latest."""
        first, last = (time.astype("datetime64[D]") for time in (times.min(), times.max()))
        span = int((last - first).astype(np.int64)) + 1
        days = 1 if span <= MAX_DAYS else 7 * -(-span // (7 * MAX_WEEKS))
        return cls(first, days, -(-span // days))

    def add(self, times: npt.NDArray[np.datetime64], log: ClickLog) -> None:
        """Count the sessions of a chunk by their times."""
        period = (times.astype("datetime64[D]") - self._first).astype(np.int64) // self._days
        clicks = log.clicks.sum(axis=1)
        for counts, weights in zip(self._counts, (np.ones(len(log)), clicks, clicks == 0), strict=True):
            counts += np.rint(np.bincount(period, weights, len(counts))).astype(np.int64)

    def result(self) -> tuple[Period, ...]:
        """The periods in order."""
        return tuple(
            Period(
                str(self._first + number * self._days),
                self._days,
                sessions,
                clicks / sessions if sessions else None,
                without / sessions if sessions else None,
            )
            for number, (sessions, clicks, without) in enumerate(self._counts.T.tolist())
        )
