"""Trees, also by bit vectors, which give the sums of LightGBM, to the bit."""

from dataclasses import replace
from pathlib import Path
from unittest import mock

import lightgbm as lgb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuolr.data.synthetic import generate
from cuolr.errors import InputError
from cuolr.policies.bit_vector_trees import MAX_LEAVES, BitVectorTrees
from cuolr.policies.model_folder import load_policy, save_policy
from cuolr.policies.regression_trees import KNOWN_SPLITS, RegressionTrees
from cuolr.policies.trees_policy import MAX_DOCUMENTS, TreesPolicy, grow_ranking_trees
from cuolr.supervised.oracle import LambdaMartSettings, fit_lambdamart
from cuolr.types import Candidates, Floats
from tests.policies.test_regression_trees import scores, small

FEW_TREES = LambdaMartSettings(trees=5, leaves=4, learning_rate=0.2, min_documents_per_leaf=5, threads=1)


@pytest.fixture(scope="module")
def policy() -> TreesPolicy:
    return fit_lambdamart(generate("tiny", 50, seed=1), settings=FEW_TREES)


def test_a_loaded_policy_scores_like_the_saved_one(policy: TreesPolicy, tmp_path: Path) -> None:
    save_policy(policy, tmp_path / "model")
    loaded = load_policy(tmp_path / "model")
    assert isinstance(loaded, TreesPolicy)
    candidates = generate("tiny", 20, seed=1, split="test").candidates
    np.testing.assert_array_equal(loaded.score(candidates), policy.score(candidates))


def test_documents_of_another_width_are_refused(policy: TreesPolicy) -> None:
    candidates = Candidates(np.zeros((2, 3), np.float32), np.array([0, 2]), np.array(["q"]))
    with pytest.raises(InputError, match="documents with 10 features, as in training, found 3"):
        policy.score(candidates)


def test_no_documents_give_no_scores(policy: TreesPolicy) -> None:
    candidates = Candidates(np.zeros((0, 10), np.float32), np.array([0, 0]), np.array(["q"]))
    assert policy.rank(candidates, 3).tolist() == [[-1, -1, -1]]


def test_the_score_of_a_document_does_not_depend_on_the_queries_around_it(policy: TreesPolicy) -> None:
    candidates, some = generate("tiny", 20, seed=2).candidates, np.array([7, 3])
    np.testing.assert_array_equal(
        policy.score(candidates.select(some)), policy.score(candidates)[candidates.rows_of(some)]
    )


def test_a_file_that_claims_other_trees_is_refused_in_one_line(policy: TreesPolicy, tmp_path: Path) -> None:
    """A stranger's model: its hash is right, its trees go round in circles."""
    with mock.patch.object(RegressionTrees, "_problems", return_value=iter(())):
        circle = TreesPolicy.__new__(TreesPolicy)
        circle.trees = replace(policy.trees, left=np.zeros_like(policy.trees.left))
        circle.threads, circle.normaliser = 1, policy.normaliser
        save_policy(circle, tmp_path / "model")
    with pytest.raises(InputError, match=r"does not hold a 'trees' policy: .*each split and each leaf once"):
        load_policy(tmp_path / "model")


def test_no_trees_score_0() -> None:
    none, candidates = np.empty(0, np.int64), generate("tiny", 3, seed=1).candidates
    trees = RegressionTrees(10, none, none, none.astype(float), none, none, none, none.astype(float))
    assert not TreesPolicy(trees).score(candidates).any()


def test_of_a_very_long_list_the_documents_of_high_grades_are_learned_from() -> None:
    """More than LightGBM takes: what is left out are documents of grade 0 at the end."""
    rng = np.random.default_rng(1)
    sizes = np.array([50, MAX_DOCUMENTS + 500, 60])
    features = rng.normal(size=(int(sizes.sum()), 3)).astype(np.float32)
    grades = np.where(features[:, 0] > 2, 2, 0)
    few = {"num_threads": 1, "num_leaves": 4, "min_data_in_leaf": 5}
    long = slice(50, 50 + MAX_DOCUMENTS + 500)
    dropped = 50 + np.flatnonzero(grades[long] == 0)[-500:]
    kept = np.setdiff1d(np.arange(len(grades)), dropped)
    by_hand = grow_ranking_trees(features[kept], grades[kept], np.array([50, MAX_DOCUMENTS, 60]), few, 5)
    assert grow_ranking_trees(features, grades, sizes, few, 5).lightgbm_text == by_hand.lightgbm_text


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
