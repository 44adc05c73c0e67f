"""Counts of (list, click pattern), the sufficient statistics of every click model, by streaming.

A log becomes one row for each list, click pattern and fold of the sessions. Models in which a click depends on the
clicks above through the last one only need less: counts of (document, position, last click). Fitting costs by these
rows, not by sessions.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.counts import last_click_above
from cuolr.logs.last_clicks import LastClicks
from cuolr.logs.log_folder import ROWS_AT_A_TIME, read_click_log, require_sessions
from cuolr.logs.page_positions import at_page_positions
from cuolr.logs.time_window import ALL_TIME, TimeWindow
from cuolr.progress import Stages, unseen_stages
from cuolr.random import DEFAULT_SEED, U64, mixed
from cuolr.types import Bools, Candidates, Doubles, Ints

# Random folds of the sessions: to hold some out, and to resample where there are few queries.
FOLDS = 10
# From this number on, queries are resampled; with fewer, the folds of each query are.
MANY_QUERIES = 10
# Clicks of one word of a packed click pattern.
BITS = 64


@dataclass(frozen=True)
class PatternCells:
    """Impressions and clicks of each (document, position, last click above), of n that occur.

    They suffice for click models in which a click depends on the clicks above through the last one only.

    Attributes:
        pair: [n] the number of the query–document pair.
        position: [n] from 0.
        last_click: [n] the position of the last click above, from 1; 0 = none.
        unit: [n] what is resampled, see `ClickPatterns.unit`.
        impressions: [n] number of sessions.
        clicks: [n] number of these sessions with a click on the document.
    """

    pair: Ints
    position: Ints
    last_click: Ints
    unit: Ints
    impressions: Doubles
    clicks: Doubles

    def weighted(self, weights: Doubles) -> Self:
        """The counts with each unit multiplied by its weight."""
        factor = weights[self.unit]
        return replace(self, impressions=self.impressions * factor, clicks=self.clicks * factor)


@dataclass(frozen=True)
class ClickPatterns:
    """The distinct lists of a log with the distinct click patterns on each, and the number of their sessions.

    Columns are positions on the page, see `at_page_positions`; there may be gaps.

    Attributes:
        candidates: The documents of each query.
        pairs: [P] the rows among the candidates of the documents that were shown, ascending.
        query: [M] the query of each row.
        documents: [M, K] the document at each position, an index into `pairs`; −1 = nothing shown.
        clicks: [M, K].
        count: [M] number of sessions, or the sum of their weights.
        fold: [M] the random fold of these sessions, from 0 to `FOLDS` − 1.
    """

    candidates: Candidates
    pairs: Ints
    query: Ints
    documents: Ints
    clicks: Bools
    count: Doubles
    fold: Ints

    @classmethod
    def of(
        cls,
        log: ClickLog | Path,
        seed: int = DEFAULT_SEED,
        window: TimeWindow = ALL_TIME,
        stages: Stages = unseen_stages,
    ) -> Self:
        """Count the sessions of a log, or of the folder of a log, which is read in chunks.

        Args:
            log: Raw sessions.
            seed: Decides the folds.
            window: The sessions of a folder to count.
            stages: Shows the progress of reading a folder.
        """
        if isinstance(log, Path):
            return cls._of_chunks(read_click_log(log, window=window, ids=False, stages=stages), seed)
        slices = (slice(start, start + ROWS_AT_A_TIME) for start in range(0, max(len(log), 1), ROWS_AT_A_TIME))
        return cls._of_chunks((log.select(rows) for rows in slices), seed)

    @classmethod
    def _of_chunks(cls, chunks: Iterable[ClickLog], seed: int) -> Self:
        counts: list[pl.DataFrame] = []
        rows_after_merge = sessions = 0
        for chunk in chunks:
            require_sessions(chunk, "fitting click models")
            counts.append(_count(chunk, _folds(sessions, len(chunk), seed)))
            sessions += len(chunk)
            # Merging only after the number of rows has doubled keeps the total cost linear.
            if sum(map(len, counts)) > 2 * rows_after_merge + ROWS_AT_A_TIME:
                counts = [_merged(counts)]
                rows_after_merge = len(counts[0])
        merged = _merged(counts)
        merged = merged.sort([name for name in merged.columns if name != "count"])
        query, ranking = merged["query"].to_numpy(), _columns(merged, "ranking.")
        where = ranking >= 0
        if not where.any():
            raise InputError("the log shows no documents in any session")
        rows = np.where(where, chunk.candidates.offsets[query, None] + ranking, -1)
        pairs = np.unique(rows[where])
        return cls(
            candidates=chunk.candidates,
            pairs=pairs,
            query=query,
            documents=np.where(where, np.searchsorted(pairs, rows), -1),
            clicks=_unpacked(_columns(merged, "clicks."), ranking.shape[1]) & where,
            count=merged["count"].to_numpy().astype(np.float64),
            fold=merged["fold"].to_numpy(),
        )

    def __len__(self) -> int:
        """M, the number of rows."""
        return len(self.query)

    @property
    def k(self) -> int:
        """K, the number of positions."""
        return int(self.documents.shape[1])

    @property
    def sessions(self) -> float:
        """Number of sessions."""
        return float(self.count.sum())

    @property
    def where(self) -> Bools:
        """[M, K] true = a document was shown."""
        return self.documents >= 0

    @property
    def few_queries(self) -> bool:
        """Whether there are too few queries to resample them."""
        return len(np.unique(self.query)) < MANY_QUERIES

    @cached_property
    def unit(self) -> Ints:
        """[M] what is resampled for intervals: the query or, in a log of few queries, its folds."""
        return self.query * FOLDS + self.fold if self.few_queries else self.query

    @property
    def units(self) -> int:
        """The number of units, with those that do not occur."""
        return self.candidates.n_queries * (FOLDS if self.few_queries else 1)

    def select(self, rows: Bools) -> Self:
        """These rows only; the numbers of pairs and units stay."""
        kept = replace(
            self,
            query=self.query[rows],
            documents=self.documents[rows],
            clicks=self.clicks[rows],
            count=self.count[rows],
            fold=self.fold[rows],
        )
        kept.__dict__["unit"] = self.unit[rows]
        return kept

    def with_every_document(self) -> Self:
        """The same counts with a pair for each document of the candidates, shown or not."""
        pairs = np.arange(self.candidates.n_documents)
        kept = replace(self, pairs=pairs, documents=np.where(self.where, self.pairs[self.documents], -1))
        kept.__dict__["unit"] = self.unit
        return kept

    def weighted(self, weights: Doubles) -> Self:
        """The counts with each unit multiplied by its weight."""
        kept = replace(self, count=self.count * weights[self.unit])
        kept.__dict__["unit"] = self.unit
        return kept

    def held_out(self, folds: int) -> tuple[Self, Self]:
        """The sessions to train on, and those of the first `folds` folds, which are held out."""
        out = self.fold < folds
        return self.select(~out), self.select(out)

    @cached_property
    def cells(self) -> PatternCells:
        """The counts of (document, position, last click above)."""
        row, position = np.nonzero(self.where)
        last = last_click_above(self.clicks)[row, position]
        # One number as key is several times as fast as four columns.
        sizes = (len(self.pairs), self.k, self.k + 1)
        place = np.ravel_multi_index((self.documents[row, position], position, last), sizes)
        key = self.unit[row] * int(np.prod(sizes)) + place
        sums = {"impressions": self.count[row], "clicks": self.count[row] * self.clicks[row, position]}
        cells = pl.DataFrame({"key": key, **sums}).group_by("key").agg(pl.all().sum()).sort("key")
        unit, place = np.divmod(cells["key"].to_numpy(), int(np.prod(sizes)))
        pair, position, last = (index.astype(np.int64) for index in np.unravel_index(place, sizes))
        return PatternCells(pair, position, last, unit, cells["impressions"].to_numpy(), cells["clicks"].to_numpy())

    @cached_property
    def last_clicks(self) -> LastClicks:
        """The counts of (list, last click), and of (document, position) above it."""
        return LastClicks.of(self.documents, self.clicks, self.count, self.unit, len(self.pairs))


def _folds(first: int, sessions: int, seed: int) -> Ints:
    """[sessions] the folds of the sessions with the numbers from `first` on."""
    numbers = np.arange(first, first + sessions).astype(U64)
    return (mixed(numbers + mixed(np.array([seed + 1], U64))) % U64(FOLDS)).astype(np.int64)


def _count(log: ClickLog, fold: Ints) -> pl.DataFrame:
    """A row for each query, ranking, click pattern and fold: columns `ranking.k` and `clicks.w`, packed."""
    shown = ClickLog(log.candidates, log.query, log.ranking, log.clicks, log.count, page_position=log.page_position)
    log = at_page_positions(shown)
    filled = np.flatnonzero((log.ranking >= 0).any(axis=0))
    k = int(np.max(filled, initial=0)) + 1
    columns: dict[str, npt.NDArray[Any]] = {"query": log.query.astype(np.int64), "fold": fold}
    columns |= {f"ranking.{position}": log.ranking[:, position].astype(np.int64) for position in range(k)}
    columns |= {f"clicks.{word}": values for word, values in enumerate(_packed(log.clicks[:, :k]))}
    keys = pl.DataFrame(columns)
    return keys.group_by(keys.columns).agg(pl.len().cast(pl.Int64).alias("count"))


def _merged(counts: list[pl.DataFrame]) -> pl.DataFrame:
    """The sums; chunks may differ in the last position that is filled."""
    rows = pl.concat(counts, how="diagonal")
    rows = rows.with_columns(pl.col("^ranking\\..*$").fill_null(-1), pl.col("^clicks\\..*$").fill_null(0))
    return rows.group_by([name for name in rows.columns if name != "count"]).agg(pl.col("count").sum())


def _packed(clicks: npt.NDArray[np.uint8 | np.float64]) -> list[npt.NDArray[np.uint64]]:
    """The clicks [m, K] as bits of words of 64."""
    words = []
    for start in range(0, clicks.shape[1], BITS):
        part = clicks[:, start : start + BITS] > 0
        words.append((part.astype(U64) << np.arange(part.shape[1], dtype=U64)).sum(axis=1, dtype=U64))
    return words


def _unpacked(words: npt.NDArray[np.uint64], k: int) -> Bools:
    """[M, k] the inverse of `_packed`; words [M, W]."""
    position = np.arange(k)
    bits = words.astype(U64)[:, position // BITS] >> (position % BITS).astype(U64)
    return (bits & U64(1)).astype(np.bool_)


def _columns(frame: pl.DataFrame, prefix: str) -> npt.NDArray[Any]:
    """[M, n] the columns of this prefix, by their number."""
    numbers = sorted(int(name.removeprefix(prefix)) for name in frame.columns if name.startswith(prefix))
    return frame.select(f"{prefix}{number}" for number in numbers).to_numpy()
