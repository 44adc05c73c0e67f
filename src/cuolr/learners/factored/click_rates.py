"""Stage 2: the click rate or reward rate of each document of a query, corrected for examination."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np
import torch

from cuolr.config import Range, check_ranges
from cuolr.learners.rankers.targets import Targets
from cuolr.logs.counts import ClickCounts
from cuolr.logs.scaled_documents import ScaledDocuments
from cuolr.types import Bools, Doubles, Floats, Ints

# For a query with more shown documents than this, only the most examined are kept.
MAX_DOCUMENTS_OF_A_QUERY = 1_000
# Limit on queries × documents per query: with very many queries, fewer documents of each are kept.
MAX_TABLE_CELLS = 20_000_000


@dataclass(frozen=True)
class ClickRatesConfig:
    """Settings of the corrected click rates.

    Attributes:
        prior_strength: Strength of the prior, in pseudo-examinations.
        prior_steps: Number of training steps of the network that predicts the prior from features.
        prior_learning_rate: Learning rate of the network that predicts the prior.
    """

    prior_strength: Annotated[float, Range(0, 1e9)] = 30.0
    prior_steps: Annotated[int, Range(0, 1_000_000)] = 400
    prior_learning_rate: Annotated[float, Range(0, 1)] = 1e-3

    def __post_init__(self) -> None:
        check_ranges(self)


def sums_of_documents(counts: ClickCounts, values: Callable[[slice], Doubles]) -> Doubles:
    """[n_documents] the sum over the cells that show a document; 0 if never shown.

    This is `by_document(by_position(values))`, without the memory of a value for each cell and position.

    Args:
        counts: The counts of the log.
        values: Returns a value of each cell of a part.
    """
    total, k = np.zeros(counts.lists.candidates.n_documents), counts.lists.k
    for part in counts.parts():
        place = counts.cells[part] // (k + 1)
        start = int(place[0]) if len(place) else 0
        place -= start
        sums = np.bincount(place, weights=values(part))
        shown = np.flatnonzero(np.bincount(place))
        total += np.bincount(counts.document(*np.divmod(shown + start, k)), weights=sums[shown], minlength=len(total))
    return total


@dataclass(frozen=True)
class ClickRates:
    """R queries and their shown documents (at most N each), by decreasing expected examinations.

    Attributes:
        features: [n + 1, F] the scaled features of all shown documents; the last row, for padding, is 0.
        query: [R] the query of each row, ascending.
        sessions: [R] the number of sessions of each query.
        documents: [R, N] the row in `features` of each document; n where there is none.
        rewards: [R, N] the number of clicks on each document, or the sum of its rewards.
        expected_examinations: [R, N] the exposure; 0 where there is no document.
        rate: [R, N] the corrected rate of rewards; for clicks α̂, 0 to 1; 0 where there is no document.
    """

    features: Floats
    query: Ints
    sessions: Ints
    documents: Ints
    rewards: Doubles
    expected_examinations: Doubles
    rate: Doubles

    @classmethod
    def of(
        cls,
        counts: ClickCounts,
        shown: ScaledDocuments,
        exposure: Doubles,
        prior: Doubles,
        prior_strength: float,
    ) -> Self:
        """α̂ = (clicks + m·prior) / (expected examinations + m), pooled over all lists of a query; at most 1.

        If the log has rewards, they take the place of clicks, in units of the mean reward of a click. Rewards vary more
        than clicks do: m is divided by their information. Where the click rate α̂ is above 1, the reward rate is scaled
        down with it.

        Args:
            counts: The counts of the log.
            shown: The documents shown in the log.
            exposure: [n] the expected examinations of each shown document.
            prior: [n] the prior rate of each shown document.
            prior_strength: m, in pseudo-examinations.
        """
        candidates = counts.lists.candidates
        clicks_on, rewards_on = (
            sums_of_documents(counts, values.__getitem__)[shown.rows] for values in (counts.clicks, counts.rewards)
        )

        def rate_of(values: Doubles, prior: Doubles, strength: float) -> Doubles:
            total = exposure + strength
            return np.divide(values + strength * prior, total, out=np.zeros_like(total), where=total > 0)

        rate = rate_of(rewards_on, prior, prior_strength / counts.information)
        # α̂ above 1 is noise of few examinations: the rate of rewards, α̂ times the reward of a click, shrinks as α̂ does.
        rate = rate / np.maximum(rate_of(clicks_on, np.minimum(prior, 1.0), prior_strength), 1.0)
        sessions = np.bincount(counts.lists.query, weights=counts.lists.count, minlength=candidates.n_queries).astype(
            np.float64
        )
        by_document = np.stack([rewards_on, exposure, rate])
        queries = candidates.query_of_document[shown.rows]
        return cls.by_query(shown.features, queries, by_document, sessions, counts.lists.k)

    @classmethod
    def by_query(cls, features: Floats, query: Ints, by_document: Doubles, sessions: Doubles, k: int) -> Self:
        """Lay out values by document as a row for each query; of very many documents, the most examined are kept.

        Args:
            features: [n + 1, F] the scaled features of all shown documents; the last row, for padding, is 0.
            query: [n] the query of each document.
            by_document: [3, n] the rewards, the expected examinations and the rate of each document.
            sessions: [n_queries] the number of sessions of each query.
            k: Number of documents of a query that are kept in any case.
        """
        exposure = by_document[1]
        queries, row = np.unique(query, return_inverse=True)
        order = np.lexsort((-exposure, row))
        starts = np.searchsorted(row[order], np.arange(len(queries)))
        place = np.arange(len(order)) - starts[row[order]]
        width = min(MAX_DOCUMENTS_OF_A_QUERY, max(k, MAX_TABLE_CELLS // len(queries)))
        order, place = order[place < width], place[place < width]
        row = row[order]
        documents = np.full((len(queries), int(place.max()) + 1), len(query))
        documents[row, place] = order
        table = np.zeros((3, *documents.shape))
        table[:, row, place] = by_document[:, order]
        return cls(features, queries, sessions[queries].astype(np.int64), documents, *table)

    def __len__(self) -> int:
        """R, the number of queries."""
        return len(self.query)

    @property
    def where(self) -> Bools:
        """[R, N] true = a document."""
        return self.documents < len(self.features) - 1

    def select(self, rows: Ints) -> Self:
        """The rates of these rows; features are shared."""
        return replace(
            self,
            query=self.query[rows],
            sessions=self.sessions[rows],
            documents=self.documents[rows],
            rewards=self.rewards[rows],
            expected_examinations=self.expected_examinations[rows],
            rate=self.rate[rows],
        )

    def sample(self, max_documents: int, seed: int) -> Self:
        """All queries, or a random sample with at most `max_documents` documents in total."""
        documents = self.where.sum(axis=1)
        if documents.sum() <= max_documents:
            return self
        order = np.random.default_rng(seed).permutation(len(self))
        return self.select(np.sort(order[np.cumsum(documents[order]) <= max_documents]))

    def targets(self) -> Targets:
        """The corrected rates as targets for rankers; a query's weight is its number of sessions."""
        return Targets(
            features=torch.from_numpy(self.features),
            documents=torch.from_numpy(self.documents),
            where=torch.from_numpy(self.where),
            target=torch.from_numpy(self.rate.astype(np.float32)),
            weight=torch.from_numpy((self.sessions / self.sessions.mean()).astype(np.float32)),
        )
