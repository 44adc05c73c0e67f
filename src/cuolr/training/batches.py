"""Seeded batches of a click log, for learners."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.random import shuffled
from cuolr.types import Bools, Candidates, IntegerArray, Ints

# Rows of the log that are looked at together, so that memory does not grow with the log.
ROWS_AT_A_TIME = 1 << 18
WHOLE = slice(None)


@dataclass(frozen=True)
class SessionBatch:
    """Lists that were shown, with their clicks. It has no field for labels.

    Attributes:
        features: [B, K, F] the shown documents, normalised; 0 where nothing was shown.
        clicks: [B, K] 0 or 1, or the mean click of the sessions that a row stands for; 0 where nothing was shown.
        where: [B, K] true = a document was shown; real documents come first.
        weight: [B] the number of sessions that a row stands for, relative to the log's mean.
        unshown: [B, M, F] other candidates of the query, where a learner asks for them.
        unshown_where: [B, M] true = a real document.
    """

    features: Tensor
    clicks: Tensor
    where: Tensor
    weight: Tensor
    unshown: Tensor | None = None
    unshown_where: Tensor | None = None


class Batches:
    """Batches of a log, raw or aggregated, epoch after epoch, each in an order of its own.

    The batch of a step is a function of the seed and the step alone, so a run can be resumed at any step. Memory holds
    the scaled features of the documents that can occur; the log is read batch by batch and may be memory-mapped.

    Attributes:
        log: Where the batches come from.
        batch_size: B, at most the number of rows.
    """

    def __init__(
        self,
        log: ClickLog,
        normaliser: Normaliser,
        batch_size: int,
        seed: int,
        unshown: int = 0,
        rows: Ints | None = None,
    ) -> None:
        """Scale the documents.

        Args:
            log: Raw or aggregated.
            normaliser: Fitted.
            batch_size: B.
            seed: Decides the order of the rows and which unshown candidates are drawn.
            unshown: At most this many candidates of the query that were not shown come with each row.
            rows: The rows of the log to use; None = all.
        """
        self._rows = rows
        self._n_rows = len(log) if rows is None else len(rows)
        problems = [
            f"{name}: expected a whole number from {least} up, found {value}"
            for name, value, least in (("batch size", batch_size, 1), ("seed", seed, 0), ("unshown", unshown, 0))
            if value < least
        ]
        if not self._n_rows:
            problems.append("expected at least one row of the log to learn from, found none")
        if problems:
            raise InputError(problems)
        self.log = log
        self.batch_size = min(batch_size, self._n_rows)
        self._seed = seed
        self._unshown = unshown
        self._mean_count = sum(float(log.count[chunk].sum()) for chunk in self._chunks_of_rows()) / self._n_rows
        used = self._used_documents()
        self._place = np.cumsum(used) - 1
        self._features = scaled_documents(log.candidates, normaliser, used)

    def __len__(self) -> int:
        """The number of rows of an epoch."""
        return self._n_rows

    @property
    def rows(self) -> IntegerArray:
        """[number of rows] the rows of the log that an epoch is made of, in the log's order."""
        return self._row_numbers(0, self._n_rows)

    def at(self, step: int, part: slice = WHOLE) -> SessionBatch:
        """The batch of a step, counted from 0, or a part of its rows; it may begin in one epoch and end in the next."""
        stream = step * self.batch_size + np.arange(self.batch_size)
        epochs, places = np.divmod(stream, self._n_rows)
        parts = [shuffled(places[epochs == e], self._n_rows, self._seed, int(e)) for e in np.unique(epochs)]
        rows = np.concatenate(parts)
        rows = rows if self._rows is None else self._rows[rows]
        return self._gather(rows, np.random.default_rng((self._seed, step)), part)

    def in_order(self) -> Iterator[SessionBatch]:
        """All rows once, in the log's order; the last batch may be smaller."""
        for start in range(0, self._n_rows, self.batch_size):
            rows = self._row_numbers(start, start + self.batch_size)
            yield self._gather(rows, np.random.default_rng((self._seed, start)))

    def _gather(self, rows: IntegerArray, rng: np.random.Generator, part: slice = WHOLE) -> SessionBatch:
        log = self.log
        if self._unshown:
            # For all rows, so that what is drawn does not depend on the part.
            documents, real = self._draw_unshown(log.query[rows], log.ranking[rows], rng)
            documents, real = documents[part], real[part]
        rows = rows[part]
        query, ranking = log.query[rows], log.ranking[rows]
        where = ranking >= 0
        weight = log.count[rows] / self._mean_count
        batch = SessionBatch(
            features=self._features_of(log.candidates.offsets[query, None] + ranking, where),
            clicks=torch.from_numpy(np.where(where, log.clicks[rows], 0).astype(np.float32)),
            where=torch.from_numpy(where),
            weight=torch.from_numpy(weight.astype(np.float32)),
        )
        if not self._unshown:
            return batch
        unshown = self._features_of(documents, real)
        return SessionBatch(batch.features, batch.clicks, batch.where, batch.weight, unshown, torch.from_numpy(real))

    def _features_of(self, documents: IntegerArray, where: Bools) -> Tensor:
        """[B, …, F] the scaled features of these documents, 0 where there is none."""
        nothing = len(self._features) - 1
        return self._features[torch.from_numpy(np.where(where, self._place[documents], nothing))]

    def _draw_unshown(
        self, query: IntegerArray, ranking: IntegerArray, rng: np.random.Generator
    ) -> tuple[IntegerArray, Bools]:
        """Candidates of these queries that are not in these lists, at random.

        Returns:
            documents: [B, M] M as many as were asked for, or fewer where no query of the batch has so many.
            where: [B, M] true = a real document; these come first.
        """
        documents, available = self.log.candidates.padded_rows(query)
        row, position = np.nonzero(ranking >= 0)
        available[row, ranking[row, position]] = False
        keys = np.where(available, rng.random(available.shape), np.inf)
        width = min(self._unshown, int(available.sum(axis=1).max()))
        chosen = np.argsort(keys, axis=1)[:, :width]
        return np.take_along_axis(documents, chosen, axis=1), np.take_along_axis(available, chosen, axis=1)

    def _used_documents(self) -> Bools:
        """[n_documents] true = can occur in a batch."""
        candidates = self.log.candidates
        used = np.zeros(candidates.n_documents, np.bool_)
        for chunk in self._chunks_of_rows():
            query, ranking = self.log.query[chunk], self.log.ranking[chunk]
            if self._unshown:
                used[candidates.rows_of(np.unique(query))] = True
            else:
                used[(candidates.offsets[query, None] + ranking)[ranking >= 0]] = True
        return used

    def _chunks_of_rows(self) -> Iterator[IntegerArray]:
        for start in range(0, self._n_rows, ROWS_AT_A_TIME):
            yield self._row_numbers(start, start + ROWS_AT_A_TIME)

    def _row_numbers(self, start: int, end: int) -> IntegerArray:
        if self._rows is None:
            return np.arange(start, min(end, self._n_rows))
        return self._rows[start:end]


def fingerprint(log: ClickLog) -> str:
    """A hash of all that there is to learn from, whatever is done with it."""
    candidates = log.candidates
    digest = hashlib.blake2b(digest_size=16)
    for values in (log.query, log.ranking, log.clicks, log.count, candidates.offsets, candidates.features):
        for start in range(0, len(values), ROWS_AT_A_TIME):
            digest.update(np.ascontiguousarray(values[start : start + ROWS_AT_A_TIME]).data)
    return digest.hexdigest()


def split_by_query(log: ClickLog, queries: Ints) -> tuple[Ints, Ints]:
    """The rows of all queries but these, and the rows of these."""
    held_out = np.zeros(log.candidates.n_queries, np.bool_)
    held_out[queries] = True
    of_row = held_out[log.query]
    return np.flatnonzero(~of_row), np.flatnonzero(of_row)


def held_out_queries(log: ClickLog, share: float, seed: int) -> Ints:
    """A random part of the queries of which something was shown, at least one.

    Args:
        log: Of two such queries or more.
        share: Of them, above 0 and below 1.
        seed: Which these are.
    """
    if not 0 < share < 1:
        raise InputError(f"share of the queries to hold out: expected above 0 and below 1, found {share}")
    queries = _queries_shown(log)
    if len(queries) < 2:
        raise InputError(
            f"expected documents shown for at least 2 queries, to hold one out for validation, found {len(queries)}; "
            "validate on labelled queries"
        )
    n_held_out = min(max(1, round(share * len(queries))), len(queries) - 1)
    return np.random.default_rng(seed).permutation(queries)[:n_held_out]


def _queries_shown(log: ClickLog) -> Ints:
    """Those with a document in the log, in order: a learner that pools sessions has no others."""
    shown = np.zeros(log.candidates.n_queries, np.bool_)
    for start in range(0, len(log), ROWS_AT_A_TIME):
        part = log.select(slice(start, start + ROWS_AT_A_TIME))
        shown[part.query[part.where.any(axis=1)]] = True
    return np.flatnonzero(shown)


def scaled_documents(candidates: Candidates, normaliser: Normaliser, used: Bools) -> Tensor:
    """[number used + 1, F] the scaled features of the used documents, then a row of zeros."""
    scaled = np.zeros((int(used.sum()) + 1, candidates.n_features), np.float32)
    end = 0
    for rows, part in normaliser.in_parts(candidates, used):
        features = part[used[rows]]
        scaled[end : end + len(features)] = features
        end += len(features)
    return torch.from_numpy(scaled)
