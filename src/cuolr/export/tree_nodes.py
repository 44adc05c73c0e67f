"""Trees as nested nodes, for formats that nest them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

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
