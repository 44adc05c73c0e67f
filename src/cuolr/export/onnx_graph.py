"""`onnx`: one graph from raw features to scores, with scaling and missing values inside."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cuolr.data.normalise import Normaliser
from cuolr.errors import load_extra
from cuolr.export import EXPORTERS
from cuolr.export.exporter import ExportedModel, Exporter, PointwiseModel, layers_of
from cuolr.export.raw_trees import folded
from cuolr.policies.regression_trees import MISSING_LEFT, RegressionTrees
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.types import Doubles, Floats

INPUT, OUTPUT = "features", "score"
# Versions of the operators, old enough for every runtime of the last years.
OPSET, ML_OPSET, IR_VERSION = 17, 3, 8
ML_DOMAIN = "ai.onnx.ml"


class GraphBuilder:
    """Collects nodes and constants; every method returns the name of its result."""

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """A node."""
        name = f"{operator.lower()}_{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, values: npt.ArrayLike) -> str:
        """A constant of the type of the array."""
        name = f"constant_{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(np.asarray(values), name))
        return name

    def _as(self, values: str, kind: str) -> str:
        return self.add("Cast", values, to=getattr(self._onnx.TensorProto, kind))

    def scaled(self, normaliser: Normaliser, n_features: int) -> str:
        """[n, F + M] the scaled features and the indicators of missing values, see `Normaliser.transform`."""
        features, missing = INPUT, normaliser.missing
        if missing is not None:
            where = self.add("IsNaN", INPUT)
            features = self.add("Where", where, self.constant(missing.median.astype(np.float32)), INPUT)
        if normaliser.kind != "none":
            features = self._min_max(features, normaliser)
        if missing is None or not missing.n_indicators:
            return features
        chosen = self.add("Gather", where, self.constant(missing.indicated.astype(np.int64)), axis=1)
        return self.add("Concat", features, self._as(chosen, "FLOAT"), axis=1)

    def _min_max(self, features: str, normaliser: Normaliser) -> str:
        values = self._as(features, "DOUBLE")
        if normaliser.kind == "log-min-max":
            values = self._signed_log(values)
        half = (normaliser.high - normaliser.low) / 2
        centred = self.add("Sub", values, self.constant(normaliser.low + half))
        divided = self.add("Div", centred, self.constant(np.where(half > 0, half, 1.0)))
        clipped = self.add("Clip", divided, self.constant(np.float64(-1)), self.constant(np.float64(1)))
        return self._as(self.add("Mul", clipped, self.constant((half > 0).astype(np.float64))), "FLOAT")

    def _signed_log(self, values: str) -> str:
        """sign(x) · log(1 + |x|); log(1 + a) = a · log(u) / (u − 1), u = 1 + a, is exact for small a (Kahan)."""
        one = self.constant(np.float64(1))
        size = self.add("Abs", values)
        above = self.add("Add", size, one)
        rest = self.add("Sub", above, one)
        is_small = self.add("Equal", rest, self.constant(np.float64(0)))
        divisor = self.add("Where", is_small, one, rest)
        logarithm = self.add("Div", self.add("Mul", size, self.add("Log", above)), divisor)
        return self.add("Mul", self.add("Sign", values), self.add("Where", is_small, size, logarithm))

    def network(self, features: str, layers: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]]) -> str:
        """[n] the output of linear layers (weights [out, in], bias [out]) with ReLU in between."""
        for number, (weights, bias) in enumerate(layers):
            if number:
                features = self.add("Relu", features)
            features = self.add("Gemm", features, self.constant(weights), self.constant(bias), transB=1)
        return self._flat(features)

    def trees(self, trees: RegressionTrees) -> str:
        """[n] the sum over trees on raw features, in double precision."""
        tensor = self._onnx.numpy_helper.from_array
        doubles = self._as(INPUT, "DOUBLE")
        nodes = _tree_attributes(trees)
        for name in ("nodes_values", "target_weights"):
            nodes[f"{name}_as_tensor"] = tensor(nodes.pop(name), f"{name}_{len(self._nodes)}")
        summed = self.add("TreeEnsembleRegressor", doubles, domain=ML_DOMAIN, n_targets=1, **nodes)
        return self._flat(summed)

    def _flat(self, column: str) -> str:
        return self.add("Reshape", column, self.constant(np.array([-1], np.int64)))

    def model(self, scores: str, name: str, n_features: int, feature_names: Sequence[str]) -> bytes:
        """The file; `feature_names` is recorded in its metadata, a line each."""
        helper, floats = self._onnx.helper, self._onnx.TensorProto.FLOAT
        self._nodes.append(helper.make_node("Identity", [scores], [OUTPUT]))
        inputs = [helper.make_tensor_value_info(INPUT, floats, ["documents", n_features])]
        outputs = [helper.make_tensor_value_info(OUTPUT, floats, ["documents"])]
        graph = helper.make_graph(self._nodes, name, inputs, outputs, self._constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(ML_DOMAIN, ML_OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="cuolr")
        helper.set_model_props(model, {"feature_names": "\n".join(feature_names)})
        self._onnx.checker.check_model(model)
        content: bytes = model.SerializeToString()
        return content


def _tree_attributes(trees: RegressionTrees) -> dict[str, Any]:
    """The attributes of TreeEnsembleRegressor; the nodes of a tree are its splits, then its leaves."""
    splits, leaves = trees.leaves - 1, trees.leaves
    tree_of_split, tree_of_leaf = (np.repeat(np.arange(len(leaves)), number) for number in (splits, leaves))
    split_id = np.arange(len(tree_of_split)) - (np.cumsum(splits) - splits)[tree_of_split]
    leaf_id = np.arange(len(tree_of_leaf)) - (np.cumsum(leaves) - leaves)[tree_of_leaf] + splits[tree_of_leaf]
    order = np.lexsort((np.concatenate([split_id, leaf_id]), np.concatenate([tree_of_split, tree_of_leaf])))

    def nodes(of_splits: npt.NDArray[Any], of_leaf: float = 0) -> npt.NDArray[Any]:
        rest = np.full(len(leaf_id), of_leaf, of_splits.dtype)
        return np.concatenate([of_splits, rest])[order]

    def child(side: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.where(side >= 0, side, splits[tree_of_split] - 1 - side)

    modes = nodes(np.ones(len(split_id), np.int64))
    return {
        "nodes_treeids": np.concatenate([tree_of_split, tree_of_leaf])[order].tolist(),
        "nodes_nodeids": np.concatenate([split_id, leaf_id])[order].tolist(),
        "nodes_featureids": nodes(trees.feature).tolist(),
        "nodes_modes": ["BRANCH_LEQ" if is_split else "LEAF" for is_split in modes],
        "nodes_values": nodes(trees.threshold),
        "nodes_truenodeids": nodes(child(trees.left)).tolist(),
        "nodes_falsenodeids": nodes(child(trees.right)).tolist(),
        "nodes_missing_value_tracks_true": nodes((trees.kind == MISSING_LEFT).astype(np.int64)).tolist(),
        "target_treeids": tree_of_leaf.tolist(),
        "target_nodeids": leaf_id.tolist(),
        "target_ids": [0] * len(leaf_id),
        "target_weights": trees.value,
    }


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
