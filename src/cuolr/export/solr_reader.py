"""The scores of a model for Solr by its JSON, as Solr computes them: in float32, with 10⁻⁶ added to each threshold."""

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from cuolr.export.exporter import PointwiseModel
from cuolr.export.json_trees import ReadSplit, read_trees, sum_of_floats
from cuolr.export.raw_trees import filled_features
from cuolr.types import Bools, Doubles, Floats, Ints

# `MultipleAdditiveTreesModel` compares with threshold + SLACK, in float32.
SLACK = np.float32(1e-6)
# From this number on, the slack is less than half of the distance to either float32 number beside it.
LARGE = 64.0
# Numbers around t − SLACK that are tried.
TRIED = 8
# What the age of a date is where there is no date.
AGE_WITHOUT_DATE = re.compile(r"\{!func\}if\(exists\(.*\),([^,()]+)\)")
# The least standard deviation that is a normal float32 number is 2⁻¹²⁶.
MAX_EXPONENT = 126


def written_thresholds(threshold: Floats) -> tuple[Floats, Bools]:
    """[S] numbers that become these thresholds when Solr adds the slack, and whether there is such a number."""
    with np.errstate(over="ignore"):
        return _written(threshold)


def _written(threshold: Floats) -> tuple[Floats, Bools]:
    written = threshold - SLACK
    found = written + SLACK == threshold
    below = above = written
    for _ in range(TRIED):
        below, above = np.nextafter(below, np.float32(-np.inf)), np.nextafter(above, np.float32(np.inf))
        for tried in (below, above):
            better = ~found & (tried + SLACK == threshold)
            written, found = np.where(better, tried, written), found | better
    return written, found


def small_thresholds(feature: Ints, threshold: Doubles) -> dict[int, int]:
    """The features with thresholds that cannot be written, and the power of two that makes them large enough.

    A multiplication by a power of two is exact.

    Args:
        feature: [S] the feature of each threshold.
        threshold: [S] the thresholds, float32 numbers.
    """
    _, fits = written_thresholds(threshold.astype(np.float32))
    lowest = {j: float(np.abs(threshold[~fits & (feature == j)]).min()) for j in np.unique(feature[~fits]).tolist()}
    return {j: min(MAX_EXPONENT, int(np.ceil(np.log2(LARGE / value)))) for j, value in lowest.items()}


class SolrReader:
    """Reads the model and the definitions of its features.

    Attributes:
        score: [n, F] raw documents → [n] scores.
    """

    def __init__(self, content: bytes, definitions: bytes, model: PointwiseModel) -> None:
        described = json.loads(content)
        self._inputs = described["features"]
        self._definitions = {feature["name"]: feature for feature in json.loads(definitions)}
        # Which raw feature a defined one is made of.
        self._sources = {model.names[j]: j for j in range(model.n_features)}
        for suffix in ("_or_low", "_or_high", "_small", "_or_low_small", "_or_high_small", "_is_missing"):
            self._sources |= {model.derived_name(j, suffix): j for j in range(model.n_features)}
        self._indicators = {model.derived_name(j, "_is_missing") for j in range(model.n_features)}
        # A level of a category has a value in every document: it matches or not. If it is missing in a document that is
        # made up for a comparison, it is what it is for the policy.
        self._of_levels = [np.float32(variant.default) for variant in filled_features(model)]
        ((kind, params),) = described["params"].items()
        self._score = SCORERS[kind](params, [feature["name"] for feature in self._inputs])

    def score(self, features: Floats) -> Doubles:
        """[n] the scores of raw documents [n, F]."""
        with np.errstate(over="ignore"):
            values = np.stack([self._values(described, features) for described in self._inputs], axis=1)
            return self._score(values).astype(np.float64)

    def _values(self, described: dict[str, Any], features: Floats) -> Floats:
        """[n] a feature, normalised if the model says so."""
        source = self._sources[described["name"]]
        column, params = features[:, source], self._definitions[described["name"]]["params"]
        if described["name"] in self._indicators:
            column = np.isnan(column).astype(np.float32)
        default = self._of_levels[source] if "fq" in params else _default(params)
        column = np.where(np.isnan(column), default, column)
        if "norm" not in described:
            return column
        norm = described["norm"]["params"]
        normalised: Floats = (column - np.float32(float(norm["avg"]))) / np.float32(float(norm["std"]))
        return normalised


def _default(params: dict[str, Any]) -> np.float32:
    """What a feature is where its field has no value."""
    age = AGE_WITHOUT_DATE.fullmatch(params.get("q", ""))
    return np.float32(float(age[1] if age else params.get("defaultValue", "0")))


def _trees(trees: list[Any], names: list[str]) -> Callable[[Floats], Floats]:
    place = {name: number for number, name in enumerate(names)}

    def read(node: Any) -> ReadSplit | float:
        if "value" in node:
            return float(node["value"])
        threshold = float(np.float32(float(node["threshold"])) + SLACK)
        return ReadSplit(place[node["feature"]], threshold, False, node["left"], node["right"])

    found = read_trees([tree["root"] for tree in trees], read, below=False)
    return lambda values: sum_of_floats(found.leaves(values))


def _linear(weights: dict[str, float], names: list[str]) -> Callable[[Floats], Floats]:
    ordered = np.array([weights[name] for name in names], np.float32)
    return lambda values: sum_of_floats(values * ordered)


def _network(layers: list[Any], names: list[str]) -> Callable[[Floats], Floats]:
    read = [(np.array(layer["matrix"], np.float32), np.array(layer["bias"], np.float32)) for layer in layers]

    def score(values: Floats) -> Floats:
        for (matrix, bias), layer in zip(read, layers, strict=True):
            values = values @ matrix.T + bias
            values = np.maximum(values, 0) if layer["activation"] == "relu" else values
        return values[:, 0]

    return score


# What the parameters of each kind of model are called.
SCORERS: dict[str, Callable[[Any, list[str]], Callable[[Floats], Floats]]] = {
    "trees": _trees,
    "weights": _linear,
    "layers": _network,
}
