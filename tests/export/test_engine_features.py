"""Definitions of features that come from columns of a table: numbers, categories, dates."""

import json

import lightgbm
import numpy as np
import pytest

from cuolr.data.normalise import UNSCALED, Normaliser
from cuolr.export import EXPORTERS
from cuolr.export.check_export import check_export
from cuolr.export.exporter import PointwiseModel, engine_names
from cuolr.export.lucene_queries import feature_warnings, query_of
from cuolr.export.vespa import Vespa
from cuolr.policies.linear_policy import LinearPolicy
from cuolr.policies.regression_trees import RegressionTrees
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.types import Candidates, FeatureColumn, FeatureRecipe, Floats
from tests.export import engines

COLUMNS = (
    FeatureColumn("price"),
    FeatureColumn("brand", "category", levels=("Acme & Co", "b"), missing_level=True),
    FeatureColumn("kind", "hashed category", buckets=2),
    FeatureColumn("sold", "boolean"),
)
# Price, both brands, no brand, both buckets, sold.
ROWS: Floats = np.array(
    [[3.5, 1, 0, 0, 1, 0, 1], [np.nan, 0, 1, 0, 0, 1, 0], [10.0, 0, 0, 1, 0, 1, 1], [1.25, 0, 0, 0, 1, 0, 0]],
    np.float32,
)
FIELDS: list[engines.Fields] = [
    {"price": 3.5, "brand": "Acme & Co", "kind_bucket": 0, "sold": 1},
    {"brand": "b", "kind_bucket": 1, "sold": 0},
    {"price": 10.0, "kind_bucket": 1, "sold": 1},
    {"price": 1.25, "brand": "unknown", "kind_bucket": 0, "sold": 0},
]


@pytest.fixture
def model() -> PointwiseModel:
    recipe = FeatureRecipe(COLUMNS)
    names = np.array(recipe.feature_names)
    candidates = Candidates(ROWS, np.array([0, 4]), np.array(["q"]), feature_names=names, recipe=recipe)
    normaliser = Normaliser.fit("min-max", candidates)
    weights = np.arange(1, 8 + normaliser.n_indicators, dtype=np.float32)
    return PointwiseModel.of(LinearPolicy(weights, normaliser))


@pytest.mark.parametrize("target", ["elasticsearch-ltr", "opensearch-ltr", "solr"])
def test_columns_of_all_kinds_are_computed_by_the_engine(model: PointwiseModel, target: str) -> None:
    exported = EXPORTERS.get(target)().export(model, "shop")
    features = exported.companions[".features.json"]
    score = (
        engines.solr(exported.content, features)
        if target == "solr"
        else engines.ltr_plug_in(exported.content, features, 0.0)
    )
    assert [score(fields) for fields in FIELDS] == pytest.approx(model.score(ROWS).tolist(), abs=1e-5)


def test_the_age_of_a_document_is_its_days_before_the_latest_one() -> None:
    column = FeatureColumn("added", "date", latest="2026-11-01T00:00:00")
    query = query_of(column, 0, default=None)["script_score"]
    assert query["script"]["params"] == {"field": "added", "latest": 1793491200000, "day": 86_400_000}
    assert query["query"] == {"exists": {"field": "added"}}
    assert engines.score_of_query(query_of(column, 0, default=3.0)["bool"]["should"][1], {}) == 3.0


def test_solr_and_vespa_compute_the_age_from_a_field_of_dates() -> None:
    recipe = FeatureRecipe((FeatureColumn("added", "date", latest="2026-11-01T00:00:00"),))
    names = np.array(recipe.feature_names)
    ages = np.array([[0.0], [2.5]], np.float32)  # days
    candidates = Candidates(ages, np.array([0, 2]), np.array(["q"]), feature_names=names, recipe=recipe)
    model = PointwiseModel.of(LinearPolicy(np.ones(1, np.float32), Normaliser.fit("min-max", candidates)))
    (feature,) = json.loads(EXPORTERS.get("solr")().export(model, "shop").companions[".features.json"])
    assert feature["params"]["q"].startswith(
        "{!func}if(exists(added),div(ms(2026-11-01T00:00:00.000Z,added),86400000),"
    )
    profile = Vespa().export(model, "shop").companions[".profile"].decode()
    assert "(1793491200.0 - attribute(added)) / 86400" in profile


ENGINES = ["solr", "vespa", "elasticsearch-ltr", "opensearch-ltr", "elastic"]
# What columns of a table become: two levels of a category of which one is frequent, one for no category; a date with
# gaps; a number with gaps.
TABLE = (
    FeatureColumn("brand", "category", levels=("a", "b"), missing_level=True),
    FeatureColumn("added", "date", latest="2026-11-01T00:00:00"),
    FeatureColumn("price"),
)


def trees_on_a_table(gaps: float) -> PointwiseModel:
    """Trees that split at every column.

    Args:
        gaps: Share of missing dates and prices.
    """
    rng = np.random.default_rng(1)
    level = rng.choice(3, 400, p=[0.7, 0.2, 0.1])
    numbers = rng.random((400, 2)).round(3) * 100
    numbers[rng.random((400, 2)) < gaps] = np.nan
    features = np.column_stack([level == 0, level == 1, level == 2, numbers]).astype(np.float32)
    recipe = FeatureRecipe(TABLE)
    names = np.array(recipe.feature_names)
    candidates = Candidates(features, np.array([0, 400]), np.array(["q"]), feature_names=names, recipe=recipe)
    target = np.array([1, -1, 2])[level] + np.nan_to_num(numbers, nan=50) @ np.array([0.05, 0.03])
    parameters = {"num_leaves": 15, "verbosity": -1, "num_threads": 1}
    booster = lightgbm.train(parameters, lightgbm.Dataset(features, target), 20)
    trees = RegressionTrees.from_lightgbm(booster.model_to_string())
    return PointwiseModel.of(TreesPolicy(trees, 1, Normaliser.fit("none", candidates)))


@pytest.mark.parametrize("gaps", [0.0, 0.2])
@pytest.mark.parametrize("target", ENGINES)
def test_trees_on_dates_and_frequent_categories_keep_their_order(target: str, gaps: float) -> None:
    model = trees_on_a_table(gaps)
    check = check_export(model, EXPORTERS.get(target)().export(model, "shop").score, number=1_000)
    check.require()
    assert check.max_difference <= 1e-5 * max(1, check.max_score)


def test_a_rank_profile_has_an_expression_for_each_feature(model: PointwiseModel) -> None:
    profile = Vespa().export(model, "shop").companions[".profile"].decode()
    for expression in (
        "attribute(price)",
        'if (attribute(brand) == "Acme & Co", 1, 0)',
        'if (attribute(brand) == "", 1, 0)',
        "if (attribute(kind_bucket) == 1, 1, 0)",
        "tensor<float>(d0[1],d1[7])",
        "onnx(shop).score",
    ):
        assert expression in profile
    assert profile.count("{") == profile.count("}")


def test_negative_values_and_hashes_are_warned_about(model: PointwiseModel) -> None:
    assert feature_warnings(model) == ["kind: index the bucket of the hash as a field NAME_bucket"]
    negative = Normaliser("min-max", np.array([-1.0, 0.0]), np.array([1.0, 1.0]))
    (warning,) = feature_warnings(PointwiseModel.of(LinearPolicy(np.ones(2, np.float32), negative)))
    assert warning.startswith("feature_1 had negative values in training")
    assert feature_warnings(PointwiseModel.of(LinearPolicy(np.ones(2, np.float32), UNSCALED))) == []


def test_what_is_made_of_a_feature_takes_no_feature_s_name() -> None:
    names = np.array(["price", "price_is_missing", "price_scaled"])
    features = np.array([[1, 0, 5], [np.nan, 1, 7], [3, 0, 9]], np.float32)
    candidates = Candidates(features, np.array([0, 3]), np.array(["q"]), feature_names=names)
    model = PointwiseModel.of(LinearPolicy(np.array([1, 2, 3, 4], np.float32), Normaliser.fit("min-max", candidates)))
    exported = EXPORTERS.get("elasticsearch-ltr")().export(model, "shop")
    made = [feature["name"] for feature in json.loads(exported.companions[".features.json"])["featureset"]["features"]]
    assert len(set(made)) == len(made)
    score = engines.ltr_plug_in(exported.content, exported.companions[".features.json"], 0.0)
    fields = [{n: float(v) for n, v in zip(names, row, strict=True) if not np.isnan(v)} for row in features]
    assert [score(one) for one in fields] == pytest.approx(model.score(features).tolist(), abs=1e-6)


def test_names_are_safe_and_different() -> None:
    names = engine_names(["a b", "a_b", "a=b", "1st", "größe", "", "x" * 80])
    assert names == ["a_b", "a_b_2", "a_b_3", "_1st", "gr_e", "_", "x" * 80]
