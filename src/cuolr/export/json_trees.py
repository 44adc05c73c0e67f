"""Trees as nested nodes, and the scores of trees that were read from an engine's JSON, for many documents at once."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cuolr.export.exporter import CannotHold
from cuolr.policies.regression_trees import MISSING_LEFT, RegressionTrees
from cuolr.types import Bools, Doubles, Floats, Ints

# JSON libraries limit how deep objects nest; Jackson, which most engines use, to 1,000 levels.
MAX_DEPTH = 200


@dataclass(frozen=True)
class Leaf:
    """The end of a path.

    Attributes:
        value: What it adds to the score.
    """

    value: float


@dataclass(frozen=True)
class Split:
    """A comparison of one feature.

    Attributes:
        feature: The feature.
        threshold: A value up to this goes left; infinite = all values but missing ones.
        missing_left: Whether a missing value goes left.
        left: The next node.
        right: The next node for other values.
    """

    feature: int
    threshold: float
    missing_left: bool
    left: "Node"
    right: "Node"


Node: TypeAlias = Split | Leaf


def nested(trees: RegressionTrees) -> Iterator[Node]:
    """The root of each tree."""
    first_split = first_leaf = 0
    for leaves in trees.leaves.tolist():
        splits, values = slice(first_split, first_split + leaves - 1), slice(first_leaf, first_leaf + leaves)
        made: list[Node] = [Leaf(value) for value in trees.value[values].tolist()]
        built: dict[int, tuple[Node, int]] = {-1 - i: (leaf, 0) for i, leaf in enumerate(made)}
        columns = (trees.feature, trees.threshold, trees.kind, trees.left, trees.right)
        rows = list(zip(*(column[splits].tolist() for column in columns), strict=True))
        # A split comes before those below it.
        for number, (feature, threshold, kind, left, right) in reversed(list(enumerate(rows))):
            (on_left, depth), (on_right, other) = built[left], built[right]
            node = Split(feature, threshold, kind == MISSING_LEFT, on_left, on_right)
            built[number] = (node, 1 + max(depth, other))
        root, depth = built[0] if rows else (made[0], 0)
        if depth > MAX_DEPTH:
            raise CannotHold(f"its JSON nests at most {MAX_DEPTH} splits, and a tree of the model has {depth}")
        yield root
        first_split, first_leaf = splits.stop, values.stop


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
