"""Trees as arrays: the same scores as the library that grew them, and nothing that could crash or hang it."""

from typing import Any

import lightgbm as lgb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuolr.policies.regression_trees import RegressionTrees

RNG = np.random.default_rng(0)
FEATURES = RNG.random((600, 5)).astype(np.float32)
FEATURES[RNG.random(FEATURES.shape) < 0.1] = np.nan
FEATURES[:, 4] = np.nan_to_num(FEATURES[:, 4])
GRADES = RNG.integers(0, 3, 600)
OTHERS = RNG.normal(0.5, 1, (300, 5)).astype(np.float32)
OTHERS[RNG.random(OTHERS.shape) < 0.2] = np.nan

# x0 ≤ 0.5 ? (x1 ≤ 0.25 ? 1 : 2) : 4, and a tree of one leaf.
SMALL: dict[str, Any] = {
    "leaves": [3, 1],
    "feature": [0, 1],
    "threshold": [0.5, 0.25],
    "kind": [0, 10],
    "left": [1, -1],
    "right": [-3, -2],
    "value": [1.0, 2.0, 4.0, 0.25],
}


def small(**changed: Any) -> RegressionTrees:
    values = {**SMALL, **changed}
    types: dict[str, Any] = {"threshold": np.float64, "value": np.float64}
    return RegressionTrees(2, *(np.array(value, types.get(name, np.int64)) for name, value in values.items()))


def scores(trees: RegressionTrees, features: Any) -> Any:
    return lgb.Booster(model_str=trees.lightgbm_text).predict(np.asarray(features, np.float32))


def slow_scores(trees: RegressionTrees, features: Any) -> list[float]:
    """A plain walk down each tree."""
    found = []
    for document in np.asarray(features, np.float64):
        total, split, leaf = 0.0, 0, 0
        for leaves in trees.leaves:
            node = 0 if leaves > 1 else -1
            while node >= 0:
                at = split + node
                value = document[trees.feature[at]]
                if np.isnan(value) and trees.kind[at] in (8, 10):
                    goes_left = trees.kind[at] == 10
                else:
                    goes_left = np.nan_to_num(value, nan=0.0) <= trees.threshold[at]
                node = int((trees.left if goes_left else trees.right)[at])
            total += float(trees.value[leaf - 1 - node])
            split, leaf = split + leaves - 1, leaf + leaves
        found.append(total)
    return found


def test_a_hand_worked_tree() -> None:
    features = [[0.5, 0.25], [0.5, 0.3], [0.6, 0.0], [np.nan, np.nan]]
    assert scores(small(), features).tolist() == slow_scores(small(), features) == [1.25, 2.25, 4.25, 1.25]


@pytest.mark.parametrize(("leaves", "trees", "documents"), [(2, 1, 5), (15, 40, 5), (31, 3, 700)])
def test_lightgbm_scores_its_own_trees_the_same_to_the_bit(leaves: int, trees: int, documents: int) -> None:
    settings = {"objective": "lambdarank", "verbosity": -1, "num_leaves": leaves, "min_data_in_leaf": documents}
    model = lgb.train(settings, lgb.Dataset(FEATURES, GRADES, group=[50] * 12), trees)
    found = RegressionTrees.from_lightgbm(model.model_to_string())
    assert found.n_features == 5
    np.testing.assert_array_equal(scores(found, OTHERS), model.predict(OTHERS))
    np.testing.assert_allclose(slow_scores(found, OTHERS), model.predict(OTHERS), rtol=1e-12)
    assert RegressionTrees.from_arrays(found.arrays()).lightgbm_text == found.lightgbm_text


@pytest.mark.parametrize("policy", ["depthwise", "lossguide"])
def test_xgboost_scores_the_same_up_to_rounding(policy: str) -> None:
    xgb = pytest.importorskip("xgboost")
    data = xgb.DMatrix(FEATURES, GRADES)
    data.set_group([50] * 12)
    parameters = {"objective": "rank:ndcg", "max_depth": 4, "grow_policy": policy, "gamma": 0.5, "base_score": 0.7}
    model = xgb.train(parameters, data, 30)
    found = RegressionTrees.from_xgboost(bytes(model.save_raw("json")))
    # Values of the training data lie on thresholds.
    for features in (OTHERS, FEATURES):
        np.testing.assert_allclose(scores(found, features), model.predict(xgb.DMatrix(features)), atol=1e-5)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"left": [0, -1]}, "below a split that comes before it"),  # a cycle
        ({"left": [1, -2], "right": [-3, -2]}, "each split and each leaf once"),  # a leaf twice
        ({"left": [7, -1]}, "each split"),
        ({"right": [-9, -2]}, "each leaf"),
        ({"right": [-4, -2]}, "each leaf"),  # a leaf of the next tree
        ({"feature": [0, 2]}, "features from 0 to 1"),
        ({"feature": [0, -1]}, "features from 0 to 1"),
        ({"threshold": [0.5, np.nan]}, "numbers as thresholds"),
        ({"value": [1.0, 2.0, np.inf, 0.0]}, "finite values"),
        ({"value": [1.0, 2.0, -1e300, 0.0]}, "finite values, up to 1e\\+30"),
        ({"value": [1.0, 2.0]}, "trees of at least one leaf"),
        ({"value": [1.0, 2.0, 3.0]}, "a value for each of 4 leaves, found 3"),
        ({"kind": [1, 0]}, "splits of the kinds"),
        ({"kind": [0]}, "expected 2 splits"),
        ({"leaves": [4, 0]}, "at least one leaf"),
        ({"leaves": [2**62, 2**62]}, "at least one leaf"),
        ({"value": [[1.0, 2.0, 4.0, 0.25]]}, "one dimension"),
        ({"leaves": [3] + [1] * 100_000, "value": [0] * 100_003}, "at most 100,000 trees, found 100,001"),
    ],
)
def test_what_is_no_tree_is_refused(changed: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        small(**changed)


@pytest.mark.thorough
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_any_arrays_are_refused_or_are_scored_like_a_walk_down_the_trees(data: st.DataObject) -> None:
    """A crash or a hang of LightGBM would end this test too."""
    changed = {name: list(values) for name, values in SMALL.items()}
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from(sorted(changed)))
        if changed[name]:
            at = data.draw(st.integers(0, len(changed[name]) - 1))
            real = name in ("threshold", "value")
            numbers = st.floats() if real else st.integers(-5, 12) | st.integers(-(2**31), 2**31)
            changed[name][at] = data.draw(numbers)
    try:
        trees = small(**changed)
    except ValueError:
        return
    np.testing.assert_array_equal(scores(trees, OTHERS[:, :2]), slow_scores(trees, OTHERS[:, :2]))


@pytest.mark.parametrize(
    "text",
    ["", "tree\nmax_feature_idx=x\n\nTree=0\nnum_leaves=1\n", "\0" * 50, "Tree=0\n" * 9],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises((ValueError, LookupError)):
        RegressionTrees.from_lightgbm(text)
