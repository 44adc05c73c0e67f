"""Ranking SVM: the logging policy of the paper, a linear ranker trained on a small part of the labelled queries.

Left of the wall: fitting reads relevance labels.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cuolr.data.normalise import Normaliser
from cuolr.errors import InputError
from cuolr.policies.base import POLICIES, ScoringPolicy
from cuolr.types import Candidates, Doubles, Floats, Ints, RankingDataset

# Numbers in the matrix of pair differences at most, which bounds the memory of fitting to about 1.5 GB.
MAX_PAIR_VALUES = 50_000_000
# Queries that are scaled at a time when scoring, so that no scaled copy of all documents is made.
QUERIES_AT_A_TIME = 512


@POLICIES.register("ranksvm")
@dataclass(frozen=True)
class LinearPolicy(ScoringPolicy):
    """Scores a document by w · x, x its normalised features.

    Attributes:
        weights: [F].
        normaliser: Fitted on the training candidates.
    """

    weights: Floats
    normaliser: Normaliser

    @property
    def n_features(self) -> int:
        """As many as there are weights."""
        return len(self.weights)

    def score(self, candidates: Candidates) -> Floats:
        """[n_documents] w · x."""
        candidates = self.normaliser.as_fitted(candidates, self.n_features)
        scores = np.empty(candidates.n_documents, np.float32)
        for first in range(0, candidates.n_queries, QUERIES_AT_A_TIME):
            offsets = candidates.offsets[first : first + QUERIES_AT_A_TIME + 1]
            rows = slice(offsets[0], offsets[-1])
            scaled = self.normaliser.transform(candidates.features[rows], offsets - offsets[0])
            # Not a matrix product: BLAS rounds a row differently depending on the rows around it.
            scores[rows] = np.einsum("nf,f->n", scaled, self.weights)
        return scores

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Weights and the fitted range of each feature."""
        return {"weights": self.weights, **self.normaliser.arrays()}

    def settings(self) -> dict[str, Any]:
        """How features are normalised."""
        return self.normaliser.settings()

    @classmethod
    def from_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """The policy with these weights."""
        return cls(arrays["weights"], Normaliser.from_parts(arrays, settings))


def fit_ranksvm(
    dataset: RankingDataset,
    fraction: float = 0.01,
    seed: int = 0,
    normalising: str = "log-min-max",
    C: float = 10.0,
    pairs_per_query: int = 1_000,
) -> LinearPolicy:
    """Ranking SVM on pair differences: min_w ½|w|² + C·mean max(0, 1 − w·(x_better − x_worse))².

    Section 5.1: trained on 1 % of the training data. The features' range is taken from all training candidates,
    which needs no label.

    Args:
        dataset: The training queries with their grades.
        fraction: Share of the queries to learn from, above 0 and at most 1. Where none of them has two grades,
            more are drawn until one has.
        seed: Which queries and which pairs.
        normalising: See `Normaliser`.
        C: Weight of the mean loss over pairs against the size of w.
        pairs_per_query: At most this many pairs of documents of a query, fewer where memory asks for it.
    """
    if not 0 < fraction <= 1:
        raise InputError(f"fraction of the training queries: expected above 0 and at most 1, found {fraction}")
    if seed < 0:
        raise InputError(f"seed: expected a whole number from 0 up, found {seed}")
    rng = np.random.default_rng(seed)
    queries = _draw_queries(dataset, fraction, rng)
    normaliser = Normaliser.fit(normalising, dataset.candidates)
    sample = dataset.select(queries)
    affordable = MAX_PAIR_VALUES // (len(queries) * sample.candidates.n_features)
    better, worse = draw_pairs(
        sample.relevance, sample.candidates.offsets, max(1, min(pairs_per_query, affordable)), rng
    )
    scaled = normaliser.apply(sample.candidates).features
    weights = _solve(scaled[better] - scaled[worse], C)
    return LinearPolicy(weights.astype(np.float32), normaliser)


def _draw_queries(dataset: RankingDataset, fraction: float, rng: np.random.Generator) -> Ints:
    """A random part of the queries, at least one of which has documents of two grades."""
    query = dataset.candidates.query_of_document
    lowest = np.full(dataset.candidates.n_queries, dataset.max_grade)
    highest = np.zeros(dataset.candidates.n_queries, np.int64)
    np.minimum.at(lowest, query, dataset.relevance)
    np.maximum.at(highest, query, dataset.relevance)
    order = rng.permutation(dataset.candidates.n_queries)
    with_pairs = np.flatnonzero((highest > lowest)[order])
    if not len(with_pairs):
        raise InputError(
            f"none of the {len(order)} training queries has documents of two different grades; a ranker cannot learn"
        )
    wanted = round(fraction * len(order))
    return order[: max(wanted, with_pairs[0] + 1)]


def draw_pairs(
    relevance: npt.NDArray[np.int8], offsets: Ints, pairs_per_query: int, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Pairs of documents of the same query and of different grades.

    All of a query's pairs where these are few; else a sample without repeats, one pair from each of
    `pairs_per_query` equal stretches of the list of all pairs, so that every grade of document has its share.

    Args:
        relevance: [n_documents].
        offsets: [n_queries + 1] where each query's documents begin.
        pairs_per_query: At most this many of each query.
        rng: Where the sample comes from.

    Returns:
        better: [n_pairs] the row of the document with the higher grade.
        worse: [n_pairs] the row of the other.
    """
    sizes = np.diff(offsets)
    query = np.repeat(np.arange(len(sizes)), sizes)
    by_grade = np.lexsort((relevance, query))
    # In this order the documents worse than one are those between its query's start and its grade's start.
    new_grade = np.diff(query * 128 + relevance[by_grade], prepend=-1) != 0
    grade_start = np.maximum.accumulate(np.where(new_grade, np.arange(len(query)), 0))
    pairs_before = np.concatenate([[0], np.cumsum(grade_start - offsets[query])])

    available = np.diff(pairs_before[offsets])
    taken = np.minimum(available, pairs_per_query)
    of_query = np.repeat(np.arange(len(sizes)), taken)
    stretch = np.arange(len(of_query)) - np.repeat(np.cumsum(taken) - taken, taken)
    first = stretch * available[of_query] // taken[of_query]
    last = (stretch + 1) * available[of_query] // taken[of_query]
    pair = pairs_before[offsets[:-1]][of_query] + rng.integers(first, last)

    better = np.searchsorted(pairs_before, pair, side="right") - 1
    worse = offsets[:-1][of_query] + pair - pairs_before[better]
    return by_grade[better], by_grade[worse]


def _solve(differences: Floats, C: float) -> Doubles:
    """[F] the weights of the SVM on pair differences."""
    from sklearn.svm import LinearSVC  # takes half a second to load, for this alone

    # The solver wants two classes, so every other pair is turned round; one pair alone is taken both ways.
    if len(differences) == 1:
        differences = np.repeat(differences, 2, axis=0)
    sign = np.where(np.arange(len(differences)) % 2, -1, 1)
    svm = LinearSVC(dual=False, fit_intercept=False, C=C / len(differences))
    weights: Doubles = svm.fit(differences * sign[:, None].astype(np.float32), sign).coef_[0]
    return weights
