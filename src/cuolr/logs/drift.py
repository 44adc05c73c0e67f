"""A log over time: the sessions of each day or week, and drift, whether later sessions differ by more than chance."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.special

from cuolr.logs.clicklog import ClickLog
from cuolr.logs.page_positions import at_page_positions, widest_page
from cuolr.logs.time_window import Time, Timestamps, time_text, within
from cuolr.types import Bools, Doubles, Ints

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


# Differences are reported if they are both significant and large: in a long log the smallest ones are significant.
SIGNIFICANCE = 0.001
# Relative change of a click rate.
MIN_RELATIVE_CHANGE = 0.05
# Share of the later sessions or impressions with a new query or document, above what is expected.
MIN_NEW_SHARE = 0.05
# Sessions that each half must have.
MIN_SESSIONS = 100


@dataclass(frozen=True)
class Novelty:
    """Queries or documents of the later half that the earlier one does not have.

    Attributes:
        share: Share of the later sessions (of documents: impressions) with a new one.
        expected: The same if time made no difference. A query with n sessions is new by chance if all of them are
            later: Σ n pⁿ sessions, where p is the share of later sessions.
        drift: Whether the share is significantly and considerably higher.
    """

    share: float
    expected: float
    drift: bool


@dataclass(frozen=True)
class Drift:
    """The earlier and the later half of a log.

    Attributes:
        split: When the later half begins.
        earlier: Number of sessions of the earlier half.
        later: Number of sessions of the later half.
        click_rate: By position on the page, that of the earlier and of the later half; None where nothing was shown.
        changed_positions: Positions, from 1, whose click rates differ: by at least 5 % of the earlier one, and
            significantly (two-proportion z-test, p < 0.001 after Holm's correction over the positions).
        new_queries: Queries that only the later half has.
        new_documents: Documents that only the later half has.
    """

    split: str
    earlier: int
    later: int
    click_rate: tuple[tuple[float | None, float | None], ...]
    changed_positions: tuple[int, ...]
    new_queries: Novelty
    new_documents: Novelty

    @property
    def found(self) -> bool:
        """Whether anything drifts."""
        return bool(self.changed_positions) or self.new_queries.drift or self.new_documents.drift


class DriftCounts:
    """Sessions, impressions and clicks of the halves of a log, counted chunk by chunk."""

    def __init__(self, split: Time) -> None:
        self._split = split
        self._sessions = np.zeros(2, np.int64)
        self._by_position: Doubles | None = None

    def add(self, log: ClickLog) -> None:
        """Count the sessions of a chunk."""
        log = at_page_positions(log, widest_page(log))
        assert log.timestamp is not None
        if self._by_position is None:
            self._by_position = np.zeros((2, 2, log.k))
            self._queries = np.zeros((2, log.candidates.n_queries), np.int64)
            self._documents = np.zeros((2, log.candidates.n_documents), np.int64)
        is_later = within(log.timestamp, (self._split, None))
        for half, rows in enumerate((~is_later, is_later)):
            part = log.select(np.flatnonzero(rows))
            self._sessions[half] += len(part)
            self._by_position[half] += part.where.sum(axis=0), part.clicks.sum(axis=0)
            self._queries[half] += np.bincount(part.query, minlength=len(self._queries[half]))
            shown = part.documents[part.where]
            self._documents[half] += np.bincount(shown, minlength=len(self._documents[half]))

    def result(self) -> Drift | None:
        """The comparison; None if a half has too few sessions."""
        if self._by_position is None or self._sessions.min() < MIN_SESSIONS:
            return None
        last = int(np.flatnonzero(self._by_position[:, 0].any(axis=0)).max(initial=0)) + 1
        (shown, clicks), (shown_later, clicks_later) = self._by_position[:, :, :last]
        rates = [_rates(clicks, shown), _rates(clicks_later, shown_later)]
        return Drift(
            split=time_text(self._split),
            earlier=int(self._sessions[0]),
            later=int(self._sessions[1]),
            click_rate=tuple(zip(*rates, strict=True)),
            changed_positions=tuple((np.flatnonzero(_changed(self._by_position)) + 1).tolist()),
            new_queries=novelty(*self._queries),
            new_documents=novelty(*self._documents),
        )


def middle(timestamp: Timestamps) -> Time | None:
    """The time at which the later half of the sessions begins; None if all are of the same time."""
    found: Any = np.partition(timestamp, len(timestamp) // 2)[len(timestamp) // 2]
    if found > timestamp.min():
        return found
    later = timestamp[timestamp > found]
    return later.min() if len(later) else None


def z_test(clicks: Doubles, shown: Doubles, clicks_later: Doubles, shown_later: Doubles) -> Doubles:
    """The two-sided p-value of the difference of two proportions, element by element; 1 where nothing can differ."""
    with np.errstate(divide="ignore", invalid="ignore"):
        pooled = (clicks + clicks_later) / (shown + shown_later)
        deviation = np.sqrt(pooled * (1 - pooled) * (1 / shown + 1 / shown_later))
        z = np.abs(clicks / shown - clicks_later / shown_later) / deviation
    p_values: Doubles = scipy.special.erfc(np.nan_to_num(z, nan=0.0, posinf=0.0) / np.sqrt(2))
    return p_values


def novelty(earlier: Ints, later: Ints) -> Novelty:
    """What is new in the later half.

    Args:
        earlier: [n] the number of earlier sessions of each query, or of earlier impressions of each document.
        later: [n] the same of the later half.
    """
    total = (earlier + later).astype(np.float64)
    p = later.sum() / total.sum()
    by_chance = np.where(total > 0, p**total, 0.0)
    expected, deviation = (total * by_chance).sum(), np.sqrt((total**2 * by_chance * (1 - by_chance)).sum())
    found = later[earlier == 0].sum()
    share, expected_share = found / later.sum(), expected / later.sum()
    z = (found - expected) / deviation if deviation > 0 else 0.0
    significant = scipy.special.erfc(z / np.sqrt(2)) / 2 < SIGNIFICANCE
    large = share - expected_share >= MIN_NEW_SHARE
    return Novelty(float(share), float(expected_share), bool(significant and large))


def _changed(by_position: Doubles) -> Bools:
    """[K] whether the click rate of a position differs."""
    (shown, clicks), (shown_later, clicks_later) = by_position
    p_values = z_test(clicks, shown, clicks_later, shown_later)
    # Holm's correction: the i-th smallest of n p-values is multiplied by n − i, and none may fall below a smaller one.
    order = np.argsort(p_values)
    corrected = np.empty_like(p_values)
    corrected[order] = np.maximum.accumulate(p_values[order] * np.arange(len(p_values), 0, -1))
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.nan_to_num(np.abs((clicks_later / shown_later) / (clicks / shown) - 1), nan=0.0, posinf=1.0)
    found: Bools = (corrected < SIGNIFICANCE) & (change >= MIN_RELATIVE_CHANGE)
    return found


def _rates(clicks: Doubles, shown: Doubles) -> list[float | None]:
    return [float(c / n) if n else None for c, n in zip(clicks, shown, strict=True)]
