"""A trial of a loaded policy: a file of unknown origin may hold parts that do not belong together."""

import numpy as np

from cuolr.policies.policy import RankingPolicy
from cuolr.types import Candidates

# A model with more features was not trained by cuolr: LightGBM's text names each feature.
MAX_FEATURES = 1 << 20
# Models with more features are not tried: it would take much memory, and their documents have as many.
MAX_FEATURES_TO_TRY = 1 << 14
# Documents of each made-up query, and length of its list.
SIZES, K = (3, 0, 1, 2), 2


def check_policy(policy: RankingPolicy) -> None:
    """Raise if a policy cannot rank made-up documents, some of whose values are missing; the wrong parts say why."""
    n_features = 1 if policy.n_features is None else policy.n_features
    if not 0 < n_features <= MAX_FEATURES:
        raise ValueError(f"expected 1 to {MAX_FEATURES:,} features, found {n_features:,}")
    names = getattr(getattr(policy, "normaliser", None), "feature_names", None)
    if names is not None and len(names) != n_features:
        raise ValueError(f"feature_names: expected {n_features} names, found {len(names)}")
    if policy.recipe is not None and len(policy.recipe.feature_names) != n_features:
        raise ValueError(f"recipe: expected {n_features} features, found {len(policy.recipe.feature_names)}")
    if n_features > MAX_FEATURES_TO_TRY:
        return
    ranking = policy.rank(_documents(n_features), K)
    expected = [min(size, K) for size in SIZES]
    for row, shown, size in zip(ranking.tolist(), expected, SIZES, strict=True):
        if not set(row[:shown]) <= set(range(size)) or len({*row[:shown]}) != shown or set(row[shown:]) - {-1}:
            raise ValueError(f"expected each document at most once, found the ranking {row} of {size} documents")


def _documents(n_features: int) -> Candidates:
    features = np.random.default_rng(0).normal(size=(sum(SIZES), n_features)).astype(np.float32)
    features[-1] = np.nan
    return Candidates(features, np.cumsum((0, *SIZES)), np.array([f"query {i}" for i in range(len(SIZES))]))
