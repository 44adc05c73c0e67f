"""Statistics of a data set, and of the features of candidates."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cuolr.data.memory import give_back_pages
from cuolr.types import Candidates, Doubles, Floats, Ints, RankingDataset

# Documents that are read at a time, to bound memory.
ROWS_AT_A_TIME = 1 << 14


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
    if candidates.recipe is None:
        missing, _ = _shares(candidates.features)
        names = range(1, candidates.n_features + 1) if candidates.feature_names is None else candidates.feature_names
        return [FeatureSummary(str(name), "number", float(m), 0) for name, m in zip(names, missing, strict=True)]
    columns = candidates.recipe.columns
    last = np.cumsum([len(column.feature_names) for column in columns]) - 1
    missing, level = _shares(candidates.features, last)
    return [
        FeatureSummary(
            column.name,
            column.kind,
            float(level[number] if column.missing_level else missing[feature]),
            len(column.levels) + column.buckets,
        )
        for number, (column, feature) in enumerate(zip(columns, last, strict=True))
    ]


def _shares(features: Floats, indicators: Sequence[int] | Ints = ()) -> tuple[Doubles, Doubles]:
    """[F] the share of the documents without each feature; and the mean of each of some features.

    They are read once, some rows at a time: a column of a mapped file is on all of its pages.
    """
    missing, total = np.zeros(features.shape[1], np.int64), np.zeros(len(indicators))
    for start in range(0, len(features), ROWS_AT_A_TIME):
        rows = features[start : start + ROWS_AT_A_TIME]
        missing += np.isnan(rows).sum(axis=0)
        total += rows[:, np.asarray(indicators, np.int64)].sum(axis=0, dtype=np.float64)
        give_back_pages(features)
    return missing / len(features), total / len(features)
