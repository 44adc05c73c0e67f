"""A trial of a loaded policy: a file of unknown origin may hold parts that do not belong together."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cuolr.policies.policy import RankingPolicy
from cuolr.types import Candidates

# A model with more features was not trained by cuolr: LightGBM's text names each feature.
MAX_FEATURES = 1 << 20
# Models with more features are not tried: it would take much memory, and their documents have as many.
MAX_FEATURES_TO_TRY = 1 << 14
# Settings that say how large a network is; a group of them; and what they may be whatever the arrays are.
SIZES_OF_NETWORKS, GROUPS = ("n_features", "k", "hidden", "encoder_settings"), ("encoder_settings",)
LARGEST_WITHOUT_ARRAYS = 1 << 16
# Documents of each made-up query, and length of its list.
SIZES, K = (3, 0, 1, 2), 2


def check_sizes(arrays: Mapping[str, npt.NDArray[Any]], settings: object) -> None:
    """Raise if a network is larger than its arrays, before torch, which takes seconds, is loaded to build it.

    >>> check_sizes({"bias": np.zeros(3)}, {"members": [{"hidden": [10**9]}]})
    Traceback (most recent call last):
        ...
    ValueError: hidden: expected at most 65,536, found 1,000,000,000; the arrays hold 3 numbers

    Args:
        arrays: The parameters of the policy.
        settings: Its settings, with those of its members.
    """
    numbers = sum(array.size for array in arrays.values())
    limit = max(numbers, LARGEST_WITHOUT_ARRAYS)
    for name, size in _sizes(settings):
        if size > limit:
            raise ValueError(f"{name}: expected at most {limit:,}, found {size:,}; the arrays hold {numbers:,} numbers")


def _sizes(settings: object, name: str = "") -> Iterator[tuple[str, int]]:
    """The sizes in the settings of networks, at any depth."""
    if isinstance(settings, dict):
        for key, value in settings.items():
            yield from _sizes(value, key if key in SIZES_OF_NETWORKS else name if name in GROUPS else "")
    elif isinstance(settings, list):
        for value in settings:
            yield from _sizes(value, name)
    elif name and type(settings) is int:
        yield name, settings


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
