"""Bit vectors give the sums of LightGBM, to the bit."""

import lightgbm as lgb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuolr.policies.bit_vector_trees import MAX_LEAVES, BitVectorTrees
from cuolr.policies.regression_trees import KNOWN_SPLITS, RegressionTrees
from cuolr.policies.trees_policy import TreesPolicy
from cuolr.types import Floats
from tests.policies.test_regression_trees import scores, small

# LightGBM takes values up to 1e-35 for 0.
SMALL = (0.0, -0.0, 1e-46, -1e-46, 1e-40, 1e-35, -1e-35, float(np.float32(1e-35)), -float(np.float32(1e-35)), 1.1e-35)
THRESHOLDS = (*SMALL, -1e39, -1.5, 0.1, 1 / 3, 1.0, 3e38, 1e39, float("inf"), float("-inf"))


def random_trees(rng: np.random.Generator, n_trees: int, most: int) -> RegressionTrees:
    """Trees of any shape; each leaf may become a split, which keeps children behind their parents."""
    parts: dict[str, list[float]] = {name: [] for name in ("leaves", "left", "right")}
    for _ in range(n_trees):
        leaves, left, right = 1, list[int](), list[int]()
        for split in range(int(rng.integers(0, most))):
            if split:
                above = int(rng.integers(split))
                side = left if left[above] < 0 and (right[above] >= 0 or rng.random() < 0.5) else right
                if side[above] >= 0:  # both of its children are splits already: the last split has leaves
                    above, side = split - 1, left
                kept, side[above] = side[above], split
            else:
                kept = -1
            leaves += 1
            left.append(kept)
            right.append(-leaves)
        parts["leaves"].append(leaves)
        parts["left"] += left
        parts["right"] += right
    n_splits, n_leaves = len(parts["left"]), int(sum(parts["leaves"]))
    return RegressionTrees(
        n_features=4,
        leaves=np.array(parts["leaves"], np.int64),
        feature=rng.integers(0, 4, n_splits),
        threshold=rng.choice(THRESHOLDS, n_splits),
        kind=rng.choice(KNOWN_SPLITS, n_splits),
        left=np.array(parts["left"], np.int64),
        right=np.array(parts["right"], np.int64),
        value=rng.standard_normal(n_leaves) * 10.0 ** rng.integers(-3, 4, n_leaves),
    )


def at_thresholds(rng: np.random.Generator, n: int) -> Floats:
    """Documents at, just below and just above thresholds, some without a value."""
    with np.errstate(over="ignore"):
        at = np.array(THRESHOLDS).astype(np.float32)
    near = np.concatenate([at, np.nextafter(at, np.float32(-np.inf)), np.nextafter(at, np.float32(np.inf)), [np.nan]])
    return rng.choice(near, (n, 4)).astype(np.float32)


@settings(max_examples=200)
@given(seed=st.integers(0, 2**32), n_trees=st.integers(1, 40), most=st.integers(2, MAX_LEAVES))
def test_trees_of_any_shape_have_the_sums_of_lightgbm(seed: int, n_trees: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    trees, features = random_trees(rng, n_trees, most), at_thresholds(rng, int(rng.integers(1, 30)))
    if (found := BitVectorTrees.of(trees)) is not None:
        np.testing.assert_array_equal(found.sums(features), scores(trees, features))


@pytest.mark.parametrize(("leaves", "n_trees"), [(2, 3), (15, 60), (16, 60), (17, 60), (32, 200)])
def test_grown_trees_have_the_sums_of_lightgbm_whatever_the_number_of_documents(leaves: int, n_trees: int) -> None:
    rng = np.random.default_rng(1)
    features = rng.standard_normal((2_000, 6)).astype(np.float32)
    features[rng.random(features.shape) < 0.1] = np.nan
    target = np.nan_to_num(features) @ np.arange(6)
    parameters = {"num_leaves": leaves, "verbosity": -1, "num_threads": 1}
    trees = RegressionTrees.from_lightgbm(
        lgb.train(parameters, lgb.Dataset(features, target), n_trees).model_to_string()
    )
    found, expected = BitVectorTrees.of(trees), scores(trees, features)
    assert found is not None
    for n in (0, 1, 2, 41, 2_000):
        np.testing.assert_array_equal(found.sums(features[:n]), expected[:n])
    assert found.sums(features[[7]]).tolist() == [expected[7]]


def test_a_hand_worked_tree() -> None:
    found = BitVectorTrees.of(small())
    assert found is not None
    features = np.array([[0.5, 0.25], [0.5, 0.3], [0.6, 0.0], [np.nan, np.nan]], np.float32)
    assert found.sums(features).tolist() == [1.25, 2.25, 4.25, 1.25]


def test_large_trees_and_few_large_ones_among_many_small_ones_are_left_to_lightgbm() -> None:
    rng = np.random.default_rng(1)
    chain = np.arange(1, MAX_LEAVES)
    one = RegressionTrees(
        n_features=1,
        leaves=np.array([MAX_LEAVES, *[1] * 200]),
        feature=np.zeros(MAX_LEAVES - 1, np.int64),
        threshold=np.sort(rng.random(MAX_LEAVES - 1)),
        kind=np.zeros(MAX_LEAVES - 1, np.int64),
        left=-chain,
        right=np.append(chain[:-1], -MAX_LEAVES),
        value=rng.random(MAX_LEAVES + 200),
    )
    large = RegressionTrees(
        1,
        np.array([MAX_LEAVES + 1]),
        np.zeros(MAX_LEAVES, np.int64),
        np.sort(rng.random(MAX_LEAVES)),
        np.zeros(MAX_LEAVES, np.int64),
        -np.arange(1, MAX_LEAVES + 1),
        np.append(np.arange(1, MAX_LEAVES), -MAX_LEAVES - 1),
        rng.random(MAX_LEAVES + 1),
    )
    features = rng.random((9, 1)).astype(np.float32)
    for trees in (one, large):
        assert BitVectorTrees.of(trees) is None
        np.testing.assert_array_equal(
            TreesPolicy(trees).score_scaled(features), scores(trees, features).astype(np.float32)
        )
