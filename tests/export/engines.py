"""How search engines score a document by the files that are uploaded to them, written from their documentation.

A document is a dict of its fields; a field without a value is not there. Nothing of the exporters is used.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

f32 = np.float32
Fields = Mapping[str, Any]


# Elasticsearch and OpenSearch: the query language.


def score_of_query(query: Mapping[str, Any], fields: Fields) -> float | None:
    """The score of a document; None if the query does not match it."""
    ((kind, body),) = query.items()
    if kind == "match_all":
        return 1.0
    if kind == "term":
        ((field, value),) = body.items()
        return 1.0 if fields.get(field) == value else None
    if kind == "exists":
        return 1.0 if body["field"] in fields else None
    if kind == "constant_score":
        return None if score_of_query(body["filter"], fields) is None else body.get("boost", 1.0)
    if kind == "bool":
        if any(score_of_query(other, fields) is not None for other in body.get("must_not", ())):
            return None
        found = [score_of_query(other, fields) for other in body.get("should", ())]
        known = [score for score in found if score is not None]
        return sum(known) if known or not found else None
    assert kind == "function_score", kind
    assert body["boost_mode"] == "replace"
    if score_of_query(body["query"], fields) is None:
        return None
    factor = body["field_value_factor"]
    if factor["field"] in fields:
        return float(f32(fields[factor["field"]]))
    assert "missing" in factor, f"field_value_factor: missing value for {factor['field']}"
    return float(f32(factor["missing"]))


# The Learning to Rank plug-in: feature sets, model/xgboost+json, model/linear.


def ltr_plug_in(model: bytes, feature_set: bytes, default: float) -> Callable[[Fields], float]:
    """The plug-in; a feature whose query does not match has the default, 0 or (recent OpenSearch) NaN."""
    request = json.loads(model)["model"]["model"]
    features = json.loads(feature_set)["featureset"]["features"]
    text = request["definition"]
    definition = json.loads(text)

    def values(fields: Fields) -> dict[str, np.float32]:
        found: dict[str, np.float32] = {}
        for feature in features:
            if feature["template_language"] == "derived_expression":
                found[feature["name"]] = lucene_expression(feature["template"], found)
            else:
                score = score_of_query(feature["template"], fields)
                found[feature["name"]] = f32(default if score is None else score)
        return found

    def score(fields: Fields) -> float:
        found, total = values(fields), f32(0)
        if request["type"] == "model/linear":
            for name, weight in definition.items():
                total = total + found[name] * f32(weight)
            return float(total)
        assert request["type"] == "model/xgboost+json"
        for tree in definition:
            total = total + f32(xgboost_leaf(tree, found))
        return float(total)

    return score


def lucene_expression(text: str, values: Mapping[str, np.float32]) -> np.float32:
    """Lucene's JavaScript expressions: double precision, `ln`, `min`, `max` and the conditional operator."""
    python = re.sub(r"\((\w+) < 0 \? (.+?) : (.+?\))\)", r"((\2) if \1 < 0 else (\3))", text)
    names = {name: float(value) for name, value in values.items()}
    functions = {"min": min, "max": max, "ln": lambda x: float(np.log(x))}
    with np.errstate(over="ignore"):
        return f32(eval(python, {"__builtins__": {}}, {**functions, **names}))


def xgboost_leaf(node: Mapping[str, Any], values: Mapping[str, np.float32]) -> float:
    """`yes` below the condition, `no` otherwise, `missing` without a value."""
    while "leaf" not in node:
        value = values[node["split"]]
        way = "missing" if np.isnan(value) else "yes" if value < f32(node["split_condition"]) else "no"
        (node,) = (child for child in node["children"] if child["nodeid"] == node[way])
    return float(node["leaf"])


# Elasticsearch itself: trained models of the type tree ensemble.


def elastic(model: bytes) -> Callable[[Fields], float]:
    request = json.loads(model)
    ensemble = request["definition"]["trained_model"]["ensemble"]
    extractors = [e["query_extractor"] for e in request["inference_config"]["learning_to_rank"]["feature_extractors"]]

    def score(fields: Fields) -> float:
        found = {e["feature_name"]: score_of_query(e["query"], fields) for e in extractors}
        weights = ensemble["aggregate_output"]["weighted_sum"]["weights"]
        leaves = [elastic_leaf(model["tree"], found) for model in ensemble["trained_models"]]
        return float(np.dot(weights, leaves))

    return score


def elastic_leaf(tree: Mapping[str, Any], values: Mapping[str, float | None]) -> float:
    nodes = {node["node_index"]: node for node in tree["tree_structure"]}
    node = nodes[0]
    while "leaf_value" not in node:
        value = values[tree["feature_names"][node["split_feature"]]]
        assert node["decision_type"] == "lte"
        left = node["default_left"] if value is None else value <= node["threshold"]
        node = nodes[node["left_child"] if left else node["right_child"]]
    return float(node["leaf_value"])


# Solr: feature store, normalisers, models. All numbers are float32; thresholds are raised by 1E-6.


def solr(model: bytes, store: bytes) -> Callable[[Fields], float]:
    described = json.loads(model)
    definitions = {feature["name"]: feature for feature in json.loads(store)}
    names = [feature["name"] for feature in described["features"]]

    def value(feature: Mapping[str, Any], fields: Fields) -> np.float32:
        definition = definitions[feature["name"]]
        params = definition["params"]
        if definition["class"].endswith(".SolrFeature"):
            (query,) = params["fq"]
            if is_missing := re.fullmatch(r"-(.+):\[\* TO \*\]", query):
                found = f32(is_missing[1] not in fields)
            else:
                term = re.fullmatch(r"\{!term f=(.+?)\}(.*)", query)
                assert term is not None, query
                found = f32(str(fields.get(term[1])) == term[2])
        else:
            assert definition["class"].endswith(".FieldValueFeature")
            found = f32(fields.get(params["field"], float(params["defaultValue"])))
        if "norm" in feature:
            assert feature["norm"]["class"].endswith(".StandardNormalizer")
            norm = feature["norm"]["params"]
            with np.errstate(over="ignore"):
                found = (found - f32(norm["avg"])) / f32(norm["std"])
        return f32(found)

    def score(fields: Fields) -> float:
        values = {feature["name"]: value(feature, fields) for feature in described["features"]}
        params = described["params"]
        total = f32(0)
        if described["class"].endswith(".LinearModel"):
            for name in names:
                total = total + values[name] * f32(params["weights"][name])
            return float(total)
        if described["class"].endswith(".MultipleAdditiveTreesModel"):
            for tree in params["trees"]:
                total = total + f32(tree["weight"]) * solr_leaf(tree["root"], values)
            return float(total)
        assert described["class"].endswith(".NeuralNetworkModel")
        vector = [values[name] for name in names]
        for layer in params["layers"]:
            vector = [
                solr_unit(row, bias, vector, layer["activation"])
                for row, bias in zip(layer["matrix"], layer["bias"], strict=True)
            ]
        (only,) = vector
        return float(only)

    return score


def solr_leaf(node: Mapping[str, Any], values: Mapping[str, np.float32]) -> np.float32:
    while "feature" in node:
        threshold = f32(node["threshold"]) + f32(1e-6)
        node = node["left"] if values[node["feature"]] <= threshold else node["right"]
    return f32(node["value"])


def solr_unit(row: list[float], bias: float, vector: list[np.float32], activation: str) -> np.float32:
    assert all(isinstance(weight, float) for weight in (*row, bias)), "Solr casts to Double"
    total = f32(bias)
    for weight, value in zip(row, vector, strict=True):
        total = total + f32(weight) * value
    return {"relu": max(total, f32(0)), "identity": total}[activation]


# Vespa: the import of LightGBM's JSON, and rank profiles.


def vespa(model: bytes, profile: bytes) -> Callable[[Fields], float]:
    """A split becomes `feature < threshold`, with default_left `!(feature >= threshold)`; unset = NaN."""
    read = json.loads(model)
    functions = dict(re.findall(r"function (\w+)\(\) \{ expression: attribute\((\w+)\) \}", profile.decode()))
    assert read["objective"] == "regression"
    assert list(read["pandas_categorical"]) == []

    def leaf(node: Mapping[str, Any], values: Mapping[str, float]) -> float:
        while "left_child" in node:
            value, threshold = values[read["feature_names"][node["split_feature"]]], float(node["threshold"])
            left = not value >= threshold if node["default_left"] else value < threshold
            node = node["left_child"] if left else node["right_child"]
        return float(node["leaf_value"])

    def score(fields: Fields) -> float:
        values = {name: fields.get(attribute, float("nan")) for name, attribute in functions.items()}
        return sum(leaf(tree["tree_structure"], values) for tree in read["tree_info"])

    return score
