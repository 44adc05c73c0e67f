"""Ranked lists with the true grades of their documents: the input of every measure."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from cuolr.errors import InputError
from cuolr.policies.policy import rank_by_score
from cuolr.types import Bools, Doubles, IntegerArray, Ints, RankingDataset


@dataclass(frozen=True)
class GradedLists:
    """Ranked lists with the grades of their documents, one row per query.

    Attributes:
        shown: [B, K] the grade of the document at each position, 0 where there is none.
        where: [B, K] true = a document.
        ideal: [B, K] the grades of the ideal list.
        relevant: [B] the number of documents of the query with a grade above 0.
        documents: [B] the number of documents of the query.
        max_grade: The highest grade of the data set's scale.
        k: Number of positions that count; above K only if no query has more than K documents.
    """

    shown: IntegerArray
    where: Bools
    ideal: IntegerArray
    relevant: Ints
    documents: Ints
    max_grade: int
    k: int

    @classmethod
    def of(cls, dataset: RankingDataset, ranking: Ints) -> Self:
        """Look up the grades of ranked documents.

        Args:
            dataset: The queries and their true grades.
            ranking: [n_queries, K] the candidate index of the document at each position, −1 after the last one.
        """
        offsets, sizes = dataset.candidates.offsets, dataset.candidates.sizes
        assert len(ranking) == len(sizes), (ranking.shape, len(sizes))
        assert (ranking < sizes[:, None]).all(), "a candidate index beyond the query's last document"
        # The ideal list is the ranking by the true grades.
        best = rank_by_score(dataset.relevance.astype(np.float32), offsets, ranking.shape[1])
        query = dataset.candidates.query_of_document
        return cls(
            shown=_grades_at(dataset, ranking),
            where=ranking >= 0,
            ideal=_grades_at(dataset, best),
            relevant=np.bincount(query[dataset.relevance > 0], minlength=len(sizes)),
            documents=sizes,
            max_grade=dataset.max_grade,
            k=ranking.shape[1],
        )

    def top(self, k: int) -> "GradedLists":
        """The first `k` positions of the lists; fewer if no query has `k` documents."""
        width = self.shown.shape[1]
        if k > width and (self.documents > width).any():
            raise InputError(f"a measure at {k} needs lists of {k} documents, found {width}; rank with k >= {k}")
        return replace(self, shown=self.shown[:, :k], where=self.where[:, :k], ideal=self.ideal[:, :k], k=k)

    @property
    def positions(self) -> Ints:
        """[K] positions from 1."""
        return np.arange(1, self.shown.shape[1] + 1)


def exponential_gain(grades: IntegerArray) -> Doubles:
    """2^r − 1."""
    gain: Doubles = np.exp2(grades.astype(np.float64)) - 1
    return gain


def positive(values: Doubles | Ints) -> Doubles:
    """A divisor, with 1 in place of 0."""
    return np.where(values > 0, values, 1.0)


def _grades_at(dataset: RankingDataset, ranking: Ints) -> IntegerArray:
    """[n_queries, K] the grade of each ranked document, 0 where there is none."""
    if not dataset.candidates.n_documents:
        return np.zeros(ranking.shape, np.int8)
    rows = np.where(ranking >= 0, dataset.candidates.offsets[:-1, None] + ranking, 0)
    return np.where(ranking >= 0, dataset.relevance[rows], np.int8(0))
