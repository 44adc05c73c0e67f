"""What the features of candidates are, column by column."""

from dataclasses import dataclass

import numpy as np

from cuolr.types import Candidates


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
