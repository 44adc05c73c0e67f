"""What a log says of the documents of each query, once it is known how people look."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.columns import index_dtype
from cuolr.logs.counts import CountedLists, count_lists
from cuolr.training.batches import SessionBatch, scaled_documents
from cuolr.types import Bools, Doubles, Ints

# Of a query that was shown with more documents than this, those that were looked at most are taken.
MAX_DOCUMENTS_OF_A_QUERY = 1_000
# Queries times documents of a query, at most; with very many queries fewer documents of each are taken.
MAX_PLACES = 20_000_000


@dataclass(frozen=True)
class ShownLists:
    """The lists of a log, counted, with the features of what they show.

    Attributes:
        counted: L lists.
        used: [n_documents] true = the log shows it.
        features: [n + 1, F] of the shown documents, scaled; the last row is 0.
        documents: [L, K] the row of each in `features`; n where nothing was shown.
    """

    counted: CountedLists
    used: Bools
    features: Tensor
    documents: Ints

    @classmethod
    def of(cls, log: ClickLog, normaliser: Normaliser) -> "ShownLists":
        """Of all sessions of a log."""
        counted = count_lists(log)
        lists = counted.lists
        rows = lists.documents
        used = np.zeros(lists.candidates.n_documents, np.bool_)
        used[rows[lists.where]] = True
        if not used.any():
            raise InputError("expected a log that shows documents, found none in any session")
        documents = np.where(lists.where, (np.cumsum(used) - 1)[rows], used.sum())
        return cls(counted, used, scaled_documents(lists.candidates, normaliser, used), documents)


@dataclass(frozen=True)
class Looks:
    """How often each document of a log was looked at, and clicked, row by row.

    Attributes:
        clicked: [M, N].
        looked: [M, N].
    """

    clicked: Doubles
    looked: Doubles


@dataclass(frozen=True)
class Evidence:
    """R queries with the documents that they were shown with, N at most.

    Attributes:
        features: [n + 1, F] of the documents, scaled; the last row is 0.
        documents: [R, N] the row of each document in `features`; n where there is none.
        where: [R, N] true = a document.
        attractiveness: [R, N] α̂; 0 where there is none.
        clicked: [R, N] clicks on it.
        looked: [R, N] looks at it; 0 where there is no document.
        weight: [R] sessions, relative to the mean.
    """

    features: Tensor
    documents: Tensor
    where: Tensor
    attractiveness: Tensor
    clicked: Doubles
    looked: Doubles
    weight: Tensor

    def __len__(self) -> int:
        """R."""
        return len(self.where)

    @classmethod
    def of_log(cls, log: ClickLog, rows: Ints, looks: Looks | None, normaliser: Normaliser) -> "Evidence":
        """Of some rows of a log as `pooled` makes it.

        Args:
            log: A row for each query, α̂ for clicks.
            rows: Which.
            looks: Of all rows; None = every session looked at all that it was shown.
            normaliser: Fitted.
        """
        chosen = log.select(rows)
        where, documents = chosen.where, chosen.documents
        used = np.zeros(log.candidates.n_documents, np.bool_)
        used[documents[where]] = True
        count = chosen.count[:, None].astype(np.float64)
        if looks is None:
            clicked, looked = chosen.clicks * count, where * count
        else:
            clicked, looked = looks.clicked[rows], looks.looked[rows]
        return cls(
            features=scaled_documents(log.candidates, normaliser, used),
            documents=torch.from_numpy(np.where(where, (np.cumsum(used) - 1)[documents], used.sum())),
            where=torch.from_numpy(where),
            attractiveness=torch.from_numpy(np.where(where, chosen.clicks, 0.0).astype(np.float32)),
            clicked=clicked,
            looked=looked,
            weight=torch.from_numpy((count[:, 0] / count.mean()).astype(np.float32)),
        )

    @classmethod
    def of_batch(cls, batch: SessionBatch) -> "Evidence":
        """Of a batch alone, every session of which looked at all."""
        n_documents = int(batch.where.sum())
        features = torch.cat([batch.features[batch.where], torch.zeros(1, batch.features.shape[2])])
        documents = torch.full(batch.where.shape, n_documents)
        documents[batch.where] = torch.arange(n_documents)
        weight = batch.weight[:, None].double()
        return cls(
            features=features,
            documents=documents,
            where=batch.where,
            attractiveness=batch.clicks,
            clicked=(batch.clicks * weight).numpy(),
            looked=(batch.where * weight).numpy(),
            weight=batch.weight,
        )


def pooled(counted: CountedLists, looked: Doubles, prior: Doubles, prior_looks: float) -> tuple[ClickLog, Looks]:
    """One row for each query of a log, with every document that it was shown with.

    Args:
        counted: The log.
        looked: [L, K] looks at each shown document.
        prior: [n_documents] the attractiveness of a document that nobody has looked at yet.
        prior_looks: m, as how many looks that counts.

    Returns:
        log: α̂ = (clicks + m·prior) / (looks + m) for clicks, at most 1; sessions of the query for count. Documents are
            in the order of looks.
        looks: Clicks and looks behind it.
    """
    lists = counted.lists
    candidates, where = lists.candidates, lists.where
    documents = lists.documents[where]

    def by_document(values: Doubles) -> Doubles:
        return np.bincount(documents, weights=values[where], minlength=candidates.n_documents).astype(np.float64)

    shown = np.flatnonzero(by_document(np.ones(where.shape)) > 0)
    clicks_on, looks_at = by_document(counted.by_position(counted.clicked))[shown], by_document(looked)[shown]
    queries, row = np.unique(candidates.query_of_document[shown], return_inverse=True)
    order = np.lexsort((-looks_at, row))
    starts = np.searchsorted(row[order], np.arange(len(queries)))
    place = np.arange(len(order)) - starts[row[order]]
    most = min(MAX_DOCUMENTS_OF_A_QUERY, max(lists.k, MAX_PLACES // len(queries)))
    order, place = order[place < most], place[place < most]
    row = row[order]
    shape = (len(queries), int(place.max()) + 1)

    def spread(values: Doubles, nothing: float = 0.0) -> Doubles:
        table = np.full(shape, nothing)
        table[row, place] = values[order]
        return table

    total = looks_at + prior_looks
    known = np.divide(clicks_on + prior_looks * prior[shown], total, out=np.zeros_like(total), where=total > 0)
    slots = (shown - candidates.offsets[candidates.query_of_document[shown]]).astype(np.float64)
    log = ClickLog(
        candidates=candidates,
        query=queries.astype(np.int32),
        ranking=spread(slots, -1.0).astype(index_dtype(candidates)),
        clicks=spread(np.minimum(known, 1.0)),
        count=np.bincount(lists.query, weights=lists.count, minlength=candidates.n_queries)[queries].astype(np.int64),
        aggregated=True,
    )
    return log, Looks(spread(clicks_on), spread(looks_at))
