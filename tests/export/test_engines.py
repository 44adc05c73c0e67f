"""The files for search engines, read as the engines' documentation says."""

import json
from collections.abc import Callable

import numpy as np
import pytest

from cuolr.export import EXPORTERS
from cuolr.export.check_export import FeatureRange, compare_scores, random_documents, threshold_documents
from cuolr.export.exporter import ExportedModel, PointwiseModel
from cuolr.export.raw_trees import folded
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.types import Floats
from tests.export import engines
from tests.export.example_models import examples

Score = Callable[[engines.Fields], float]
RANDOM, THRESHOLDS = 100, 300
FEATURES = ".features.json"
ENGINES: dict[str, dict[str, Callable[[ExportedModel], Score]]] = {
    "elasticsearch-ltr": {"0 if missing": lambda e: engines.ltr_plug_in(e.content, e.companions[FEATURES], 0.0)},
    "opensearch-ltr": {
        "0 if missing": lambda e: engines.ltr_plug_in(e.content, e.companions[FEATURES], 0.0),
        "NaN if missing": lambda e: engines.ltr_plug_in(e.content, e.companions[FEATURES], float("nan")),
    },
    "elastic": {"8": lambda e: engines.elastic(e.content)},
    "solr": {"9": lambda e: engines.solr(e.content, e.companions[FEATURES])},
    "vespa": {"8": lambda e: engines.vespa(e.content, e.companions[".profile"])},
}
TREES = [name for name in examples() if "trees" in name]
LINEAR = [name for name in examples() if name.startswith("linear")]
CASES = [
    *((engine, name) for engine in ENGINES for name in TREES if engine != "opensearch-ltr" or "log-min-max" in name),
    *((engine, name) for engine in ("elasticsearch-ltr", "opensearch-ltr") for name in LINEAR),
    *(("solr", name) for name in examples() if name.startswith(("linear", "network")) and "log" not in name),
]


def probes(model: PointwiseModel) -> Floats:
    """Random documents, and some at thresholds of trees."""
    rng = np.random.default_rng(5)
    grown = [folded(member) for member in model.members if isinstance(member, TreesPolicy)]
    values = FeatureRange.of(model.normaliser, model.n_features, grown)
    found = [random_documents(values, RANDOM, rng, with_missing=True)]
    for trees in grown:
        at_thresholds = np.concatenate(list(threshold_documents(trees, random_documents(values, 64, rng, False))))
        found.append(at_thresholds[rng.permutation(len(at_thresholds))[:THRESHOLDS]])
    return np.concatenate(found)


def as_fields(names: list[str], document: Floats) -> dict[str, float]:
    return {name: float(value) for name, value in zip(names, document, strict=True) if not np.isnan(value)}


@pytest.mark.parametrize(("target", "name"), CASES)
def test_an_engine_scores_as_the_policy_does(target: str, name: str) -> None:
    model = PointwiseModel.of(examples()[name])
    exported = EXPORTERS.get(target)().export(model, "shop")
    documents = probes(model)
    for engine in ENGINES[target].values():
        score = engine(exported)
        found = np.array([score(as_fields(model.feature_names, document)) for document in documents])
        check = compare_scores(model.score(documents), found, RANDOM)
        check.require()
        assert check.max_difference <= 1e-6 * max(1, check.max_score)


def test_every_engine_is_read() -> None:
    assert set(EXPORTERS.names()) - set(ENGINES) == {"onnx", "lightgbm", "xgboost"}


def test_names_in_the_engine_are_taken_from_the_command() -> None:
    model = PointwiseModel.of(examples()["trees, log-min-max, missing values"])
    for target in ("elasticsearch-ltr", "opensearch-ltr"):
        exported = EXPORTERS.get(target)().export(model, "shop")
        assert json.loads(exported.content)["model"]["name"] == "shop"
        assert json.loads(exported.companions[FEATURES])["featureset"]["name"] == "shop"
    exported = EXPORTERS.get("solr")().export(model, "shop")
    assert {json.loads(exported.content)["store"], json.loads(exported.content)["name"]} == {"shop"}
    assert {feature["store"] for feature in json.loads(exported.companions[FEATURES])} == {"shop"}
    profile = EXPORTERS.get("vespa")().export(model, "shop").companions[".profile"].decode()
    assert profile.startswith("rank-profile shop inherits default {")
    assert 'lightgbm("shop.json")' in profile
