"""`xgboost`: a model file of XGBoost, in its JSON format."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from cuolr.errors import load_extra
from cuolr.export import EXPORTERS
from cuolr.export.exporter import ExportedModel, Exporter, PointwiseModel
from cuolr.export.raw_trees import raw_trees
from cuolr.policies.regression_trees import MISSING_LEFT, RegressionTrees
from cuolr.types import Doubles, Floats

# The version of the format.
VERSION = [3, 0, 0]
# XGBoost's mark for the parent of a root.
NO_PARENT = 2147483647


@EXPORTERS.register("xgboost")
class XGBoostFile(Exporter):
    """Trees on raw features, for `xgboost.Booster(model_file=…)`.

    XGBoost goes left below a threshold, and computes in float32: the threshold is the next float32 number.
    """

    def export(self, model: PointwiseModel, name: str) -> ExportedModel:
        """The JSON, and XGBoost's own predictions from it."""
        trees = raw_trees(model)
        content = json.dumps(_model(trees, model.names)).encode()
        xgboost = _load_xgboost()
        booster = xgboost.Booster({"nthread": 1}, model_file=bytearray(content))

        def score(features: Floats) -> Doubles:
            documents = xgboost.DMatrix(features, feature_names=model.names, nthread=1)
            scores: Floats = booster.predict(documents, output_margin=True)
            return scores.astype(np.float64)

        return ExportedModel("JSON model", content, score, (".json",))


def _load_xgboost() -> Any:
    return load_extra("xgboost", "xgboost", "XGBoost is not installed, which checks the exported model")


def _model(trees: RegressionTrees, names: list[str]) -> dict[str, Any]:
    made = list(_trees(trees))
    return {
        "learner": {
            "attributes": {},
            "feature_names": names,
            "feature_types": ["float"] * len(names),
            "gradient_booster": {
                "model": {
                    "cats": {"enc": [], "feature_segments": [], "sorted_idx": []},
                    "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(made))},
                    "iteration_indptr": list(range(len(made) + 1)),
                    "tree_info": [0] * len(made),
                    "trees": made,
                },
                "name": "gbtree",
            },
            "learner_model_param": {
                "base_score": "0E0",
                "boost_from_average": "0",
                "num_class": "0",
                "num_feature": str(len(names)),
                "num_target": "1",
            },
            "objective": {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}},
        },
        "version": VERSION,
    }


def _trees(trees: RegressionTrees) -> Iterator[dict[str, Any]]:
    first_split = first_leaf = 0
    for number, leaves in enumerate(trees.leaves.tolist()):
        own = leaves - 1
        splits, values = slice(first_split, first_split + own), slice(first_leaf, first_leaf + leaves)
        yield _tree(number, trees, splits, values)
        first_split, first_leaf = splits.stop, values.stop


def _tree(number: int, trees: RegressionTrees, splits: slice, values: slice) -> dict[str, Any]:
    """The arrays of one tree; [N] for its N nodes."""
    own, leaves = splits.stop - splits.start, values.stop - values.start
    left, right = (
        np.where(side[splits] >= 0, side[splits], own - 1 - side[splits]) for side in (trees.left, trees.right)
    )
    # XGBoost finds the right child after the left one: the two children of the i-th split are 2i + 1 and 2i + 2.
    place = np.zeros(own + leaves, np.int64)
    place[left], place[right] = 2 * np.arange(own) + 1, 2 * np.arange(own) + 2
    parents = np.full(own + leaves, NO_PARENT, np.int64)
    parents[place[left]] = parents[place[right]] = place[:own]
    above = np.nextafter(trees.threshold[splits].astype(np.float32), np.float32(np.inf))
    conditions = np.concatenate([above, trees.value[values].astype(np.float32)]).astype(np.float64)
    missing_left = (trees.kind[splits] == MISSING_LEFT).astype(np.int64)
    nodes = own + leaves

    def in_place(of_splits: npt.NDArray[Any], of_leaves: npt.NDArray[Any] | int) -> list[Any]:
        arranged = np.empty(nodes, of_splits.dtype)
        arranged[place[:own]], arranged[place[own:]] = of_splits, of_leaves
        return list(arranged.tolist())

    return {
        "base_weights": [0.0] * nodes,
        "categories": [],
        "categories_nodes": [],
        "categories_segments": [],
        "categories_sizes": [],
        "default_left": in_place(missing_left, 0),
        "id": number,
        "left_children": in_place(place[left], -1),
        "loss_changes": [0.0] * nodes,
        "parents": parents.tolist(),
        "right_children": in_place(place[right], -1),
        "split_conditions": in_place(conditions[:own], conditions[own:]),
        "split_indices": in_place(trees.feature[splits], 0),
        "split_type": [0] * nodes,
        "sum_hessian": [0.0] * nodes,
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(trees.n_features),
            "num_nodes": str(nodes),
            "size_leaf_vector": "1",
        },
    }
