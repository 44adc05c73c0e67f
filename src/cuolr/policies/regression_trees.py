"""Regression trees as plain arrays, which are checked before a library sees them.

A model file of unknown origin may hold any bytes, and LightGBM and XGBoost trust what they read: a child that does not
exist ends the process, and a cycle never ends. So trees are kept as arrays, and LightGBM's text is written from these.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cuolr.errors import InputError
from cuolr.policies.xgboost_trees import MISSING_LEFT as MISSING_LEFT
from cuolr.policies.xgboost_trees import MISSING_RIGHT as MISSING_RIGHT
from cuolr.policies.xgboost_trees import trees_of_xgboost
from cuolr.types import Bools, Doubles, Ints

# Another of LightGBM's kinds of splits: missing values do not occur, and count as 0.
NO_MISSING = 0
# Whether a missing value goes left, where values do not occur missing; has no effect.
UNUSED_DEFAULT_LEFT = 2
# LightGBM's text names each feature.
MAX_FEATURES = 1 << 20
# LightGBM takes 2 KB and 15 µs for a tree of one leaf, which takes 12 bytes of a file.
MAX_TREES = 100_000
# Scores are float32, whose largest number is 3e38.
LARGEST_VALUE = 1e30
KNOWN_SPLITS = (NO_MISSING, UNUSED_DEFAULT_LEFT, MISSING_RIGHT, MISSING_LEFT)


def require_room_for_a_tree(trees: int) -> None:
    """Raise if a model of so many trees, and a constant beside them, cannot have another one."""
    if trees + 1 >= MAX_TREES:
        raise InputError(f"a model has at most {MAX_TREES:,} trees; train for fewer steps")


@dataclass(frozen=True)
class RegressionTrees:
    """The splits and the leaves of all trees, tree after tree. A document's score is the sum of its leaves' values.

    Attributes:
        n_features: F.
        leaves: [T] the number of leaves of each tree; it has one split less.
        feature: [S] the feature that a split compares.
        threshold: [S] a value up to this goes left; infinite = all values but missing ones.
        kind: [S] how missing values are treated, as LightGBM numbers it.
        left: [S] the next split within the tree, from 0, the first being the root; −1 − i = the leaf i of the tree.
        right: [S] the same for other values.
        value: [L] the value of each leaf.
    """

    n_features: int
    leaves: Ints
    feature: Ints
    threshold: Doubles
    kind: Ints
    left: Ints
    right: Ints
    value: Doubles

    def __post_init__(self) -> None:
        problem = next(self._problems(), None)
        if problem is not None:
            raise ValueError(f"not regression trees: {problem}")

    def _problems(self) -> Iterator[str]:
        """What makes them no trees; what comes later relies on what comes before."""
        splits = (self.feature, self.threshold, self.kind, self.left, self.right)
        if any(array.ndim != 1 for array in (self.leaves, self.value, *splits)):
            yield "expected arrays of one dimension"
        if not 0 < self.n_features <= MAX_FEATURES:
            yield f"expected 1 to {MAX_FEATURES:,} features, found {self.n_features:,}"
        if len(self.leaves) > MAX_TREES:
            yield f"expected at most {MAX_TREES:,} trees, found {len(self.leaves):,}"
        if (self.leaves < 1).any() or (self.leaves > len(self.value)).any():
            yield "expected trees of at least one leaf"
        if int(self.leaves.sum()) != len(self.value):
            yield f"expected a value for each of {int(self.leaves.sum())} leaves, found {len(self.value)}"
        number = len(self.value) - len(self.leaves)
        if any(len(array) != number for array in splits):
            yield f"expected {number} splits, found {', '.join(str(len(array)) for array in splits)}"
        if not (np.abs(self.value) <= LARGEST_VALUE).all() or np.isnan(self.threshold).any():
            yield f"expected finite values, up to {LARGEST_VALUE:.0e}, and numbers as thresholds"
        if ((self.feature < 0) | (self.feature >= self.n_features)).any():
            yield f"expected features from 0 to {self.n_features - 1}"
        if not np.isin(self.kind, KNOWN_SPLITS).all():
            yield f"expected splits of the kinds {', '.join(map(str, KNOWN_SPLITS))}"
        if not self._each_node_has_one_parent().all():
            yield "expected each split and each leaf once, below a split that comes before it"

    def _each_node_has_one_parent(self) -> Bools:
        """[T] whether the nodes form a tree: the root has no parent, all others have one with a lower number."""
        n_splits = self.leaves - 1
        first_split = np.cumsum(n_splits) - n_splits
        tree = np.repeat(np.arange(len(self.leaves)), n_splits)
        own = np.arange(len(tree)) - first_split[tree]  # the number of each split within its tree
        good = np.ones(len(self.leaves), np.bool_)
        seen_splits, seen_leaves = np.zeros(len(tree), np.int64), np.zeros(len(self.value), np.int64)
        for child in (self.left, self.right):
            is_leaf, leaf = child < 0, -1 - child
            fits = np.where(is_leaf, leaf < self.leaves[tree], (child > own) & (child < n_splits[tree]))
            good[tree[~fits]] = False
            ok_leaf, ok_split = fits & is_leaf, fits & ~is_leaf
            first_leaf = np.cumsum(self.leaves) - self.leaves
            np.add.at(seen_leaves, (first_leaf[tree] + leaf)[ok_leaf], 1)
            np.add.at(seen_splits, (first_split[tree] + child)[ok_split], 1)
        # A tree of one leaf has no split above it.
        alone = np.repeat(self.leaves == 1, self.leaves)
        wrong_leaf = np.repeat(np.arange(len(self.leaves)), self.leaves)[seen_leaves != np.where(alone, 0, 1)]
        wrong_split = tree[seen_splits != (own > 0)]
        good[wrong_leaf] = False
        good[wrong_split] = False
        return good

    @classmethod
    def from_lightgbm(cls, text: str) -> Self:
        """The trees of a model in LightGBM's text format, with one output and splits on numbers only.

        Raises:
            ValueError: If the text holds no such trees.
        """
        with _no_trees():
            return cls._from_lightgbm(text)

    @classmethod
    def _from_lightgbm(cls, text: str) -> Self:
        head, *trees = text.split("end of trees")[0].split("\nTree=")
        of_model = _assignments(head)
        if of_model.get("num_tree_per_iteration", "1") != "1":
            raise ValueError("not regression trees: expected one output")
        parsed = [_assignments(tree) for tree in trees]
        if any(int(tree.get("num_cat", 0)) or int(tree.get("is_linear", 0)) for tree in parsed):
            raise ValueError("not regression trees: expected splits on numbers and constant leaves")

        def column(name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
            # A tree without a split has no such lines, or empty ones.
            texts = [tree.get(name, "") for tree in parsed]
            return np.array(" ".join(texts).split(), np.str_).astype(dtype)

        return cls(
            n_features=int(of_model["max_feature_idx"]) + 1,
            leaves=column("num_leaves", np.int64),
            feature=column("split_feature", np.int64),
            threshold=column("threshold", np.float64),
            kind=column("decision_type", np.int64),
            left=column("left_child", np.int64),
            right=column("right_child", np.int64),
            value=column("leaf_value", np.float64),
        )

    @classmethod
    def from_xgboost(cls, model: bytes) -> Self:
        """The trees of a model in XGBoost's JSON format, with one output and splits on numbers only.

        XGBoost goes left below a threshold in float32: up to the number before it.

        Raises:
            ValueError: If the model holds no such trees.
        """
        with _no_trees():
            n_features, leaves, arrays = trees_of_xgboost(model)
            return cls(n_features, leaves, **arrays)

    def paths(self, deepest: int) -> float:
        """Σ (depth of a leaf)², to which the time of TreeSHAP is proportional; infinite if one is deeper than this."""
        first_split = np.cumsum(self.leaves - 1) - (self.leaves - 1)
        first = np.repeat(first_split, self.leaves - 1)
        level, total = first_split[self.leaves > 1], 0.0
        for depth in range(1, deepest + 1):
            below = np.concatenate([self.left[level], self.right[level]])
            total += depth**2 * int((below < 0).sum())
            level = (below + np.concatenate([first[level]] * 2))[below >= 0]
            if not len(level):
                return total
        return np.inf

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All of it, in types that hold it exactly, to be saved."""
        return {
            "trees.n_features": np.array([self.n_features], np.int32),
            "trees.leaves": self.leaves.astype(np.int32),
            "trees.feature": self.feature.astype(np.int32),
            "trees.threshold": self.threshold,
            "trees.kind": self.kind.astype(np.uint8),
            "trees.left": self.left.astype(np.int32),
            "trees.right": self.right.astype(np.int32),
            "trees.value": self.value,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """The trees that `arrays` was taken from; raises if they are no trees."""
        (n_features,) = arrays["trees.n_features"].tolist()
        types: dict[str, Any] = {"threshold": np.float64, "value": np.float64}
        names = ("leaves", "feature", "threshold", "kind", "left", "right", "value")
        for name in names:
            if (arrays[f"trees.{name}"].dtype.kind == "f") != (name in types):
                raise ValueError(f"trees.{name}: found {arrays[f'trees.{name}'].dtype}")
        return cls(int(n_features), *(arrays[f"trees.{name}"].astype(types.get(name, np.int64)) for name in names))

    @cached_property
    def lightgbm_text(self) -> str:
        """The same trees in LightGBM's text format."""
        return self.to_lightgbm()

    def to_lightgbm(self, leaf_count: Ints | None = None) -> str:
        """The same trees in LightGBM's text format.

        Args:
            leaf_count: [L] the number of documents in each leaf, which SHAP values depend on; None = not known.
        """
        trees = list(self._lightgbm_trees(leaf_count))
        sizes = " ".join(str(len(tree)) for tree in trees)
        names = " ".join(f"Column_{i}" for i in range(self.n_features))
        head = [
            "tree",
            "version=v4",
            "num_class=1",
            "num_tree_per_iteration=1",
            "label_index=0",
            f"max_feature_idx={self.n_features - 1}",
            f"feature_names={names}",
            f"feature_infos={' '.join(['none'] * self.n_features)}",
            f"tree_sizes={sizes}",
            "",
            "",
        ]
        return "\n".join(head) + "".join(trees) + "end of trees\n"

    def _lightgbm_trees(self, leaf_count: Ints | None) -> Iterator[str]:
        split = leaf = 0
        for number, leaves in enumerate(self.leaves.tolist()):
            splits, values = slice(split, split + leaves - 1), slice(leaf, leaf + leaves)
            lines = {
                "Tree": number,
                "num_leaves": leaves,
                "num_cat": 0,
                "split_feature": _joined(self.feature[splits]),
                "threshold": _joined(self.threshold[splits]),
                "decision_type": _joined(self.kind[splits]),
                "left_child": _joined(self.left[splits]),
                "right_child": _joined(self.right[splits]),
                "leaf_value": _joined(self.value[values]),
                "is_linear": 0,
                "shrinkage": 1,
            }
            if leaf_count is not None:
                counts = leaf_count[values]
                of_splits = _split_counts(self.left[splits], self.right[splits], counts)
                lines |= {"leaf_count": _joined(counts), "internal_count": _joined(of_splits)}
            yield "\n".join(f"{name}={value}" for name, value in lines.items()) + "\n\n\n"
            split, leaf = splits.stop, values.stop


def _split_counts(left: Ints, right: Ints, leaf_count: Ints) -> Ints:
    """[splits] the number of documents that reach each split of a tree, from those in its leaves."""
    counts = np.zeros(len(left), np.int64)
    for split in reversed(range(len(left))):  # a child has a higher number than its parent
        for child in (int(left[split]), int(right[split])):
            counts[split] += counts[child] if child >= 0 else leaf_count[-1 - child]
    return counts


@contextmanager
def _no_trees() -> Iterator[None]:
    """Text that does not say what trees need becomes one kind of error."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError) as error:
        raise ValueError(f"not regression trees: {type(error).__name__}: {error}") from None


def _assignments(lines: str) -> dict[str, str]:
    """The lines of the form `name=value`."""
    return dict(line.split("=", 1) for line in lines.splitlines() if "=" in line)


def _joined(values: npt.NDArray[Any]) -> str:
    """Numbers that are read again exactly."""
    return " ".join(map(repr, values.tolist()))
