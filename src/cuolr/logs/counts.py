"""Counts of (list, position, last click above), the sufficient statistics of UBM's family of click models."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from cuolr.data.memory import give_back_freed
from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.contexts import context_levels
from cuolr.logs.count_patterns import CountedPatterns, count_patterns, stack_documents
from cuolr.logs.page_positions import at_page_positions
from cuolr.logs.reward_scale import information
from cuolr.progress import Progress, Stages, no_stages
from cuolr.random import U64, mixed
from cuolr.types import Doubles, Floats, IntegerArray, Ints

# Sessions that are counted together.
SESSIONS_AT_A_TIME = 1 << 18
# Maximum number of distinct lists, which bounds memory to about 3 GB.
MAX_LISTS = 2_000_000
# Cells that are looked at together, about; lists whose cells are summed together.
CELLS_AT_A_TIME, LISTS_AT_A_TIME = 1 << 18, 1 << 14
# The name of the context that numbers the levels.
LEVEL = "level"
# Name of the stage.
COUNTING = "counting clicks"

# Cells with their impressions, clicks and rewards, if there are any.
Counts: TypeAlias = tuple[Ints, Doubles, Doubles, Doubles | None]


@dataclass(frozen=True)
class ClickCounts:
    """Impressions and clicks of each cell (list, position k, position j of the last click above k).

    These are sufficient statistics of CTR, PBM, UBM and the cascade model. They are by list because the logging-policy
    model needs lists: examination is estimated from the positions of each list, given its scores. Click models without
    it need counts by document, `PatternCells`. Only cells that occur are stored. The number of a cell is
    (list·K + k)·(K + 1) + j, with k counted from 0 and j from 1; j = 0 means no click above.

    Attributes:
        lists: The L distinct lists of the log, aggregated, up to the last position filled in any of them. Columns are
            positions on the page. A list that was shown in several levels of context is one list for each.
        cells: [n] the numbers of the cells that occur, ascending.
        impressions: [n] number of sessions.
        clicks: [n] number of these sessions with a click at k.
        reward: [n] their reward at k; None = the click is the reward.
        information: How many clicks say as much as one reward; see `reward_scale.information`.
        levels: The names of the levels of context; one, called "", if the log has no context.
        level: [L] the level of each list; None = there is one.
        documents: The log, if it counts documents: `lists` are then stacked from them, see `stack_documents`. None =
            they are those of the log.
    """

    lists: ClickLog
    cells: Ints
    impressions: Doubles
    clicks: Doubles
    reward: Doubles | None = None
    information: float = 1.0
    levels: tuple[str, ...] = ("",)
    level: Ints | None = None
    documents: ClickLog | None = None

    @classmethod
    def of(cls, log: ClickLog, stages: Stages = no_stages) -> Self:
        """Count the sessions of a log. In an aggregated log the last click is unknown: all cells have j = 0.

        If a log has more than `MAX_LISTS` distinct lists, a random sample of the lists is counted.

        Args:
            log: Raw, counted or aggregated.
            stages: Receives the rows that were counted so far.
        """
        stages(COUNTING, None)
        levels, level = context_levels(log)
        if log.of_documents:
            stacked, of_stacked, sums = stack_documents(log, level)
            return cls(stacked, *sums, information(log), levels, of_stacked if log.context else None, log)
        # The same list under two logging policies is one list.
        context = {LEVEL: level} if log.context else {}
        log = replace(at_page_positions(log), logging_propensity=None, randomised=None, context=context)
        log = _sample_of_lists(_top(log, _last_position(log)))
        progress, known = stages(COUNTING, len(log)), information(log)
        if not log.aggregated:
            lists, of_lists, counts = _count_sessions(log, progress)
            return cls(lists, *counts, known, levels, of_lists)
        lists = aggregate(log, progress=progress)
        of_lists = lists.context.get(LEVEL)
        lists = replace(lists, context={})
        cells = _cells(np.arange(len(lists)), np.zeros(lists.where.shape, np.int64))[lists.where]
        impressions = (lists.where * lists.count[:, None])[lists.where].astype(np.float64)
        reward = None if lists.reward is None else lists.reward[lists.where] * impressions
        clicks = lists.clicks[lists.where] * impressions
        return cls(lists, cells, impressions, clicks, reward, known, levels, of_lists)

    @property
    def level_of_list(self) -> Ints:
        """[L] the level of context of each list; 0 if there is one."""
        return np.zeros(len(self.lists), np.int64) if self.level is None else self.level

    def pooled(self) -> "ClickCounts":
        """The same cells without their context; a list of several levels remains several."""
        return replace(self, levels=("",), level=None)

    @property
    def shown(self) -> ClickLog:
        """What was shown at which position, in how many sessions: the lists or, if they are stacked, the documents."""
        return self.lists if self.documents is None else self.documents

    @property
    def rewards(self) -> Doubles:
        """[n] the reward of each cell, or its clicks where the log has no reward."""
        return self.clicks if self.reward is None else self.reward

    @property
    def cells_per_list(self) -> int:
        """K · (K + 1)."""
        return self.lists.k * (self.lists.k + 1)

    def by_position(self, values: Doubles) -> Doubles:
        """[L, K] the sum over the last click above.

        Args:
            values: [n] a value of each cell.
        """
        shape = (len(self.lists), self.lists.k)
        sums = np.bincount(self.cells // (self.lists.k + 1), weights=values, minlength=shape[0] * shape[1])
        return sums.astype(np.float64, copy=False).reshape(shape)

    def by_document(self, values: Doubles) -> Doubles:
        """[n_documents] the sum over the lists and positions that show a document; 0 if never shown.

        Args:
            values: [L, K] a value of each position of each list.
        """
        where, candidates = self.lists.where, self.lists.candidates
        sums = np.bincount(self.lists.documents[where], weights=values[where], minlength=candidates.n_documents)
        return sums.astype(np.float64, copy=False)

    def parts(self) -> Iterator[slice]:
        """Slices of the cells, of whole queries each, so that not all cells are copied at once; at least one."""
        next_query = np.flatnonzero(np.diff(self.lists.query)) + 1
        ends = np.append(np.searchsorted(self.cells, next_query * self.cells_per_list), len(self.cells))
        ends = ends[np.append(np.diff(ends // CELLS_AT_A_TIME) > 0, True)]
        yield from (slice(start, end) for start, end in pairwise([0, *ends.tolist()]))

    def coordinates(self, part: slice = slice(None)) -> tuple[Ints, Ints, Ints]:
        """[n] each: the list, the position from 0, and the position of the last click above from 1 (0 = none)."""
        place, last = np.divmod(self.cells[part], self.lists.k + 1)
        row, position = np.divmod(place, self.lists.k)
        return row, position, last

    def document(self, row: Ints, position: Ints) -> Ints:
        """[n] the row of the candidates' document at these positions of these lists, which show one there."""
        documents: Ints = self.lists.candidates.offsets[self.lists.query[row]] + self.lists.ranking[row, position]
        return documents

    def top(self, k: int) -> "ClickCounts":
        """The first k positions of all lists."""
        if k >= self.lists.k:
            return self
        row, position, last = self.coordinates()
        kept = position < k
        cells = (row[kept] * k + position[kept]) * (k + 1) + last[kept]
        reward = None if self.reward is None else self.reward[kept]
        sums = self.impressions[kept], self.clicks[kept], reward
        counts = ClickCounts(_top(self.lists, k), cells, *sums, self.information, self.levels, self.level)
        return replace(counts, documents=self.documents)

    def dense(self, rows: IntegerArray) -> tuple[Floats, Floats]:
        """[R, K, K + 1] impressions and clicks of these lists; 0 in cells that do not occur."""
        size, k = self.cells_per_list, self.lists.k
        first, end = (np.searchsorted(self.cells, (rows.astype(np.int64) + i) * size) for i in (0, 1))
        number = end - first
        of_row = np.repeat(np.arange(len(rows)), number)
        taken = np.arange(len(of_row)) - np.repeat(np.cumsum(number) - number - first, number)
        places = of_row * size + self.cells[taken] % size
        dense = np.zeros((2, len(rows) * size), np.float32)
        dense[0, places], dense[1, places] = self.impressions[taken], self.clicks[taken]
        impressions, clicks = dense.reshape(2, len(rows), k, k + 1)
        return impressions, clicks


def last_click_above(clicks: npt.NDArray[Any]) -> Ints:
    """[M, K] the position of the last click above each position, from 1; 0 = none.

    >>> last_click_above(np.array([[0, 1, 0, 1, 0]]))
    array([[0, 0, 2, 2, 4]])
    """
    positions = np.where(clicks > 0, np.arange(1, clicks.shape[1] + 1), 0)
    latest = np.maximum.accumulate(positions, axis=1)
    return np.concatenate([np.zeros((len(clicks), 1), np.int64), latest[:, :-1]], axis=1)


def _count_sessions(log: ClickLog, progress: Progress) -> tuple[ClickLog, Ints | None, Counts]:
    """The lists of raw sessions, aggregated; the level of each; and the counts of their cells."""
    slices = (slice(start, start + SESSIONS_AT_A_TIME) for start in range(0, max(len(log), 1), SESSIONS_AT_A_TIME))
    counted = count_patterns((log.select(rows) for rows in slices), lambda part: part.context, progress)
    give_back_freed()  # by grouping
    first = counted.starts_list
    row, start = np.cumsum(first) - 1, np.flatnonzero(first)
    sessions = np.add.reduceat(counted.count, start) if len(start) else counted.count

    def mean(totals: Doubles) -> Doubles:
        """[L, K] over the sessions of each list."""
        sums: Doubles = np.add.reduceat(totals, start, axis=0) if len(start) else totals
        sums /= sessions[:, None]
        return sums

    lists = ClickLog(
        candidates=log.candidates,
        query=counted.query[first].astype(log.query.dtype),
        ranking=counted.ranking[first],
        clicks=mean(np.multiply(counted.count[:, None], counted.clicks, dtype=np.float64)),
        count=sessions,
        reward=None if counted.reward is None else mean(counted.reward),
        aggregated=True,
    )
    level = counted.labels[LEVEL].to_numpy()[first] if LEVEL in counted.labels else None
    starts = [0, *start[LISTS_AT_A_TIME::LISTS_AT_A_TIME].tolist(), len(row)]
    parts = (_sums_of_rows(counted, row, slice(*bounds)) for bounds in pairwise(starts))
    columns: list[Any] = list(zip(*parts, strict=True))
    reward = columns.pop()
    clicks, impressions, cells = (np.concatenate(columns.pop()) for _ in range(3))  # each freed before the next
    return lists, level, (cells, impressions, clicks, None if counted.reward is None else np.concatenate(reward))


def _sums_of_rows(counted: CountedPatterns, row: Ints, part: slice) -> Counts:
    """The counts of the cells of these rows, which are whole lists.

    Args:
        counted: M rows.
        row: [M] the list of each.
        part: Rows.
    """
    clicked, where = counted.clicks[part], counted.ranking[part] >= 0
    cells = _cells(row[part], last_click_above(clicked))[where]
    impressions = np.broadcast_to(counted.count[part, None].astype(np.float64), where.shape)[where]
    reward = None if counted.reward is None else counted.reward[part][where]
    return _sums(cells, impressions, impressions * clicked[where], reward)


def _top(log: ClickLog, k: int) -> ClickLog:
    """The first k positions of all rows."""
    columns: dict[str, Any] = {name: values[:, :k] for name, values in log.columns.items() if values.ndim == 2}
    return replace(log, **columns) if k < log.k else log


def _last_position(log: ClickLog) -> int:
    """The last position, from 1, at which any row shows a document; at least 1."""
    filled = np.zeros(log.k, np.bool_)
    for start in range(0, len(log), SESSIONS_AT_A_TIME):
        filled |= (log.ranking[start : start + SESSIONS_AT_A_TIME] >= 0).any(axis=0)
    return int(np.max(np.flatnonzero(filled), initial=0)) + 1


def _sample_of_lists(log: ClickLog) -> ClickLog:
    """The log, or the sessions of a random sample of about `MAX_LISTS` of its lists."""
    if len(log) <= MAX_LISTS:
        return log
    hashes = _hashes(log)
    level = log.context.get(LEVEL)
    number = len(np.unique(hashes if level is None else mixed(hashes + level.astype(U64))))
    if number <= MAX_LISTS:
        return log
    return log.select(np.flatnonzero(hashes < U64(2**64 * MAX_LISTS // number)))


def _hashes(log: ClickLog) -> npt.NDArray[np.uint64]:
    """[M] a pseudo-random number for each row, the same for the same query and ranking."""
    hashes = mixed(log.query.astype(U64) + U64(1))
    for position in range(log.k):
        hashes = mixed(hashes + log.ranking[:, position].astype(np.int64).astype(U64))
    return hashes


def _cells(row: IntegerArray, last: Ints) -> Ints:
    """[M, K] the number of the cell of each position."""
    k = last.shape[1]
    numbers: Ints = (row[:, None].astype(np.int64) * k + np.arange(k)) * (k + 1) + last
    return numbers


def _sums(cells: Ints, impressions: Doubles, clicks: npt.NDArray[Any], reward: npt.NDArray[Any] | None) -> Counts:
    """The distinct cells with their sums."""
    distinct, place = np.unique(cells, return_inverse=True)

    def total(values: npt.NDArray[Any]) -> Doubles:
        return np.bincount(place, weights=values, minlength=len(distinct)).astype(np.float64)

    return distinct, total(impressions), total(clicks), None if reward is None else total(reward)
