"""`elasticsearch-ltr`: a model and its feature set for the Learning to Rank plug-in of Elasticsearch."""

import json
import re
from typing import Any

import numpy as np

from cuolr.data.normalise import Normaliser
from cuolr.export import EXPORTERS
from cuolr.export.exporter import CannotHold, ExportedModel, Exporter, PointwiseModel
from cuolr.export.json_trees import Leaf, Node, ReadSplit, nested, read_trees, sum_of_floats
from cuolr.export.lucene_queries import feature_warnings, missing_query, query_of
from cuolr.export.raw_trees import Variant, filled_features, linear_weights, raw_trees, sided
from cuolr.types import Doubles, Floats

FEATURES = ".features.json"
MISSING, SCALED = "_is_missing", "_scaled"


@EXPORTERS.register("elasticsearch-ltr")
class ElasticsearchLtr(Exporter):
    """Trees as `model/xgboost+json`, linear models as `model/linear`.

    The plug-in goes left below a threshold, and computes in float32: the threshold is the next float32 number. It takes
    a missing value for 0, so the feature set says what stands for it. Its normalisers do not clip values and have no
    logarithm, so features of linear models are scaled by expressions of the feature set, in double precision.
    """

    def export(self, model: PointwiseModel, name: str) -> ExportedModel:
        """The request that creates the model; beside it, that of the feature set."""
        weights = linear_weights(model)
        if weights is None:
            trees, variants = sided(model, raw_trees(model, "trees or a linear model"))
            names = [variant.name for variant in variants]
            definition: Any = [_xgboost_node(root, names) for root in nested(trees)]
            form, features = "model/xgboost+json", _tree_features(model, variants)
        else:
            form, features, definition = "model/linear", *_linear(model, weights)
        content = _as_bytes({"model": {"name": name, "model": {"type": form, "definition": json.dumps(definition)}}})
        feature_set = _as_bytes({"featureset": {"name": name, "features": features}})
        reader = (
            _TreeReader(content, variants).score
            if weights is None
            else _LinearReader(content, feature_set, model).score
        )
        warnings = feature_warnings(model)
        return ExportedModel(form, content, reader, (".json",), {FEATURES: feature_set}, warnings)


def _as_bytes(request: dict[str, Any]) -> bytes:
    return json.dumps(request, indent=1).encode() + b"\n"


def _feature(name: str, template: dict[str, Any] | str) -> dict[str, Any]:
    language = "derived_expression" if isinstance(template, str) else "mustache"
    return {"name": name, "params": [], "template_language": language, "template": template}


def _tree_features(model: PointwiseModel, variants: list[Variant]) -> list[dict[str, Any]]:
    """The feature set of trees; scores of queries are not negative, so the lowest number comes from an expression."""
    made: dict[str, dict[str, Any]] = {}
    for variant in variants:
        column, number = model.columns[variant.feature]
        if variant.side == "low":
            base, missing = model.names[variant.feature], model.derived_name(variant.feature, MISSING)
            made[base] = _feature(base, query_of(column, number, default=0.0))
            made[missing] = _feature(missing, missing_query(column))
            made[variant.name] = _feature(variant.name, f"{base} + {missing} * ({variant.default!r})")
        else:
            made[variant.name] = _feature(variant.name, query_of(column, number, default=variant.default))
    # Expressions come after the features that they use.
    return sorted(made.values(), key=lambda feature: isinstance(feature["template"], str))


def _xgboost_node(root: Node, names: list[str]) -> dict[str, Any]:
    """The nested nodes of one tree, numbered from 0."""
    numbers = iter(range(1 << 62))

    def node(tree: Node, depth: int) -> dict[str, Any]:
        number = next(numbers)
        if isinstance(tree, Leaf):
            return {"nodeid": number, "leaf": float(np.float32(tree.value))}
        yes, no = node(tree.left, depth + 1), node(tree.right, depth + 1)
        above = float(np.nextafter(np.float32(tree.threshold), np.float32(np.inf)))
        # A feature always has a value; versions that ask for the way of missing values get the way of 0.
        missing = yes if above > 0 else no
        return {
            "nodeid": number,
            "depth": depth,
            "split": names[tree.feature],
            "split_condition": above,
            "yes": yes["nodeid"],
            "no": no["nodeid"],
            "missing": missing["nodeid"],
            "children": [yes, no],
        }

    return node(root, 0)


def _linear(model: PointwiseModel, weights: Doubles) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """The feature set and the weights by feature."""
    normaliser, missing = model.normaliser, model.normaliser.missing
    if missing is None:
        raise CannotHold("it has no rule for missing values")
    features, expressions, definition = [], [], {}
    for variant, (column, number) in zip(filled_features(model), model.columns, strict=True):
        features.append(_feature(variant.name, query_of(column, number, default=variant.default)))
        expression = _expression(normaliser, variant.feature, variant.name)
        weighted = variant.name if expression is None else model.derived_name(variant.feature, SCALED)
        if expression is not None:
            expressions.append(_feature(weighted, expression))
        definition[weighted] = float(np.float32(weights[variant.feature]))
    for feature, weight in zip(missing.indicated.tolist(), weights[model.n_features :].tolist(), strict=True):
        own = model.derived_name(feature, MISSING)
        features.append(_feature(own, missing_query(model.columns[feature][0])))
        definition[own] = float(np.float32(weight))
    return [*features, *expressions], definition


def _expression(normaliser: Normaliser, feature: int, name: str) -> str | None:
    """The scaled feature as a Lucene expression; None if it is not scaled."""
    if normaliser.kind == "none":
        return None
    low, high = float(normaliser.low[feature]), float(normaliser.high[feature])
    half = (high - low) / 2
    if half <= 0:
        return f"0 * {name}"
    value = name
    if normaliser.kind == "log-min-max":
        value = f"({name} < 0 ? -ln(1 - {name}) : ln(1 + {name}))"
    return f"max(-1, min(1, ({value} - ({low + half!r})) / {half!r}))"


class _TreeReader:
    """The scores of trees by the JSON of a request."""

    def __init__(self, content: bytes, variants: list[Variant]) -> None:
        self._variants = variants
        place = {variant.name: number for number, variant in enumerate(variants)}

        def read(node: Any) -> ReadSplit | float:
            if "leaf" in node:
                return float(node["leaf"])
            left_missing = node["missing"] == node["yes"]
            return ReadSplit(place[node["split"]], node["split_condition"], left_missing, *node["children"])

        roots = json.loads(json.loads(content)["model"]["model"]["definition"])
        self._trees = read_trees(roots, read, below=True)

    def score(self, features: Floats) -> Doubles:
        """[n] the sum in float32."""
        values = np.stack([variant.values(features) for variant in self._variants], axis=1)
        return sum_of_floats(self._trees.leaves(values)).astype(np.float64)


class _LinearReader:
    """The scores of a linear model by the JSON of both requests."""

    def __init__(self, content: bytes, feature_set: bytes, model: PointwiseModel) -> None:
        self._weights = json.loads(json.loads(content)["model"]["model"]["definition"])
        features = json.loads(feature_set)["featureset"]["features"]
        self._expressions = {feature["name"]: feature["template"] for feature in features}
        self._filled = {variant.name: variant for variant in filled_features(model)}
        self._indicated = {model.derived_name(j, MISSING): j for j in range(model.n_features)}

    def score(self, features: Floats) -> Doubles:
        """[n] the sum in float32."""
        columns = [self._values(name, features) * np.float32(weight) for name, weight in self._weights.items()]
        return sum_of_floats(np.stack(columns, axis=1)).astype(np.float64)

    def _values(self, name: str, features: Floats) -> Floats:
        if name in self._filled:
            return self._filled[name].values(features)
        if name in self._indicated:
            return np.isnan(features[:, self._indicated[name]]).astype(np.float32)
        return self._expression(self._expressions[name], features)

    def _expression(self, text: str, features: Floats) -> Floats:
        """The expressions that `_expression` writes, in double precision."""
        if constant := re.fullmatch(r"0 \* (\w+)", text):
            return 0 * self._filled[constant[1]].values(features)
        match = re.fullmatch(r"max\(-1, min\(1, \((.*) - \((\S+)\)\) / (\S+)\)\)", text)
        assert match is not None, text
        (name,) = {word for word in re.findall(r"[A-Za-z_]\w*", match[1]) if word != "ln"}
        values = self._filled[name].values(features).astype(np.float64)
        if match[1] != name:
            values = np.where(values < 0, -np.log(1 + np.abs(values)), np.log(1 + np.abs(values)))
        return np.clip((values - float(match[2])) / float(match[3]), -1, 1).astype(np.float32)
