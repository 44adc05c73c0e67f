"""Sums of many small regression trees, by bit vectors instead of walks from root to leaf.

QuickScorer (Lucchese et al. 2015, "QuickScorer: a fast algorithm to rank documents with additive ensembles of
regression trees"): a document is compared with every split. A split that sends it right rules out the leaves below its
left child. The first leaf from the left that no split rules out is the document's leaf. In NumPy, each step is one pass
over all splits and a block of documents.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cuolr.policies.regression_trees import MISSING_LEFT, MISSING_RIGHT, RegressionTrees
from cuolr.types import Bools, Doubles, Floats, Ints

# Each leaf is one bit; from about 64 leaves on, walks are faster.
MAX_LEAVES = 32
# Comparisons at a time: as many as stay in the processor's cache.
BLOCK = 1 << 19
# LightGBM takes values up to this size for 0.
ZERO = np.float32(1e-35)
# Trees are filled up to the leaves of the largest one; where this makes more than so many times as many splits, walks
# are faster.
MAX_FILLED = 4


@dataclass(frozen=True)
class BitVectorTrees:
    """The splits of T trees, filled up to S splits for each tree; S · T rows, the first split of each tree first.

    Attributes:
        feature: [S · T] the feature that a split compares.
        threshold: [S · T, 1] the largest number in float32 that goes left.
        missing_left: [S · T, 1] whether a missing value goes left.
        kept: [S · T, 1] the leaves that a split keeps if it sends a document right, as bits.
        value: [T · (S + 1)] the value of each leaf, from left to right.
        first_leaf: [T, 1] the index of the first leaf of each tree.
    """

    feature: Ints
    threshold: Floats
    missing_left: Bools
    kept: npt.NDArray[Any]
    value: Doubles
    first_leaf: Ints

    @classmethod
    def of(cls, trees: RegressionTrees) -> Self | None:
        """The trees as bit vectors; None if they are too large, or too different in size, to gain by it."""
        n_trees, most = len(trees.leaves), int(trees.leaves.max(initial=0))
        if not 2 <= most <= MAX_LEAVES or (most - 1) * n_trees > MAX_FILLED * len(trees.feature):
            return None
        tree = np.repeat(np.arange(n_trees), trees.leaves - 1)
        split = np.arange(len(tree)) - np.repeat(np.cumsum(trees.leaves - 1) - (trees.leaves - 1), trees.leaves - 1)

        def filled(values: npt.NDArray[Any], other: Any) -> npt.NDArray[Any]:
            array = np.full((most - 1, n_trees), other, values.dtype)
            array[split, tree] = values
            return array

        left, right = filled(trees.left, -1), filled(trees.right, -1)
        start, of_left, place = _leaves_from_left_to_right(left, right, trees.leaves)
        value = np.zeros((n_trees, most))
        value[place >= 0] = trees.value[(np.cumsum(trees.leaves) - trees.leaves)[:, None] + place][place >= 0]
        # A value that is missing where none was expected counts as 0.
        goes_left = np.where(trees.kind == MISSING_LEFT, True, (trees.kind != MISSING_RIGHT) & (trees.threshold >= 0))
        return cls(
            filled(trees.feature, 0).ravel(),
            filled(_in_float32(trees.threshold), np.inf).reshape(-1, 1),
            filled(goes_left, True).reshape(-1, 1),
            _bits_but(start, of_left, most).reshape(-1, 1),
            value.ravel(),
            most * np.arange(n_trees)[:, None],
        )

    def sums(self, features: Floats) -> Doubles:
        """[n] the sums of the leaves' values of documents [n, F], added in the order of the trees, as LightGBM does."""
        sums = np.empty(len(features))
        step = max(2, BLOCK // len(self.feature))
        for start in range(0, len(features), step):
            sums[start : start + step] = self._block(features[start : start + step])
        return sums

    def _block(self, features: Floats) -> Doubles:
        # NumPy adds up row by row, in order, only if rows have two columns or more.
        by_feature = np.ascontiguousarray((features if len(features) > 1 else features.repeat(2, 0)).T)
        compared = by_feature.take(self.feature, axis=0)
        left = compared <= self.threshold
        if np.isnan(by_feature).any():
            left |= np.isnan(compared) & self.missing_left
        signed = np.dtype(f"i{self.kept.itemsize}")
        candidates = np.negative(left.view(np.int8)).astype(signed).view(self.kept.dtype)  # left: all bits, right: none
        candidates |= self.kept
        n_trees = len(self.first_leaf)
        remaining = np.bitwise_and.reduce(candidates.reshape(-1, n_trees, candidates.shape[1]), axis=0)
        leaf = np.bitwise_count(~remaining & (remaining - remaining.dtype.type(1)))  # zeros below the lowest bit
        sums: Doubles = self.value.take(leaf + self.first_leaf).sum(axis=0)
        return sums[: len(features)]


def _leaves_from_left_to_right(left: Ints, right: Ints, leaves: Ints) -> tuple[Ints, Ints, Ints]:
    """Of each split [S, T], its first leaf and how many are below its left child; the leaf at each place [T, S + 1].

    A place that a tree does not have is −1. Children have higher numbers than their parents.
    """
    n_splits, n_trees = left.shape
    every, number = np.arange(n_trees), leaves - 1
    below = np.ones((n_splits + 1, n_trees), np.int64)  # of each split, and 1 for a leaf
    of_left = np.zeros((n_splits, n_trees), np.int64)
    for split in reversed(range(n_splits)):
        of_left[split] = np.where(left[split] < 0, 1, below[left[split], every])
        below[split] = of_left[split] + np.where(right[split] < 0, 1, below[right[split], every])
    start = np.zeros((n_splits, n_trees), np.int64)
    place = np.full((n_trees, n_splits + 1), -1, np.int64)
    place[number == 0, 0] = 0
    for split in range(n_splits):
        real = split < number
        of_right = start[split] + of_left[split]
        for child, first in ((left[split], start[split]), (right[split], of_right)):
            is_leaf, is_split = real & (child < 0), real & (child >= 0)
            place[every[is_leaf], first[is_leaf]] = -1 - child[is_leaf]
            start[child[is_split], every[is_split]] = first[is_split]
    return start, np.where(np.arange(n_splits)[:, None] < number, of_left, 0), place


def _bits_but(start: Ints, number: Ints, leaves: int) -> npt.NDArray[Any]:
    """All bits but `number` of them from `start` on, in the smallest type with a bit for each leaf."""
    ones = (np.uint64(1) << number.astype(np.uint64)) - np.uint64(1)
    smallest = next(bits for bits in (16, 32) if leaves <= bits)
    return (~(ones << start.astype(np.uint64))).astype(np.dtype(f"u{smallest // 8}"))


def _in_float32(threshold: Doubles) -> Floats:
    """The largest float32 that LightGBM sends left of each threshold, so that comparing in float32 is the same."""
    with np.errstate(over="ignore"):
        rounded = threshold.astype(np.float32)
    below = np.nextafter(rounded, np.float32(-np.inf))
    largest = np.where(rounded > threshold, below, rounded)
    of_zero = np.where(threshold >= 0, ZERO, np.nextafter(-ZERO, np.float32(-np.inf)))
    return np.where(np.abs(threshold) <= ZERO, of_zero, largest)
