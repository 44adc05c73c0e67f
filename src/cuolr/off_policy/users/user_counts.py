"""The counts of a log that users are fitted to."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from cuolr.examination.identifiability import Identifiability
from cuolr.logs.click_patterns import ClickPatterns
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.contexts import context_levels
from cuolr.logs.counts import ClickCounts
from cuolr.logs.document_patterns import patterns_of
from cuolr.logs.last_clicks import PatternCells
from cuolr.off_policy.compared_lists import CountedDocuments, CountedLists
from cuolr.off_policy.intervals import Units
from cuolr.off_policy.users.examination_users import ExaminationCells
from cuolr.off_policy.users.fitted_users import least_examinations
from cuolr.progress import Stages, no_stages
from cuolr.random import FIXED_SEED
from cuolr.types import Candidates, Doubles, Ints

# Rows of click patterns that users are fitted to, at most: queries are sampled.
MAX_ROWS = 300_000
# The same of a log that counts documents, whose rows have one document each.
MAX_DOCUMENT_ROWS = 10 * MAX_ROWS
# Folds of the sessions that click models are compared on.
HELD_OUT_FOLDS = 2
# Column of the units of sessions, while patterns are counted.
UNIT = "unit"


@dataclass(frozen=True)
class UserCounts:
    """The lists of a log and their clicks; pairs are the documents of the candidates.

    Attributes:
        lists: The distinct lists; of a log that counts documents, these.
        cells: Counts of (level of context, document, position, last click above).
        patterns: Counts of (list, click pattern); None for an aggregated log, which does not have them.
        by_level: The same counts of each level of context; empty for an aggregated log.
        levels: The names of the levels of context.
        units: What the interval is over.
    """

    lists: CountedLists | CountedDocuments
    cells: ExaminationCells
    patterns: ClickPatterns | None
    by_level: tuple[ClickPatterns, ...]
    levels: tuple[str, ...]
    units: Units

    @classmethod
    def of(cls, log: ClickLog, keep: Ints, stages: Stages = no_stages) -> Self:
        """Count a log, each of whose rows shows a document.

        Args:
            log: Raw, or aggregated: users who depend on other clicks cannot be fitted then.
            keep: Queries to keep if a log of very many different lists is sampled.
            stages: Receives the progress.
        """
        stages("counting clicks", None)
        pairs = log.candidates.n_documents
        if log.aggregated:
            counts = ClickCounts.of(log).pooled()
            cells = _cells_of_lists(counts)
            lists = _of_lists(counts)
            of_cells = ExaminationCells.of_levels([cells], pairs, counts.lists.k, _least(lists, log.candidates))
            return cls(lists, of_cells, None, (), ("",), Units.of(log))
        units = Units.of(log)
        levels, level = context_levels(log)
        patterns = _patterns(log, units)
        at_most = MAX_DOCUMENT_ROWS if log.of_documents else MAX_ROWS
        chosen = _sample_of_queries(patterns.query, log.candidates.n_queries, keep, at_most)
        kept = np.isin(log.query, chosen)
        if not kept.all():
            patterns = patterns.select(np.isin(patterns.query, chosen))
        by_level: tuple[ClickPatterns, ...] = (patterns,)
        if len(levels) > 1:
            rows = (np.flatnonzero((level == number) & kept) for number in range(len(levels)))
            there = (of_level for of_level in rows if len(of_level))
            by_level = tuple(_patterns(log.select(of_level), units.select(of_level)) for of_level in there)
        cells_of_levels = [of_level.cells for of_level in by_level]
        logged = _logged(patterns, cells_of_levels)
        of_cells = ExaminationCells.of_levels(cells_of_levels, pairs, patterns.k, _least(logged, log.candidates))
        return cls(logged, of_cells, patterns, by_level, levels, units)

    @property
    def queries(self) -> Ints:
        """The queries with sessions, ascending."""
        return np.unique(self.lists.query)

    @property
    def can_hold_out(self) -> bool:
        """Whether there are clicks to fit click models to, and sessions to compare them on."""
        if self.patterns is None:
            return bool(self.cells.cells.clicks.any())
        return _can_hold_out(self.patterns)

    @property
    def can_hold_out_by_level(self) -> bool:
        """Whether there are several levels of context, and one of them has clicks and sessions to compare on."""
        return len(self.by_level) > 1 and any(map(_can_hold_out, self.by_level))

    def identifiability(self) -> Identifiability:
        """Whether the log separates position bias from relevance."""
        cells = self.cells.cells
        return Identifiability.of_documents(cells.pair, cells.position, cells.clicks)

    def clicks_by_pair(self) -> Doubles:
        """[P] the clicks on each document."""
        cells = self.cells.cells
        return np.bincount(cells.pair, weights=cells.clicks, minlength=self.cells.pairs).astype(np.float64)


def _can_hold_out(patterns: ClickPatterns) -> bool:
    train, held_out = patterns.held_out(HELD_OUT_FOLDS)
    return bool(train.clicks.any()) and held_out.sessions > 0


def _least(lists: CountedLists | CountedDocuments, candidates: Candidates) -> Doubles:
    """[P] the examinations from which a pair is known."""
    return least_examinations(lists.sessions_of_queries(candidates.n_queries)[candidates.query_of_document])


def _sample_of_queries(query: Ints, n_queries: int, keep: Ints, at_most: int = MAX_ROWS) -> Ints:
    """All queries, or a sample with about so many rows.

    Args:
        query: [M] the query of each row.
        n_queries: Number of queries.
        keep: Queries that are taken first.
        at_most: Number of rows.
    """
    if len(query) <= at_most:
        return np.arange(n_queries)
    shuffled = np.random.default_rng(FIXED_SEED).permutation(n_queries)
    order = np.concatenate([shuffled[np.isin(shuffled, keep)], shuffled[~np.isin(shuffled, keep)]])
    rows = np.bincount(query, minlength=n_queries)
    chosen: Ints = order[np.cumsum(rows[order]) - rows[order] < at_most]
    return chosen


def _patterns(log: ClickLog, units: Units) -> ClickPatterns:
    """The click patterns of a log, by unit."""
    # Columns that are not counted cost time, and so does a unit that is the query.
    context = {UNIT: units.of_row} if units.of_sessions else {}
    counted = replace(log, context=context, reward=None, timestamp=None, logging_propensity=None)
    patterns = patterns_of(counted, by=("context",)).with_every_document()
    return patterns.in_units(patterns.context[UNIT].astype(np.int64) if units.of_sessions else patterns.query)


def _logged(patterns: ClickPatterns, by_level: Sequence[PatternCells]) -> CountedLists | CountedDocuments:
    """The lists of the log, or its documents in each level of context."""
    if not patterns.of_documents:
        clicks = patterns.clicks * patterns.count[:, None]
        return CountedLists(patterns.query, patterns.documents, patterns.count, clicks).distinct()
    joined = ExaminationCells.of_levels(by_level, len(patterns.pairs), patterns.k)
    query = patterns.candidates.query_of_document[joined.cells.pair].astype(np.int64)
    return CountedDocuments(joined.cells, query, joined.level)


def _of_lists(counts: ClickCounts) -> CountedLists:
    lists = counts.lists
    documents = np.where(lists.where, lists.documents, -1)
    return CountedLists(lists.query.astype(np.int64), documents, lists.count.astype(np.float64))


def _cells_of_lists(counts: ClickCounts) -> PatternCells:
    row, position, last = counts.coordinates()
    return PatternCells(
        pair=counts.lists.documents[row, position].astype(np.int64),
        position=position,
        last_click=last,
        unit=counts.lists.query[row].astype(np.int64),
        impressions=counts.impressions,
        clicks=counts.clicks,
    )
