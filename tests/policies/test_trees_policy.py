from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from cuolr.data.synthetic import generate
from cuolr.errors import InputError
from cuolr.policies.model_folder import load_policy, save_policy
from cuolr.policies.regression_trees import RegressionTrees
from cuolr.policies.trees_policy import MAX_DOCUMENTS, TreesPolicy, grow_ranking_trees
from cuolr.supervised.oracle import LambdaMartSettings, fit_lambdamart
from cuolr.types import Candidates

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
