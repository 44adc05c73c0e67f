"""The trees of a model in XGBoost's JSON format, as the arrays of `RegressionTrees`."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cuolr.types import Ints

# LightGBM's kinds of splits on numbers: missing values go right, or left.
MISSING_RIGHT, MISSING_LEFT = 8, 10


def trees_of_xgboost(model: bytes) -> tuple[int, Ints, dict[str, npt.NDArray[Any]]]:
    """The number of features, the leaves of each tree, and the other arrays; a last tree has the base score."""
    learner = json.loads(model)["learner"]
    trees = [_tree(tree) for tree in learner["gradient_booster"]["model"]["trees"]]
    base_score = float(learner["learner_model_param"]["base_score"].strip("[]"))
    names = ("feature", "threshold", "kind", "left", "right", "value")
    arrays = {name: np.concatenate([tree[name] for tree in trees]) for name in names}
    arrays["value"] = np.append(arrays["value"], base_score)
    leaves = np.array([*(len(tree["value"]) for tree in trees), 1])
    return int(learner["learner_model_param"]["num_feature"]), leaves, arrays


def _tree(tree: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """The arrays of one tree; XGBoost numbers splits and leaves together, and keeps nodes that were cut off."""
    left, right = np.array(tree["left_children"]), np.array(tree["right_children"])
    used, edge = [0], [0]
    while edge:
        edge = [child for node in edge if left[node] >= 0 for child in (int(left[node]), int(right[node]))]
        used += edge
        if len(used) > len(left):
            raise ValueError("not regression trees: expected each node below one other")
    nodes = np.sort(np.array(used))
    is_split = left[nodes] >= 0
    number = np.empty(len(left), np.int64)
    number[nodes[is_split]] = np.arange(is_split.sum())
    number[nodes[~is_split]] = -1 - np.arange((~is_split).sum())
    splits, leaves = nodes[is_split], nodes[~is_split]
    conditions = np.array(tree["split_conditions"], np.float32)
    if any(tree.get("split_type", ())):
        raise ValueError("not regression trees: expected splits on numbers")
    return {
        "feature": np.array(tree["split_indices"], np.int64)[splits],
        "threshold": np.nextafter(conditions[splits], np.float32(-np.inf)).astype(np.float64),
        "kind": np.where(np.array(tree["default_left"], np.bool_)[splits], MISSING_LEFT, MISSING_RIGHT),
        "left": number[left[splits]],
        "right": number[right[splits]],
        "value": conditions[leaves].astype(np.float64),
    }
