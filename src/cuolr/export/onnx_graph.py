"""`onnx`: one graph from raw features to scores, with scaling and missing values inside."""

from typing import Any

import numpy as np

from cuolr.errors import load_extra
from cuolr.export.exporter import ExportedModel, Exporter
from cuolr.export.exporter_registry import EXPORTERS
from cuolr.export.onnx_nodes import INPUT, OUTPUT, GraphBuilder
from cuolr.export.pointwise_model import PointwiseModel, layers_of
from cuolr.export.raw_trees import folded
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.types import Doubles, Floats


@EXPORTERS.register("onnx")
class OnnxGraph(Exporter):
    """Trees, linear rankers, networks and any weighted sum of these.

    Input `features` [n, F] float32, NaN = missing; output `score` [n] float32. Scaling is in double precision, as in
    the policy. Trees compare raw features.
    """

    def export(self, model: PointwiseModel, name: str) -> ExportedModel:
        """The graph, and its scores by onnxruntime."""
        content = onnx_bytes(model, name)
        return ExportedModel("ONNX graph", content, onnx_scores(content), (".onnx",))


def onnx_bytes(model: PointwiseModel, name: str) -> bytes:
    """The model as an ONNX file."""
    graph = GraphBuilder(_load("onnx"))
    scaled = None
    total = ""
    for member, weight in zip(model.members, model.weights, strict=True):
        if isinstance(member, TreesPolicy):
            scores = graph.trees(folded(member))
        else:
            scaled = scaled or graph.scaled(model.normaliser, model.n_features)
            scores = graph.network(scaled, layers_of(member))
        if weight != 1:
            scores = graph.add("Mul", scores, graph.constant(np.float32(weight)))
        total = graph.add("Add", total, scores) if total else scores
    content: bytes = graph.model(total, name, model.n_features, model.feature_names)
    return content


def onnx_scores(content: bytes) -> Any:
    """The scores of a graph by onnxruntime."""
    runtime = _load("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def score(features: Floats) -> Doubles:
        (scores,) = session.run([OUTPUT], {INPUT: features})
        doubles: Doubles = scores.astype(np.float64)
        return doubles

    return score


def _load(package: str) -> Any:
    return load_extra(package, "export", f"{package} is not installed")
