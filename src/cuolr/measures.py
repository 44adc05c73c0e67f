"""How good ranked lists are, one value per query, from the true grades of the documents.

A measure is named as it is written everywhere: `ndcg@10` in Python, in the shell and in every table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

import numpy as np

from cuolr.errors import InputError
from cuolr.policies.base import rank_by_score
from cuolr.registry import Registry
from cuolr.types import Bools, Doubles, IntegerArray, Ints, RankingDataset

WithoutRelevant = Literal["skip", "zero", "one"]


@dataclass(frozen=True)
class GradedLists:
    """All that a measure may look at, one row per query.

    Attributes:
        shown: [B, K] the grade of the document at each position, 0 where there is none.
        where: [B, K] true = a document is there.
        ideal: [B, K] the grades of the best possible list.
        relevant: [B] how many documents of the query have a grade above 0.
        documents: [B] how many documents the query has.
        max_grade: The highest grade of the data set's scale.
    """

    shown: IntegerArray
    where: Bools
    ideal: IntegerArray
    relevant: Ints
    documents: Ints
    max_grade: int

    @classmethod
    def of(cls, dataset: RankingDataset, ranking: Ints) -> Self:
        """Look up the grades of ranked documents.

        Args:
            dataset: The queries and their true grades.
            ranking: [n_queries, K] the slot of the document at each position, −1 after the last one.
        """
        offsets, sizes = dataset.candidates.offsets, dataset.candidates.sizes
        assert len(ranking) == len(sizes), (ranking.shape, len(sizes))
        assert (ranking < sizes[:, None]).all(), "a slot beyond the query's last document"
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
        )

    def top(self, k: int) -> "GradedLists":
        """The lists cut after `k` positions."""
        width = self.shown.shape[1]
        if k > width and (self.documents > width).any():
            raise InputError(f"a measure at {k} needs lists of {k} documents, found {width}; rank at least {k}")
        return GradedLists(
            self.shown[:, :k], self.where[:, :k], self.ideal[:, :k], self.relevant, self.documents, self.max_grade
        )


def _grades_at(dataset: RankingDataset, ranking: Ints) -> IntegerArray:
    """[n_queries, K] the grade of each ranked document, 0 where there is none."""
    if not dataset.candidates.n_documents:
        return np.zeros(ranking.shape, np.int8)
    rows = np.where(ranking >= 0, dataset.candidates.offsets[:-1, None] + ranking, 0)
    return np.where(ranking >= 0, dataset.relevance[rows], np.int8(0))


MeasureFunction: TypeAlias = Callable[[GradedLists], Doubles]
MEASURES: Registry[MeasureFunction] = Registry("measure", package=None)


@dataclass(frozen=True)
class Measure:
    """A measure with its cutoff.

    >>> Measure.parse("ndcg@10")
    Measure(name='ndcg', cutoff=10)
    >>> str(Measure("dcg", 5))
    'dcg@5'

    Attributes:
        name: As registered.
        cutoff: Positions that count, from the top.
    """

    name: str
    cutoff: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a measure as it is written: `ndcg@10`."""
        name, at, cutoff = text.partition("@")
        MEASURES.get(name)
        if not (at and cutoff.isascii() and cutoff.isdigit() and int(cutoff) > 0):
            found = f"'{cutoff}'" if at else "nothing"
            raise InputError(f"measure '{text}': expected '@' and a whole number above 0 after '{name}', found {found}")
        return cls(name, int(cutoff))

    def __str__(self) -> str:
        return f"{self.name}@{self.cutoff}"

    def per_query(self, lists: GradedLists, without_relevant: WithoutRelevant = "skip") -> Doubles:
        """The measure of each list.

        Deviation: the paper does not say what a query without a relevant document counts; here it is a choice.

        Args:
            lists: At least as long as the cutoff.
            without_relevant: What a query without a relevant document counts: `zero`, `one`, or NaN, for `skip`.

        Returns:
            [n_queries].
        """
        values = MEASURES.get(self.name)(lists.top(self.cutoff))
        return np.where(lists.relevant > 0, values, {"skip": np.nan, "zero": 0.0, "one": 1.0}[without_relevant])


def measure_ranking(
    dataset: RankingDataset, ranking: Ints, measure: str, without_relevant: WithoutRelevant = "skip"
) -> Doubles:
    """One measure of ranked lists, by name.

    Args:
        dataset: The queries and their true grades.
        ranking: [n_queries, K] slots, −1 after the last document.
        measure: Such as `ndcg@10`.
        without_relevant: What a query without a relevant document counts.

    Returns:
        [n_queries], NaN for the queries to skip.
    """
    return Measure.parse(measure).per_query(GradedLists.of(dataset, ranking), without_relevant)


def mean_over_queries(values: Doubles) -> float:
    """The mean over the queries that count, that is, are not NaN."""
    counted = values[~np.isnan(values)]
    if not len(counted):
        raise InputError(f"none of the {len(values)} queries has a relevant document, so there is nothing to average")
    return float(counted.mean())


@MEASURES.register("dcg")
def dcg(lists: GradedLists) -> Doubles:
    """Discounted cumulative gain, Σ_k (2^r_k − 1) / log2(1 + k), positions k counted from 1."""
    return _discounted_gain(lists.shown)


@MEASURES.register("ndcg")
def ndcg(lists: GradedLists) -> Doubles:
    """Discounted cumulative gain over that of the ideal list; 0 where no document is relevant."""
    ideal = _discounted_gain(lists.ideal)
    return _discounted_gain(lists.shown) / np.where(ideal > 0, ideal, 1)


def _discounted_gain(grades: IntegerArray) -> Doubles:
    positions = np.arange(1, grades.shape[1] + 1)
    total: Doubles = (np.exp2(grades.astype(np.float64)) - 1) @ (1 / np.log2(1 + positions))
    return total
