"""What a log says about each document of each query: where it was shown, clicks, and the corrected rate."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import scipy

from cuolr.data.feature_tables import first_variants
from cuolr.examination.from_clicks import ExaminationModel
from cuolr.logs.counts import ClickCounts
from cuolr.off_policy.judgments import NO_EXAMINATIONS, rates_with_intervals
from cuolr.types import Doubles, Ints


@dataclass(frozen=True)
class CorrectedRate:
    """Clicks, or reward, per expected examination, with the 95 % interval of `judgments.score_interval`.

    Attributes:
        examinations: Expected examinations, in units of position 1.
        rate: The estimate; None without examinations, as the ends of the interval.
        low: Lower end.
        high: Upper end.
    """

    examinations: float
    rate: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class DocumentEvidence:
    """Sums over the sessions of a log, by document. Variants of a document are one document, in the row of the first.

    Attributes:
        counts: The counts of the log.
        first: [n_documents] the row of the first variant of each document.
        shown: [n_documents, K] impressions by position on the page, sparse.
        clicks: [n_documents].
        rewards: [n_documents] the reward; the clicks if the log has no reward.
        examinations: [n_documents] Σ χ over impressions, in units of position 1.
        squares: [n_documents] Σ χ².
    """

    counts: ClickCounts
    first: Ints
    shown: "scipy.sparse.csr_array"
    clicks: Doubles
    rewards: Doubles
    examinations: Doubles
    squares: Doubles

    @classmethod
    def of(cls, counts: ClickCounts, examination: ExaminationModel) -> Self:
        """Sum up a log, with the examination that was estimated from it."""
        lists, first = counts.lists, first_variants(counts.lists.candidates)
        where = lists.where
        _, position = np.nonzero(where)
        impressions = counts.by_position(counts.impressions)[where]
        shape = (lists.candidates.n_documents, lists.k)
        shown = scipy.sparse.csr_array((impressions, (first[lists.documents[where]], position)), shape)

        def by_document(values: Doubles) -> Doubles:
            return np.bincount(first, counts.by_document(values), len(first)).astype(np.float64)

        return cls(
            counts=counts,
            first=first,
            shown=shown,
            clicks=by_document(counts.by_position(counts.clicks)),
            rewards=by_document(counts.by_position(counts.rewards)),
            examinations=by_document(examination.expected_examinations(counts)),
            squares=by_document(examination.expected_examinations(counts, power=2)),
        )

    def positions_of(self, row: int) -> list[tuple[int, int]]:
        """The positions, from 1, that a document was shown at, with the number of impressions."""
        own = self.shown[[row]].tocoo()
        found = zip(own.coords[1].tolist(), own.data.tolist(), strict=True)
        return sorted((position + 1, round(number)) for position, number in found if number > 0)

    def rate_of(self, rows: list[int] | Ints) -> CorrectedRate:
        """The rate of these documents, pooled: the sum of their rewards over the sum of their examinations."""
        chosen = np.asarray(rows, np.int64)
        rewards, examinations, squares = (
            values[chosen].sum(keepdims=True) for values in (self.rewards, self.examinations, self.squares)
        )
        if examinations[0] <= NO_EXAMINATIONS:
            return CorrectedRate(0.0, None, None, None)
        ends = rates_with_intervals(self.counts, rewards, examinations, squares)
        return CorrectedRate(float(examinations[0]), *(float(end[0]) for end in ends))

    def production_list(self, query: int, k: int) -> list[int]:
        """The rows of the documents that a query's sessions show furthest up on average, the first of them first.

        A document's height in a session is K minus its position, 0 where it is not shown. The list is as long as those
        of the sessions on average, and at most k.
        """
        offsets = self.counts.lists.candidates.offsets
        rows = np.arange(offsets[query], offsets[query + 1])
        shown = self.shown[rows]
        height = shown @ (self.counts.lists.k - np.arange(self.counts.lists.k))
        impressions = shown.sum(axis=1)
        sessions = self.sessions[query]
        length = min(k, int(np.ceil(impressions.sum() / max(sessions, 1.0) - 1e-9)))
        order = np.lexsort((rows, -height))
        return [int(rows[i]) for i in order[:length] if impressions[i] > 0]

    @cached_property
    def sessions(self) -> Doubles:
        """[n_queries] the sessions of each query."""
        lists = self.counts.lists
        return np.bincount(lists.query, lists.count, lists.candidates.n_queries).astype(np.float64)
