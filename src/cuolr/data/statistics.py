"""Statistics of a data set."""

from dataclasses import dataclass

import numpy as np

from cuolr.types import RankingDataset


@dataclass(frozen=True)
class DatasetStatistics:
    """Counts of one split.

    Attributes:
        queries: Number of queries.
        documents: Number of documents.
        features: Features per document.
        grades: Number of documents of each grade, from 0 to the highest of the scale.
        documents_per_query: Minimum, mean and maximum.
        queries_without_relevant: Number of queries whose documents all have grade 0; nDCG is not defined for them.
    """

    queries: int
    documents: int
    features: int
    grades: tuple[int, ...]
    documents_per_query: tuple[int, float, int]
    queries_without_relevant: int


def describe(dataset: RankingDataset) -> DatasetStatistics:
    """The counts of a split."""
    candidates = dataset.candidates
    sizes = candidates.sizes
    best = np.maximum.reduceat(dataset.relevance, candidates.offsets[:-1])
    return DatasetStatistics(
        queries=candidates.n_queries,
        documents=candidates.n_documents,
        features=candidates.n_features,
        grades=tuple(np.bincount(dataset.relevance, minlength=dataset.max_grade + 1).tolist()),
        documents_per_query=(int(sizes.min()), float(sizes.mean()), int(sizes.max())),
        queries_without_relevant=int(np.count_nonzero(best == 0)),
    )
