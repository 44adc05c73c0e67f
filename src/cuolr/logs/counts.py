"""The sessions of a log, counted: how often a position of a list was passed, and clicked, after which click above."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from cuolr.logs.aggregate import aggregate
from cuolr.logs.clicklog import ClickLog
from cuolr.random import U64, mixed
from cuolr.types import Doubles, Floats, IntegerArray, Ints

# Sessions that are counted together.
SESSIONS_AT_A_TIME = 1 << 18
# Different lists that are counted at most, which bounds the memory to some 3 GB.
MAX_LISTS = 2_000_000
# Cases that are held before they are added up.
CASES_BEFORE_MERGE = 1 << 22

# Cases, and of each how many sessions passed and clicked.
Counts: TypeAlias = tuple[Ints, Doubles, Doubles]


@dataclass(frozen=True)
class CountedLists:
    """L lists, and what occurred in them: at a position k of a list, some sessions had their last click above at j.

    Only what occurred is held, which is never more than was shown. A case is the number (list·K + k)·(K + 1) + j, with
    k from 0, and j from 1 or 0 for no click above.

    Attributes:
        lists: The log, aggregated.
        cases: [n] what occurred, in order.
        passed: [n] sessions.
        clicked: [n] those of them that clicked at k.
    """

    lists: ClickLog
    cases: Ints
    passed: Doubles
    clicked: Doubles

    @property
    def cases_of_a_list(self) -> int:
        """K · (K + 1)."""
        return self.lists.k * (self.lists.k + 1)

    def by_position(self, values: Doubles) -> Doubles:
        """[L, K] the sum of a value of each case over the last click above.

        Args:
            values: [n].
        """
        shape = (len(self.lists), self.lists.k)
        sums = np.bincount(self.cases // (self.lists.k + 1), weights=values, minlength=shape[0] * shape[1])
        return sums.astype(np.float64).reshape(shape)

    def parts_of_cases(self) -> tuple[Ints, Ints, Ints]:
        """[n] each: the list, the position from 0, and the last click above from 1 or 0."""
        place, last = np.divmod(self.cases, self.lists.k + 1)
        row, position = np.divmod(place, self.lists.k)
        return row, position, last

    def head(self, k: int) -> "CountedLists":
        """The first k positions of all lists."""
        if k >= self.lists.k:
            return self
        row, position, last = self.parts_of_cases()
        kept = position < k
        cases = (row[kept] * k + position[kept]) * (k + 1) + last[kept]
        columns: dict[str, Any] = {
            name: values[:, :k] for name, values in self.lists.columns.items() if values.ndim == 2
        }
        return CountedLists(replace(self.lists, **columns), cases, self.passed[kept], self.clicked[kept])

    def dense(self, rows: IntegerArray) -> tuple[Floats, Floats]:
        """[R, K, K + 1] passed and clicked, of some of the lists."""
        size, k = self.cases_of_a_list, self.lists.k
        first, end = (np.searchsorted(self.cases, (rows.astype(np.int64) + i) * size) for i in (0, 1))
        number = end - first
        of_row = np.repeat(np.arange(len(rows)), number)
        taken = np.arange(len(of_row)) - np.repeat(np.cumsum(number) - number - first, number)
        places = of_row * size + self.cases[taken] % size
        dense = np.zeros((2, len(rows) * size), np.float32)
        dense[0, places], dense[1, places] = self.passed[taken], self.clicked[taken]
        passed, clicked = dense.reshape(2, len(rows), k, k + 1)
        return passed, clicked


def count_lists(log: ClickLog) -> CountedLists:
    """Count the sessions of a log; in an aggregated one all count as if there were no click above.

    Of a log with more than `MAX_LISTS` different lists, a random part of these.
    """
    # Lists of two loggers, or in two contexts, are one list.
    log = _affordable(replace(log, logging_propensity=None, page_position=None, context={}))
    lists = aggregate(log)
    if log.aggregated:
        cases = _cases(np.arange(len(lists)), np.zeros(lists.where.shape, np.int64))[lists.where]
        passed = (lists.where * lists.count[:, None])[lists.where].astype(np.float64)
        return CountedLists(lists, cases, passed, lists.clicks[lists.where] * passed)
    numbered = _as_table(lists).with_row_index("row")
    counts: list[Counts] = []
    cases_after_merge = 0
    for start in range(0, len(log), SESSIONS_AT_A_TIME):
        part = log.select(slice(start, start + SESSIONS_AT_A_TIME))
        shown = _as_table(part)
        row = shown.join(numbered, on=shown.columns, how="left", maintain_order="left")["row"].to_numpy()
        cases = _cases(row, last_click_above(part.clicks))[part.where]
        counts.append(_counted(cases, np.ones(len(cases)), part.clicks[part.where]))
        # Merging only once the cases have doubled keeps the whole cost linear.
        if sum(len(cases) for cases, _, _ in counts) > 2 * cases_after_merge + CASES_BEFORE_MERGE:
            counts = [_merged(counts)]
            cases_after_merge = len(counts[0][0])
    return CountedLists(lists, *_merged(counts))


def _affordable(log: ClickLog) -> ClickLog:
    """All of a log, or the sessions of some `MAX_LISTS` of its lists, at random."""
    if len(log) <= MAX_LISTS:
        return log
    hashes = _hashes(log)
    number = len(np.unique(hashes))
    if number <= MAX_LISTS:
        return log
    return log.select(np.flatnonzero(hashes < U64(2**64 * MAX_LISTS // number)))


def _hashes(log: ClickLog) -> npt.NDArray[np.uint64]:
    """[M] numbers that look random, the same for the same query and ranking."""
    hashes = mixed(log.query.astype(U64) + U64(1))
    for position in range(log.k):
        hashes = mixed(hashes + log.ranking[:, position].astype(np.int64).astype(U64))
    return hashes


def last_click_above(clicks: npt.NDArray[Any]) -> Ints:
    """[M, K] the position of the last click above each position, from 1; 0 = none.

    >>> last_click_above(np.array([[0, 1, 0, 1, 0]]))
    array([[0, 0, 2, 2, 4]])
    """
    positions = np.where(clicks > 0, np.arange(1, clicks.shape[1] + 1), 0)
    latest = np.maximum.accumulate(positions, axis=1)
    return np.concatenate([np.zeros((len(clicks), 1), np.int64), latest[:, :-1]], axis=1)


def _cases(row: IntegerArray, last: Ints) -> Ints:
    """[M, K] the number of each case."""
    k = last.shape[1]
    numbers: Ints = (row[:, None].astype(np.int64) * k + np.arange(k)) * (k + 1) + last
    return numbers


def _merged(counts: Sequence[Counts]) -> Counts:
    cases, passed, clicked = (np.concatenate(values) for values in zip(*counts, strict=True))
    return _counted(cases, passed, clicked)


def _counted(cases: Ints, passed: Doubles, clicked: npt.NDArray[Any]) -> Counts:
    """Each case once, with its sums."""
    different, place = np.unique(cases, return_inverse=True)

    def total(values: npt.NDArray[Any]) -> Doubles:
        return np.bincount(place, weights=values, minlength=len(different)).astype(np.float64)

    return different, total(passed), total(clicked)


def _as_table(log: ClickLog) -> pl.DataFrame:
    columns = {f"position {k}": log.ranking[:, k].astype(np.int64) for k in range(log.k)}
    return pl.DataFrame({"query": log.query.astype(np.int64), **columns})
