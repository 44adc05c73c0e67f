"""`solr`: a model and its features for Solr's learning to rank."""

import json
from dataclasses import replace
from typing import Any

import numpy as np

from cuolr.export import EXPORTERS
from cuolr.export.exporter import CannotHold, ExportedModel, Exporter, PointwiseModel, latest_date, layers_of
from cuolr.export.json_trees import Leaf, Node, nested
from cuolr.export.raw_trees import Variant, filled_features, linear_weights, raw_trees, sided
from cuolr.export.solr_reader import SolrReader, small_thresholds, written_thresholds
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.regression_trees import RegressionTrees
from cuolr.types import Floats

FEATURES = ".features.json"
CLASSES = "org.apache.solr.ltr.feature"
MILLISECONDS_PER_DAY = 86_400_000


def feature_of(model: PointwiseModel, variant: Variant, store: str) -> dict[str, Any]:
    """A feature; a column of the feature table is taken for the field of the same name."""
    column, number = model.columns[variant.feature]
    field = column.name
    if column.kind == "category" and number < len(column.levels):
        return _if_matches(variant.name, f"{{!term f={field}}}{column.levels[number]}", store)
    if column.kind == "hashed category" and number < column.buckets:
        return _if_matches(variant.name, f"{{!term f={field}_bucket}}{number}", store)
    if column.kind in ("category", "hashed category"):
        return _if_matches(variant.name, f"-{field}:[* TO *]", store)
    if column.kind == "date":
        latest = latest_date(column).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        age = f"{{!func}}if(exists({field}),div(ms({latest},{field}),{MILLISECONDS_PER_DAY}),{variant.default!r})"
        return {"store": store, "name": variant.name, "class": f"{CLASSES}.SolrFeature", "params": {"q": age}}
    parameters = {"field": field, "defaultValue": repr(variant.default)}
    return {"store": store, "name": variant.name, "class": f"{CLASSES}.FieldValueFeature", "params": parameters}


def indicator_of(model: PointwiseModel, feature: int, store: str) -> dict[str, Any]:
    """1 where a feature has no value, 0 elsewhere."""
    column, _ = model.columns[feature]
    return _if_matches(model.derived_name(feature, "_is_missing"), f"-{column.name}:[* TO *]", store)


def _if_matches(name: str, query: str, store: str) -> dict[str, Any]:
    return {"store": store, "name": name, "class": f"{CLASSES}.SolrFeature", "params": {"fq": [query]}}


PACKAGE = "org.apache.solr.ltr"
# Solr's limit on what it keeps in ZooKeeper.
MAX_BYTES = 1_000_000


@EXPORTERS.register("solr")
class Solr(Exporter):
    """Trees as `MultipleAdditiveTreesModel`, linear models as `LinearModel`, networks as `NeuralNetworkModel`.

    Solr goes left up to threshold + 10⁻⁶, and computes in float32. Its normalisers do not clip values; two layers of a
    network do it: 1 − relu(2 − relu(x + 1)) is x between −1 and 1. So a scaled linear model is a network, too.
    """

    def export(self, model: PointwiseModel, name: str) -> ExportedModel:
        """The model; beside it, its features."""
        weights = linear_weights(model)
        if model.kinds == {"trees"}:
            form, inputs, params, features = _trees(model, name)
        elif weights is not None and model.normaliser.kind == "none":
            form, inputs, params, features = _linear(model, name)
        else:
            form, inputs, params, features = _network(model, name)
        described = {
            "store": name,
            "name": name,
            "class": f"{PACKAGE}.model.{form}",
            "features": inputs,
            "params": params,
        }
        content = json.dumps(described).encode()
        definitions = json.dumps(features, indent=1).encode() + b"\n"
        reader = SolrReader(content, definitions, model)
        return ExportedModel(form, content, reader.score, (".json",), {FEATURES: definitions}, _warnings(content))


def _warnings(content: bytes) -> list[str]:
    if len(content) <= MAX_BYTES:
        return []
    return [
        f"the model has {len(content) / 1e6:.1f} MB, and ZooKeeper keeps 1 MB by default; put the file on every node "
        "and upload a DefaultWrapperModel that names it"
    ]


def _norm(mean: float, deviation: float) -> dict[str, Any]:
    parameters = {"avg": repr(float(np.float32(mean))), "std": repr(float(np.float32(deviation)))}
    return {"class": f"{PACKAGE}.norm.StandardNormalizer", "params": parameters}


def _trees(model: PointwiseModel, name: str) -> tuple[str, list[Any], dict[str, Any], list[Any]]:
    trees, variants = sided(model, raw_trees(model))
    trees, variants, power = _with_small_thresholds(model, trees, variants)
    inputs: list[dict[str, Any]] = [{"name": variant.name} for variant in variants]
    for number, exponent in power.items():
        inputs[number]["norm"] = _norm(0.0, 2.0**-exponent)
    names = [variant.name for variant in variants]
    made = [{"weight": "1", "root": _node(root, names, power)} for root in nested(trees)]
    features = [feature_of(model, variant, name) for variant in variants]
    return "MultipleAdditiveTreesModel", inputs, {"trees": made}, features


def _with_small_thresholds(
    model: PointwiseModel, trees: RegressionTrees, variants: list[Variant]
) -> tuple[RegressionTrees, list[Variant], dict[int, int]]:
    """Splits at thresholds close to 0 get a feature of their own, multiplied by a power of two."""
    small = small_thresholds(trees.feature, trees.threshold)
    _, fits = written_thresholds(trees.threshold.astype(np.float32))
    feature, more, power = trees.feature.copy(), list(variants), {}
    for own, exponent in small.items():
        feature[~fits & (trees.feature == own)] = len(more)
        power[len(more)] = exponent
        variant = variants[own]
        suffix = variant.name.removeprefix(model.names[variant.feature])
        more.append(replace(variant, name=model.derived_name(variant.feature, f"{suffix}_small")))
    return replace(trees, feature=feature, n_features=len(more)), more, power


def _node(tree: Node, names: list[str], power: dict[int, int]) -> dict[str, Any]:
    if isinstance(tree, Leaf):
        return {"value": _text(tree.value)}
    (written,), _ = written_thresholds(np.array([tree.threshold * 2.0 ** power.get(tree.feature, 0)], np.float32))
    return {
        "feature": names[tree.feature],
        "threshold": _text(written),
        "left": _node(tree.left, names, power),
        "right": _node(tree.right, names, power),
    }


def _text(value: float | np.float32) -> str:
    """A float32 number as Solr reads it: Solr expects a string."""
    return repr(float(np.float32(value)))


def _inputs(model: PointwiseModel, name: str) -> tuple[list[Variant], list[int], list[Any]]:
    """The features, those with an indicator of missing values, and their definitions."""
    missing = model.normaliser.missing
    if missing is None:
        raise CannotHold("the model has no rule for missing values")
    variants, indicated = filled_features(model), missing.indicated.tolist()
    features = [feature_of(model, variant, name) for variant in variants]
    return variants, indicated, [*features, *(indicator_of(model, feature, name) for feature in indicated)]


def _linear(model: PointwiseModel, name: str) -> tuple[str, list[Any], dict[str, Any], list[Any]]:
    _, _, features = _inputs(model, name)
    names = [feature["name"] for feature in features]
    weights = linear_weights(model)
    assert weights is not None
    by_name = {own: float(np.float32(weight)) for own, weight in zip(names, weights.tolist(), strict=True)}
    return "LinearModel", [{"name": own} for own in names], {"weights": by_name}, features


def _network(model: PointwiseModel, name: str) -> tuple[str, list[Any], dict[str, Any], list[Any]]:
    layers = _one_network(model)
    if model.normaliser.kind == "log-min-max":
        raise CannotHold("it takes linear models and networks on features scaled by min-max, not by a logarithm")
    variants, indicated, features = _inputs(model, name)
    inputs: list[dict[str, Any]] = [{"name": feature["name"]} for feature in features]
    clip: list[dict[str, Any]] = []
    if model.normaliser.kind == "min-max":
        half = (model.normaliser.high - model.normaliser.low) / 2
        for variant, described in zip(variants, inputs, strict=False):
            own = float(half[variant.feature])
            if own > 0:
                described["norm"] = _norm(float(model.normaliser.low[variant.feature]) + own, own)
        is_scaled = np.concatenate([half > 0, np.zeros(len(indicated), np.bool_)])
        clip, layers = _clipped(layers, is_scaled, n_features=len(half))
    activations = ["relu"] * (len(layers) - 1) + ["identity"]
    made = [_layer(*layer, activation) for layer, activation in zip(layers, activations, strict=True)]
    return "NeuralNetworkModel", inputs, {"layers": [*clip, *made]}, features


def _one_network(model: PointwiseModel) -> list[tuple[Floats, Floats]]:
    """The layers of the only member, or of the sum of linear ones."""
    weights = linear_weights(model)
    if weights is not None:
        return [(weights[None, :].astype(np.float32), np.zeros(1, np.float32))]
    if len(model.members) > 1 or model.kinds != {"network"}:
        raise CannotHold(f"it takes trees, or a linear model, or one network, and the model has {model.described}")
    (member,), (weight,) = model.members, model.weights
    assert not isinstance(member, LinearPolicy)
    *hidden, (matrix, bias) = layers_of(member)  # type: ignore[arg-type]
    return [*hidden, (matrix * np.float32(weight), bias * np.float32(weight))]


def _clipped(
    layers: list[tuple[Floats, Floats]], is_scaled: np.ndarray[Any, np.dtype[np.bool_]], n_features: int
) -> tuple[list[dict[str, Any]], list[tuple[Floats, Floats]]]:
    """Two layers u = relu(x + 1), v = relu(2 − u), and the given ones on x = 1 − v; indicators pass unchanged."""
    is_feature = np.arange(len(is_scaled)) < n_features
    one = is_feature.astype(np.float32)
    through = np.where(is_feature, is_scaled, True).astype(np.float32)
    sign = np.where(is_feature, np.float32(-1), np.float32(1))
    clip = [_layer(np.diag(through), one, "relu"), _layer(np.diag(sign), 2 * one, "relu")]
    (matrix, bias), *rest = layers
    shifted = (bias.astype(np.float64) + matrix.astype(np.float64) @ one).astype(np.float32)
    return clip, [(matrix * sign, shifted), *rest]


def _layer(matrix: Floats, bias: Floats, activation: str) -> dict[str, Any]:
    numbers = matrix.astype(np.float64).tolist()
    return {"matrix": numbers, "bias": bias.astype(np.float64).tolist(), "activation": activation}
