"""Weights of positions: what a click or a reward at a position counts."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from cuolr.errors import InputError
from cuolr.types import Bools, Doubles

# 1 / log2(1 + position), or the weight of each position; None = 1 for all.
Discount: TypeAlias = Literal["dcg"] | Sequence[float] | None


def discount_weights(discount: Discount, k: int) -> Doubles:
    """[k] the weight of each position, from the top.

    >>> discount_weights("dcg", 3).round(2).tolist()
    [1.0, 0.63, 0.5]
    """
    if discount is None:
        return np.ones(k)
    if discount == "dcg":
        dcg: Doubles = 1 / np.log2(np.arange(k) + 2.0)
        return dcg
    if isinstance(discount, str):
        raise InputError(f"discount: expected 'dcg' or a weight for each position, found '{discount}'")
    weights = np.array(discount, np.float64)
    if weights.ndim != 1 or len(weights) < k or not (np.isfinite(weights) & (weights >= 0)).all() or not weights[0] > 0:
        raise InputError(
            f"discount: expected 'dcg' or {k} weights, one per position, finite, >= 0 and the first above 0; found "
            f"{', '.join(map(str, discount))}"
        )
    return weights[:k]


def weights_in_lists(where: Bools, weights: Doubles) -> Doubles:
    """[M, K] the weight of each document, by its rank among those shown; 0 after the last weight, and where none is.

    Args:
        where: [M, K] true = a document is shown.
        weights: [k] of each rank.
    """
    rank = np.minimum(np.cumsum(where, axis=1) - 1, len(weights))
    in_lists: Doubles = np.append(weights, 0.0)[rank] * where
    return in_lists
