"""Trees as nested nodes, for formats that nest them, and without missing values, for engines that know none."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from cuolr.export.pointwise_model import CannotHold
from cuolr.policies.regression_trees import MISSING_LEFT, RegressionTrees

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


def missing_as_zero(root: Node, indicators: dict[int, int]) -> Node:
    """The same tree for an engine where a missing value is 0, and further features say which values are missing.

    Where a missing value goes another way than 0, a split on the indicator comes first: an indicator of 1 goes right.

    Args:
        root: The tree.
        indicators: The feature that indicates missing values of each feature; of other features, no value is missing.
    """
    return _without_missing(root, indicators, {})


def _without_missing(node: Node, indicators: dict[int, int], known: dict[int, bool]) -> Node:
    """See `missing_as_zero`; `known` says of the features on the way here whether they are missing."""
    if isinstance(node, Leaf):
        return node
    feature, everything_left = node.feature, node.threshold == np.inf
    if feature not in indicators:
        known = {**known, feature: False}
    if feature in known:
        if known[feature] or everything_left:
            goes_left = node.missing_left if known[feature] else True
            return _without_missing(node.left if goes_left else node.right, indicators, known)
        return _with_children(node, indicators, known)
    zero_left = node.threshold >= 0
    if zero_left == node.missing_left and not everything_left:
        return _with_children(node, indicators, known)
    present = _without_missing(node, indicators, {**known, feature: False})
    missing = _without_missing(node, indicators, {**known, feature: True})
    return Split(indicators[feature], 0.5, True, present, missing)


def _with_children(node: Split, indicators: dict[int, int], known: dict[int, bool]) -> Split:
    left = _without_missing(node.left, indicators, known)
    right = _without_missing(node.right, indicators, known)
    return replace(node, missing_left=node.threshold >= 0, left=left, right=right)


def size(root: Node) -> int:
    """The number of nodes."""
    return 1 if isinstance(root, Leaf) else 1 + size(root.left) + size(root.right)
