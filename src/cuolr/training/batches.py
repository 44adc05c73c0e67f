"""Seeded batches of lists, for learners trained by gradient descent."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.logs.clicklog import ClickLog
from cuolr.logs.scaled_documents import scaled_features
from cuolr.random import shuffled
from cuolr.types import Bools, Candidates, Doubles, IntegerArray, Ints

# Number of rows read at a time, so that memory does not grow with the log.
ROWS_AT_A_TIME = 1 << 18
WHOLE = slice(None)


@dataclass(frozen=True)
class SessionBatch:
    """Shown lists with their rewards. It has no field for labels.

    Attributes:
        features: [B, K, F] the shown documents, normalised; 0 where nothing was shown.
        rewards: [B, K] the clicks, 0 or 1, or the rewards of the log, corrected for bias or not; the mean over the
            sessions of an aggregated row; 0 where nothing was shown.
        where: [B, K] true = a document was shown; real documents come first.
        weight: [B] the number of sessions of a row, relative to the log's mean.
        unshown: [B, M, F] unshown candidates of the query, if the learner asks for them.
        unshown_where: [B, M] true = a real document.
    """

    features: Tensor
    rewards: Tensor
    where: Tensor
    weight: Tensor
    unshown: Tensor | None = None
    unshown_where: Tensor | None = None


@dataclass(frozen=True)
class WeightedLists:
    """M lists of documents with a target for each document, such as clicks or weighted rewards.

    Attributes:
        candidates: The documents of each query.
        query: [M] the query of each list.
        ranking: [M, K] the candidate index of the document at each position; −1 where there is none.
        targets: [M, K] the target of each document.
        count: [M] the number of sessions of each list.
    """

    candidates: Candidates
    query: IntegerArray
    ranking: IntegerArray
    targets: npt.NDArray[Any]
    count: Ints

    @classmethod
    def of(cls, log: ClickLog, targets: Doubles | None = None) -> Self:
        """The lists of a log, with their rewards as targets unless others are given."""
        return cls(log.candidates, log.query, log.ranking, log.rewards if targets is None else targets, log.count)

    def __len__(self) -> int:
        """M, the number of lists."""
        return len(self.query)


class Batches:
    """Batches of lists, shuffled anew in each epoch.

    A batch depends only on the seed and the step, so a run can be resumed at any step. The scaled features of all used
    documents are kept in memory; the lists are read batch by batch and may be memory-mapped.

    Attributes:
        lists: The lists.
        batch_size: B, at most the number of rows.
    """

    def __init__(
        self,
        lists: WeightedLists,
        normaliser: Normaliser,
        batch_size: int,
        seed: int,
        unshown: int = 0,
        rows: Ints | None = None,
    ) -> None:
        """Batches of these lists.

        Args:
            lists: The lists to train on.
            normaliser: A fitted normaliser.
            batch_size: B, the number of lists in a batch.
            seed: Seed of the order of the rows and of the sample of unshown candidates.
            unshown: Maximum number of unshown candidates of the query that are added to each row.
            rows: The lists to use; None = all.
        """
        self._rows = rows
        self._n_rows = len(lists) if rows is None else len(rows)
        problems = [
            f"{name}: expected a whole number from {least} up, found {value}"
            for name, value, least in (("batch_size", batch_size, 1), ("seed", seed, 0), ("unshown", unshown, 0))
            if value < least
        ]
        if not self._n_rows:
            problems.append("lists: expected at least one list to train on, found none")
        if problems:
            raise InputError(problems)
        self.lists = lists
        self.batch_size = min(batch_size, self._n_rows)
        self._seed = seed
        self._unshown = unshown
        self._mean_count = sum(float(lists.count[chunk].sum()) for chunk in self._chunks_of_rows()) / self._n_rows
        self._normaliser = normaliser

    def __len__(self) -> int:
        """The number of rows in an epoch."""
        return self._n_rows

    @property
    def rows(self) -> IntegerArray:
        """[number of rows] the lists of an epoch, in their original order."""
        return self._row_numbers(0, self._n_rows)

    def at(self, step: int, part: slice = WHOLE) -> SessionBatch:
        """The batch of a step, counted from 0, or some of its rows; a batch may span two epochs."""
        stream = step * self.batch_size + np.arange(self.batch_size)
        epochs, places = np.divmod(stream, self._n_rows)
        parts = [shuffled(places[epochs == e], self._n_rows, self._seed, int(e)) for e in np.unique(epochs)]
        rows = np.concatenate(parts)
        rows = rows if self._rows is None else self._rows[rows]
        return self._gather(rows, np.random.default_rng((self._seed, step)), part)

    def in_order(self) -> Iterator[SessionBatch]:
        """All rows once, in their original order; the last batch may be smaller."""
        for start in range(0, self._n_rows, self.batch_size):
            rows = self._row_numbers(start, start + self.batch_size)
            yield self._gather(rows, np.random.default_rng((self._seed, start)))

    @torch.no_grad()
    def mean(self, score: Callable[[SessionBatch], Tensor]) -> float:
        """The session-weighted mean of `score`, which returns [B] for a batch, over all lists."""
        total = weight = 0.0
        for batch in self.in_order():
            total += float((score(batch) * batch.weight).sum())
            weight += float(batch.weight.sum())
        return total / weight

    def _gather(self, rows: IntegerArray, rng: np.random.Generator, part: slice = WHOLE) -> SessionBatch:
        lists = self.lists
        if self._unshown:
            # Drawn for all rows, so that the sample does not depend on the part.
            documents, real = self._draw_unshown(lists.query[rows], lists.ranking[rows], rng)
            documents, real = documents[part], real[part]
        rows = rows[part]
        query, ranking = lists.query[rows], lists.ranking[rows]
        where = ranking >= 0
        weight = lists.count[rows] / self._mean_count
        batch = SessionBatch(
            features=self._features_of(lists.candidates.offsets[query, None] + ranking, where),
            rewards=torch.from_numpy(np.where(where, lists.targets[rows], 0).astype(np.float32)),
            where=torch.from_numpy(where),
            weight=torch.from_numpy(weight.astype(np.float32)),
        )
        if not self._unshown:
            return batch
        unshown = self._features_of(documents, real)
        return SessionBatch(batch.features, batch.rewards, batch.where, batch.weight, unshown, torch.from_numpy(real))

    @cached_property
    def _scaled(self) -> tuple[IntegerArray, Tensor]:
        """The place of each used document, and the scaled features; only if a batch is asked for."""
        used = self._used_documents()
        features = scaled_features(self.lists.candidates, self._normaliser, used)
        return np.cumsum(used) - 1, torch.from_numpy(features)

    def _features_of(self, documents: IntegerArray, where: Bools) -> Tensor:
        """[B, …, F] the scaled features of these documents, 0 where there is none."""
        place, features = self._scaled
        return features[torch.from_numpy(np.where(where, place[documents], len(features) - 1))]

    def _draw_unshown(
        self, query: IntegerArray, ranking: IntegerArray, rng: np.random.Generator
    ) -> tuple[IntegerArray, Bools]:
        """A random sample of the candidates of these queries that are not in these lists.

        Returns:
            documents: [B, M] M is `unshown`, or smaller if no query of the batch has that many.
            where: [B, M] true = a real document; these come first.
        """
        documents, available = self.lists.candidates.padded_rows(query)
        row, position = np.nonzero(ranking >= 0)
        available[row, ranking[row, position]] = False
        keys = np.where(available, rng.random(available.shape), np.inf)
        width = min(self._unshown, int(available.sum(axis=1).max()))
        chosen = np.argsort(keys, axis=1)[:, :width]
        return np.take_along_axis(documents, chosen, axis=1), np.take_along_axis(available, chosen, axis=1)

    def _used_documents(self) -> Bools:
        """[n_documents] true = the document can occur in a batch."""
        candidates = self.lists.candidates
        used = np.zeros(candidates.n_documents, np.bool_)
        for chunk in self._chunks_of_rows():
            query, ranking = self.lists.query[chunk], self.lists.ranking[chunk]
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
