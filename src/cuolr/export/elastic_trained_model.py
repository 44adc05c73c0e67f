"""`elastic`: a trained model of Elasticsearch itself, for its learning to rank (no plug-in)."""

import json
from typing import Any

import numpy as np

from cuolr.export import EXPORTERS
from cuolr.export.exporter import ExportedModel, Exporter, PointwiseModel
from cuolr.export.json_trees import ReadSplit, read_trees
from cuolr.export.lucene_queries import feature_warnings, query_of
from cuolr.export.raw_trees import LARGEST, raw_trees
from cuolr.policies.regression_trees import MISSING_LEFT, RegressionTrees
from cuolr.types import Doubles, Floats

VERSIONS = "Elasticsearch has learning to rank from 8.12 on, and it needs a subscription that includes it"


@EXPORTERS.register("elastic")
class ElasticTrainedModel(Exporter):
    """The request body of `PUT _ml/trained_models/NAME`: an ensemble of trees and a query for each feature.

    Values up to the threshold go left (`lte`), in double precision; a missing value follows `default_left`.
    """

    def export(self, model: PointwiseModel, name: str) -> ExportedModel:
        """The request, and the scores by its JSON."""
        trees = raw_trees(model)
        extractors = [
            {"query_extractor": {"feature_name": own, "query": query_of(column, number, default=None)}}
            for own, (column, number) in zip(model.names, model.columns, strict=True)
        ]
        request = {
            "description": f"{name}, exported by cuolr",
            "input": {"field_names": model.names},
            "inference_config": {"learning_to_rank": {"feature_extractors": extractors}},
            "definition": {"trained_model": {"ensemble": _ensemble(trees, model.names)}},
        }
        content = json.dumps(request).encode()
        return ExportedModel(
            "trained model", content, _Reader(content).score, (".json",), warnings=(VERSIONS, *feature_warnings(model))
        )


def _ensemble(trees: RegressionTrees, names: list[str]) -> dict[str, Any]:
    made = []
    first_split = first_leaf = 0
    for leaves in trees.leaves.tolist():
        splits, values = slice(first_split, first_split + leaves - 1), slice(first_leaf, first_leaf + leaves)
        made.append({"tree": _tree(trees, splits, values, names)})
        first_split, first_leaf = splits.stop, values.stop
    return {
        "feature_names": names,
        "trained_models": made,
        "aggregate_output": {"weighted_sum": {"weights": [1.0] * len(made)}},
        "target_type": "regression",
    }


def _tree(trees: RegressionTrees, splits: slice, values: slice, names: list[str]) -> dict[str, Any]:
    """One tree, with the names of its own features; the splits come first, then the leaves."""
    used = sorted(set(trees.feature[splits].tolist()))
    own = splits.stop - splits.start
    columns = (trees.feature, trees.threshold, trees.kind, trees.left, trees.right)
    nodes: list[dict[str, Any]] = [
        {
            "node_index": number,
            "split_feature": used.index(feature),
            "decision_type": "lte",
            "threshold": min(threshold, LARGEST),
            "default_left": kind == MISSING_LEFT,
            "left_child": left if left >= 0 else own - 1 - left,
            "right_child": right if right >= 0 else own - 1 - right,
        }
        for number, (feature, threshold, kind, left, right) in enumerate(
            zip(*(column[splits].tolist() for column in columns), strict=True)
        )
    ]
    nodes += [
        {"node_index": own + number, "leaf_value": value} for number, value in enumerate(trees.value[values].tolist())
    ]
    # A tree without a split needs the name of a feature all the same.
    return {
        "feature_names": [names[feature] for feature in used] or names[:1],
        "tree_structure": nodes,
        "target_type": "regression",
    }


class _Reader:
    """The scores by the JSON of a request."""

    def __init__(self, content: bytes) -> None:
        request = json.loads(content)
        ensemble = request["definition"]["trained_model"]["ensemble"]
        self._weights = np.array(ensemble["aggregate_output"]["weighted_sum"]["weights"])
        place = {name: number for number, name in enumerate(request["input"]["field_names"])}

        def read(node: Any) -> ReadSplit | float:
            tree, number = node
            found = tree["tree_structure"][number]
            assert found["node_index"] == number, "nodes are in the order of their index"
            if "leaf_value" in found:
                return float(found["leaf_value"])
            feature = place[tree["feature_names"][found["split_feature"]]]
            children = ((tree, found["left_child"]), (tree, found["right_child"]))
            return ReadSplit(feature, found["threshold"], found["default_left"], *children)

        roots = [(model["tree"], 0) for model in ensemble["trained_models"]]
        self._trees = read_trees(roots, read, below=False)

    def score(self, features: Floats) -> Doubles:
        """[n] the weighted sum, in double precision."""
        scores: Doubles = self._trees.leaves(features) @ self._weights
        return scores
