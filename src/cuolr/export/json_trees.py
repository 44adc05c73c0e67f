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
    waiting, rows = list(roots), []
    for number, node in enumerate(waiting):  # which grows
        found = read(node)
        if isinstance(found, ReadSplit):
            children = (len(waiting), len(waiting) + 1)
            rows.append((found.feature, found.threshold, found.missing_left, *children, 0.0))
            waiting += [found.left, found.right]
        else:
            rows.append((0, 0.0, True, number, number, found))
    feature, threshold, missing_left, left, right, value = (np.array(column) for column in zip(*rows, strict=True))
    return ReadTrees(np.arange(len(roots)), feature, threshold, missing_left, left, right, value, below)


def sum_of_floats(leaves: npt.NDArray[np.floating[Any]]) -> Floats:
    """[n] the sum over columns [n, T] in float32, one after the other."""
    total = np.zeros(len(leaves), np.float32)
    for column in leaves.T.astype(np.float32):
        total += column
    return total
