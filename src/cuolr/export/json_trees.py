"""The scores of trees that were read from an engine's JSON, for many documents at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cuolr.types import Bools, Doubles, Floats, Ints

# Documents that are scored at a time, to bound memory.
DOCUMENTS_AT_A_TIME = 2_048


@dataclass(frozen=True)
class ReadSplit:
    """A split as an engine reads it.

    Attributes:
        feature: The number of the feature.
        threshold: As the engine holds it.
        missing_left: Whether a missing value goes left.
        left: The next node, in the engine's JSON.
        right: The next node for other values.
    """

    feature: int
    threshold: float
    missing_left: bool
    left: Any
    right: Any


@dataclass(frozen=True)
class ReadTrees:
    """The nodes of all trees; a leaf leads to itself.

    Attributes:
        roots: [T] the first node of each tree.
        feature: [N] the feature of a split.
        threshold: [N] its threshold.
        missing_left: [N] whether a missing value goes left.
        left: [N] the next node.
        right: [N] the next node for other values.
        value: [N] the value of a leaf.
        below: Whether values below the threshold go left; otherwise the threshold itself does, too.
    """

    roots: Ints
    feature: Ints
    threshold: Doubles
    missing_left: Bools
    left: Ints
    right: Ints
    value: Doubles
    below: bool

    def leaves(self, features: npt.NDArray[np.floating[Any]]) -> Doubles:
        """[n, T] the value of the leaf of each document [n, F] in each tree."""
        found = np.empty((len(features), len(self.roots)))
        for start in range(0, len(features), DOCUMENTS_AT_A_TIME):
            rows = slice(start, start + DOCUMENTS_AT_A_TIME)
            found[rows] = self._leaves(features[rows].astype(np.float64))
        return found

    def _leaves(self, features: Doubles) -> Doubles:
        node = np.broadcast_to(self.roots, (len(features), len(self.roots)))
        documents = np.arange(len(features))[:, None]
        while True:
            value = features[documents, self.feature[node]]
            threshold = self.threshold[node]
            goes_left = value < threshold if self.below else value <= threshold
            goes_left = np.where(np.isnan(value), self.missing_left[node], goes_left)
            moved = np.where(goes_left, self.left[node], self.right[node])
            if (moved == node).all():
                return self.value[node]
            node = moved


def read_trees(roots: Sequence[Any], read: Callable[[Any], ReadSplit | float], below: bool) -> ReadTrees:
    """The trees of an engine's JSON.

    Args:
        roots: The root of each tree.
        read: Reads a node: a split, or the value of a leaf.
        below: See `ReadTrees`.
    """
    feature, threshold, missing_left, left, right, value = ([] for _ in range(6))  # type: ignore[var-annotated]
    waiting, first = list(roots), np.arange(len(roots))
    for number, node in enumerate(waiting):  # which grows
        found = read(node)
        is_split = isinstance(found, ReadSplit)
        feature.append(found.feature if is_split else 0)
        threshold.append(found.threshold if is_split else 0.0)
        missing_left.append(found.missing_left if is_split else True)
        left.append(len(waiting) if is_split else number)
        right.append(len(waiting) + 1 if is_split else number)
        value.append(0.0 if is_split else found)
        if is_split:
            waiting += [found.left, found.right]
    columns = (np.array(feature), np.array(threshold, np.float64), np.array(missing_left, np.bool_))
    return ReadTrees(first, *columns, np.array(left), np.array(right), np.array(value, np.float64), below)


def sum_of_floats(leaves: Doubles) -> Floats:
    """[n] the sum over trees [n, T] in float32, tree after tree."""
    total = np.zeros(len(leaves), np.float32)
    for column in leaves.T.astype(np.float32):
        total += column
    return total
