"""`vespa`: LightGBM JSON for trees, ONNX for other models, with a rank profile to paste."""

import json
from typing import Any

import numpy as np

from cuolr.export import EXPORTERS
from cuolr.export.exporter import ExportedModel, Exporter, PointwiseModel, latest_date
from cuolr.export.json_trees import Leaf, Node, ReadSplit, nested, read_trees
from cuolr.export.onnx_graph import onnx_bytes, onnx_scores
from cuolr.export.raw_trees import raw_trees
from cuolr.types import Doubles, FeatureColumn, Floats

PROFILE = ".profile"
# Higher than every float32 number.
BEYOND = 1e39
SECONDS_PER_DAY = 86_400


@EXPORTERS.register("vespa")
class Vespa(Exporter):
    """Trees are imported by Vespa into ranking expressions; it runs ONNX graphs by itself.

    Vespa goes left below the threshold of LightGBM's JSON, where LightGBM goes left at the threshold, too: the
    threshold is the next float32 number. A missing value (NaN) follows `default_left`.
    """

    def export(self, model: PointwiseModel, name: str) -> ExportedModel:
        """The model; beside it, a rank profile."""
        if model.kinds == {"trees"}:
            content = json.dumps(_lightgbm_json(model)).encode()
            profile = _tree_profile(model, name).encode()
            return ExportedModel("LightGBM JSON", content, _Reader(content).score, (".json",), {PROFILE: profile})
        content, profile = onnx_bytes(model, name), _onnx_profile(model, name).encode()
        return ExportedModel("ONNX graph", content, onnx_scores(content), (".onnx",), {PROFILE: profile})


def _lightgbm_json(model: PointwiseModel) -> dict[str, Any]:
    """As `Booster.dump_model` writes it, as far as Vespa reads it."""
    roots = list(nested(raw_trees(model)))
    return {
        "name": "tree",
        "version": "v4",
        "num_class": 1,
        "num_tree_per_iteration": 1,
        "label_index": 0,
        "max_feature_idx": model.n_features - 1,
        "objective": "regression",
        "feature_names": model.names,
        "tree_info": [{"tree_index": i, "shrinkage": 1, "tree_structure": _node(root)} for i, root in enumerate(roots)],
        "pandas_categorical": [],
    }


def _node(tree: Node) -> dict[str, Any]:
    if isinstance(tree, Leaf):
        return {"leaf_value": tree.value}
    above = BEYOND
    if np.isfinite(tree.threshold):
        above = float(np.nextafter(np.float32(tree.threshold), np.float32(np.inf)))
    return {
        "split_feature": tree.feature,
        "threshold": min(above, BEYOND),
        "decision_type": "<=",
        "default_left": tree.missing_left,
        "missing_type": "NaN",
        "left_child": _node(tree.left),
        "right_child": _node(tree.right),
    }


def _tree_profile(model: PointwiseModel, name: str) -> str:
    functions = "\n".join(
        f"    function {own}() {{ expression: {_expression(column, number)} }}"
        for own, (column, number) in zip(model.names, model.columns, strict=True)
    )
    return (
        f"rank-profile {name} inherits default {{\n{functions}\n    second-phase {{\n"
        f'        expression: lightgbm("{name}.json")\n        rerank-count: 100\n    }}\n}}\n'
    )


def _onnx_profile(model: PointwiseModel, name: str) -> str:
    values = ",\n            ".join(_expression(column, number) for column, number in model.columns)
    return (
        f"rank-profile {name} inherits default {{\n"
        f"    onnx-model {name} {{\n        file: models/{name}.onnx\n        input features: raw_features\n"
        f"        output score: score\n    }}\n"
        f"    function raw_features() {{\n        expression: tensor<float>(d0[1],d1[{model.n_features}]):[[\n"
        f"            {values}\n        ]]\n    }}\n"
        f"    second-phase {{\n        expression: sum(onnx({name}).score)\n        rerank-count: 100\n    }}\n}}\n"
    )


def _expression(column: FeatureColumn, number: int) -> str:
    """One feature of a column, which is taken for the attribute of the same name."""
    attribute = f"attribute({column.name})"
    if column.kind == "category" and number < len(column.levels):
        return f"if ({attribute} == {json.dumps(column.levels[number])}, 1, 0)"
    if column.kind == "hashed category" and number < column.buckets:
        return f"if (attribute({column.name}_bucket) == {number}, 1, 0)"
    if column.kind in ("category", "hashed category"):
        return f'if ({attribute} == "", 1, 0)'
    if column.kind == "date":
        return f"({latest_date(column).timestamp()!r} - {attribute}) / {SECONDS_PER_DAY}"
    return attribute


class _Reader:
    """The scores of trees by the JSON."""

    def __init__(self, content: bytes) -> None:
        def read(node: Any) -> ReadSplit | float:
            if "leaf_value" in node:
                return float(node["leaf_value"])
            children = (node["left_child"], node["right_child"])
            return ReadSplit(node["split_feature"], node["threshold"], node["default_left"], *children)

        roots = [tree["tree_structure"] for tree in json.loads(content)["tree_info"]]
        self._trees = read_trees(roots, read, below=True)

    def score(self, features: Floats) -> Doubles:
        """[n] the sum in double precision."""
        scores: Doubles = self._trees.leaves(features).sum(axis=1)
        return scores
