"""Counts of (list, click pattern), the sufficient statistics of every click model, by streaming.

A log becomes one row for each list, click pattern and fold of the sessions. Models in which a click depends on the
clicks above through the last one only need less: counts of (document, position, last click). Fitting costs by these
rows, not by sessions.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from cuolr.errors import InputError
from cuolr.logs.changed_candidates import MANY_QUERIES
from cuolr.logs.clicklog import CONTEXT, ClickLog, require_lists, require_sessions
from cuolr.logs.contexts import context_levels
from cuolr.logs.count_patterns import count_patterns
from cuolr.logs.counts import last_click_above
from cuolr.logs.last_clicks import LastClicks, PatternCells, summed
from cuolr.logs.log_folder import read_click_log
from cuolr.logs.session_files import ROWS_AT_A_TIME
from cuolr.logs.time_window import ALL_TIME, TimeWindow, as_times
from cuolr.progress import Stages, no_stages
from cuolr.random import DEFAULT_SEED, U64, mixed
from cuolr.types import Bools, Candidates, Doubles, Ints

# Random folds of the sessions: to hold some out, and to resample where there are few queries.
FOLDS = 10
# Name of the context that holds the fold while sessions are counted.
FOLD = "fold of sessions"


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
        context: [M] each: columns that describe the sessions, such as device or layout, if they were told apart.
        day: [M] the day of these sessions in days since 1970 (UTC), if days were told apart; None = they were not, or
            the log has no times.
        level: [M] the level of context of these sessions, if each level has users of its own; None = all are alike.
        levels: The names of the levels.
    """

    of_documents: ClassVar[bool] = False
    candidates: Candidates
    pairs: Ints
    query: Ints
    documents: Ints
    clicks: Bools
    count: Doubles
    fold: Ints
    context: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    day: Ints | None = None
    level: Ints | None = None
    levels: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        log: ClickLog | Path,
        seed: int = DEFAULT_SEED,
        window: TimeWindow = ALL_TIME,
        stages: Stages = no_stages,
        by: Sequence[Literal["context", "day"]] = (),
    ) -> Self:
        """Count the sessions of a log, or of the folder of a log, which is read in chunks.

        Args:
            log: Raw or counted sessions.
            seed: Decides the folds.
            window: The sessions of a folder to count.
            stages: Shows the progress of reading a folder.
            by: Rows are of one context, or of one day, to select them afterwards.
        """
        if isinstance(log, Path):
            return cls._of_chunks(read_click_log(log, window=window, ids=False, stages=stages), seed, by)
        slices = (slice(start, start + ROWS_AT_A_TIME) for start in range(0, max(len(log), 1), ROWS_AT_A_TIME))
        return cls._of_chunks((log.select(rows) for rows in slices), seed, by)

    @classmethod
    def _of_chunks(cls, chunks: Iterable[ClickLog], seed: int, by: Sequence[str]) -> Self:
        candidates = None

        def labels(chunk: ClickLog) -> dict[str, npt.NDArray[Any]]:
            nonlocal candidates
            candidates = chunk.candidates
            day = days_of(chunk) if "day" in by else None
            names = [name for name in chunk.context if "context" in by and name != FOLD]
            context = {f"{CONTEXT}{name}": chunk.context[name] for name in names}
            return {"fold": chunk.context[FOLD]} | context | ({} if day is None else {"day": day})

        def in_folds() -> Iterator[ClickLog]:
            first = 0
            for chunk in chunks:
                yield _in_folds(chunk, first, seed)
                first += len(chunk)

        counted = count_patterns(in_folds(), labels)
        where = counted.ranking >= 0
        if candidates is None or not where.any():
            raise InputError("the log shows no documents in any session")
        rows = np.where(where, candidates.offsets[counted.query, None] + counted.ranking, -1)
        pairs = np.unique(rows[where])
        columns = {name: values.to_numpy() for name, values in counted.labels.items()}
        return cls(
            candidates=candidates,
            pairs=pairs,
            query=counted.query,
            documents=np.where(where, np.searchsorted(pairs, rows), -1),
            clicks=counted.clicks,
            count=counted.count.astype(np.float64),
            fold=columns["fold"],
            context={name.removeprefix(CONTEXT): v for name, v in columns.items() if name.startswith(CONTEXT)},
            day=columns.get("day"),
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
        return float(self.session_count.sum())

    @property
    def session_count(self) -> Doubles:
        """[M] number of sessions, each of which is counted once."""
        return self.count

    @property
    def shown(self) -> Doubles:
        """[K] number of sessions that show a document at each position."""
        return self.count @ self.where

    def as_lists(self, rows: slice | Ints) -> tuple[Ints, Bools]:
        """[R, K] the documents and the clicks of these rows."""
        return self.documents[rows], self.clicks[rows]

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
            context={name: values[rows] for name, values in self.context.items()},
            day=None if self.day is None else self.day[rows],
            level=None if self.level is None else self.level[rows],
        )
        kept.__dict__["unit"] = self.unit[rows]
        return kept

    def with_every_document(self) -> Self:
        """The same counts with a pair for each document of the candidates, shown or not."""
        pairs = np.arange(self.candidates.n_documents)
        kept = replace(self, pairs=pairs, documents=np.where(self.where, self.pairs[self.documents], -1))
        kept.__dict__["unit"] = self.unit
        return kept

    def with_shown_documents(self) -> Self:
        """The same counts with a pair for each document that is shown, the inverse of `with_every_document`.

        A pair without sessions does not change what is fitted, but costs as much as others.
        """
        shown = np.zeros(len(self.pairs), np.bool_)
        shown[self.documents[self.where]] = True
        number = np.cumsum(shown) - 1
        kept = replace(self, pairs=self.pairs[shown], documents=np.where(self.where, number[self.documents], -1))
        kept.__dict__["unit"] = self.unit
        return kept

    def in_units(self, unit: Ints) -> Self:
        """The same counts with these units [M]."""
        kept = replace(self)
        kept.__dict__["unit"] = unit
        return kept

    def weighted(self, weights: Doubles) -> Self:
        """The counts with each unit multiplied by its weight."""
        kept = replace(self, count=self.count * weights[self.unit])
        kept.__dict__["unit"] = self.unit
        return kept

    def in_contexts(self) -> Self:
        """The same counts, each level of context with users of its own; as they are, if there is one level."""
        levels, level = context_levels(self)
        kept = replace(self, level=level, levels=levels) if len(levels) > 1 else self
        kept.__dict__["unit"] = self.unit
        return kept

    def alike(self) -> Self:
        """The same counts, all with the same users."""
        kept = replace(self, level=None, levels=())
        kept.__dict__["unit"] = self.unit
        return kept

    def by_level(self) -> list[Self]:
        """The counts of each level."""
        assert self.level is not None
        rows: Iterator[Bools] = (self.level == number for number in range(len(self.levels)))
        return [self.select(of_level) for of_level in rows]

    def held_out(self, folds: int) -> tuple[Self, Self]:
        """The sessions to train on, and those of the first `folds` folds, which are held out."""
        out = self.fold < folds
        return self.select(~out), self.select(out)

    def held_out_days(self, days: int) -> tuple[Self, Self]:
        """The sessions to train on, and those of the last `days` days with sessions, which are held out."""
        if self.day is None:
            raise InputError("the log has no times, so the last days cannot be held out")
        out = np.isin(self.day, np.unique(self.day)[-days:])
        return self.select(~out), self.select(out)

    @cached_property
    def cells(self) -> PatternCells:
        """The counts of (document, position, last click above)."""
        row, position = np.nonzero(self.where)
        last = last_click_above(self.clicks)[row, position]
        # One number as key is several times as fast as four columns.
        sizes = (len(self.pairs), self.k, self.k + 1)
        place = np.ravel_multi_index((self.documents[row, position], position, last), sizes)
        key, sums = summed(
            self.unit[row] * int(np.prod(sizes)) + place,
            impressions=self.count[row],
            clicks=self.count[row] * self.clicks[row, position],
        )
        return PatternCells.of_keys(key, sums, sizes)

    @cached_property
    def last_clicks(self) -> LastClicks:
        """The counts of (list, last click), and of (document, position) above it."""
        return LastClicks.of(self.documents, self.clicks, self.count, self.unit, len(self.pairs))


def _in_folds(log: ClickLog, first: int, seed: int) -> ClickLog:
    """The log with the fold of each row as context; the sessions of a counted row are dealt to the folds at random."""
    require_sessions(log, "fitting click models")
    require_lists(log, "click patterns")
    if log.of_sessions:
        return replace(log, context={**log.context, FOLD: _folds(first, len(log), seed)})
    dealt = np.random.default_rng((seed, first)).multinomial(log.count, np.full(FOLDS, 1 / FOLDS))
    row, fold = np.nonzero(dealt)
    parts = replace(log.select(row), count=dealt[row, fold])
    return replace(parts, context={**parts.context, FOLD: fold})


def _folds(first: int, sessions: int, seed: int) -> Ints:
    """[sessions] the folds of the sessions with the numbers from `first` on."""
    numbers = np.arange(first, first + sessions).astype(U64)
    return (mixed(numbers + mixed(np.array([seed + 1], U64))) % U64(FOLDS)).astype(np.int64)


def days_of(log: ClickLog) -> Ints | None:
    """[m] days since 1970 (UTC); None if the log has no times."""
    times = None if log.timestamp is None else as_times(log.timestamp)
    return None if times is None else times.astype("datetime64[D]").astype(np.int64)
