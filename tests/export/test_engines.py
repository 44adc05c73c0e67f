"""The files for search engines, read as their documentation says, and what every exporter must do."""

import json
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuolr.data.normalise import UNSCALED
from cuolr.export import EXPORTERS
from cuolr.export.check_export import FeatureRange, check_export, compare_scores, random_documents, threshold_documents
from cuolr.export.exporter import CannotHold, ExportedModel, PointwiseModel
from cuolr.export.json_trees import MAX_DEPTH
from cuolr.export.raw_trees import folded
from cuolr.export.solr_reader import SLACK, small_thresholds, written_thresholds
from cuolr.policies.ensemble_policy import EnsemblePolicy
from cuolr.policies.regression_trees import MISSING_RIGHT, RegressionTrees
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.types import Floats
from tests.export import engines
from tests.export.example_models import examples, linear, network, trees

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
    for member in grown:
        at_thresholds = np.concatenate(list(threshold_documents(member, random_documents(values, 64, rng, False))))
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


every_target = pytest.mark.parametrize("target", EXPORTERS.names())
# Each takes trees with missing values; which also take linear rankers, networks and mixed ensembles, and how scaled.
SCALINGS = ("min-max", "log-min-max", "none")
HOLDS: dict[str, set[str]] = {
    "onnx": {f"{kind}, {scaling}" for kind in ("linear", "network") for scaling in SCALINGS} | {"mixed ensemble"},
    "lightgbm": set(),
    "xgboost": set(),
    "elastic": set(),
    "elasticsearch-ltr": {f"linear, {scaling}" for scaling in SCALINGS},
    "opensearch-ltr": {f"linear, {scaling}" for scaling in SCALINGS},
    "solr": {f"{kind}, {scaling}" for kind in ("linear", "network") for scaling in ("min-max", "none")},
    "vespa": {f"{kind}, {scaling}" for kind in ("linear", "network") for scaling in SCALINGS} | {"mixed ensemble"},
}


@every_target
@pytest.mark.parametrize("name", examples())
def test_the_scores_are_those_of_the_policy_or_it_is_said_why_not(target: str, name: str) -> None:
    model = PointwiseModel.of(examples()[name])
    family = name.removesuffix(", all values").removesuffix(", missing values")
    if not family.startswith(("trees", "ensemble of trees")) and family not in HOLDS[target]:
        with pytest.raises(CannotHold, match=r"\w+ \w+"):
            EXPORTERS.get(target)().export(model, "name")
        return
    check = check_export(model, EXPORTERS.get(target)().export(model, "name").score, number=2_000)
    assert not check.reordered_pairs
    assert check.max_difference <= 1e-6 * max(1, check.max_score)


@every_target
def test_the_same_model_gives_the_same_bytes(target: str) -> None:
    model = PointwiseModel.of(examples()["ensemble of trees"])
    first, second = (EXPORTERS.get(target)().export(model, "name") for _ in range(2))
    assert first.content == second.content
    assert first.companions == second.companions


@every_target
def test_json_has_no_numbers_that_json_does_not_know(target: str) -> None:
    exported = EXPORTERS.get(target)().export(PointwiseModel.of(examples()["trees, log-min-max, missing values"]), "n")

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    files = [exported.content] if exported.suffixes == (".json",) and target != "xgboost" else []
    for content in [*files, *(text for suffix, text in exported.companions.items() if suffix.endswith(".json"))]:
        json.loads(content, parse_constant=refuse)


def chain(depth: int) -> TreesPolicy:
    """A tree in which each split has a leaf on the left and the next split on the right."""
    own = np.arange(depth)
    right = np.where(own < depth - 1, own + 1, -1 - depth)
    values = np.linspace(0, 1, depth + 1)
    feature, kind = np.zeros(depth, np.int64), np.full(depth, MISSING_RIGHT)
    thresholds = own.astype(np.float64)
    return TreesPolicy(
        RegressionTrees(1, np.array([depth + 1]), feature, thresholds, kind, -1 - own, right, values), 1, UNSCALED
    )


@pytest.mark.parametrize("target", ["elasticsearch-ltr", "opensearch-ltr", "solr", "vespa"])
def test_nested_json_has_a_limit(target: str) -> None:
    exported = EXPORTERS.get(target)().export(PointwiseModel.of(chain(MAX_DEPTH)), "n")
    documents = np.array([[-1.0], [MAX_DEPTH / 2], [1e9]], np.float32)
    assert exported.score(documents).tolist() == pytest.approx(chain(MAX_DEPTH).score_scaled(documents).tolist())
    with pytest.raises(
        CannotHold, match=f"nests at most {MAX_DEPTH} splits, and a tree of the model has {MAX_DEPTH + 1}"
    ):
        EXPORTERS.get(target)().export(PointwiseModel.of(chain(MAX_DEPTH + 1)), "n")


@pytest.mark.parametrize("target", ["onnx", "lightgbm", "xgboost", "elastic"])
def test_other_formats_hold_deep_trees(target: str) -> None:
    deep = chain(MAX_DEPTH + 50)
    documents = np.array([[-1.0], [50.5], [1e9], [np.nan]], np.float32)
    found = EXPORTERS.get(target)().export(PointwiseModel.of(deep), "n").score(documents)
    assert found.tolist() == pytest.approx(deep.score_scaled(documents).tolist())


@pytest.mark.parametrize("target", EXPORTERS.names())
def test_a_tree_without_a_split_is_a_constant(target: str) -> None:
    empty = np.empty(0, np.int64)
    constant = RegressionTrees(2, np.array([1]), empty, np.empty(0), empty, empty, empty, np.array([0.25]))
    exported = EXPORTERS.get(target)().export(PointwiseModel.of(TreesPolicy(constant)), "n")
    assert exported.score(np.zeros((3, 2), np.float32)).tolist() == [0.25] * 3


def test_solr_does_not_take_several_networks() -> None:
    several = PointwiseModel.of(EnsemblePolicy([network("min-max"), linear("min-max")], [1.0, 2.0]))
    with pytest.raises(CannotHold, match="one network, and the model has a linear model and a network"):
        EXPORTERS.get("solr")().export(several, "n")


def test_an_ensemble_without_weights_is_refused() -> None:
    with pytest.raises(CannotHold, match="weight 0"):
        PointwiseModel.of(EnsemblePolicy([trees()], [0.0]))


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_solr_compares_with_the_threshold_itself(threshold: float) -> None:
    wanted = np.array([threshold], np.float32)
    written, fits = written_thresholds(wanted)
    if fits[0]:
        assert (written + SLACK).tolist() == wanted.tolist()
        return
    exponent = small_thresholds(np.zeros(1, np.int64), wanted.astype(np.float64))[0]
    scaled = wanted * np.float32(2.0**exponent)
    assert (scaled / np.float32(2.0**exponent)).tolist() == wanted.tolist()
    written, fits = written_thresholds(scaled)
    # Numbers below 2⁻¹²⁰ cannot be scaled far enough; LightGBM takes numbers up to 10⁻³⁵ for 0.
    assert fits[0] or abs(threshold) < 2.0**-120
