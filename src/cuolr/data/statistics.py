"""Statistics of a data set, and of the features of candidates."""

from dataclasses import dataclass

import numpy as np

from cuolr.types import Candidates, RankingDataset


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


@dataclass(frozen=True)
class FeatureSummary:
    """One column of a table of features.

    Attributes:
        name: Its name; a number from 1 if it has none.
        kind: Its kind, see `FeatureColumn`.
        missing: Share of the documents without a value.
        levels: Number of levels of a category, or of buckets if it is hashed; 0 for others.
    """

    name: str
    kind: str
    missing: float
    levels: int


def describe_features(candidates: Candidates) -> list[FeatureSummary]:
    """A line for each column of a table, or for each feature if there was none."""
    missing = np.array([np.isnan(column).mean() for column in candidates.features.T])
    if candidates.recipe is None:
        names = range(1, candidates.n_features + 1) if candidates.feature_names is None else candidates.feature_names
        return [FeatureSummary(str(name), "number", float(m), 0) for name, m in zip(names, missing, strict=True)]
    summaries, end = [], 0
    for column in candidates.recipe.columns:
        end += len(column.feature_names)
        share = candidates.features[:, end - 1].mean() if column.missing_level else missing[end - 1]
        levels = len(column.levels) + column.buckets
        summaries.append(FeatureSummary(column.name, column.kind, float(share), levels))
    return summaries
